"""What a learner does now: one word, with a sign and a colour beside it; the same in a terminal, a card and a page."""

from __future__ import annotations

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
    "down": "✕",
    "lost": "✕",
    "failed": "✕",
    "ended": "·",
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
    "down": VERMILLION,
    "lost": VERMILLION,
    "failed": VERMILLION,
    "ended": "#808080",
}
"""A colour for each state, for pages."""


def fault_name(kind: str, process: int) -> str:
    """A fault with its target.

    Examples
    --------
    >>> fault_name("kill", 4), fault_name("kill_syncer", 0), fault_name("lose_up", 3)
    ('kill L1', 'kill syncer', 'lose up L0')
    """
    target = label_of(process)
    return f"{kind.removesuffix(f'_{target}')} {target}".replace("_", " ")


def state_of(learner: dict[str, Any]) -> str:
    """Return the word for what a learner does now, from the states of its process and of its connection."""
    process = learner["state"]
    if process in ("failed", "ended", "stopped", "starting", "lost"):
        return str(process)
    if process == "waiting":
        return "down" if learner["number"] else "waiting"
    acting = learner.get("acting", ())
    if any(kind.startswith("cut") for kind in acting):
        return "cut off"
    if not learner.get("connected"):
        return "waiting"
    if learner.get("stalled"):
        return "stalled"
    if not learner.get("healed"):
        return "healing"
    if learner.get("quarantined"):
        return "quarantined"
    return "slow" if "slow" in acting else "training"
