"""Cells of the learner grid: the same for a run that goes on, for a moment of a tape, and in pictures of either."""

from __future__ import annotations

from typing import Any

from workbench.tape.moment import LearnerThen, Moment
from workbench.views.states import COLOURS, STATES, silence, state_of

Cell = dict[str, Any]
GONE = ("down", "failed", "ended", "removed", "lost", "left")


def live_cell(one: dict[str, Any], *, may_control: bool) -> Cell:
    """A learner as a status tells it."""
    state = state_of(one)
    starts = max(one.get("number") or 0, one.get("starts") or 0)
    acting = [kind.replace("_", " ") for kind in one.get("acting", ())]
    said = silence(one) if state == "silent" else str(one.get("how") or "") if state in GONE else ""
    notes = [said, f"start {starts}" if starts > 1 else "", f"under {', '.join(acting)}" if acting else ""]
    acts = may_control and state not in ("ended", "removed", "lost", "left")
    button = "" if not acts else "revive" if state in GONE else "kill"
    return cell(str(one["label"]), state, one.get("step"), one.get("behind"), one.get("loss"), notes, button)


def ended_cell(one: dict[str, Any]) -> Cell:
    """A learner of a run that is over: ended, unless it had left or failed before; nothing to press."""
    kept = state_of(one) if one["state"] in ("removed", "left", "failed") else "ended"
    return {**live_cell(one, may_control=False), "word": kept, "sign": STATES[kept], "colour": COLOURS[kept]}


def then_cells(moment: Moment) -> list[Cell]:
    """All learners that the run had at a moment of a tape."""
    return [then_cell(one, moment) for one in moment.learners if one.expected]


def then_cell(then: LearnerThen, moment: Moment) -> Cell:
    """A learner as it was at a moment of a tape."""
    notes = [f"under {', '.join(then.faults)}" if then.faults else "", f"merged {then.merged:,}"]
    behind = _behind(then, moment)
    return cell(f"L{then.learner}", state_then(then, moment), then.n, behind, then.loss, notes, "")


def behind_then(moment: Moment) -> dict[int, float]:
    """Versions that each learner was behind at a moment, mean over fragments."""
    return {one.learner: _behind(one, moment) for one in moment.learners}


def _behind(then: LearnerThen, moment: Moment) -> float:
    versions = list(moment.versions)
    held = [max(base, 0) for base in then.base] or [0] * len(versions)
    return sum(v - b for v, b in zip(versions, held, strict=True)) / max(len(versions), 1)


def state_then(then: LearnerThen, moment: Moment) -> str:
    """The word for what a learner did at a moment."""
    faults = [kind.replace("_", " ") for kind in then.faults]
    if then.removed:
        return "removed"
    if moment.ended:
        return "ended"
    if not then.alive:
        return "down" if then.n >= 0 or then.incarnation else "waiting"
    if any(kind.startswith("stall") for kind in faults):
        return "stopped"
    if any(kind.startswith("cut") for kind in faults):
        return "cut off"
    if not then.connected:
        return "lost" if then.incarnation else "starting"
    if then.stalled:
        return "stalled"
    if not then.healed:
        return "healing"
    if then.quarantined:
        return "quarantined"
    return "slow" if "slow" in faults else "training"


def cell(label: str, state: str, step: Any, behind: Any, loss: Any, notes: list[str], button: str) -> Cell:
    """What the grid needs of one learner."""
    numbers = [
        f"step {step:,}" if step is not None and step >= 0 else "",
        f"loss {loss:.3f}" if loss is not None and loss == loss else "",
    ]
    late = [f"behind {behind:.1f}" if behind is not None and state not in GONE else ""]
    return {
        "label": label, "word": state, "sign": STATES[state], "colour": COLOURS[state], "button": button,
        "numbers": " · ".join(filter(None, numbers)), "note": " · ".join(filter(None, late + notes)),
    }  # fmt: skip
