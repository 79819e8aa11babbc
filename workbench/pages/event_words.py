"""What an event is called on the pages: who, and one short sentence; from a record or from a row of a tape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from workbench.analysis.arrays.presence import acted
from workbench.pages.reason_words import because
from workbench.protocol.records import Kind, Record, label_of, process_of
from workbench.views.states import fault_name


class Said(NamedTuple):
    """What of an event the sentences need; as in `Record`.

    Attributes
    ----------
    learners : str
        Of a merge: whose contributions it holds.
    missed : str
        Of a fault without effect: why it had none.
    values : str
        Of a change that somebody asked for: which.
    """

    kind: int
    process: int
    peer: int = -1
    fragment: int = -1
    round: int = -1
    version: int = -1
    step: int = -1
    steps: int = 0
    value: float = 0.0
    reason: str = ""
    setting: int = -1
    learners: str = ""
    missed: str = ""
    values: str = ""


def said_of(record: Record) -> Said:
    """What a record says."""
    learners = record.detail.get("learners") if record.kind == Kind.MERGED else None
    return Said(
        record.kind, record.process, record.peer, record.fragment, record.round, record.version, record.step,
        record.steps, record.value, record.reason, record.setting, labels(learners or []),
        missed_by(record.detail) if record.kind == Kind.FAULT_INJECTED else "",
        asked_for(record.detail) if record.kind in (Kind.SETTING_CHANGED, Kind.SETTING_REFUSED) else "",
    )  # fmt: skip


def asked_for(detail: dict[str, Any]) -> str:
    """What somebody wanted changed.

    Examples
    --------
    >>> asked_for({"values": {"quorum": 2, "lead": None}}), asked_for({"values": {"quarantined": False}})
    ('quorum = 2, lead = none', 'a release')
    >>> asked_for({"values": {"remove": True}})
    'a removal'
    """
    values = detail.get("values") or {}
    for key, words in ROSTER_WORDS.items():
        if key in values:
            return words[bool(values[key])]
    return ", ".join(f"{key} = {'none' if value is None else value}" for key, value in values.items())


ROSTER_WORDS = {
    "quarantined": ("a release", "a quarantine"), "add": ("an addition",) * 2, "remove": ("a removal",) * 2,
}  # fmt: skip
"""What asks for no setting, though the tape keeps it with the settings: false and true."""


def missed_by(detail: dict[str, Any]) -> str:
    """Why a fault with this detail had no effect; empty for one that struck.

    Examples
    --------
    >>> missed_by({"effect": 1}), missed_by({"effect": 0}), missed_by({"effect": 0, "skipped": 1})
    ('', 'found no process', 'came due while nothing ran')
    """
    if acted(detail):
        return ""
    return "came due while nothing ran" if detail.get("skipped") else "found no process"


def labels(learners: list[int]) -> str:
    """Learners by name; of more than eight only how many."""
    if len(learners) > 8:
        return f"{len(learners)} learners"
    return ", ".join(label_of(process_of(int(m))) for m in learners)


def who(said: Said) -> str:
    """Whom an event is about: for what one process does to or says of another, the other."""
    about = said.peer if said.kind in ABOUT_PEER and said.peer >= 0 else said.process
    return label_of(about)


def row_of(event: int, time_s: float, said: Said, rel: str = "", at: bool = False) -> dict[str, Any]:
    """A line of a list of events."""
    row = {
        "event": event,
        "time": f"{round(time_s, 2) + 0.0:.2f} s",
        "who": who(said),
        "text": sentence(said),
        "rel": rel,
    }
    return {**row, "at": True} if at else row


def sentence(said: Said) -> str:
    """What happened."""
    words = SENTENCES.get(said.kind)
    return words(said) if words is not None else Kind(said.kind).name.lower().replace("_", " ") + _where(said)


def _where(said: Said) -> str:
    parts = [
        f"round {said.round:,}" if said.round >= 0 else "",
        f"fragment {said.fragment}" if said.fragment >= 0 else "",
    ]
    named = ", ".join(part for part in parts if part)
    return f" ({named})" if named else ""


ABOUT_PEER = frozenset({
    Kind.LEARNER_JOINED, Kind.LEARNER_HEALED, Kind.LEARNER_LOST, Kind.LEARNER_STARVED, Kind.LEARNER_STALLED,
    Kind.PROCESS_STARTED, Kind.PROCESS_ENDED, Kind.FAULT_INJECTED, Kind.FAULT_ENDED, Kind.FRAGMENT_DROPPED,
})  # fmt: skip

SENTENCES: dict[int, Callable[[Said], str]] = {
    Kind.STEP_ENDED: lambda e: f"ended step {e.step:,}, loss {e.value:.3f}",
    Kind.FRAGMENT_CAPTURED: lambda e: f"captured fragment {e.fragment} after step {e.step:,} for round {e.round:,}",
    Kind.FRAGMENT_ARRIVED: lambda e: f"fragment {e.fragment} of {label_of(e.peer)} arrived for round {e.round:,}",
    Kind.UPDATE_FOLDED: lambda e: f"folded version {e.version} of fragment {e.fragment} in",
    Kind.SYNCER_STARTED: lambda e: f"started: {because(e.reason)}",
    Kind.ROUNDS_BEGAN: lambda e: f"rounds began with {e.value:.0f} learners",
    Kind.LEARNER_JOINED: lambda e: f"joined: {because(e.reason)}",
    Kind.LEARNER_HEALED: lambda e: "is healed: holds every fragment and has made a step",
    Kind.LEARNER_LOST: lambda e: f"{'has left' if e.reason in GONE else 'lost'}: {because(e.reason)}",
    Kind.LEARNER_STARVED: lambda e: f"missed {e.steps:,} rounds running, most often: {because(e.reason)}",
    Kind.LEARNER_STALLED: lambda e: f"stalled: no step for {e.value:.2f} s",
    Kind.LEARNER_ADDED: lambda e: f"{label_of(e.peer)} was added to the run",
    Kind.QUORUM_LOST: lambda e: (
        f"quorum lost: {e.value:.0f} of {e.steps} needed" + (", one is quarantined" if e.reason else "")
    ),
    Kind.QUORUM_REGAINED: lambda e: f"quorum regained: {e.value:.0f} there, {e.steps} needed",
    Kind.SELF_STOPPED: lambda e: f"itself did nothing for {e.value:.1f} s (stopped, or the machine too busy)",
    Kind.RUN_ENDED: lambda e: f"run ended: {e.reason}, {e.value:,.0f} merges",
    Kind.FRAGMENT_DROPPED: lambda e: f"contribution to round {e.round:,} not merged: {because(e.reason)}",
    Kind.MERGED: lambda e: (
        f"merged fragment {e.fragment} of {e.learners or 'learners'}: version {e.version} (round {e.round:,})"
    ),
    Kind.ROUND_OPENED: lambda e: f"opened round {e.round:,} for fragment {e.fragment}",
    Kind.ROUND_SKIPPED: lambda e: f"skipped round {e.round:,}: {because(e.reason)}",
    Kind.ROUND_ABORTED: lambda e: f"gave round {e.round:,} up: {because(e.reason)}",
    Kind.SETTING_CHANGED: lambda e: (
        _quarantine(e) if e.peer >= 0 else f"settings changed: {e.values or 'see the tape'} (revision {e.setting})"
    ),
    Kind.SETTING_REFUSED: lambda e: f"{e.values or 'a change of settings'} was refused: {e.reason}",
    Kind.PROCESS_STARTED: lambda e: f"process started (start {e.value:.0f})",
    Kind.PROCESS_ENDED: lambda e: f"process ended: {e.reason}",
    Kind.FAULT_INJECTED: lambda e: (
        f"fault: {_fault(e)}" + (f": {e.missed}" if e.missed else f" for {e.value:g} s" if e.value > 0 else "")
    ),
    Kind.FAULT_ENDED: lambda e: f"fault over: {_fault(e)} after {e.value:.1f} s",
    Kind.EVALUATED: lambda e: f"validation loss {e.value:.3f} after {e.steps:,} merges",
}  # fmt: skip

GONE: tuple[str, ...] = ("left", "ended", "removed")
"""Reasons for which a learner is counted on no more, and that are no loss."""
NOTABLE = frozenset({
    Kind.SYNCER_STARTED, Kind.ROUNDS_BEGAN, Kind.LEARNER_ADDED, Kind.LEARNER_JOINED, Kind.LEARNER_HEALED,
    Kind.LEARNER_LOST,
    Kind.LEARNER_STARVED, Kind.LEARNER_STALLED, Kind.QUORUM_LOST, Kind.QUORUM_REGAINED, Kind.SELF_STOPPED,
    Kind.RUN_ENDED, Kind.FRAGMENT_DROPPED, Kind.MERGED, Kind.ROUND_SKIPPED, Kind.ROUND_ABORTED, Kind.SETTING_CHANGED,
    Kind.SETTING_REFUSED, Kind.PROCESS_STARTED, Kind.PROCESS_ENDED, Kind.FAULT_INJECTED, Kind.FAULT_ENDED,
    Kind.EVALUATED,
})  # fmt: skip
"""Kinds that a list of events shows; the others are the routine between them."""


def _fault(said: Said) -> str:
    return fault_name(said.reason, said.peer if said.peer >= 0 else said.process)


def _quarantine(said: Said) -> str:
    return f"{label_of(said.peer)} {f'quarantined: {said.reason}' if said.reason else 'released'}"
