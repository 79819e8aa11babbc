"""What several runs have in common and what not, as HTML: where they come from, where they part, their numbers."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import Any

from workbench.analysis.comparing.divergence import Divergence
from workbench.analysis.comparing.sentences import setting_title
from workbench.pages import style
from workbench.pages.addresses import REPLAY
from workbench.pages.linked import Linked
from workbench.pages.recording import Recording
from workbench.pages.session import Session
from workbench.tape.marks import MEANINGS
from workbench.views.learner_cells import then_cells

SIGNS = {"recorded": "✓", "re_simulated": "≈", "recomputed": "∑"}
SHARE = ".1%"
FIGURES = {
    "val_loss_last": ("validation loss [nat per byte]", ".4f"), "merges": ("merges", ",.0f"),
    "tokens_processed": ("tokens processed", ",.0f"), "tokens_merged": ("tokens merged", ",.0f"),
    "goodput": ("goodput", SHARE), "uptime": ("uptime", SHARE), "participation": ("participation", SHARE),
    "time_s": ("time [s]", ",.2f"),
}  # fmt: skip
VALUE_MAX, WHOLE_MAX = 60, 16
"""Letters of a setting that are shown, and that are never broken."""
THEN = "".join(f"<th>{name}</th>" for name in ("", "event", "time", "merges", "loss", "validation", "learners", ""))


def story_html(linked: Linked, session: Session) -> str:
    """The runs, where each comes from, and where it parts from the first."""
    rows = "".join(
        f"<tr><td><b>{letter}</b></td><td class='long'>"
        f"<a href='{escape(session.link(REPLAY, name))}'>{escape(name)}</a></td>"
        f"<td>{badges_html(recording)}</td><td class='told'>{_parts_at(linked, session, number)}</td></tr>"
        for number, (letter, name, recording) in enumerate(
            zip(linked.letters, linked.names, linked.recordings, strict=True)
        )
    )
    head = "<tr><th></th><th>run</th><th>its events</th><th>parts from A</th></tr>"
    return "<h2>Runs</h2>" + style.wide(f'<table class="story">{head}{rows}</table>', "runs")


def badges_html(recording: Recording) -> str:
    """Which part of a tape was recorded, which simulated again, which computed anew."""
    marks = Counter(recording.tape.wb.marks().values.tolist())
    total = sum(marks.values())
    named = [(MEANINGS[mark], count) for mark, count in sorted(marks.items())]
    return " ".join(
        f'<span class="mark">{SIGNS[name]} {name.replace("_", "-")} {count / total:.0%}</span>' for name, count in named
    )


def _parts_at(linked: Linked, session: Session, number: int) -> str:
    if not number:
        return '<span class="quiet">what the others are compared with</span>'
    found = linked.found.divergences[number]
    if found is None:
        return "nowhere: bit for bit the same"
    return f"{escape(found.text(('A', linked.letters[number])))} {_ways(linked, session, number, found)}"


def _ways(linked: Linked, session: Session, number: int, found: Divergence) -> str:
    """Links to the place in both tapes."""
    ways = [(0, found.event), (number, found.other_event)]
    return " ".join(
        f'<a href="{escape(session.link(REPLAY, linked.names[run], event))}">in {linked.letters[run]}</a>'
        for run, event in ways
        if event is not None
    )


def settings_html(linked: Linked) -> str:
    """Settings that differ."""
    if not linked.found.settings:
        return "<h2>Settings that differ</h2><p>No setting differs.</p>"
    rows = "".join(
        f"<tr><td>{escape(setting_title(key))}</td>{''.join(_setting(value) for value in values)}</tr>"
        for key, values in linked.found.settings.items()
    )
    table = f"<table><tr><th>setting</th>{_heads(linked)}</tr>{rows}</table>"
    return f"<h2>Settings that differ</h2>{style.wide(table, 'settings that differ')}"


def figures_html(linked: Linked) -> str:
    """Numbers at the end, each with its difference to the first run, and intervals over seeds."""
    rows = "".join(_figure(linked, name, title, form) for name, (title, form) in FIGURES.items())
    table = f"<table class='end'><tr><th></th>{_heads(linked)}</tr>{rows}</table>"
    return f"<h2>At the end</h2>{style.wide(table, 'numbers at the end')}{_intervals(linked)}"


def _heads(linked: Linked) -> str:
    share = 80 // len(linked.letters)
    return "".join(f"<th style='width:{share}%'>{letter}</th>" for letter in linked.letters)


def _setting(value: Any) -> str:
    """A cell; what is longer than a word or two may be broken anywhere, as a path."""
    text = _short(value)
    kind = " class='long'" if len(text) > WHOLE_MAX else ""
    return f"<td{kind}>{escape(text)}</td>"


def _figure(linked: Linked, name: str, title: str, form: str) -> str:
    cells = []
    for number, run in enumerate(linked.found.figures):
        value, less = run.get(name), linked.found.differences.get(name, [None] * 6)[number]
        said = "–" if value is None else format(value, form).replace("%", " %")
        change = "" if not number or less is None else f"<br><span class='quiet'>{_less(less, form)}</span>"
        cells.append(f"<td>{said}{change}</td>")
    return f"<tr><td>{escape(title)}</td>{''.join(cells)}</tr>"


def _less(less: float, form: str) -> str:
    """A difference with the digits of its figure, or that it is less than they show."""
    if form == SHARE:
        points = f"{less * 100:+.1f} points"
        return points if abs(less) >= 0.0005 else "less than 0.1 points" if less else "the same"
    text = format(less, "+" + form)
    if text.strip("+-0.,"):
        return text
    return f"less than {10.0 ** -int(form.rstrip('f')[-1]):g}" if less else "the same"


def _intervals(linked: Linked) -> str:
    """Runs that differ in their seed only, as mean and interval."""
    rows = []
    for group in linked.found.groups:
        if len(group["runs"]) < 2:
            continue
        told = group["figures"].get("val_loss_last") or {}
        if told.get("mean") is not None:
            letters = ", ".join(linked.letters[number] for number in group["runs"])
            low, high = told.get("low"), told.get("high")
            interval = f" ({low:.4f} to {high:.4f})" if low is not None and high is not None else ""
            rows.append(f"<p>{letters}, n = {group['n']}: validation loss {told['mean']:.4f}{interval}</p>")
    if rows and linked.found.repeats:
        repeats = ", ".join(linked.letters[number] for number in linked.found.repeats)
        rows.append(f"<p class='quiet'>settings and seed of a run before, so no further seed: {repeats}</p>")
    return f"<h2 class='next'>Over seeds</h2>{''.join(rows)}" if rows else ""


def then_html(linked: Linked, session: Session, axis: str, value: float) -> str:
    """Each run at one place of the common axis."""
    rows = [
        _then(linked, session, number, event, over)
        for number, (event, over) in enumerate(zip(linked.events(axis, value), linked.over(axis, value), strict=True))
    ]
    return f"<p class='where'>all cursors at {escape(linked.text(axis, value))}</p>" + style.wide(
        f"<table class='then'><tr>{THEN}</tr>{''.join(rows)}</table>", "the runs at the cursor"
    )


def _then(linked: Linked, session: Session, number: int, event: int, over: bool) -> str:
    recording = linked.recordings[number]
    moment = recording.tape.wb.at(event)
    loss = [one.loss for one in moment.learners if one.connected and one.loss == one.loss]
    learners = " ".join(
        f"<span class='mark'>{one['label']} {one['sign']} {escape(one['word'])}</span>" for one in then_cells(moment)
    )
    link = escape(session.link(REPLAY, linked.names[number], event))
    values: list[Any] = [
        f"<b>{linked.letters[number]}</b>", f"{event:,}" + (" (over)" if over else ""),
        f"{recording.time_s[event]:.2f}&nbsp;s", f"{moment.merges:,}", f"{sum(loss) / len(loss):.3f}" if loss else "–",
        f"{moment.validation[1]:.3f}" if moment.validation else "–", learners, f"<a href='{link}'>open here</a>",
    ]  # fmt: skip
    return f"<tr data-event='{event}'>{''.join(f'<td>{one}</td>' for one in values)}</tr>"


def _short(value: Any) -> str:
    if isinstance(value, dict):
        value = [f"{key} = {one}" for key, one in value.items()]
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    text = "–" if value is None else str(value).strip().replace("\n", " ") or "none"
    return text if len(text) <= VALUE_MAX else f"{text[: VALUE_MAX - 1]}…"
