"""Cards for notebooks: static HTML that needs no script, takes on the colours around it, and escapes every text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

LINE = "1px solid rgba(128,128,128,.35)"
FAINT = "opacity:.7"


class Cell(NamedTuple):
    """A cell of a table: a text, and a sign with its colour before it."""

    text: str
    sign: str = ""
    colour: str = ""
    right: bool = False


Row = Sequence[Cell | str]


def card(title: str, kind: str, parts: Iterable[str]) -> str:
    """A frame with a heading: what it is, and its name."""
    inner = "".join(parts)
    return (
        f'<div style="border:{LINE};border-radius:6px;padding:10px 14px;margin:4px 0;display:inline-block;'
        f'min-width:420px;max-width:100%;font-size:13px;line-height:1.5">'
        f'<div style="font-weight:600"><span style="{FAINT};font-weight:400">{escape(kind)}</span> '
        f"{escape(title)}</div>"
        f"{inner}</div>"
    )


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Names with what there is to say of them, one a line; what is empty is left out."""
    shown = [
        f'<tr style="background:none"><td style="{_cell(False)};{FAINT}">{escape(name)}</td>'
        f'<td style="{_cell(False)}">{escape(text)}</td></tr>'
        for name, text in rows
        if text
    ]
    return (
        f'<table style="border-collapse:collapse;margin:4px 0;border:0;font-size:inherit">{"".join(shown)}</table>'
        if shown
        else ""
    )


def bar(part: float, text: str, colour: str) -> str:
    """A bar with the number it stands for; a part above zero is never invisible."""
    filled = 0.0 if part <= 0 else max(0.5, min(part, 1.0) * 100)
    return (
        '<div style="display:flex;align-items:center;gap:8px;margin:4px 0">'
        f'<div style="width:200px;height:8px;border:{LINE};border-radius:4px;overflow:hidden">'
        f'<div style="width:{filled:.1f}%;height:100%;background:{colour}"></div></div>'
        f"<span>{escape(text)}</span></div>"
    )


def table(heads: Sequence[str], rows: Iterable[Row], right: Sequence[bool] = ()) -> str:
    """A table; columns marked in ``right`` hold numbers."""
    aligned = [*right, *[False] * (len(heads) - len(right))]
    head = "".join(
        f'<th style="{_cell(number)};font-weight:400;{FAINT}">{escape(name)}</th>'
        for name, number in zip(heads, aligned, strict=True)
    )
    body = "".join(f'<tr style="background:none">{_row(row, aligned)}</tr>' for row in rows)
    return (
        '<table style="border-collapse:collapse;margin:6px 0;border:0;font-size:inherit;'
        'font-variant-numeric:tabular-nums">'
        f'<tr style="background:none;border-bottom:{LINE}">{head}</tr>{body}</table>'
    )


def note(text: str) -> str:
    """A line that is not as important."""
    return f'<div style="{FAINT};margin-top:4px">{escape(text)}</div>'


def paragraph(text: str) -> str:
    """Sentences, wrapped to a width that reads well."""
    return f'<div style="max-width:75ch;white-space:normal;margin:4px 0">{escape(text)}</div>'


def verdict(sign: str, colour: str, text: str) -> str:
    """A sign and what it stands for."""
    return f'<div style="margin:4px 0">{_sign(sign, colour)}{escape(text)}</div>'


def _row(row: Row, right: Sequence[bool]) -> str:
    cells = [one if isinstance(one, Cell) else Cell(one) for one in row]
    return "".join(
        f'<td style="{_cell(number)}">{_sign(one.sign, one.colour)}{escape(one.text)}</td>'
        for one, number in zip(cells, right, strict=True)
    )


def _sign(sign: str, colour: str) -> str:
    if not sign:
        return ""
    style = f"color:{colour};font-weight:700;display:inline-block;width:1.3em"
    return f'<span aria-hidden="true" style="{style}">{escape(sign)}</span>'


def _cell(right: bool) -> str:
    return f"padding:1px 14px 1px 0;border:0;background:none;text-align:{'right' if right else 'left'}"
