"""Fork from the cursor and the comparison, in a real browser."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.pages.axe import assert_accessible
from tests.pages.serving import Served
from tests.pages.tabs import BROKEN, Tab
from workbench.analysis.comparing.comparison import compare
from workbench.pages.demo import DEMO
from workbench.pages.recording import Recording
from workbench.protocol.records import Kind
from workbench.tape import open_tape

pytestmark = pytest.mark.browser

FORK_GUARD_MS = 240_000
"""A fork computes all merges of its parent again, behind everything else on the machine."""


@pytest.mark.timeout(600)
def test_a_fork_from_the_cursor_is_laid_beside_its_parent_with_linked_cursors(
    pages: Served, browser: Any, root: Path, pictures: Path
) -> None:
    tab = Tab(browser)
    page = tab.page
    opened = np.flatnonzero(open_tape(DEMO)["events"].dataset["kind"].values == int(Kind.ROUND_OPENED))
    event = int(opened[-12])
    page.goto(pages.url(pages.control, "replay", DEMO.name, event))
    tab.at(event)
    page.get_by_label("change", exact=True).select_option("quorum")
    page.get_by_role("textbox", name="to", exact=True).fill("4")
    page.get_by_role("textbox", name="to", exact=True).press("Tab")
    page.get_by_role("button", name="fork", exact=True).click()
    page.get_by_text("is being computed").wait_for()
    page.get_by_role("link", name="Lay it beside the run").click(timeout=FORK_GUARD_MS)
    page.locator("table.then tr[data-event]").nth(1).wait_for()
    fork = root / "demo-tape-fork-1"
    found = compare(open_tape(DEMO), open_tape(fork))
    assert found.divergences[1] is not None
    story = page.locator("table.story").inner_text()
    assert found.divergences[1].text(("A", "B")) in story and "recorded 100%" in story
    assert re.search(r"✓ recorded \d+% ≈ re-simulated \d+%", story)
    quorum = page.get_by_role("row", name=re.compile(r"^quorum\b")).inner_text().split("\t")
    assert quorum[1] == "2" and re.fullmatch(r"2, 4 from round \d+", quorum[2]), quorum
    merges = page.get_by_role("row", name=re.compile(r"^merges\b")).inner_text()
    assert ("the same" in merges) == (found.differences["merges"][1] == 0)
    _assert_linked(tab, fork)
    page.locator("canvas").nth(1).wait_for()
    assert_accessible(tab, "compare", pictures)
    tab.picture(pictures, "compare")
    page.get_by_role("link", name="in B").click()
    tab.at(int(found.divergences[1].other_event or 0))
    tab.close(pages.port)


def _assert_linked(tab: Tab, fork: Path) -> None:
    """Move one cursor: each run stands at its own event of that place."""
    page = tab.page
    both = [Recording(DEMO), Recording(fork)]
    for axis, words in (("wall", "wall time"), ("tokens", "tokens processed")):
        page.get_by_label("common axis").select_option(words)
        page.locator(".ends", has_text=f"A: {words}").wait_for()
        page.keyboard.press("Home")
        for _ in range(3):
            page.keyboard.press("Shift+ArrowRight")
        page.locator('.strip[aria-valuenow="300"]').wait_for()
        lines = [one.timeline(axis) for one in both]
        low, high = min(one.low for one in lines), max(one.high for one in lines)
        value = low + 0.3 * (high - low)
        for line in lines:
            event = int(np.searchsorted(line.until, value, "right")) - 1
            page.locator(f'table.then tr[data-event="{event}"]').first.wait_for()
    page.wait_for_url("**at=300**")
    page.keyboard.press("Shift+ArrowRight")
    page.wait_for_url("**at=400**")
    page.go_back()
    page.locator('.strip[aria-valuenow="300"]').wait_for()


def test_a_question_that_no_tape_can_answer_is_refused_in_a_sentence(pages: Served, browser: Any) -> None:
    tab = Tab(browser)
    page = tab.page
    page.goto(pages.url(pages.control, "replay", DEMO.name, 700))
    tab.at(700)
    page.get_by_label("change", exact=True).select_option("quorum")
    page.get_by_role("textbox", name="to", exact=True).fill("many")
    page.get_by_role("textbox", name="to", exact=True).press("Tab")
    page.get_by_role("button", name="fork", exact=True).click()
    page.locator(".banner.bad", has_text="quorum").wait_for()
    page.get_by_label("change", exact=True).select_option("grace")
    page.locator(".banner.bad").wait_for(state="detached")
    page.get_by_role("combobox", name="to", exact=True).select_option("none")
    tab.close(pages.port)


def test_runs_are_chosen_from_a_list_and_one_that_is_gone_is_said(pages: Served, browser: Any, root: Path) -> None:
    tab = Tab(browser)
    page = tab.page
    page.goto(pages.url(pages.view, "compare", DEMO.name))
    page.get_by_role("button", name="compare", exact=True).click()
    page.locator(".banner.bad", has_text="1 run is chosen; choose 2 to 6.").wait_for()
    page.goto(pages.url(pages.view, "compare", DEMO.name, others=("runs/gone",)))
    page.locator(".banner.bad", has_text="there is no run 'runs/gone'").wait_for()
    copies = [f"copy-{number}-of-a-tape-with-a-long-name" for number in range(6)]
    for copy in copies:
        shutil.copytree(DEMO, root / copy)
    others = tuple(f"{root.name}/{copy}" for copy in copies)
    page.goto(pages.url(pages.view, "compare", DEMO.name, others=others))
    page.locator(".banner", has_text=f"Left out: {others[-1]}.").wait_for()
    for width in (1280, 800, 400):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(f"() => document.documentElement.scrollWidth <= {width}")  # figures take their new width
        assert page.evaluate(BROKEN) == [], width
    tab.close(pages.port)
