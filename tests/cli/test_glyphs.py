from __future__ import annotations

import pytest

from workbench.cli import glyphs, words


@pytest.mark.parametrize(
    ("share", "drawn"),
    [(0.0, ""), (None, ""), (float("nan"), ""), (1e-9, "▏"), (0.5, "██"), (0.53, "██▏"), (1.0, "████"), (1.5, "████")],
)
def test_bars(share: float | None, drawn: str) -> None:
    assert glyphs.bar(share, 4) == drawn


def test_a_sparkline_tells_little_from_nothing_and_much_from_all() -> None:
    assert glyphs.sparkline([0.0, 0.001, 0.5, 0.99, 0.9999, 1.0, None]) == " ▁▄▇██·"
    assert glyphs.sparkline([1.0, 2.0, 3.0], 1.0, 3.0) == " ▄█"
    assert glyphs.sparkline([2.0], 2.0, 2.0) == " "


def test_a_curve_falls_from_its_scale_to_its_axis() -> None:
    lines = glyphs.curve([0, 50, 100], [4.0, 2.0, 2.0], 21, 3, ("0", "merges", "100"))
    assert len(lines) == 5
    assert [line[:9] for line in lines] == ["   4.00 ┤", "   3.00 ┤", "   2.00 ┤", "        └", "         "]
    heights = [sum(line[9 + column : 10 + column] not in ("", " ") for line in lines[:3]) for column in range(21)]
    assert heights == sorted(heights, reverse=True)
    assert (heights[0], heights[-1]) == (3, 1)
    assert lines[-1].split() == ["0", "merges", "100"]


def test_a_curve_of_equal_values_is_level() -> None:
    lines = glyphs.curve([0, 10], [2.0, 2.0], 5, 2, ("0", "", "10"))
    assert [line[9:] for line in lines[:2]] == ["█████", "█████"]
    assert glyphs.resampled([3.0], [7.0], 4) == [7.0] * 4


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "none"), (0.0, "0 s"), (1e-4, "100 µs"), (0.0125, "12.5 ms"), (59.94, "59.9 s"), (605.0, "10 min 5 s")],
)
def test_times_have_the_unit_that_suits_them(value: float | None, text: str) -> None:
    assert words.seconds(value) == text


def test_spreads_in_a_cell() -> None:
    spread = {"count": 3, "median": 0.0012, "p95": 0.5, "max": 2.0}
    assert words.three(spread, words.seconds) == "1.2 ms / 500 ms / 2 s"
    assert words.three(spread, words.milliseconds, "/") == "1.2/500/2,000"
    assert words.three({"count": 0, "median": None, "p95": None, "max": None}) == "none"
