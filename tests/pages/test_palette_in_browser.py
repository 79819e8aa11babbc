"""Commands, lanes, a chosen part of the run and layouts, on the demo tape in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.real_runs import until
from tests.pages.serving import Served
from tests.pages.tabs import BROKEN, FIGURES, Tab
from workbench.pages.demo import DEMO
from workbench.pages.recording import Recording
from workbench.tape import open_tape

pytestmark = pytest.mark.browser

START = 700
CHOOSING = (
    f"() => {{ const all = {FIGURES};"
    """ for (const one of all) {
  const tools = one.toolbar.tools;
  const tool = tools.find(tool => tool.type === "BoxSelectTool");
  if (tool) { for (const other of tools) if (other.active) other.active = false; tool.active = true; } } }"""
)
BOX = """() => { const all = [...Bokeh.index.query(one => one.model.type === "Figure")];
  const lanes = all.find(view => view.model.title.text.startsWith("What each process did")).el;
  lanes.scrollIntoView({ block: "center" });
  return lanes.getBoundingClientRect().toJSON(); }"""
LANES = (
    f"() => {FIGURES}"
    """
  .map(one => one.left.map(axis => Object.fromEntries(axis.major_label_overrides || [])))
  .flat().map(one => Object.entries(one).sort((a, b) => b[0] - a[0]).map(pair => pair[1]))
  .filter(names => names.includes("syncer"))[0] || []"""
)


@pytest.fixture
def tab(pages: Served, browser: Any) -> Iterator[Tab]:
    found = Tab(browser)
    found.page.goto(pages.url(pages.control, "replay", DEMO.name, START))
    found.at(START)
    found.page.locator("canvas").nth(1).wait_for()
    yield found
    found.close(pages.port)


def command(tab: Tab, text: str) -> None:
    tab.page.keyboard.press("Control+k")
    tab.page.get_by_role("combobox", name="command").fill(text)
    tab.page.keyboard.press("Enter")
    tab.page.get_by_role("dialog", name="Commands").wait_for(state="detached")


def test_commands_are_found_by_typing_and_do_what_their_keys_do(tab: Tab) -> None:
    page = tab.page
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Commands")
    field = palette.get_by_role("combobox", name="command")
    field.fill("next mer")
    palette.get_by_role("option", name="next merge").wait_for()
    assert palette.get_by_role("option").first.inner_text().split() == ["next", "merge", "]"]
    field.press("ArrowDown")
    field.press("ArrowUp")
    assert palette.locator('[aria-selected="true"]').inner_text().startswith("next merge")
    field.press("Enter")
    merge = Recording(DEMO).step(START, "merge", forward=True)
    tab.at(merge)
    page.keyboard.press("Control+k")
    palette.wait_for()
    page.keyboard.press("Escape")
    palette.wait_for(state="detached")
    page.keyboard.press("g")
    palette.get_by_role("combobox", name="command").fill("12.5 s")
    page.keyboard.press("Enter")
    tab.at(Recording(DEMO).at_time(12.5))
    command(tab, "merge 99999")
    page.locator(".banner", has_text="there is no merge 99,999").wait_for()
    page.get_by_role("textbox", name="to", exact=True).click()
    page.keyboard.press("Control+k")
    assert page.get_by_role("dialog").count() == 0
    command_sheet(tab)


def command_sheet(tab: Tab) -> None:
    tab.page.locator("h1").click()
    command(tab, "keys of this")
    tab.page.get_by_role("dialog", name="Keys of this page").wait_for()
    tab.page.keyboard.press("Escape")


def test_lanes_are_sorted_pinned_and_hidden(tab: Tab) -> None:
    page = tab.page
    until(lambda: page.evaluate(LANES) == ["syncer", "L0", "L1", "L2", "L3"], "all lanes stand in order")
    command(tab, "hide the lane of L1")
    until(lambda: page.evaluate(LANES) == ["syncer", "L0", "L2", "L3"], "L1 has no lane")
    page.get_by_role("button", name="pin L3").click()
    until(lambda: page.evaluate(LANES) == ["syncer", "L3", "L0", "L2"], "L3 stands on top")
    assert page.get_by_role("button", name="pin L3").get_attribute("aria-pressed") == "true"
    page.get_by_role("button", name="show all lanes").click()
    until(lambda: page.evaluate(LANES) == ["syncer", "L0", "L1", "L2", "L3"], "all are back")


def test_a_part_of_the_run_is_chosen_by_keys_and_by_dragging_and_told_with_units(
    tab: Tab, pages: Served, browser: Any
) -> None:
    page, recording = tab.page, Recording(DEMO)
    page.keyboard.press("r")
    page.locator(".banner", has_text="press R where it ends").wait_for()
    command(tab, "event 900")
    tab.at(900)
    page.keyboard.press("r")
    table = page.locator("table.range")
    table.wait_for()
    low, high = (round(float(recording.time_s[event]), 3) for event in (START, 900))
    page.get_by_role("heading", name=f"Chosen part: {low:.3f} to {high:.3f} s").wait_for()
    found = open_tape(DEMO).wb.within(low, high)
    counts = dict(zip(found["quantity"].values.tolist(), found["count"].values.tolist(), strict=True))
    rows = {row.split("\t")[0]: row.split("\t")[1] for row in table.inner_text().splitlines()[1:]}
    assert {name: int(count.replace(",", "")) for name, count in rows.items()} == counts
    assert page.evaluate(BROKEN) == []
    assert "tokens/s" in table.inner_text() and f"low={round(low * 1e3)}" in page.url
    other = Tab(browser)
    other.page.goto(page.url)
    other.page.get_by_role("heading", name=f"Chosen part: {low:.3f} to {high:.3f} s").wait_for()
    other.close(pages.port)
    page.get_by_role("button", name="clear: choose no part").click()
    table.wait_for(state="detached")
    _drag(tab)
    table.wait_for()


def _drag(tab: Tab) -> None:
    """Over the lanes, with the tool for that."""
    page = tab.page
    page.evaluate(CHOOSING)
    box = page.evaluate(BOX)
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.4)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.5, steps=6)
    page.mouse.up()


def test_a_layout_is_saved_and_loaded(tab: Tab, tmp_path: Path, pages: Served, browser: Any) -> None:
    page = tab.page
    command(tab, "hide the lane of L2")
    command(tab, "show or hide: why")
    command(tab, "figure: norms")
    command(tab, "dark or light")
    page.wait_for_function("() => document.documentElement.dataset.theme === 'dark'")
    page.get_by_role("heading", name=f"Event {START:,}").wait_for(state="hidden")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="save: this layout").click()
    path = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(path)
    told = json.loads(path.read_text(encoding="utf-8"))
    assert told["hidden"] == ["why"] and told["lanes"]["hidden"] == [2] and told["theme"] == "dark"
    other = Tab(browser)
    other.page.goto(pages.url(pages.view, "replay", DEMO.name, START))
    other.at(START)
    _load(other, path)
    other.page.wait_for_function("() => document.documentElement.dataset.theme === 'dark'")
    until(lambda: other.page.evaluate(LANES) == ["syncer", "L0", "L1", "L3"], "L2 has no lane here either")
    other.page.get_by_role("heading", name=f"Event {START:,}").wait_for(state="hidden")
    other.field("figure", "norms")
    path.write_text("{}", encoding="utf-8")
    _load(other, path)
    other.page.locator(".banner.bad", has_text="this file is no layout").wait_for()
    other.close(pages.port)


def _load(tab: Tab, path: Path) -> None:
    with tab.page.expect_file_chooser() as choosing:
        tab.page.get_by_role("button", name="load: a layout").click()
    choosing.value.set_files(path)


def test_the_lanes_show_more_and_less_of_the_run(tab: Tab) -> None:
    page = tab.page
    page.keyboard.press("s")
    page.wait_for_url("**wide=20000**")
    page.keyboard.press("f")
    page.wait_for_function(r"() => /wide=[3-9]\d{4}/.test(window.location.search)")
    page.keyboard.press("f")
    page.wait_for_function("() => !window.location.search.includes('wide')")
