"""Several runs side by side as a card: where they part, which settings differ, and what came of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.analysis.comparing.comparison import Comparison
from workbench.analysis.comparing.sentences import setting_title
from workbench.views import markup
from workbench.views.what_if_card import NAMES

SETTING_MAX = 60
"""Characters of a setting that are shown."""


def comparison_card(found: Comparison) -> str:
    """HTML of a comparison."""
    letters = [chr(ord("A") + number) for number in range(len(found.labels))]
    parts = [markup.facts(_runs(found, letters)), markup.facts(_divergences(found, letters))]
    if found.settings:
        rows = [[setting_title(key), *map(_setting, values)] for key, values in found.settings.items()]
        parts.append(markup.table(("settings that differ", *letters), rows))
    else:
        parts.append(markup.note("no setting that is known differs"))
    heads = ("at the end (difference to A)", *letters)
    parts.append(markup.table(heads, _figures(found), right=(False, *(True for _ in letters))))
    return markup.card(f"{len(letters)} runs", "compare", parts)


def _runs(found: Comparison, letters: list[str]) -> Iterator[tuple[str, str]]:
    names = dict(zip(found.labels, letters, strict=True))
    for number, (letter, run) in enumerate(zip(letters, found.runs, strict=True)):
        text = str(run["label"])
        if run["parent"]:
            text += f", what-if ({run['class']}) of {names.get(run['parent'], run['parent'])}"
        if number in found.unknown:
            text += ", imported: its settings are unknown"
        yield letter, text


def _divergences(found: Comparison, letters: list[str]) -> Iterator[tuple[str, str]]:
    for letter, divergence, why in zip(letters[1:], found.divergences[1:], found.incomparable[1:], strict=True):
        nothing = why or "nothing that programs read, and no merge, differs"
        yield f"{letter} parts from A", divergence.text(("A", letter)) if divergence is not None else nothing


def _figures(found: Comparison) -> Iterator[list[str]]:
    for name, (words, how) in NAMES.items():
        if name in found.differences:
            pairs = zip(found.figures, found.differences[name], strict=True)
            cells = [_figure(run[name], less, how, number) for number, (run, less) in enumerate(pairs)]
            yield [words, *cells]


def _figure(value: float | None, less: float | None, how: str, number: int) -> str:
    if value is None:
        return "none"
    text = format(value, how)
    if not number or less is None:
        return text
    return f"{text} (=)" if less == 0 else f"{text} ({'+' if less > 0 else '-'}{format(abs(less), how)})"


def _setting(value: Any) -> str:
    text = "–" if value is None else str(value)
    return text if len(text) <= SETTING_MAX else f"{text[: SETTING_MAX - 1]}…"
