from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pages.serving import Served, served
from tests.pages.tabs import ARGUMENTS, CHROMIUM


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Headless Chromium; where there is none the tests of pages in a browser are skipped with what to install."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is missing: type make setup")
    chromium = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if chromium is None:
        pytest.skip("no Chromium on the PATH: on Debian type apt install chromium")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="package")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where screenshots are kept: WORKBENCH_PICTURES, or a temporary folder that is printed."""
    given = os.environ.get("WORKBENCH_PICTURES")
    folder = Path(given) if given else tmp_path_factory.mktemp("pictures")
    folder.mkdir(parents=True, exist_ok=True)
    yield folder
    print(f"\nscreenshots of the pages: {folder}")


@pytest.fixture(scope="package")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the runs that the server of the browser tests shows."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="package")
def pages(root: Path) -> Iterator[Served]:
    """One server for all tests in a browser."""
    with served(root) as found:
        yield found
