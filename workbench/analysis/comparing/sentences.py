"""Where two runs part, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.analysis.comparing.divergence import Divergence

ENDED = "program ended"
"""Column of a divergence at which one run has no more events of the process."""

DID = {
    "merged": "merged",
    "state_adopted": "took up a state",
    "step_ended": "ended an inner step",
    "update_folded": "folded an update",
    "fragment_captured": "captured a contribution",
    "contribution_acknowledged": "had its contribution acknowledged",
    "setting_applied": "applied a setting",
    "fault_applied": "had a fault act on its numbers",
    "state_copied": "copied its state",
    "snapshot_recorded": "recorded a snapshot",
    "restored": "went back to a snapshot",
}
"""What a process did, by the kind of its event."""

OF = {
    "digest": "outcome (digest)",
    "detail.outer_digest": "state of the outer optimiser (digest)",
    "detail.norm": "norm of the outer gradient",
    "detail.learners": "learners",
    "detail.weights": "weights of the learners",
    "detail.weights_rule": "rule of weights",
    "detail.outer": "outer optimiser",
    "detail.outer_rate": "outer rate",
    "detail.outer_momentum": "outer momentum",
    "detail.fresh_outer": "fresh outer optimiser",
    "detail.steps_captured": "last steps of the contributions",
    "detail.c_steps": "steps in the contributions",
    "detail.c_tokens": "tokens in the contributions",
    "detail.base_versions": "base versions of the contributions",
    "detail.digests": "contributions (digests)",
    "detail.batch": "batch size",
    "detail.accumulation": "accumulation",
    "detail.reference": "reference step",
    "detail.values.rate_scale": "scale of the inner rate",
    "detail.factor": "factor",
    "detail.seed": "seed",
    "detail.round": "round",
    "step": "own step",
    "global_step": "global step",
    "steps": "steps since the last reset",
    "tokens": "tokens",
    "version": "version",
    "base_version": "base version",
    "peer": "peer",
    "round": "round",
    "fragment": "fragment",
}
"""What differs, by its column."""

OF_KIND = {
    ("merged", "reason"): "merge rule",
    ("update_folded", "reason"): "fold rule",
    ("update_folded", "value"): "alpha",
    ("step_ended", "value"): "loss",
    ("contribution_acknowledged", "value"): "fate (1: taken)",
    ("fragment_captured", "reason"): "codec",
    ("state_adopted", "reason"): "source",
    ("fault_applied", "reason"): "kind",
}
"""The same where it hangs on the kind of the event."""


TITLES = {
    "faults.chaos": "faults drawn (chaos)",
    "faults.scenario": "faults planned (scenario)",
    "what-if without": "faults left out (what-if)",
    "what-if seed": "seed of the what-if",
}
"""Settings that are no keys of a configuration, in words."""
RUNS = ("the first run", "the second run")
"""What both runs are called where they have no other names."""


def sentence(found: Divergence, names: tuple[str, str] = RUNS) -> str:
    """A first divergence as one line; its time counts from the start of rounds.

    Examples
    --------
    >>> sentence(found)   # doctest: +SKIP
    'at 1.005 s, after 9 merges: the syncer merged (round 10, fragment 4); learners L0, L2 against L0, L1 (event 302)'
    >>> sentence(other, ("A", "B"))   # doctest: +SKIP
    'at 2 s, after 3 merges: in A, L1 next folded an update (fragment 1); in B it applied a setting instead (event 75)'
    """
    number = found.event if found.event is not None else found.other_event
    at = f"at {found.time_s:.3f} s" if found.time_s >= 0 else "before rounds began"
    merges = f"after {found.merge:,} merge{'s' * (found.merge != 1)}"
    who = "the syncer" if found.process == "syncer" else found.process
    if found.column == "kind":
        who = f"in {names[0]}, {who} next"
    places = ", ".join(f"{n} {v}" for n, v in (("round", found.round), ("fragment", found.fragment)) if v >= 0)
    where = f" ({places})" if places else ""
    return f"{at}, {merges}: {who} {_did(found.kind)}{where}{_otherwise(found, names)} (event {number})"


def setting_title(key: str) -> str:
    """A setting as people read it."""
    return TITLES.get(key, key)


def _did(kind: Any) -> str:
    return DID.get(str(kind), str(kind).replace("_", " "))


def _otherwise(found: Divergence, names: tuple[str, str]) -> str:
    if found.column == ENDED:
        return f"; {names[found.other_event is None]} has no such event"
    if found.column == "kind":
        return f"; in {names[1]} it {_did(found.other_value)} instead"
    column = found.column.removeprefix("detail.").replace("_", " ")
    what = OF_KIND.get((found.kind, found.column)) or OF.get(found.column, column)
    show = _learners if found.column == "detail.learners" else _short
    return f"; {what} {show(found.value)} against {show(found.other_value)}"


def _learners(value: Any) -> str:
    return ", ".join(f"L{m}" for m in value) if isinstance(value, list | tuple) and value else _short(value)


def _short(value: Any) -> str:
    text = f"{value:016x}" if isinstance(value, int) and value > 2**40 else "none" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
