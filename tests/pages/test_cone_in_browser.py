"""Arrows of causes and effects, patterns, lanes in links, smoothed lines and tables, on the demo tape in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import xarray as xr

from tests.engine.real_runs import until
from tests.pages.serving import Served
from tests.pages.tabs import FIGURES, Tab
from workbench.pages.demo import DEMO
from workbench.protocol.records import EVALUATOR, SUPERVISOR
from workbench.tape import open_tape

pytestmark = pytest.mark.browser

START = 700
PATTERN = "sent, excluded, sent"
ARROWS = (
    f"() => {FIGURES}"
    """.filter(one => one.title.text.startsWith("What each process did")).flatMap(one => one.center)
  .filter(one => one.type === "Arrow").reduce((sum, one) => sum + one.source.data.x_start.length, 0)"""
)
LANES = (
    f"() => {FIGURES}"
    """
  .map(one => one.left.map(axis => Object.fromEntries(axis.major_label_overrides || [])))
  .flat().map(one => Object.entries(one).sort((a, b) => b[0] - a[0]).map(pair => pair[1]))
  .filter(names => names.includes("syncer"))[0] || []"""
)
LEGEND = f"() => {FIGURES}.flatMap(one => [...one.right, ...one.center]).flatMap(one => one.items || []).map(one => one.label.value)"  # noqa: E501


@pytest.fixture(scope="module")
def tape() -> xr.DataTree:
    return open_tape(DEMO)


@pytest.fixture(scope="module")
def tab(pages: Served, browser: Any) -> Iterator[Tab]:
    found = Tab(browser)
    found.page.goto(pages.url(pages.control, "replay", DEMO.name, START))
    found.at(START)
    until(lambda: len(found.page.evaluate(LANES)) > 1, "lanes are drawn")
    yield found
    found.close(pages.port)


def shown(tape: xr.DataTree, depth: int) -> int:
    """Arrows whose ends both have lanes."""
    process = tape["events"].dataset["process"].values
    without = (SUPERVISOR, EVALUATOR)
    return sum(
        process[one.cause] not in without and process[one.effect] not in without
        for one in tape.wb.arrows(START, depth=depth)
    )


def test_arrows_are_direct_at_first_go_deeper_and_are_hidden_with_the_cone(tab: Tab, tape: xr.DataTree) -> None:
    page = tab.page
    assert 0 < shown(tape, 1) < shown(tape, 3)
    until(lambda: page.evaluate(ARROWS) == shown(tape, 1), "direct causes and effects have arrows")
    page.get_by_label("arrows", exact=True).select_option("3 deep")
    page.wait_for_url("**depth=3**")
    until(lambda: page.evaluate(ARROWS) == shown(tape, 3), "those of theirs have arrows too")
    page.get_by_text("in up to 3 steps").wait_for()
    page.locator("h1").click()
    page.keyboard.press("c")
    page.wait_for_url("**depth=0**")
    until(lambda: page.evaluate(ARROWS) == 0, "the cone is hidden")
    page.keyboard.press("c")
    until(lambda: page.evaluate(ARROWS) == shown(tape, 1), "it is back")


def test_a_pattern_is_found_stepped_through_and_stands_in_the_link(
    tab: Tab, tape: xr.DataTree, pages: Served, browser: Any
) -> None:
    page, found = tab.page, tape.wb.find(PATTERN)
    firsts = np.unique(found["event"].values[:, 0])
    after = firsts[firsts >= tab.event]
    assert len(after) > 1
    page.keyboard.press("/")
    page.get_by_role("combobox", name="command").fill("sent, excluded, re-sent")
    page.keyboard.press("Enter")
    tab.at(int(after[0]))
    page.get_by_text(f"of {found.sizes['match']:,}: L").wait_for()
    page.keyboard.press("x")
    tab.at(int(after[1]))
    page.get_by_role("button", name="excluded: event").first.click()
    row = int(np.flatnonzero(found["event"].values[:, 0] == after[1])[0])
    tab.at(int(found["event"].values[row, 1]))
    other = Tab(browser)
    other.page.goto(page.url)
    other.at(tab.event)
    other.page.get_by_text(f"match {row + 1} of {found.sizes['match']:,}: L").wait_for()
    other.close(pages.port)
    page.get_by_role("button", name="close: search for nothing").click()
    page.wait_for_function("() => !window.location.search.includes('find')")
    page.keyboard.press("/")
    page.get_by_role("combobox", name="command").fill("sent, eaten")
    page.keyboard.press("Enter")
    page.locator(".banner", has_text="'eaten' in a pattern; allowed").wait_for()


def test_lanes_smoothing_and_tables_are_as_the_link_says(tab: Tab, pages: Served, browser: Any) -> None:
    other = Tab(browser)
    other.page.goto(pages.url(pages.view, "replay", DEMO.name, START, lanes="o3.0_h1", smooth=90))
    other.at(START)
    until(lambda: other.page.evaluate(LANES) == ["syncer", "L3", "L0", "L2"], "the lanes of the link")
    until(lambda: any("smoothed" in text for text in other.page.evaluate(LEGEND)), "the line is smoothed")
    assert other.page.get_by_label("smoothing", exact=True).locator("option:checked").inner_text() == "more"
    other.page.get_by_label("smoothing", exact=True).select_option("none")
    until(lambda: not any("smoothed" in text for text in other.page.evaluate(LEGEND)), "the line alone")
    other.page.get_by_role("button", name="show all lanes").or_(other.page.get_by_text("Lanes: 3 of 4")).first.click()
    other.page.get_by_role("button", name="lanes by number").click()
    until(lambda: other.page.evaluate(LANES) == ["syncer", "L0", "L2", "L3"], "by number")
    assert "lanes=h1" in other.page.url
    other.page.go_back()
    until(lambda: other.page.evaluate(LANES) == ["syncer", "L3", "L0", "L2"], "Back brings the order back")
    other.page.get_by_role("button", name="table: the numbers of the lanes").click()
    numbers = other.page.get_by_role("region", name="numbers of the lanes")
    numbers.locator("th", has_text="from [s]").first.wait_for()
    assert numbers.locator("td", has_text="L3").count() > 0
    other.close(pages.port)
