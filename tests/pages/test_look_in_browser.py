"""All pages in a real browser: what axe finds, focus, both themes, keys, and what they ask of whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.pages.axe import assert_accessible, findings
from tests.pages.serving import Served
from tests.pages.tabs import FIGURES, Tab
from workbench.pages.demo import DEMO

pytestmark = pytest.mark.browser

FOCUSED = """() => {
  let at = document.activeElement;
  while (at && at.shadowRoot && at.shadowRoot.activeElement) at = at.shadowRoot.activeElement;
  if (!at || at === document.body) return null;
  const style = getComputedStyle(at);
  const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== "none";
  const box = at.getBoundingClientRect();
  const name = at.getAttribute("aria-label") || at.textContent || at.name || "";
  return { what: at.tagName + " " + name.trim().slice(0, 40),
           seen, top: box.top + window.scrollY, left: box.left };
}"""
PLACES = {
    "start": ("start", "", "Start"),
    "replay": ("replay", DEMO.name, "event ▸"),
    "choice": ("compare", DEMO.name, "compare"),
    "gone": ("live", DEMO.name, "dark or light"),
}
STOPS = 24


@pytest.mark.parametrize("name", list(PLACES))
def test_axe_finds_nothing_serious(pages: Served, browser: Any, pictures: Path, name: str) -> None:
    page, run, ready = PLACES[name]
    tab = Tab(browser, color_scheme="light")
    tab.page.goto(pages.url(pages.control, page, run, 700 if page == "replay" else -1))
    tab.page.get_by_role("button", name=ready, exact=True).first.wait_for()
    if page == "replay":
        tab.at(700)
        tab.page.locator("canvas").nth(1).wait_for()
    tab.page.locator("h1").wait_for()
    tab.page.wait_for_load_state("networkidle")  # style sheets are there
    assert_accessible(tab, name, pictures)
    tab.close(pages.port)


def test_axe_finds_nothing_serious_in_what_lies_on_top(pages: Served, browser: Any) -> None:
    tab = Tab(browser)
    tab.page.goto(pages.url(pages.control, "replay", DEMO.name, 700))
    tab.at(700)
    for key in ("?", "Control+k"):
        tab.page.keyboard.press(key)
        tab.page.get_by_role("dialog").wait_for()
        assert findings(tab.page) == [], key
        tab.page.keyboard.press("Escape")
        tab.page.get_by_role("dialog").wait_for(state="detached")
    tab.close(pages.port)


def test_what_is_wrong_in_a_shadow_root_is_found(pages: Served, browser: Any) -> None:
    tab = Tab(browser)
    tab.page.goto(pages.url(pages.view))
    tab.page.locator("h1").wait_for()
    tab.page.evaluate("""() => {
      const host = document.createElement("div"), root = host.attachShadow({ mode: "open" });
      root.innerHTML = "<button></button><p style='color: #bbb; background: #fff'>faint letters</p>";
      document.body.append(host);
    }""")
    found = "\n".join(findings(tab.page))
    assert "button-name" in found and "color-contrast" in found and ">>>" in found
    tab.close(pages.port)


def test_the_keyboard_reaches_controls_in_order_and_focus_is_seen(pages: Served, browser: Any) -> None:
    tab = Tab(browser)
    tab.page.goto(pages.url(pages.control, "replay", DEMO.name, 700))
    tab.at(700)
    stops = []
    for _ in range(STOPS):
        tab.page.keyboard.press("Tab")
        stops.append(tab.page.evaluate(FOCUSED))
    assert all(stops), stops
    unseen = [stop["what"] for stop in stops if not stop["seen"]]
    assert unseen == []
    names = [stop["what"] for stop in stops]
    wanted = ("runs", "▸ play", "event ▸", "cursor on the tape", "choose L0", "choose L3")
    places = [next(i for i, name in enumerate(names) if want in name) for want in wanted]
    assert places == sorted(places), names
    tab.close(pages.port)


def test_the_theme_turns_without_a_new_page_figures_included(pages: Served, browser: Any) -> None:
    tab = Tab(browser)
    page = tab.page
    page.goto(pages.url(pages.view, "replay", DEMO.name, 700))
    tab.at(700)
    page.locator("canvas").nth(1).wait_for()
    navigations: list[str] = []
    page.on("framenavigated", lambda frame: navigations.append(frame.url))
    grounds = f"() => {FIGURES}.map(one => one.background_fill_color)"
    ground = "() => getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(ground)
    page.keyboard.press("t")
    page.wait_for_function("() => document.documentElement.dataset.theme === 'dark'")
    assert page.evaluate(ground) != before
    dark = f"() => {{ const all = ({grounds})(); return all.length > 1 && all.every(one => one === '#16191d'); }}"
    page.wait_for_function(dark)
    page.get_by_role("button", name="dark or light").click()
    page.wait_for_function(dark.replace("#16191d", "#ffffff"))
    assert navigations == [] and page.evaluate(ground) == before
    tab.close(pages.port)


def test_the_key_sheet_opens_on_a_question_mark_and_keys_in_fields_are_left_alone(pages: Served, browser: Any) -> None:
    tab = Tab(browser)
    page = tab.page
    page.goto(pages.url(pages.control, "replay", DEMO.name, 700))
    tab.at(700)
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keys of this page")
    sheet.get_by_text("previous, next exclusion").wait_for()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Escape")
    sheet.wait_for(state="detached")
    assert tab.event == 700
    page.get_by_role("textbox", name="to", exact=True).click()
    page.keyboard.type("t n e")
    assert tab.event == 700 and page.evaluate("document.documentElement.dataset.theme") == "light"
    tab.close(pages.port)
