"""What the pages cost: a run of many learners watched for a minute, fifty visitors, a tape of a million events."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.real_runs import until
from tests.pages.long_tape import write_long
from tests.pages.soaking import LEARNERS, NAME, Measured, measured
from tests.pages.tabs import FIGURES, Tab
from workbench.pages.demo import DEMO
from workbench.pages.live_page import TICK_MS
from workbench.pages.recording import Recording

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(1200)]

WATCHED_S, ALONE_S = 60.0, 15.0
TICK_LIMIT_S = 0.020
VISITORS = 50
FORGOTTEN_S = 120.0
"""The server forgets sessions that nobody uses after half a minute."""
BLOCKS_LIMIT, GROWTH_LIMIT_BYTES = 1.01, 40e6
"""What fifty visitors may leave behind; one alone takes 37,000 blocks and 3.5 MB while it is there."""
EVENTS = 1_000_000
CURSOR_LIMIT_S, PAINT_LIMIT_S = 0.100, 3.0
LOOKS, MOVES = 200, 24
STEPS = (("merge", "]"), ("fault", "n"), ("exclusion", "e"), ("event", "ArrowRight"))
FRAMES = (
    f"() => {{ window.frames_ = 0; const all = {FIGURES};"
    """
  for (const one of all)
    if (one.title.text.startsWith("what each process did"))
      one.x_range.change.connect(() => { window.frames_ += 1; }); }"""
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measured]:
    root = tmp_path_factory.mktemp("runs")
    with measured(root) as found:
        yield found


def over(server: Measured, seconds: float) -> dict[str, float]:
    """What its figures grew by in some time."""
    before, began = server.figures(), time.monotonic()
    time.sleep(seconds)
    after = server.figures()
    return {**{name: after[name] - before[name] for name in after}, "wall_s": time.monotonic() - began}


def test_a_run_of_many_learners_costs_little(server: Measured, browser: Any) -> None:
    name = f"{Path(str(server.server.args[-1])).name}/{NAME}"
    tab = Tab(browser)
    tab.page.goto(server.served.url(server.served.control, "live", name))
    tab.cell(LEARNERS - 1, "training")
    tab.page.evaluate(FRAMES)
    watched, frames = over(server, WATCHED_S), tab.page.evaluate("window.frames_")
    tab.close(server.served.port)
    until(lambda: server.figures()["pages"] == 0, "the page is forgotten", FORGOTTEN_S)
    alone = over(server, ALONE_S)
    rates = {key: one["cpu_s"] / one["wall_s"] for key, one in (("watched", watched), ("alone", alone))}
    each_s = (rates["watched"] - rates["alone"]) * watched["wall_s"] / watched["ticks"]
    print(
        f"{LEARNERS} learners, {watched['events'] / watched['wall_s']:,.0f} events/s: {rates['watched']:.3f} CPU s/s "
        f"with a page, {rates['alone']:.3f} without; {watched['ticks'] / watched['wall_s']:.1f} ticks/s of "
        f"{each_s * 1e3:.1f} ms ({watched['tick_s'] / watched['ticks'] * 1e3:.1f} ms in the tick itself), "
        f"{frames / WATCHED_S:.1f} frames/s in the browser"
    )
    assert each_s < TICK_LIMIT_S, each_s
    assert frames > 0.5 * WATCHED_S * 1e3 / TICK_MS, frames


def test_memory_comes_back_when_visitors_leave(server: Measured, browser: Any) -> None:
    """The interpreter's arenas stay as large as the most visitors at once made them; later ones take no more."""
    told = []
    for visitors in (3, VISITORS, VISITORS):
        visit(server, browser, visitors)
        most = server.figures()
        forgotten(server)
        told.append(server.figures())
        left = ", ".join(f"{told[-1][name]:,.0f} {name}" for name in ("rss", "blocks", "figures", "documents"))
        print(
            f"{visitors} visitors: {most['sessions']:.0f} sessions and {most['rss']:,.0f} bytes at most; after: {left}"
        )
    before, first, after = told
    assert after["figures"] <= before["figures"] and after["documents"] <= before["documents"] and after["pages"] == 0
    assert after["blocks"] < BLOCKS_LIMIT * before["blocks"]
    assert after["rss"] - first["rss"] < GROWTH_LIMIT_BYTES


def visit(server: Measured, browser: Any, times: int) -> None:
    tab = Tab(browser)
    for number in range(times):
        tab.page.goto(server.served.url(server.served.view, "replay", DEMO.name, 700 + number))
        tab.at(700 + number)
    tab.close(server.served.port)


def forgotten(server: Measured) -> None:
    """Wait until nothing is kept for anybody."""

    def none() -> bool:
        told = server.figures()
        return told["sessions"] == told["pages"] == 0

    until(none, "all are forgotten", FORGOTTEN_S)


def test_a_cursor_moves_fast_on_a_tape_of_a_million_events(tmp_path: Path, browser: Any) -> None:
    root = tmp_path / "runs"
    root.mkdir()
    began = time.monotonic()
    write_long(root / "long", EVENTS)
    print(f"the tape was written in {time.monotonic() - began:.0f} s")
    used_s = time.process_time()
    recording = Recording(root / "long")
    opened_s = time.process_time() - used_s
    first_s = _looked(recording, recording.count // 2)
    places = np.linspace(0, recording.count - 1, LOOKS).astype(int).tolist()
    took = [_looked(recording, event) for event in places]
    used_s = time.process_time()
    recording.count_tokens()
    counted_s = time.process_time() - used_s
    print(
        f"{recording.count:,} events: opened in {opened_s:.2f} s, first look {first_s:.2f} s, a cursor takes "
        f"{np.median(took) * 1e3:.0f} ms (median), {max(took) * 1e3:.0f} ms at most (of {LOOKS}); tokens are counted "
        f"in {counted_s:.1f} s meanwhile"
    )
    assert max(took) < CURSOR_LIMIT_S, max(took)
    assert opened_s + first_s < PAINT_LIMIT_S
    _in_a_browser(root, browser, recording)


def _looked(recording: Recording, event: int) -> float:
    used_s = time.thread_time()
    recording.look(event)
    return time.thread_time() - used_s


def _in_a_browser(root: Path, browser: Any, recording: Recording) -> None:
    count = recording.count
    with measured(root) as server:
        visit(server, browser, 1)  # whatever is loaded once is loaded now
        tab = Tab(browser)
        before, began = server.figures()["cpu_s"], time.monotonic()
        tab.page.goto(server.served.url(server.served.view, "replay", "runs/long", count // 2))
        tab.at(count // 2)
        shown_s, used_s = time.monotonic() - began, server.figures()["cpu_s"] - before
        tab.page.locator("canvas").nth(1).wait_for()
        tab.page.locator(".vital", has_text="of tokens processed").wait_for()
        drawn_s, most = time.monotonic() - began, []
        event = count // 2
        server.figures()
        for number in range(MOVES):
            by, key = STEPS[number % len(STEPS)]
            event = recording.step(event, by, forward=True)
            tab.page.keyboard.press(key)
            tab.at(event)
            told = server.figures()
            most.append(told["look_most_s"] + told["show_most_s"])
        print(
            f"in the browser: {shown_s:.1f} s to the state ({used_s:.1f} CPU s of the server), {drawn_s:.1f} s to the "
            f"figures and the tokens; a step takes {np.median(most) * 1e3:.0f} ms of the server (median), "
            f"{max(most) * 1e3:.0f} ms at most (of {MOVES})"
        )
        assert used_s < PAINT_LIMIT_S and max(most) < CURSOR_LIMIT_S
        tab.close(server.served.port)
