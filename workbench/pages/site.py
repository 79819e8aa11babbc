"""What one server shares among its sessions: the runs it may show, the tokens, the threads that wait for runs."""

from __future__ import annotations

import logging
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

from workbench.config import ConfigError, RunConfig, preset
from workbench.pages.access import Access, new_access
from workbench.pages.demo import demo_folder
from workbench.pages.folders import Folders

if TYPE_CHECKING:
    from workbench.pages.forking import Fork, Question
    from workbench.pages.recording import Recording
    from workbench.pages.watcher import Watcher

PAGE_NICE = 10
RECORDINGS_MAX = 4
"""Tapes that are kept open."""
FORKS_MAX = 2
"""Counterfactuals that are computed at once."""
TINY_RUN = {"learners": 2, "rounds": 300}


class Site:
    """Everything that pages of one server have in common.

    Parameters
    ----------
    folders : Folders
    access : Access
    tiny : RunConfig, optional
        What "start a tiny run here" starts.

    Attributes
    ----------
    asking : ThreadPoolExecutor
        Talks to runs: starts them, sends what was clicked; at the usual priority, which a run that it starts inherits.
    reading, drawing, counting : ThreadPoolExecutor
        Read tapes, draw figures of them, and count their tokens: one at a time each.
    live_pages : WeakSet
        Pages of runs that go on, of all tabs.
    """

    def __init__(self, folders: Folders, access: Access, tiny: RunConfig | None = None) -> None:
        self.folders, self.access = folders, access
        self.tiny = preset("tiny-4").set(**TINY_RUN) if tiny is None else tiny
        self.asking = ThreadPoolExecutor(2, "asking")
        self.reading, self.drawing = ThreadPoolExecutor(1, "reading"), ThreadPoolExecutor(1, "drawing")
        self.counting = ThreadPoolExecutor(1, "counting")
        self.live_pages: WeakSet[object] = WeakSet()
        self._recordings: dict[tuple[Path, float], Recording] = {}
        self._watchers: dict[Path, Watcher] = {}
        self._forks: list[Fork] = []
        self._lock = threading.Lock()

    def watcher(self, path: Path) -> Watcher:
        """The one that watches the run in a folder; it is attached to if nobody watches it yet.

        Raises
        ------
        ConfigError
            The run does not go on.
        """
        from workbench.engine.launch import attach

        with self._lock:
            known = self._watchers.get(path)
        return known if known is not None and known.going else self._watch(attach(path))

    def launch_tiny(self) -> Path:
        """Start a tiny run that goes on without any page; returns its folder.

        Raises
        ------
        ConfigError
            There is no folder for it.
        """
        from workbench.engine.launch import launch

        parent = self.folders.new_runs
        if parent is None:
            raise ConfigError("only single runs were given to this server; start it with a folder of runs")
        with self._lock:
            parent.mkdir(parents=True, exist_ok=True)
            stem = f"tiny-{self.tiny.learners}"
            folder = next(path for n in range(1, 10**9) if not (path := parent / f"{stem}-{n}").exists())
            run = launch(self.tiny, folder, detach=True)
        self._watch(run)
        return run.path.resolve()

    def fork(self, parent: Path, question: Question) -> Fork:
        """Ask a tape what would have been, in a process of its own.

        Raises
        ------
        ConfigError
            There is no folder for the answer, or too many are on their way.
        """
        from workbench.pages.forking import Fork

        target = self.folders.new_runs
        if target is None:
            raise ConfigError("only single runs were given to this server; start it with a folder of runs")
        with self._lock:
            self._forks = [fork for fork in self._forks if not fork.over]
            if len(self._forks) >= FORKS_MAX:
                raise ConfigError(f"{FORKS_MAX} forks are being computed already; wait until one is done")
            target.mkdir(parents=True, exist_ok=True)
            taken = {fork.out for fork in self._forks}
            names = (target / f"{parent.name}-fork-{n}" for n in range(1, 10**9))
            out = next(path for path in names if not path.exists() and path not in taken)
            self._forks.append(Fork(parent, out, question))
            return self._forks[-1]

    def _watch(self, run: object) -> Watcher:
        from workbench.engine.launch import Run
        from workbench.pages.watcher import Watcher

        assert isinstance(run, Run)
        path = run.path.resolve()
        with self._lock:
            known = self._watchers.get(path)
            if known is None or not known.going:
                known = self._watchers[path] = Watcher(run)
                known.start()
            return known

    def recording(self, path: Path) -> Recording:
        """A tape as it is now; opened anew only if something was written since.  Waits for the disk.

        Raises
        ------
        TapeError
            It cannot be read.
        """
        from workbench.pages.folders import changed_s
        from workbench.pages.recording import Recording

        key = path, changed_s(path)
        if key not in self._recordings:
            while len(self._recordings) >= RECORDINGS_MAX:
                del self._recordings[next(iter(self._recordings))]
            self._recordings[key] = Recording(path)
        return self._recordings[key]

    def be_nice(self) -> None:
        """Let the pages stand behind the learners; threads that start runs keep the usual priority."""
        barrier = threading.Barrier(3)
        for _ in range(2):  # a thread takes its priority from the one that makes it
            self.asking.submit(barrier.wait)
        barrier.wait()
        os.nice(max(0, PAGE_NICE - os.nice(0)))

    def get_ready(self) -> None:
        """Load what draws figures while nobody waits for one."""
        self.drawing.submit(import_module, "workbench.pages.replay_figures")

    def close(self) -> None:
        """Leave all runs; they go on."""
        with self._lock:
            watchers = list(self._watchers.values())
            forks = list(self._forks)
        for one in watchers:
            one.stop()
        for fork in forks:
            fork.stop()
        for threads in (self.asking, self.reading, self.drawing, self.counting):
            threads.shutdown(wait=False, cancel_futures=True)


def silence_addresses() -> None:
    """Keep the server's log free of addresses: they hold tokens."""
    logging.getLogger("tornado.access").setLevel(logging.CRITICAL)


@cache
def site_of_environment() -> Site:
    """The site of ``panel serve``: WORKBENCH_RUNS, WORKBENCH_VIEW_TOKEN and WORKBENCH_CONTROL_TOKEN say what it is.

    Tokens that are not given are drawn, and printed once.
    """
    runs = [Path(part) for part in os.environ.get("WORKBENCH_RUNS", "runs").split(os.pathsep) if part]
    view, control = (os.environ.get(f"WORKBENCH_{name}_TOKEN", "") for name in ("VIEW", "CONTROL"))
    site = Site(Folders([*runs, *demo_folder()]), new_access(view, control))
    print(f"workbench: add ?token={site.access.control} to the address; to let others look, "
          f"?token={site.access.view}", file=sys.stderr, flush=True)  # fmt: skip
    silence_addresses()
    site.be_nice()
    site.get_ready()
    return site
