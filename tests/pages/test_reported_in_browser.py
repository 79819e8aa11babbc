"""Faults of live dashboards that their users report, as scenarios in a real browser; each names its report."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.real_runs import of_kind, records_of, tiny, until
from tests.pages.serving import SLOWER, Served, served
from tests.pages.tabs import Tab
from workbench.engine.launch import Run, launch
from workbench.pages.spans import WINDOW_S
from workbench.protocol.records import Kind

pytestmark = pytest.mark.browser

LEARNERS = 3
CLOSED_S = 12.0
CURVE = """() => [...Bokeh.documents[0]._all_models.values()]
  .filter(one => one.type === "ColumnDataSource" && one.data.least).flatMap(one => [...one.data.time])"""


@pytest.fixture(scope="module")
def run(root: Path) -> Iterator[Run]:
    with launch(tiny(LEARNERS, quorum=1, **SLOWER), root / "reported") as found:
        found.wait(rounds=3, timeout_s=120)
        yield found
        found.stop()


def opened(pages: Served, browser: Any, run: Run) -> Tab:
    tab = Tab(browser)
    tab.page.goto(pages.url(pages.control, "live", f"{run.path.parent.name}/{run.path.name}"))
    for learner in range(LEARNERS):
        tab.cell(learner, "training")
    return tab


def test_u1_a_run_goes_on_without_a_tab_and_its_curve_has_no_gap(pages: Served, browser: Any, run: Run) -> None:
    opened(pages, browser, run).close(pages.port)
    closed = run.status()
    began_s = closed["began_s"]
    until(lambda: run.status()["elapsed_s"] > closed["elapsed_s"] + CLOSED_S, "no tab has been open for a while")
    assert run.status()["merges"] > closed["merges"], "it merged on"
    again = run.status()["elapsed_s"] - began_s
    tab = opened(pages, browser, run)
    tab.page.wait_for_function(f"({CURVE})().some(time => time > {again})")
    curve = tab.page.evaluate(CURVE)
    since_s = closed["elapsed_s"] - began_s
    part_s = (again - since_s) / 2
    for part in range(2):
        low = since_s + part * part_s
        assert any(low <= time_s <= low + part_s for time_s in curve), f"nothing between {low:.1f} and {low + part_s}"
    tab.close(pages.port)


def test_u10_a_page_that_is_loaded_again_shows_the_settings_of_the_run(pages: Served, browser: Any, run: Run) -> None:
    tab = opened(pages, browser, run)
    tab.field("merge", "rda")
    run.set(merge="mean", grace="fixed", grace_s=0.125)
    tab.page.reload()
    for label, value in (("merge", "mean"), ("grace", "fixed"), ("grace_s", "0.125")):
        tab.field(label, value)
    tab.close(pages.port)


def test_q9_alive_reachable_and_contributed_are_three_counts_that_the_tape_confirms(
    pages: Served, browser: Any, run: Run
) -> None:
    tab = opened(pages, browser, run)
    shown = tab.page.locator(".vital", has_text="participation")
    shown.get_by_text("3 / 3 / 3").wait_for()
    run.kill("L1", down_s=600.0)
    run.cut("L2", for_s=600.0)
    shown.get_by_text("2 / 1 / 1").wait_for()
    time_s = run.status()["elapsed_s"]
    records = records_of(run.path)
    merged = {
        m for r in of_kind(records, Kind.MERGED) if time_s - WINDOW_S < r.time_ns / 1e9 for m in r.detail["learners"]
    }
    ended = {r.peer for r in of_kind(records, Kind.PROCESS_ENDED)}
    lost = [r.peer for r in of_kind(records, Kind.LEARNER_LOST)]
    assert (LEARNERS - len(ended), LEARNERS - len(set(lost)), len(merged)) == (2, 1, 1)
    run.heal("L2")
    run.revive("L1")
    shown.get_by_text("3 / 3 / 3").wait_for()
    tab.close(pages.port)


def test_u7_a_server_that_is_started_again_is_noticed_and_no_click_counts_twice(
    browser: Any, root: Path, run: Run, pictures: Path
) -> None:
    with served(root) as first:
        tab = opened(first, browser, run)
        tab.page.get_by_label("quorum").fill("2")
        tab.page.get_by_role("button", name="apply").click()
        tab.page.locator("table.clicks").get_by_text("acts on it").wait_for()
        changes = len(of_kind(records_of(run.path), Kind.SETTING_CHANGED))
    gone = time.monotonic()
    tab.page.get_by_text("The server of this page does not answer").first.wait_for()
    print(f"a server that is gone is said after {time.monotonic() - gone:.1f} s")
    with served(root, Served(first.port, "", "")):  # tokens are drawn anew
        tab.page.get_by_role("alert").get_by_text("This page's address is no longer valid").wait_for()
        assert tab.page.locator(".notyf").evaluate("one => getComputedStyle(one).display") == "none"
        assert tab.page.evaluate("document.elementFromPoint(200, 300).className") == "wb-stale"  # it veils the page
        tab.picture(pictures, "stale")
    with served(root, first) as second:
        tab.page.reload()
        tab.cell(0, "training")
        tab.field("quorum", "2")
        assert len(of_kind(records_of(run.path), Kind.SETTING_CHANGED)) == changes
        assert second.port == first.port
        tab.page.close()
