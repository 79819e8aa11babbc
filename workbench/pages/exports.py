"""What can be taken away from a page: a trace, tables, a report that needs no server, and the view as code."""

from __future__ import annotations

import io
import tempfile
import zipfile
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from workbench.analysis.exporting.export import export
from workbench.config import ConfigError
from workbench.pages.addresses import Address
from workbench.pages.event_words import sentence, who
from workbench.pages.recording import Recording
from workbench.pages.replay_drawing import SMOOTHED

BYTES_MAX = 32 << 20
EVENTS_MAX = 300_000
"""What is larger would hold the page up for minutes: the command line writes it."""
REPORTED = ("swimlanes", "loss", "goodput", "participation", "staleness", "behind", "tokens", "traffic", "norms")
"""Figures of a report, where the tape can tell them."""
LANES_S = 60.0
"""Of longer runs a report shows the lanes around the cursor only [s]."""


class Export(NamedTuple):
    """A file for the browser to save."""

    name: str
    kind: str
    data: bytes


def trace(recording: Recording) -> Export:
    """A trace for ui.perfetto.dev, compressed."""
    _check_size(recording, "perfetto")
    with tempfile.TemporaryDirectory() as scratch:
        made = export(recording.tape, "perfetto", Path(scratch) / "trace.json.gz")
        return _checked(
            recording, "perfetto", Export(f"{recording.path.name}.json.gz", "application/gzip", made.read_bytes())
        )


def tables(recording: Recording) -> Export:
    """All tables as CSV files in an archive."""
    _check_size(recording, "csv")
    packed = io.BytesIO()
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        made = export(recording.tape, "csv", Path(scratch) / "tables")
        for path in sorted(made.rglob("*.csv")):
            archive.write(path, path.relative_to(made).as_posix())
    return _checked(recording, "csv", Export(f"{recording.path.name}-csv.zip", "application/zip", packed.getvalue()))


def report(recording: Recording, at: Address, theme: str) -> Export:
    """One page of HTML with card, cursor and figures; it works without a network."""
    from workbench import views
    from workbench.views.figure_tables import caption
    from workbench.views.tape_card import tape_card

    _check_size(recording, "csv")
    tape, time_s = recording.tape, float(recording.time_s[at.event])
    last = float(recording.time_s.max(initial=0.0))
    around = {} if last <= LANES_S else {"start_s": time_s - LANES_S / 2, "end_s": time_s + LANES_S / 2}
    options: dict[str, dict[str, Any]] = {"swimlanes": around, "loss": {"x": "time_s"}}
    drawn = {
        name.replace("_", " "): getattr(views, name)(tape, theme=theme, **options.get(name, {}))
        for name in REPORTED
        if name not in tape.wb.untold
    }
    text = views.to_html(
        drawn, f"{recording.path.name}: report", theme, before=tape_card(tape) + _at_cursor(recording, at),
        sentences={heading: caption(heading.replace(" ", "_")) for heading in drawn},
    )  # fmt: skip
    return _checked(recording, "csv", Export(f"{recording.path.name}-report.html", "text/html", text.encode()))


class Shown(NamedTuple):
    """What the lanes show: from, to [s], and whose."""

    start_s: float
    end_s: float
    learners: tuple[int, ...]


def lanes(recording: Recording, shown: Shown, theme: str) -> Export:
    """The lanes as SVG."""
    from workbench.views.pictures import svg_text

    text = svg_text(
        recording.tape, start_s=shown.start_s, end_s=shown.end_s, learners=shown.learners, theme=theme
    )  # fmt: skip
    return _checked(recording, "svg", Export(f"{recording.path.name}-lanes.svg", "image/svg+xml", text.encode()))


def grid(recording: Recording, at: Address, theme: str) -> Export:
    """The learners at the cursor as SVG."""
    from workbench.views.drawing import to_svg
    from workbench.views.pictures import Film

    made = to_svg(Film(recording.tape, speed=1e12, theme=theme).at(at.event))
    return Export(f"{recording.path.name}-{at.event}.svg", "image/svg+xml", made.encode())


def film(recording: Recording, at: Address, theme: str) -> Export:
    """The learners over the chosen part of the run, or over all of it, as a GIF."""
    from workbench import views

    start_s, end_s = at.span_s or (None, None)
    with tempfile.TemporaryDirectory() as scratch:
        made = views.gif(recording.tape, Path(scratch) / "grid.gif", start_s=start_s, end_s=end_s, theme=theme)
        return _checked(recording, "gif", Export(f"{recording.path.name}.gif", "image/gif", made.read_bytes()))


def _at_cursor(recording: Recording, at: Address) -> str:
    look = recording.look(at.event, at.held)
    said = recording.said(at.event)
    why = look.why.sentence if look.why is not None else look.untold
    learners = "".join(f"<li>{escape(line)}</li>" for line in repr(look.moment).splitlines()[1:])
    when = f"{recording.time_s[at.event]:.2f} s from the start of rounds"
    return (
        f"<h2>At event {at.event:,} (of events 0 to {recording.count - 1:,}), {when}</h2><p>{escape(who(said))}: "
        f"{escape(sentence(said))}</p><p>{escape(why)}</p><ul>{learners}</ul>"
    )


def code(recording: Recording, at: Address) -> str:
    """The view as lines for a notebook."""
    lines = [
        "import workbench as wb",
        "",
        f"tape = wb.open_tape({str(recording.path)!r})",
        f"moment = tape.wb.at({at.event})",
    ]
    held = at.event if at.held < 0 else at.held
    lines += [f"past, future = tape.wb.past({held}), tape.wb.future({held})"]
    merge = recording.merge_of(held)
    if merge >= 0 and "why" not in recording.tape.wb.untold:
        lines += [f"print(tape.wb.why({merge}))"]
    time_s = float(recording.time_s[at.event])
    lines += [f"lanes = wb.views.swimlanes(tape, start_s={max(0.0, time_s - 5.0):.3f}, end_s={time_s + 5.0:.3f})"]
    figure = at.figure or "loss"
    more = ', x="time_s"' if figure == "loss" else ""
    more += f", smooth={at.smooth / 100}" if at.smooth > 0 and figure in SMOOTHED else ""
    lines += [f'found = tape.wb.find("{at.find}")'] if at.find else []
    return "\n".join([*lines, f"figure = wb.views.{figure}(tape{more})", "moment"]) + "\n"


def code_of_comparison(recordings: list[Recording], axis: str) -> str:
    """A comparison as lines for a notebook."""
    paths = ", ".join(repr(str(one.path)) for one in recordings)
    return (
        f'import workbench as wb\n\nfound = wb.compare({paths}, axis="{axis}")\nprint(found.first_divergence)\nfound\n'
    )


def _check_size(recording: Recording, form: str) -> None:
    if recording.count > EVENTS_MAX:
        raise ConfigError(_by_hand(recording, form, f"{recording.count:,} events"))


def _checked(recording: Recording, form: str, made: Export) -> Export:
    if len(made.data) > BYTES_MAX:
        raise ConfigError(_by_hand(recording, form, f"{len(made.data):,} bytes"))
    return made


def _by_hand(recording: Recording, form: str, size: str) -> str:
    return f"{size} are too much for a page; type workbench export {recording.path} --format {form}"
