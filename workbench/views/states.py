"""What a learner does now: one word, with a sign and a colour beside it; the same in a terminal, a card and a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.protocol.records import label_of
from workbench.views.palette import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION

STATES = {
    "training": "▸",
    "starting": "…",
    "waiting": "…",
    "healing": "↻",
    "quarantined": "⊘",
    "slow": "~",
    "stalled": "‖",
    "stopped": "‖",
    "cut off": "⇎",
    "silent": "✕",
    "down": "✕",
    "lost": "✕",
    "failed": "✕",
    "left": "·",
    "ended": "·",
    "removed": "·",
}
"""A sign for each state of a learner; the word always stands beside it."""

COLOURS = {
    "training": GREEN,
    "starting": SKY,
    "waiting": SKY,
    "healing": BLUE,
    "quarantined": PURPLE,
    "slow": ORANGE,
    "stalled": ORANGE,
    "stopped": ORANGE,
    "cut off": PURPLE,
    "silent": VERMILLION,
    "down": VERMILLION,
    "lost": VERMILLION,
    "failed": VERMILLION,
    "left": "#808080",
    "ended": "#808080",
    "removed": "#808080",
}
"""A colour for each state, for pages."""


LOST_AS = {"heartbeat": "silent", "ended": "ended", "left": "left", "removed": "removed"}
"""What a learner without a connection is, by the reason for which it was lost."""
OVER = ("left", "ended", "removed")
"""States that nobody ends."""
FOR_GOOD = ("left", "ended", "removed", "failed", "quarantined")
"""States that only somebody can end: nobody waits for such a learner."""


def began_s(status: dict[str, Any]) -> float | None:
    """When rounds began on the clock of a run, from which people count its times; None before that [s]."""
    found = status.get("began_s")
    return None if found is None else float(found)


def since(status: dict[str, Any], digits: int = 1) -> str:
    """How long a run has gone on, in words: from the start of rounds, from its own while they have not begun.

    Examples
    --------
    >>> since({"elapsed_s": 12.5, "began_s": 2.5}), since({"elapsed_s": 1.0})
    ('10.0 s of rounds', '1.0 s since the start')
    """
    origin_s = began_s(status)
    if origin_s is None:
        return f"{status['elapsed_s']:.{digits}f} s since the start"
    return f"{max(0.0, status['elapsed_s'] - origin_s):.{digits}f} s of rounds"


def absent(learners: Sequence[dict[str, Any]]) -> tuple[list[int], dict[str, list[int]]]:
    """Return the learners that do not count: those that may come by themselves, and the others by their state.

    Examples
    --------
    >>> absent([{"learner": 0, "state": "ended"}, {"learner": 1, "state": "starting"}])
    ([1], {'ended': [0]})
    """
    waited_for: list[int] = []
    gone: dict[str, list[int]] = {}
    for one in learners:
        if one.get("counts"):
            continue
        state = state_of(one)
        (gone.setdefault(state, []) if state in FOR_GOOD else waited_for).append(one["learner"])
    return waited_for, gone


def remaining(learners: Sequence[dict[str, Any]]) -> int:
    """Return how many learners the run has: those that were removed for good are none of them.

    Examples
    --------
    >>> remaining([{"learner": 0, "state": "removed"}, {"learner": 1, "state": "failed"}])
    1
    """
    return sum(state_of(one) != "removed" for one in learners)


def kept_out(status: dict[str, Any]) -> list[int]:
    """Return the quarantined learners without which there is no quorum: nothing is merged until one is released.

    Examples
    --------
    >>> kept_out({"quorum_lost": True, "learners": [{"learner": 0}, {"learner": 1, "quarantined": True}]})
    [1]
    """
    learners = status["learners"] if status.get("quorum_lost") else ()
    return [one["learner"] for one in learners if one.get("quarantined")]


def fault_name(kind: str, process: int) -> str:
    """A fault with its target.

    Examples
    --------
    >>> fault_name("kill", 4), fault_name("kill_syncer", 0), fault_name("lose_up", 3)
    ('kill L1', 'kill syncer', 'lose up L0')
    """
    target = label_of(process)
    return f"{kind.removesuffix(f'_{target}')} {target}".replace("_", " ")


SILENT_S = 2.0


def syncer_silence(status: dict[str, Any]) -> str:
    """What to say of a syncer that has told nothing for a while, empty while it tells how things are.

    Examples
    --------
    >>> syncer_silence({"syncer": {"state": "stopped", "silent_s": 7.4}})
    'stopped, silent for 7 s: what is shown of merges and learners is as old'
    >>> syncer_silence({"syncer": {"state": "running", "silent_s": 0.3}})
    ''
    """
    syncer = status.get("syncer") or {}
    silent_s = float(syncer.get("silent_s") or 0.0)
    if silent_s < SILENT_S:
        return ""
    return f"{syncer['state']}, silent for {silent_s:.0f} s: what is shown of merges and learners is as old"


def silence(learner: dict[str, Any]) -> str:
    """Return for how long nothing was heard of a learner."""
    return f"no heartbeat for {learner.get('silent_s') or 0.0:.0f} s"


def state_of(learner: dict[str, Any]) -> str:
    """Return the word for what a learner does now, from the states of its process and of its connection."""
    process = learner["state"]
    if process in ("failed", "ended", "removed", "stopped", "starting", "lost", "left", "silent"):
        return str(process)
    if process == "waiting":
        return "down" if learner["number"] else "waiting"
    acting = learner.get("acting", ())
    if any(kind.startswith("cut") for kind in acting):
        return "cut off"
    if not learner.get("connected"):
        return LOST_AS.get(learner.get("lost", ""), "waiting")
    if learner.get("stalled"):
        return "stalled"
    if not learner.get("healed"):
        return "healing"
    if learner.get("quarantined"):
        return "quarantined"
    return "slow" if "slow" in acting else "training"
