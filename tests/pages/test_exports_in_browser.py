"""What a page gives away, in a real browser: files, the view as code, and a report that works offline."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.pages.serving import Served
from tests.pages.tabs import GUARD_MS, Tab
from workbench.pages.demo import DEMO
from workbench.tape import open_tape

pytestmark = pytest.mark.browser

AT = 2900


@pytest.fixture(scope="module")
def tab(pages: Served, browser: Any) -> Iterator[Tab]:
    found = Tab(browser)
    found.page.goto(pages.url(pages.view, "replay", DEMO.name, AT))
    found.at(AT)
    found.page.locator("canvas").nth(1).wait_for()
    yield found
    found.close(pages.port)


def saved(tab: Tab, button: str, folder: Path, suffix: str) -> Path:
    """What a button gives away; an earlier one may still be at it, pictures come one after the other."""
    with tab.page.expect_download(lambda d: d.suggested_filename.endswith(suffix), timeout=GUARD_MS) as waiting:
        tab.page.get_by_role("button", name=re.compile(f"^{button}:")).click()
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


def test_a_trace_and_tables_are_saved(tab: Tab, tmp_path: Path) -> None:
    trace = json.loads(gzip.decompress(saved(tab, "Perfetto", tmp_path, ".json.gz").read_bytes()))
    assert len(trace["traceEvents"]) > 1000
    with zipfile.ZipFile(saved(tab, "CSV", tmp_path, ".zip")) as archive:
        merges = next(name for name in archive.namelist() if name.endswith("merges.csv"))
        rows = list(csv.reader(io.StringIO(archive.read(merges).decode())))
    assert len(rows) - 1 == open_tape(DEMO)["merges"].sizes["merge"]


def test_figures_are_saved_as_pictures(tab: Tab, tmp_path: Path) -> None:
    path = saved(tab, "PNG", tmp_path, ".png")
    assert path.name.startswith("demo-tape") and path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert path.stat().st_size > 5000


def test_the_grid_and_the_lanes_are_saved_for_papers_and_as_a_film(tab: Tab, tmp_path: Path) -> None:
    lanes = saved(tab, "lanes SVG", tmp_path, "-lanes.svg").read_text(encoding="utf-8")
    grid = saved(tab, "grid SVG", tmp_path, f"-{AT}.svg").read_text(encoding="utf-8")
    words = [tab.page.locator(f'.cell[data-learner="{m}"]').get_attribute("data-state") for m in range(4)]
    assert all(f">{word}<" in grid for word in words) and all(f">L{m}<" in lanes for m in range(4))
    with Image.open(saved(tab, "GIF", tmp_path, ".gif")) as film:
        assert getattr(film, "n_frames", 1) > 50 and film.width >= 600
    figure = saved(tab, "SVG", tmp_path, ".svg").read_text(encoding="utf-8")
    assert "<svg" in figure and len(figure) > 5000


def test_a_report_works_without_any_server(tab: Tab, browser: Any, tmp_path: Path, pictures: Path) -> None:
    path = saved(tab, "report", tmp_path, ".html")
    offline = Tab(browser, offline=True)
    page = offline.page
    page.goto(path.as_uri())
    page.locator("canvas").nth(6).wait_for()
    page.get_by_text(f"At event {AT:,}").wait_for()
    assert page.get_by_text("86 of 86 merges").count() == 1
    page.screenshot(path=pictures / "report.png", full_page=True)
    assert [url for url in offline.asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert offline.errors == []
    page.close()


def test_the_view_as_code_runs_and_shows_the_same(tab: Tab) -> None:
    tab.page.get_by_role("button", name="copy as code").click()
    text = tab.page.locator("dialog pre").inner_text()
    tab.page.keyboard.press("Escape")
    assert str(DEMO) in text and f"tape.wb.at({AT})" in text
    names: dict[str, Any] = {}
    exec(text, names)
    assert names["moment"].event == AT
    assert names["past"].mask().sum() == len(open_tape(DEMO).wb.past(AT))
