"""What the head of a live page says of its run: what it is doing, what is wrong, and what to do about it."""

from __future__ import annotations

from typing import NamedTuple

from workbench.pages.ended import GONE, sentence, way_on
from workbench.pages.watcher import Watcher
from workbench.views.states import syncer_silence

STALE_S = 3.0


class Telling(NamedTuple):
    """Attributes
    ----------
    phase : str
        For a badge.
    bad : bool
    said : str
        For a banner, empty where there is nothing to say.
    way_on : str
        What to do, as HTML.
    has_tape : bool
        Whether there is a tape to go to.
    """

    phase: str
    bad: bool = False
    said: str = ""
    way_on: str = ""
    has_tape: bool = True


def telling(watcher: Watcher, silent_s: float, tape: str, runs: str) -> Telling:
    """Under the watcher's lock; ``silent_s``: since the last answer [s]; ``tape``, ``runs``: addresses."""
    status, over = watcher.status, watcher.over
    if over is not None:
        gone = watcher.whole is not None and watcher.whole.state == GONE
        next_step = way_on(watcher.run.path, watcher.whole, tape, runs)
        return Telling("○ over", over[0] != 0 or gone, sentence(over, watcher.whole), next_step, not gone)
    if status is None:
        return Telling("… starting", said="The run is starting: its supervisor loads JAX, then the learners come.")
    if silent_s > STALE_S:
        said = f"The run has not answered for {silent_s:.0f} s; what you see is older than that."
        return Telling(
            "◌ silent", True, said, "It may be busy. If it was killed, this page says so within seconds."
        )  # fmt: skip
    if status["phase"] != "running":
        starts = "The learners are starting; rounds begin when they are there."
        said = str(status.get("storage_full") or (starts if status["phase"] == "starting" else ""))
        return Telling(f"… {status['phase'].replace('_', ' ')}", said=said)
    if silence := syncer_silence(status):
        learners = "Learners train on; one that has died is started again, one that is stopped goes on with SIGCONT."
        return Telling("◌ syncer silent", True, f"The syncer is {silence}.", learners)
    return Telling("● live")
