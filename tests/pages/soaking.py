"""A server of pages that is measured: it watches a run that only seems to go on, and tells what it costs when asked.

A line on its standard input asks; a line of JSON answers: its processor time and resident memory, its pages and its
sessions.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from tests.pages.serving import STOP_LIMIT_S, Served
from workbench.config import RunConfig, to_toml
from workbench.engine.launch import Run
from workbench.engine.telemetry import Batch
from workbench.pages.access import new_access
from workbench.pages.demo import demo_folder
from workbench.pages.folders import Folders
from workbench.pages.site import Site
from workbench.pages.watcher import Watcher
from workbench.protocol.records import SYNCER, Kind, Record, process_of
from workbench.tape.run_folder import RunFolder

LEARNERS, STEPS_HZ, MERGES_HZ = 32, 10, 5
BATCH_S = 0.05
NAME = "seeming"


class Seeming(Run):
    """A run of which nothing goes on but what it tells: `LEARNERS` learners that step, and are merged."""

    def __init__(self, folder: Path) -> None:
        super().__init__(RunFolder(folder), None)
        self.began_s = time.monotonic()
        self.told, self.missed, self.made = 0.0, 0, 0

    @property
    def running(self) -> bool:
        """It never ends."""
        return True

    def now_s(self) -> float:
        """Since it began [s]."""
        return time.monotonic() - self.began_s

    def status(self) -> dict[str, Any]:
        """As a supervisor tells it."""
        now_s = self.now_s()
        learners = [
            {"learner": m, "label": f"L{m}", "state": "running", "number": 1, "connected": True, "healed": True,
             "step": int(now_s * STEPS_HZ), "loss": 2.0 + m / 100 + 1 / (1 + now_s), "behind": (m + now_s) % 3,
             "tokens_per_s": 5120.0, "stepped": True, "counts": True, "pid": 1}
            for m in range(LEARNERS)
        ]  # fmt: skip
        return {"phase": "running", "elapsed_s": now_s, "merges": int(now_s * MERGES_HZ), "rounds": 10**6, "quorum": 1,
                "learners": learners, "val_loss": None}  # fmt: skip

    def telemetry(self) -> Any:
        """Itself: it is its own subscriber."""
        return self

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def take(self, timeout_s: float) -> list[Batch]:
        """What has happened since the last time; waits a moment for it, as a socket would."""
        time.sleep(min(timeout_s, BATCH_S))
        since, self.told = self.told, self.now_s()
        records = sorted((*_steps(since, self.told), *_merges(since, self.told)), key=lambda one: one.time_ns)
        self.made += len(records)
        return [Batch(1, 0, records, None, 0)]


def _times(since_s: float, until_s: float, hz: float) -> range:
    return range(int(since_s * hz), int(until_s * hz))


def _steps(since_s: float, until_s: float) -> Iterator[Record]:
    length = 10**9 // STEPS_HZ
    for n in _times(since_s, until_s, STEPS_HZ):
        for m in range(LEARNERS):
            detail = {"start_ns": n * length, "end_ns": (n + 1) * length - 3_000_000 - (m == n % 7) * 40_000_000,
                      "injected_ns": 0, "waited_ns": 0}  # fmt: skip
            yield Record(Kind.STEP_ENDED, process_of(m), 0, n, detail["end_ns"], step=n, value=2.0, detail=detail)


def _merges(since_s: float, until_s: float) -> Iterator[Record]:
    for t in _times(since_s, until_s, MERGES_HZ):
        at = t * 10**9 // MERGES_HZ
        yield Record(Kind.ROUND_OPENED, SYNCER, 0, t, at, round=t)
        for m in range(LEARNERS):
            yield Record(Kind.FRAGMENT_CAPTURED, process_of(m), 0, t, at, round=t, fragment=0)
            yield Record(Kind.FRAGMENT_ARRIVED, SYNCER, 0, t, at, peer=process_of(m), round=t, fragment=0)
            yield Record(Kind.UPDATE_FOLDED, process_of(m), 0, t, at, round=t, fragment=0)
        if t % 20 == 7:
            late = process_of(t % LEARNERS)
            yield Record(Kind.FRAGMENT_DROPPED, SYNCER, 0, t, at, peer=late, round=t, reason="late")
        yield Record(Kind.MERGED, SYNCER, 0, t, at, round=t, fragment=0, version=t,
                     detail={"learners": list(range(LEARNERS))})  # fmt: skip


class Measured(NamedTuple):
    """A server, and what it says of itself.

    Attributes
    ----------
    served : Served
    server : Popen
    """

    served: Served
    server: Any

    def figures(self) -> dict[str, float]:
        """What it tells of itself.

        Processor time but that of its answers [s], resident memory [bytes], blocks of memory that Python objects take,
        pages, sessions, events that the seeming run told, ticks, looks at tapes; the longest look, and the longest
        showing of one, since the last call [s].
        """
        self.server.stdin.write("\n")
        self.server.stdin.flush()
        told: dict[str, float] = json.loads(self.server.stdout.readline())
        return told


@contextmanager
def measured(root: Path) -> Iterator[Measured]:
    """Serve the runs below a folder, and the one that seems to go on, until the context is left."""
    (root / NAME).mkdir()
    (root / NAME / "config.toml").write_text(to_toml(RunConfig(learners=LEARNERS)), encoding="utf-8")
    with (root / "pages.log").open("w", encoding="utf-8") as errors:
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.pages.soaking", str(root)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
        assert server.stdin is not None and server.stdout is not None
        try:
            port, control, view = server.stdout.readline().split()
            yield Measured(Served(int(port), control, view), server)
        finally:
            server.terminate()
            server.wait(STOP_LIMIT_S)
            server.stdin.close()
            server.stdout.close()


class _Site(Site):
    """Knows the run that seems to go on."""

    seeming: Seeming | None = None

    def watcher(self, path: Path) -> Watcher:
        if path.name != NAME:
            return super().watcher(path)
        if self.seeming is None:
            self.seeming = Seeming(path)
        return self._watch(self.seeming)


def main(root: str) -> None:
    """Serve, and print port and tokens on a line; then answer."""
    from workbench.pages import live_page, replay_page
    from workbench.pages.recording import Recording
    from workbench.pages.server import Pages

    site = _Site(Folders([Path(root), *demo_folder()]), new_access())
    pages = Pages(site)
    site.get_ready()
    ticks = _timed(live_page._Live, "_tick")
    looks, shows = _timed(Recording, "look"), _timed(replay_page._Replay, "_show")
    print(pages.port, site.access.control, site.access.view, flush=True)
    threading.Thread(target=_answer, args=(site, pages, ticks, looks, shows), daemon=True).start()
    pages.run()


def _timed(owner: type, name: str) -> list[float]:
    """Measure the calls of a method: how many, thread time of all, and of the longest since the last answer [s]."""
    times, method = [0.0, 0.0, 0.0], getattr(owner, name)

    def measured(*arguments: Any, **named: Any) -> Any:
        began = time.thread_time()
        try:
            return method(*arguments, **named)
        finally:
            took = time.thread_time() - began
            times[:] = times[0] + 1, times[1] + took, max(times[2], took)

    setattr(owner, name, measured)
    return times


def _answer(site: _Site, pages: Any, ticks: list[float], looks: list[float], shows: list[float]) -> None:
    me = psutil.Process()
    for _ in sys.stdin:
        gc.collect()
        used, names = me.cpu_times(), [type(one).__name__ for one in gc.get_objects()]
        told = {
            "cpu_s": used.user + used.system - time.thread_time(), "rss": me.memory_info().rss,
            "blocks": sys.getallocatedblocks(),
            "pages": sum(name in ("_Live", "_Replay", "_Compare") for name in names),
            "documents": names.count("Document"), "figures": names.count("figure"),
            "sessions": len(pages._server.get_sessions("/")),
            "events": 0 if site.seeming is None else site.seeming.made, "ticks": ticks[0], "tick_s": ticks[1],
            "looks": looks[0], "look_most_s": looks[2], "show_most_s": shows[2],
        }  # fmt: skip
        looks[2] = shows[2] = 0.0
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
