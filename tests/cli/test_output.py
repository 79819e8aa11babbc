from __future__ import annotations

import io
import json
import sys

import numpy as np
import pytest

from workbench.cli import output


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567, "1,234,567"),
        (0.123456, "0.1235"),
        (12345.678, "12,346"),
        (3.0, "3"),
        (float("nan"), "none"),
        (float("inf"), "inf"),
        (None, "none"),
        (True, "yes"),
        (np.int64(12), "12"),
        (np.float32(0.5), "0.5"),
        (np.bool_(False), "no"),
        ("L0", "L0"),
    ],
)
def test_numbers_are_written_for_people(value: object, text: str) -> None:
    assert output.number(value) == text


def test_json_is_standard_whatever_it_holds(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"a": np.float32(1.5), "b": np.arange(2), "c": float("inf"), "d": (np.bool_(True),), 5: None})
    assert json.loads(capsys.readouterr().out) == {"a": 1.5, "b": [0, 1], "c": None, "d": [True], "5": None}


def test_progress_without_a_terminal_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    with output.progress("merges") as report:
        for done in range(1, 101):
            report(done, 100, "x")
    captured = capsys.readouterr()
    assert captured.err == "merges 100/100 x\n"
    assert captured.out == ""


def test_a_terminal_without_block_characters_shows_plain_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    output.console().print("5.6 → 1.6 █▁▏ 語")
    sys.stdout.flush()
    assert raw.getvalue() == b"5.6 > 1.6 #.# ?\n"


def test_what_is_cut_is_said() -> None:
    assert output.some([1, 2, 3], 3) == ([1, 2, 3], "")
    assert output.some(list(range(1003)), 2) == ([0, 1], "not shown: 1,001 more (--json has all)")


def test_no_line_of_a_table_ends_in_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    screen = output.console()
    screen.print(
        output.aligned("title", ("", ">n", "word"), [("a", "1", "x"), ("b", "22", "a longer one"), ("", "", "")])
    )
    screen.print(output.pairs("", [("short", "y"), ("a long label", "a long value")]))
    screen.print("kept  blanks", end="  ")
    out = capsys.readouterr().out
    assert out.endswith("kept  blanks  ")
    lines = out.splitlines()[:-1]
    assert [line for line in lines if line != line.rstrip()] == [] and any("22  a longer one" in line for line in lines)


def test_styles_behind_trailing_blanks_stay() -> None:
    stream = io.StringIO()
    assert output._Lean(stream).write("\x1b[2mhead   \x1b[0m  \x1b[1m\x1b[0m\nnext \n")
    assert stream.getvalue() == "\x1b[2mhead   \x1b[0m\x1b[1m\x1b[0m\nnext\n"
