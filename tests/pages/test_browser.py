"""The first page, and what cannot be shown, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.pages.serving import Served
from tests.pages.tabs import Tab
from workbench.pages.demo import DEMO

pytestmark = pytest.mark.browser


def test_the_first_page_offers_the_demo_a_tiny_run_and_what_goes_on(
    pages: Served, browser: Any, pictures: Path
) -> None:
    tab = Tab(browser)
    tab.page.goto(pages.url(pages.control))
    tab.page.get_by_role("button", name="Start").wait_for()
    tab.page.locator(".runs tr", has_text="demo").get_by_text("86 of").or_(tab.page.get_by_text("86 merges")).wait_for()
    tab.picture(pictures, "start")
    tab.page.get_by_role("link", name="Watch the demo tape").click()
    tab.page.locator(".row.at").wait_for()
    tab.close(pages.port)


def test_what_cannot_be_shown_is_said_in_a_sentence_with_a_way_on(pages: Served, browser: Any, root: Path) -> None:
    broken = root / "broken"
    broken.mkdir()
    (broken / "config.toml").write_text("learners = 2\n", encoding="utf-8")
    (broken / "journal").write_bytes(b"nothing of a journal")
    name = f"{root.name}/broken"
    tab = Tab(browser)
    for page, run, sentence, way_on in (
        ("live", name, "is not running", "open the tape"),
        ("live", f"{root.name}/../etc", "there is no run", "Choose another run"),
        ("replay", name, "journal", "Choose another run"),
    ):
        tab.page.goto(pages.url(pages.view, page, run))
        tab.page.locator(".banner.bad, .banner", has_text=sentence).first.wait_for()
        tab.page.get_by_role("link", name=way_on).wait_for()
        assert "Traceback" not in tab.page.content()
    for page, garbage, said in (
        ("start", "&held=x", "held = x"),
        ("replay", "&event=99999&learner=77&low=9&high=3&axis=zzz", "axis = zzz, event = 99999, learner = 77, low = 9"),
    ):
        tab.page.goto(pages.url(pages.view, page, DEMO.name if page == "replay" else "") + garbage)
        tab.page.locator(".banner", has_text=f"left out: {said}").wait_for()
    tab.page.wait_for_function("() => !window.location.search.includes('zzz')")
    tab.close(pages.port)
