"""The replay page of the demo tape in a real browser: what it shows is what the tape says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from tests.engine.real_runs import until
from tests.pages.serving import Served
from tests.pages.tabs import Tab
from workbench.analysis.timelines import NAMES
from workbench.pages.demo import DEMO
from workbench.pages.recording import Recording
from workbench.protocol.records import Kind
from workbench.tape import open_tape

pytestmark = pytest.mark.browser

START = 700


@pytest.fixture(scope="module")
def tape() -> xr.DataTree:
    return open_tape(DEMO)


@pytest.fixture(scope="module")
def recording() -> Recording:
    return Recording(DEMO)


@pytest.fixture(scope="module")
def tab(pages: Served, browser: Any) -> Iterator[Tab]:
    found = Tab(browser)
    found.page.goto(pages.url(pages.view, "replay", DEMO.name, START))
    found.at(START)
    yield found
    found.close(pages.port)


def go(tab: Tab, url: str, event: int) -> None:
    tab.page.goto(url)
    tab.at(event)


def places(tape: xr.DataTree, kind: Kind) -> list[int]:
    return np.flatnonzero(tape["events"].dataset["kind"].values == int(kind)).tolist()


def following(events: list[int], event: int, forward: bool) -> int:
    return min(e for e in events if e > event) if forward else max(e for e in events if e < event)


def expected_after(tape: xr.DataTree, key: str, event: int) -> int:
    """Where a key leads, found by looking through all events."""
    merges = tape["merges"].dataset
    incomplete = merges["event"].values[~merges["included"].values.astype(bool).all(1)].tolist()
    excluded = sorted({*incomplete, *places(tape, Kind.FRAGMENT_DROPPED)})
    last = tape["events"].sizes["event"] - 1
    ways = {
        "Shift+ArrowRight": (places(tape, Kind.ROUND_OPENED), True),
        "Shift+ArrowLeft": (places(tape, Kind.ROUND_OPENED), False),
        "]": (places(tape, Kind.MERGED), True),
        "[": (places(tape, Kind.MERGED), False),
        "n": (places(tape, Kind.FAULT_INJECTED), True),
        "p": (places(tape, Kind.FAULT_INJECTED), False),
        "e": (excluded, True),
        "Shift+E": (excluded, False),
    }  # fmt: skip
    plain = {"ArrowRight": event + 1, "ArrowLeft": event - 1, "Home": 0, "End": last}
    if key in plain:
        return plain[key]
    found, forward = ways[key]
    return following(found, event, forward)


KEYS = (
    "ArrowRight", "ArrowLeft", "Shift+ArrowRight", "]", "n", "e", "Shift+E", "p", "[", "Shift+ArrowLeft", "Home",
    "n", "n", "n", "n", "End",
)  # fmt: skip


def test_keys_move_the_cursor_and_the_state_is_that_of_the_tape(tab: Tab, tape: xr.DataTree) -> None:
    event = tab.event
    for key in KEYS:
        event = expected_after(tape, key, event)
        tab.page.keyboard.press(key)
        tab.at(event)
        assert_state(tab, tape, event)


def assert_state(tab: Tab, tape: xr.DataTree, event: int) -> None:
    moment = tape.wb.at(event)
    for then in moment.learners:
        cell = tab.page.locator(f'.cell[data-learner="{then.learner}"]')
        text = cell.inner_text()
        assert (f"step {then.n:,}" in text) == (then.n >= 0), (event, text)
        assert f"merged {then.merged:,}" in text, (event, text)
        assert ("down" in text) <= (not then.alive), (event, text)
        assert (f"loss {then.loss:.3f}" in text) == (then.loss == then.loss), (event, text)
        assert all(fault.replace("_", " ") in text for fault in then.faults), (event, text)
    vitals = tab.page.locator(".vitals").inner_text()
    alive, reachable = sum(one.alive for one in moment.learners), sum(one.connected for one in moment.learners)
    assert f"merges\n{moment.merges}\n" in vitals and f"{alive} / {reachable}" in vitals, (event, vitals)
    assert moment.validation is None or f"validation {moment.validation[1]:.3f}" in vitals


def test_the_past_of_a_merge_is_what_comparing_all_clocks_says(tab: Tab, tape: xr.DataTree, pages: Served) -> None:
    events = tape["events"].dataset
    clock, process, seq = events["clock"].values, events["process"].values, events["seq"].values
    for merge in (places(tape, Kind.MERGED)[20], places(tape, Kind.MERGED)[55]):
        go(tab, pages.url(pages.view, "replay", DEMO.name, merge, show="everything"), merge)
        past = {i for i in range(len(seq)) if i != merge and clock[merge][process[i]] >= seq[i]}
        future = {i for i in range(len(seq)) if i != merge and clock[i][process[merge]] >= seq[merge]}
        rows = {int(row.get_attribute("data-event")): row.get_attribute("data-rel")
                for row in tab.page.locator(".row.can").all()}  # fmt: skip
        assert len(rows) >= 30
        beside = rows.keys() - past - future - {merge}
        assert rows == {
            i: "now" if i == merge else "beside" if i in beside else "past" if i in past else "future" for i in rows
        }
        counts = tab.page.get_by_text("events are in its past").inner_text()
        found = [int(number.replace(",", "")) for number in re.findall(r"(\d[\d,]*) (?:events|in)", counts)]
        assert found == [len(past), len(future), len(seq) - len(past) - len(future) - 1]
        why = tab.page.locator(".why").inner_text()
        assert why == str(tape.wb.why(int(np.flatnonzero(tape["merges"].dataset["event"].values == merge)[0])))


def test_a_link_opens_the_same_view_in_another_browser_and_back_goes_back(
    tab: Tab, browser: Any, pages: Served, tape: xr.DataTree
) -> None:
    page = tab.page
    go(tab, pages.url(pages.view, "replay", DEMO.name, START), START)
    page.keyboard.press("]")
    merge = expected_after(tape, "]", START)
    tab.at(merge)
    page.keyboard.press("m")
    page.get_by_role("button", name="follow the cursor").wait_for()
    page.keyboard.press("3")
    page.locator('.cell.chosen[data-learner="2"]').wait_for()
    page.get_by_label("list").select_option("faults")
    page.get_by_label("timeline").select_option("causal rank")
    page.locator(".ends", has_text="events before it").wait_for()
    page.keyboard.press("n")
    fault = expected_after(tape, "n", merge)
    tab.at(fault)
    other = Tab(browser)
    go(other, page.url, fault)
    for one in (tab, other):
        one.page.get_by_text(f"Event {merge:,} (held").wait_for()
        one.page.locator('.cell.chosen[data-learner="2"]').wait_for()
        assert one.page.get_by_label("list").input_value() == "faults"
        assert one.page.get_by_label("timeline").input_value() == "causal rank"
        assert one.page.locator(".ends").inner_text().endswith("events before it")
    shown = [[row.inner_text() for row in one.page.locator(".row.can").all()] for one in (tab, other)]
    assert shown[0] == shown[1] and len(shown[0]) >= 2
    other.close(pages.port)
    page.go_back()
    tab.at(merge)
    page.go_back()
    page.locator(".ends", has_text="wall time").wait_for()
    page.go_back()
    tab.field("list", "notable")
    page.locator(".row.can", has_text="merged").first.wait_for()
    page.go_forward()
    tab.field("list", "faults")


def test_playing_and_dragging_move_along_every_timeline(tab: Tab, pages: Served, recording: Recording) -> None:
    go(tab, pages.url(pages.view, "replay", DEMO.name, START), START)
    tab.page.locator("canvas").nth(1).wait_for()  # nothing moves any more
    tab.page.get_by_label("speed").select_option("5×")
    for axis, name in NAMES.items():
        _play_and_drag(tab, axis, name, recording)


def _play_and_drag(tab: Tab, axis: str, name: str, recording: Recording) -> None:
    page, along = tab.page, recording.timeline(axis)
    page.get_by_label("timeline").select_option(name)
    page.locator(".mid", has_text=name).wait_for()
    page.locator("h1").click()
    page.keyboard.press("Home")
    tab.at(0)
    page.keyboard.press(" ")
    page.get_by_role("button", name="pause").wait_for()
    page.locator('.strip:not([aria-valuenow="0"])').wait_for()
    page.keyboard.press(" ")
    page.get_by_role("button", name="play").wait_for()
    assert tab.event != 0
    box = page.locator(".strip").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 10, steps=4)
    page.mouse.up()
    until(lambda: abs(along.part_of(along.until[tab.event]) - 0.6) < 0.01, f"the cursor is dragged along {axis}")
    tab.at(tab.event)
    until(lambda: f"event={tab.event}" in page.url, "the address follows")


def test_screenshots(tab: Tab, pages: Served, pictures: Path) -> None:
    go(tab, pages.url(pages.view, "replay", DEMO.name, START), START)
    tab.page.locator("canvas").nth(1).wait_for()
    tab.picture(pictures, "replay")
