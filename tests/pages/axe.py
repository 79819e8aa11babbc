"""What axe-core finds in a page: by name of the rule, with the element that it stands for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.pages.tabs import WIDTHS, Tab

EXCLUDED: dict[str, tuple[str, str]] = {}
"""By rule: a selector, and why what stands there cannot be otherwise."""
GRAVE = ("serious", "critical")


def findings(page: Any) -> list[str]:
    """What is serious or critical, one line for each element; open shadow roots are looked through."""
    sync = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is missing: type make setup")
    results = sync.Axe().run(page, options={"resultTypes": ["violations"]})
    return [
        f"{found['impact']} {found['id']}: {_place(node)} {' '.join(node['html'].split())[:160]}"
        for found in results.response["violations"]
        if found["impact"] in GRAVE
        for node in found["nodes"]
        if not _is_excluded(found["id"], _place(node))
    ]


def assert_accessible(tab: Tab, name: str, pictures: Path) -> None:
    """Nothing serious in both themes, wide and narrow; a picture of each dark one is kept."""
    page = tab.page
    for theme in ("dark", "light"):
        page.keyboard.press("t")
        page.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=theme)
        for width in reversed(WIDTHS):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(300)
            found = findings(page)
            assert found == [], (name, theme, width, "\n".join(found))
            page.screenshot(path=pictures / f"{name}-{theme}-{width}.png", full_page=True)


def _place(node: dict[str, Any]) -> str:
    """Selectors from the page inwards, through shadow roots."""
    parts = [one if isinstance(one, list) else [one] for one in node["target"]]
    return " >>> ".join(selector for part in parts for selector in part)


def _is_excluded(rule: str, place: str) -> bool:
    return rule in EXCLUDED and EXCLUDED[rule][0] in place
