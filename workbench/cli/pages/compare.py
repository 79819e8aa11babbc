"""Several runs side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from workbench.analysis.comparing.sentences import setting_title
from workbench.cli import output, words

if TYPE_CHECKING:
    from workbench.analysis.comparing.comparison import Comparison

POINTS_MAX = 12
VALUE_MAX = 28
"""Points of the axis, and characters of a setting, that are shown."""
PERCENT = 100.0
FIGURES = {
    "val_loss_first": ("validation loss, first [nats/byte]", 1.0, 4),
    "val_loss_last": ("validation loss, last [nats/byte]", 1.0, 4),
    "goodput": ("goodput [%]", PERCENT, 1),
    "uptime": ("uptime [%]", PERCENT, 1),
    "merge_availability": ("merge availability [%]", PERCENT, 1),
    "participation": ("participation [%]", PERCENT, 1),
    "time_s": ("time of rounds [s]", 1.0, 2),
}
"""Figures in words with units, their scale, and the digits behind the point that mean something; others: counts."""
AXIS = {
    "tokens_processed": "tokens processed",
    "tokens_merged": "tokens merged",
    "time_s": "time [s]",
    "merges": "merges",
    "rounds": "rounds",
}


def show(found: Comparison, width: int) -> Iterator[Any]:
    """Yield the comparison."""
    letters = [chr(ord("A") + number) for number in range(len(found.labels))]
    yield from runs(found, letters)
    yield ""
    yield from settings(found, letters)
    yield ""
    yield from divergences(found, letters)
    yield ""
    yield figures(found, letters)
    for row in found.reached:
        yield ""
        yield reached(row, letters)
    yield from groups(found, letters)
    yield ""
    yield from losses(found, letters)


def runs(found: Comparison, letters: Sequence[str]) -> Iterator[Any]:
    """Yield a line for each run, with where it descends from."""
    for letter, run in zip(letters, found.runs, strict=True):
        line = Text.assemble((f"{letter}  {run['label']}", "bold"))
        if run["parent"]:
            names = dict(zip(found.labels, letters, strict=True))
            at = f" from event {run['branch_event']}" if run["branch_event"] is not None else ""
            line.append(f"  what-if ({run['class']}) of {names.get(run['parent'], run['parent'])}{at}", style="dim")
        yield line


def settings(found: Comparison, letters: Sequence[str]) -> Iterator[Any]:
    """Yield the settings that differ."""
    for number in found.unknown:
        yield f"settings of {letters[number]} are unknown: it was imported from the logs of another trainer"
    if not found.settings:
        told = len(letters) - len(found.unknown)
        if told > 1:
            yield "no setting differs" + (" among the others" if found.unknown else "")
        return
    rows = [(setting_title(key), *(_setting(value) for value in values)) for key, values in found.settings.items()]
    yield output.aligned("settings that differ", ("", *letters), rows)


def _setting(value: Any) -> str:
    text = "–" if value is None else (", ".join(map(str, value)) or "none") if isinstance(value, list) else str(value)
    text = " ".join(text.split()) or "none"
    return text if len(text) <= VALUE_MAX else f"{text[: VALUE_MAX - 1]}…"


def divergences(found: Comparison, letters: Sequence[str]) -> Iterator[Any]:
    """Yield where each run parts from the first."""
    for letter, divergence in zip(letters[1:], found.divergences[1:], strict=True):
        why = found.incomparable[letters.index(letter)]
        if why:
            yield Text(f"no first divergence of {letter} from A: {why}")
        elif divergence is None:
            yield f"{letter} is A: nothing that programs read, and no merge, differs"
        else:
            basis = "event by event" if divergence.basis == "programs" else "merge by merge"
            yield Text(f"first divergence of {letter} from A ({basis}): {divergence.text(('A', letter))}")
    if any(found.divergences):
        yield Text("times count from the start of rounds", style="dim")


def figures(found: Comparison, letters: Sequence[str]) -> Any:
    """Return the figures at the end, with the difference of each run to the first."""
    rows = []
    for name, less in found.differences.items():
        values = [rounded(name, run[name]) for run in found.figures]
        cells = [
            f"{value}{_difference(name, d)}" if at else value
            for at, (value, d) in enumerate(zip(values, less, strict=True))
        ]
        rows.append((titled(name), *cells))
    return output.aligned("at the end (difference to A)", ("", *(f">{letter}" for letter in letters)), rows)


def titled(name: str) -> str:
    """Return a figure in words, with its unit."""
    return FIGURES[name][0] if name in FIGURES else words.word(name)


def rounded(name: str, value: float | None, sign: str = "") -> str:
    """Return a figure, or a difference of two, with the digits that mean something.

    Examples
    --------
    >>> rounded("goodput", 0.85081), rounded("val_loss_last", 4.3e-05, "+"), rounded("tokens_merged", 4480.4)
    ('85.1', '+0.0000', '4,480')
    """
    _, scale, digits = FIGURES.get(name, ("", 1.0, 0))
    if scale == PERCENT and not sign:
        return words.percent(value).removesuffix(" %")
    return "none" if value is None else f"{value * scale:{sign},.{digits}f}"


def _difference(name: str, value: float | None) -> str:
    if value is None:
        return ""
    text = rounded(name, value, "+")
    return f" ({text})" if any(letter in "123456789" for letter in text) else " (same)"


def reached(row: dict[str, Any], letters: Sequence[str]) -> Any:
    """Return what it took to reach a loss."""
    lines = [
        (AXIS[name], *("not reached" if value is None else output.number(value) for value in values))
        for name, values in row.items()
        if name in AXIS
    ]
    return output.aligned(f"to reach {row['loss']:g} nats", ("", *(f">{letter}" for letter in letters)), lines)


def groups(found: Comparison, letters: Sequence[str]) -> Iterator[Any]:
    """Yield intervals over runs that differ in their seed only, if there are several of any kind."""
    if not any(row["n"] > 1 for row in found.groups):
        return
    names = ["".join(letters[i] for i in row["runs"]) for row in found.groups]
    heads = [f">{name} (n = {row['n']})" for name, row in zip(names, found.groups, strict=True)]
    rows = [
        (titled(name), *(_cell(name, row["figures"][name], row is found.groups[0]) for row in found.groups))
        for name in found.differences
    ]
    percent = f"{found.groups[0]['level']:.0%}"
    yield ""
    yield output.aligned(f"mean over seeds, {percent} t-interval [difference to {names[0]}]", ("", *heads), rows)
    methods = {row["method"] for row in found.groups} - {"none"}
    if methods:
        yield Text(f"differences: {' and '.join(sorted(methods))}", style="dim")
    if found.copies:
        copies = ", ".join(letters[i] for i in found.copies)
        yield Text(f"bit for bit another run, counted once: {copies}", style="dim")
    if found.repeats:
        repeats = ", ".join(letters[i] for i in found.repeats)
        yield Text(f"settings and seed of a run before, so no further seed: {repeats}", style="dim")


def _cell(name: str, told: dict[str, Any], first: bool) -> str:
    if told["mean"] is None:
        return "none"
    text = _interval(name, told)
    return text if first or told["difference"] is None else f"{text} [{_interval(name, told['difference'], '+')}]"


def _interval(name: str, three: dict[str, Any], sign: str = "") -> str:
    middle = rounded(name, three["mean"], sign)
    return middle if three["low"] is None else f"{middle} ± {rounded(name, three['high'] - three['mean'])}"


def losses(found: Comparison, letters: Sequence[str]) -> Iterator[Any]:
    """Yield the losses at common points of the axis."""
    points = found.curves[found.axis].values
    if not len(points):
        yield f"no common part of the axis {AXIS[found.axis]}: a run has no evaluation, or they do not overlap"
        return
    every = len(points)
    at = range(every) if every <= POINTS_MAX else [round(i * (every - 1) / (POINTS_MAX - 1)) for i in range(POINTS_MAX)]
    loss, less = found.curves["loss"].values, found.curves["difference"].values
    rows = [
        (
            words.count(int(points[i])) if found.axis != "time_s" else f"{points[i]:.2f}",
            *(f"{loss[run, i]:.4f}" + (f" ({less[run, i]:+.4f})" if run else "") for run in range(len(letters))),
        )
        for i in at
    ]
    heads = (f">{AXIS[found.axis]}", *(f">{letter}" for letter in letters))
    yield output.aligned("validation loss [nats] (difference to A), on straight lines between evaluations", heads, rows)
    if every > len(rows):
        yield f"not shown: {every - len(rows):,} points between these (--json has all)"
