"""What verbs print: tables for readers, JSON for programs, progress beside either.

Results go to stdout, progress to stderr, so that ``--json`` leaves nothing but JSON on stdout.
"""

from __future__ import annotations

import codecs
import io
import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO, cast

from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

PLAIN_EVERY_S = 5.0
"""Seconds between two lines of progress where no terminal can redraw one."""

PLAIN = {
    **dict(zip("▁▂▃▄▅▆▇█", ".:-=+*%#", strict=True)), **dict.fromkeys("▏▎▍▌▋▊▉", "#"),
    "·": ".", "┤": "|", "└": "+", "─": "-", "→": ">", "µ": "u", "…": ".",
    "▸": ">", "↻": "@", "‖": "=", "⇎": "/", "✕": "x",
}  # fmt: skip
"""What stands for block characters and signs on a terminal that lacks them."""

Report = Callable[[int, int, str], None]
"""Takes (done, total, remark)."""


def console() -> Console:
    """Return a console on the present stdout; what its encoding lacks is shown in plain characters."""
    _show_plainly(sys.stdout)
    return _Screen(file=cast(TextIO, _Lean(sys.stdout)), highlight=False, markup=False, emoji=False)


class _Screen(Console):
    """A console that leaves a reader who has gone to the dispatcher: by itself it would end with exit code 1."""

    def on_broken_pipe(self) -> None:
        """Raise the error that is being handled on."""
        self.quiet = True
        raise BrokenPipeError


def progress_console() -> Console:
    """Return the same for stderr, where what goes on is shown."""
    _show_plainly(sys.stderr)
    return Console(file=sys.stderr, highlight=False, markup=False, emoji=False)


def _show_plainly(stream: TextIO) -> None:
    if isinstance(stream, io.TextIOWrapper):
        codecs.register_error("plain", in_plain_characters)
        stream.reconfigure(errors="plain")


class _Lean:
    """A stream of text without the blanks that fill lines up to the width of a table."""

    TRAILING = re.compile(r" +((?:\x1b\[[0-9;]*m)*)(?=\n)")

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(self.TRAILING.sub(r"\1", text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def in_plain_characters(error: UnicodeError) -> tuple[str, int]:
    """Stand in for what an encoding lacks: a handler of errors as `codecs.register_error` takes it."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(letter, "?") for letter in error.object[error.start : error.end]), error.end


def print_json(data: Any) -> None:
    """Print standard JSON: numpy values as numbers and lists, what is not finite as null."""
    unicode = "utf" in (sys.stdout.encoding or "").lower()
    print(json.dumps(_plain(data), indent=2, ensure_ascii=not unicode, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool) or value is None else str(value)


def number(value: Any) -> str:
    """Return a value as people read it: thousands apart, four significant digits, none for NaN."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return _decimal(value)
    return str(value)


def _decimal(value: float) -> str:
    if math.isnan(value):
        return "none"
    if value == int(value) and abs(value) < 1e15 if math.isfinite(value) else False:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}" if math.isfinite(value) else str(value)
    return f"{value:.4g}"


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Return a table; columns of numbers are set flush right."""
    drawn = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for index, column in enumerate(columns):
        numeric = all(not isinstance(row[index], str) for row in rows)
        drawn.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*(number(value) for value in row))
    return drawn


def aligned(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> RenderableType:
    """Return a table of texts; columns whose head begins with ``>`` are set flush right."""
    drawn = Table(box=None, pad_edge=False, header_style="dim", show_header=any(heads))
    for head in heads:
        drawn.add_column(head.removeprefix(">"), justify="right" if head.startswith(">") else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*row)
    return titled(title, drawn)


def titled(title: str, drawn: Table) -> RenderableType:
    """Return a table under its title, which may be wider than the table."""
    return Group(Text(title, style="bold"), drawn) if title else drawn


def some(rows: Sequence[Any], most: int) -> tuple[Sequence[Any], str]:
    """Return the first rows, and one line that says how many are not shown (empty if none)."""
    hidden = len(rows) - most
    return (rows, "") if hidden <= 0 else (rows[:most], f"not shown: {hidden:,} more (--json has all)")


@contextmanager
def progress(what: str) -> Iterator[Report]:
    """Show progress on stderr: a bar on a terminal, else a plain line every few seconds."""
    if sys.stderr.isatty():
        with _bar() as bar:
            task = bar.add_task(what, total=None, remark="")
            yield lambda done, total, remark: bar.update(task, completed=done, total=total, remark=remark)
    else:
        yield _plain_lines(what)


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.completed}/{task.total} {task.fields[remark]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
    )


def _plain_lines(what: str) -> Report:
    last = time.monotonic()

    def report(done: int, total: int, remark: str) -> None:
        nonlocal last
        now = time.monotonic()
        if done >= total or now - last >= PLAIN_EVERY_S:
            last = now
            print(f"{what} {done}/{total} {remark}".rstrip(), file=sys.stderr, flush=True)

    return report


def pairs(title: str, rows: Sequence[tuple[str, Any]]) -> RenderableType:
    """Return a table of labels and values."""
    drawn = Table(box=None, pad_edge=False, show_header=False)
    drawn.add_column(style="dim")
    drawn.add_column(overflow="fold")
    for label, value in rows:
        drawn.add_row(label, number(value))
    return titled(title, drawn)
