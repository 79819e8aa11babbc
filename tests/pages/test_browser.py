"""The pages in a real browser: a run is started, a learner killed by a click, the tape looked through."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pages.serving import Served, served
from workbench.engine.launch import attach

pytestmark = pytest.mark.browser

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
GUARD_MS = 45_000
WIDTHS = (1280, 800)


@pytest.fixture(scope="module")
def pictures() -> Path:
    """Where screenshots are kept: WORKBENCH_PICTURES, or build/pictures."""
    folder = Path(os.environ.get("WORKBENCH_PICTURES", "build/pictures"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (pip install -e .[dev])")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no chromium on the PATH; on Debian: apt install chromium")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def site(root: Path) -> Iterator[Served]:
    with served(root) as found:
        yield found


class Tab:
    """A browser tab that remembers what went wrong in it, and whom it asked."""

    def __init__(self, browser: Any) -> None:
        self.page = browser.new_page(viewport={"width": WIDTHS[0], "height": 900})
        self.page.set_default_timeout(GUARD_MS)
        self.errors: list[str] = []
        self.asked: set[str] = set()
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.asked.add(request.url))
        self.page.on("websocket", lambda socket: self.asked.add(socket.url))

    def strangers(self, port: int) -> list[str]:
        """Whom it asked but the server."""
        ours = (f"http://localhost:{port}/", f"ws://localhost:{port}/", "data:", "blob:")
        return [url for url in self.asked if not url.startswith(ours)]

    def cell(self, learner: int, *states: str) -> Any:
        """Wait for a learner's cell to be in one of some states."""
        places = ", ".join(f'.cell[data-learner="{learner}"][data-state="{state}"]' for state in states)
        return self.page.wait_for_selector(places)

    def picture(self, folder: Path, name: str) -> None:
        """Keep what it looks like, wide and narrow."""
        for width in WIDTHS:
            self.page.set_viewport_size({"width": width, "height": 900})
            self.page.wait_for_timeout(600)
            self.page.screenshot(path=folder / f"{name}-{width}.png", full_page=True)
        assert self.page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[-1], f"{name} is too wide"
        self.page.set_viewport_size({"width": WIDTHS[0], "height": 900})


def test_a_run_is_started_struck_watched_stopped_and_looked_through(
    site: Served, browser: Any, root: Path, pictures: Path
) -> None:
    tab = Tab(browser)
    page = tab.page
    page.goto(site.url(site.control))
    page.get_by_role("button", name="Start").wait_for()
    tab.picture(pictures, "start")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**page=live**")
    run = attach(next(path for path in root.iterdir() if path.name.startswith("tiny")))
    try:
        for learner in range(2):
            tab.cell(learner, "training")
        _strike(tab)
        _look_on(site, browser, page.url)
        tab.cell(1, "training")
        tab.picture(pictures, "live")
        page.get_by_role("button", name="stop the run").click()
        page.get_by_role("button", name="really stop it?").click()
        page.locator(".banner", has_text="The run is over: it ended as it should").wait_for()
    finally:
        if run.running:
            run.stop()
    page.get_by_role("link", name="open its tape").click()
    _look_through(tab)
    tab.picture(pictures, "replay")
    assert tab.errors == []
    assert tab.strangers(site.port) == []
    page.close()


def _strike(tab: Tab) -> None:
    """Kill a learner from its cell, and change a setting; both are followed to their effect."""
    page = tab.page
    page.locator('.cell[data-learner="1"] button').click()
    tab.cell(1, "down", "starting", "waiting")
    page.locator("table.clicks tr", has_text="kill L1").get_by_text("on the tape").wait_for()
    page.get_by_label("quorum").fill("2")
    page.get_by_role("button", name="apply").click()
    page.locator("table.clicks tr", has_text="set quorum = 2").get_by_text("acts on it").wait_for()
    page.get_by_label("quorum").fill("7")
    page.get_by_role("button", name="apply").click()
    page.locator("table.clicks").get_by_text("refused: quorum = 7 with 2 learners; allowed: 1 to 2").wait_for()


def _look_on(site: Served, browser: Any, url: str) -> None:
    """Who has the view token sees the same and finds nothing to press."""
    tab = Tab(browser)
    tab.page.goto(url.replace(site.control, site.view))
    tab.cell(0, "training")
    assert tab.page.locator(".cell button:visible").count() == 0
    assert tab.page.get_by_role("button", name="stop the run").count() == 0
    assert tab.errors == []
    tab.page.close()


def _look_through(tab: Tab) -> None:
    """Step; the address follows, Back goes back, and a link brings the cursor back."""
    page = tab.page
    page.locator(".row.now").wait_for()
    last = page.locator(".row.now").get_attribute("data-event")
    page.get_by_role("button", name="◂ fault").click()
    page.wait_for_url("**event=*")
    page.locator(f'.row.now:not([data-event="{last}"])').wait_for()
    at = page.locator(".row.now").get_attribute("data-event")
    assert "fault: kill L1" in page.locator(".row.now").inner_text()
    assert page.url.endswith(f"event={at}")
    page.reload()
    page.locator(f'.row.now[data-event="{at}"]').wait_for()
    page.get_by_role("button", name="merge ▸").click()
    page.locator(f'.row.now:not([data-event="{at}"])').wait_for()
    page.get_by_text("took L").wait_for()
    page.go_back()
    page.locator(f'.row.now[data-event="{at}"]').wait_for()
    page.get_by_text("Ground of the lanes").wait_for()
    page.locator("canvas").nth(1).wait_for()


def test_what_cannot_be_shown_is_said_in_a_sentence_with_a_way_on(site: Served, browser: Any, root: Path) -> None:
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
        tab.page.goto(site.url(site.view, page, run))
        tab.page.locator(".banner.bad, .banner", has_text=sentence).first.wait_for()
        tab.page.get_by_role("link", name=way_on).wait_for()
        assert "Traceback" not in tab.page.content()
    assert tab.errors == []
    tab.page.close()
