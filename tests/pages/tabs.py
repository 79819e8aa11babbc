"""A browser tab under test: what went wrong in it, whom it asked, what it shows, what it looks like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.engine.real_runs import until

GUARD_MS = 120_000
WIDTHS = (1280, 800)
BROKEN = """() => {
    const found = [];
    const visit = root => root.querySelectorAll("*").forEach(one => {
        if (one.shadowRoot) visit(one.shadowRoot);
        if (!one.closest("td") || one.closest("td.long, td[colspan]")) return;
        for (const text of [...one.childNodes].filter(node => node.nodeType === Node.TEXT_NODE))
            for (const word of text.data.matchAll(/[\\w.,+%-]*\\d[\\w.,+%-]*|\\w+/g)) {
                const range = document.createRange();
                range.setStart(text, word.index);
                range.setEnd(text, word.index + word[0].length);
                if (new Set([...range.getClientRects()].map(box => box.top)).size > 1) found.push(word[0]);
            }
    });
    visit(document);
    return found;
}"""
"""Numbers and words in cells of tables that are broken between lines."""
FIGURES = '[...Bokeh.index.query(one => one.model.type === "Figure")].map(one => one.model)'
"""Figures that are shown now: documents know of those before them for a while."""
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


class Tab:
    """A tab that remembers what went wrong in it, and whom it asked.

    Parameters
    ----------
    browser : playwright Browser
    options
        Of the browser's context, for example ``color_scheme="dark"``.
    """

    def __init__(self, browser: Any, **options: Any) -> None:
        self.page = browser.new_page(viewport={"width": WIDTHS[0], "height": 900}, **options)
        self.page.set_default_timeout(GUARD_MS)
        self.errors: list[str] = []
        self.asked: set[str] = set()
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(f"{error} {error.stack}"))
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

    def at(self, event: int) -> None:
        """Wait for the cursor of a tape to stand at an event, and for everything to show that."""
        self.page.locator(f'.strip[aria-valuenow="{event}"]').wait_for()
        self.page.locator(f'.row.at[data-event="{event}"]').wait_for()

    def field(self, label: str, value: str) -> None:
        """Wait for a field to show a value."""
        field = self.page.get_by_label(label, exact=True)
        until(lambda: field.input_value() == value, f"{label} shows {value}")

    @property
    def event(self) -> int:
        """Where the cursor stands."""
        return int(self.page.locator(".strip").first.get_attribute("aria-valuenow"))

    def picture(self, folder: Path, name: str) -> None:
        """Keep what it looks like, wide and narrow."""
        for width in WIDTHS:
            self.page.set_viewport_size({"width": width, "height": 900})
            self.page.wait_for_timeout(500)
            self.page.screenshot(path=folder / f"{name}-{width}.png", full_page=True)
        assert self.page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[-1], f"{name} is too wide"
        self.page.set_viewport_size({"width": WIDTHS[0], "height": 900})

    def close(self, port: int) -> None:
        """Close it; it asked nobody but the server, and nothing went wrong in it."""
        self.page.close()
        assert self.errors == []
        assert self.strangers(port) == []
