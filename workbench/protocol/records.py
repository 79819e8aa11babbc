"""Journal records: what a process did, numbered and clocked, before anybody may see its effect.

A record is one row of ``/events`` on the tape.  The columns are shared by all kinds; ``RECORD_FIELDS``
says which of them a kind fills, and ``detail`` holds what only one kind has (timings of a merge, the
loss of a step), which the recorder lays into that kind's own table.

See Also
--------
PROTOCOL section 6 (log before effect): every process numbers its records, keeps them until they are
acknowledged and sends them ahead of, or with, every message.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import msgspec

SYNCER = 0
SUPERVISOR = 1
EVALUATOR = 2
FIRST_LEARNER = 3
"""Process numbers in clocks and on the tape; learner ``m`` is process ``FIRST_LEARNER + m``."""


def process_of(learner: int) -> int:
    """Process number of learner ``m`` (0-based)."""
    return FIRST_LEARNER + learner


def learner_of(process: int) -> int:
    """Learner id of a process number; negative for processes that are no learner."""
    return process - FIRST_LEARNER


def label_of(process: int) -> str:
    """``syncer``, ``supervisor``, ``evaluator``, ``L0``, ``L1``, …"""
    if process < FIRST_LEARNER:
        return ("syncer", "supervisor", "evaluator")[process]
    return f"L{process - FIRST_LEARNER}"


class Kind(IntEnum):
    """Kinds of record.  Values are stored on tapes: append, never renumber."""

    # the program of a learner (exact replay reads these and nothing else)
    STATE_ADOPTED = 0
    STEP_ENDED = 1
    UPDATE_FOLDED = 2
    FRAGMENT_CAPTURED = 3
    CONTRIBUTION_ACKNOWLEDGED = 4
    SETTING_APPLIED = 5
    FAULT_APPLIED = 6
    # the rest of a learner's life
    PULL_REFUSED = 7
    STATE_COPIED = 8
    SNAPSHOT_RECORDED = 9
    RESTORED = 10
    STATE_LEFT = 11
    # the syncer: membership
    SYNCER_STARTED = 20
    ROUNDS_BEGAN = 21
    LEARNER_JOINED = 22
    LEARNER_HEALED = 23
    LEARNER_LOST = 24
    LEARNER_STARVED = 25
    LEARNER_STALLED = 26
    QUORUM_LOST = 27
    QUORUM_REGAINED = 28
    SELF_STOPPED = 29
    RUN_ENDED = 30
    MESSAGE_REFUSED = 31
    STATE_ASKED = 32
    STATE_SENT = 33
    STATE_UNAVAILABLE = 34
    SNAPSHOT_COMPLETED = 35
    SNAPSHOT_ABANDONED = 36
    LEARNER_ADDED = 37
    # the syncer: rounds (MERGED is its program, with SETTING_APPLIED)
    ROUND_OPENED = 40
    ROUND_READY = 41
    QUORUM_REACHED = 42
    GRACE_ENDED = 43
    PULL_SENT = 44
    FRAGMENT_ARRIVED = 45
    FRAGMENT_DROPPED = 46
    REFUSAL_ARRIVED = 47
    MERGED = 48
    MERGE_COMMITTED = 49
    UPDATE_SENT = 50
    ROUND_SKIPPED = 51
    ROUND_RESTARTED = 52
    ROUND_ABORTED = 53
    # settings, at the syncer, when a change is accepted or refused
    SETTING_CHANGED = 60
    SETTING_REFUSED = 61
    # supervisor
    PROCESS_STARTED = 70
    PROCESS_ENDED = 71
    FAULT_INJECTED = 72
    FAULT_ENDED = 73
    # evaluator
    EVALUATED = 80


class Record(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One recorded event of one process.

    Attributes
    ----------
    kind : int
        A `Kind`.
    process, incarnation, seq : int
        Who, in which life, and the how-manieth record of that process (its own clock entry).
    time_ns : int
        The process's own monotonic clock since the run began [ns].
    clock : tuple of int
        Vector clock, one entry per process number.
    cause : tuple (process, seq) or None
        The send that this event received; None where nothing was received.
    peer : int
        The other process, -1 if none.
    fragment, round, version, base_version : int
        -1 where the kind has none.
    step, global_step : int
        Own step n and global step g, -1 where the kind has none.
    steps, tokens : int
        Inner steps and tokens that the event counts or moves.
    value : float
        The number of the kind: loss, alpha, a weight, seconds.
    reason : str
        The word of the kind: a codec, a rule, why something was dropped.
    digest : int
        xxh3-64 of the bytes concerned, 0 if none.
    setting : int
        Settings revision, -1 if none.
    epoch : int
        Rises when a resume goes back.
    detail : dict
        What only this kind has (see ``DETAILS``).
    """

    kind: int
    process: int
    incarnation: int
    seq: int
    time_ns: int
    clock: tuple[int, ...] = ()
    cause: tuple[int, int] | None = None
    peer: int = -1
    fragment: int = -1
    round: int = -1
    version: int = -1
    base_version: int = -1
    step: int = -1
    global_step: int = -1
    steps: int = 0
    tokens: int = 0
    value: float = 0.0
    reason: str = ""
    digest: int = 0
    setting: int = -1
    epoch: int = 0
    detail: dict[str, Any] = {}


LEARNER_PROGRAM = (
    Kind.STATE_ADOPTED,
    Kind.STEP_ENDED,
    Kind.UPDATE_FOLDED,
    Kind.FRAGMENT_CAPTURED,
    Kind.CONTRIBUTION_ACKNOWLEDGED,
    Kind.SETTING_APPLIED,
    Kind.FAULT_APPLIED,
    Kind.STATE_COPIED,
    Kind.SNAPSHOT_RECORDED,
    Kind.RESTORED,
)
SYNCER_PROGRAM = (Kind.MERGED, Kind.SETTING_APPLIED, Kind.SNAPSHOT_RECORDED, Kind.RESTORED)
"""Kinds that exact replay reads (DESIGN section 3)."""

RECORD_FIELDS: dict[Kind, str] = {
    Kind.STATE_ADOPTED: "reason=initial|peer|snapshot, digest, step (last own step before); from a peer: peer, "
    "version=seq of its STATE_COPIED, cause=STATE_SENT; from a snapshot: value=its number",
    Kind.STEP_ENDED: "step, global_step (used by the schedule), steps=1, tokens, value=loss",
    Kind.UPDATE_FOLDED: "fragment, round, version, base_version (before), step (after which own step), global_step, "
    "steps and tokens (the interval it ends), value=alpha, reason=rule; cause=UPDATE_SENT",
    Kind.FRAGMENT_CAPTURED: "fragment, round, base_version, step (captured after), steps, tokens, reason=codec, "
    "digest; cause=PULL_SENT",
    Kind.CONTRIBUTION_ACKNOWLEDGED: "fragment, round, step (of the capture), value=1 taken 0 not, version",
    Kind.SETTING_APPLIED: "setting=revision, step or round from which it acts; detail: the changed keys",
    Kind.FAULT_APPLIED: "reason=fault kind, fragment; detail: round (-1: on the learner's own weights), factor, seed",
    Kind.PULL_REFUSED: "fragment, round, base_version (own), reason; cause=PULL_SENT",
    Kind.STATE_COPIED: "peer=for whom, value=number of the request, step and global_step of the boundary; "
    "detail: base; cause=STATE_ASKED",
    Kind.STATE_LEFT: "peer, value=number of the request or of the snapshot, digest, version=seq of STATE_COPIED or "
    "SNAPSHOT_RECORDED; detail: bytes",
    Kind.SNAPSHOT_RECORDED: "value=number of the snapshot, step and global_step of the boundary; detail: base "
    "(learner); versions, steps, merges (syncer); cause=the syncer's (learner)",
    Kind.RESTORED: "value=number of the snapshot, digest, step (learner)",
    Kind.SYNCER_STARTED: "reason=new|restart|resume; detail: cut (snapshot, steps, versions) where a resume goes back",
    Kind.ROUNDS_BEGAN: "value=learners joined, reason=all|start_limit",
    Kind.LEARNER_JOINED: "peer, value=process number, reason=process|rejoin|restored, version=incarnation, "
    "step=first n; detail: host, pid, fingerprint of a process that no supervisor started",
    Kind.LEARNER_HEALED: "peer, step",
    Kind.LEARNER_LOST: "peer, version=incarnation that ended, reason=exit|socket|heartbeat|unanswered|superseded|"
    "left|ended|removed; detail of the last: who",
    Kind.LEARNER_ADDED: "peer: the next id; detail: who",
    Kind.LEARNER_STARVED: "peer, reason=cause most often, steps=rounds missed",
    Kind.LEARNER_STALLED: "peer, value=age of its last step [s]",
    Kind.QUORUM_LOST: "value=possible, steps=K, reason=quarantined if some are; detail: missing, quarantined",
    Kind.QUORUM_REGAINED: "value=possible, steps=K",
    Kind.SELF_STOPPED: "value=gap [s]",
    Kind.RUN_ENDED: "reason, value=merges",
    Kind.MESSAGE_REFUSED: "peer, reason: what of a message does not fit this run",
    Kind.STATE_ASKED: "peer=whose state, value=number of the request; detail: joiner (process), stamp",
    Kind.STATE_SENT: "peer=to whom, value=number of the request, digest, version=seq of STATE_COPIED; detail: donor "
    "(process); cause=STATE_LEFT",
    Kind.STATE_UNAVAILABLE: "peer=for whom, value=number of the request, reason: why no (other) peer is asked",
    Kind.SNAPSHOT_COMPLETED: "value=number, digest; detail: versions; by learner steps, parts (steps), open (tokens)",
    Kind.SNAPSHOT_ABANDONED: "value=number, reason=unanswered|inconsistent|run_ended|why it could not be written; "
    "detail: missing (labels), fault",
    Kind.ROUND_OPENED: "round, fragment, version (current), setting=revision for its arithmetic",
    Kind.ROUND_READY: "round, fragment, peer (first ready)",
    Kind.QUORUM_REACHED: "round, fragment, value=grace window [s]",
    Kind.GRACE_ENDED: "round, fragment, value=window used [s], reason=all_admitted|over; detail: admitted, left_out",
    Kind.PULL_SENT: "peer, round, fragment, base_version, reason=codec",
    Kind.FRAGMENT_ARRIVED: "peer, round, fragment, base_version, step, steps, tokens, reason=codec, digest; "
    "cause=FRAGMENT_CAPTURED",
    Kind.FRAGMENT_DROPPED: "as FRAGMENT_ARRIVED, reason=late|gone|pull_limit|stale|shape|nonfinite|guard|"
    "incarnation|duplicate|records|quarantined; detail of guard: guard=norm|cosine and what it measured",
    Kind.REFUSAL_ARRIVED: "peer, round, fragment, reason; cause=PULL_REFUSED",
    Kind.MERGED: "round, fragment, version (new), base_version, tokens (moved), digest of Theta_p, setting=revision",
    Kind.MERGE_COMMITTED: "round, fragment, version",
    Kind.UPDATE_SENT: "peer, fragment, version, round (that made it), value=1 if anew",
    Kind.ROUND_SKIPPED: "round, fragment, reason=backlog|weights_zero|nonfinite|guard",
    Kind.ROUND_RESTARTED: "round, fragment: found open in the journal after a restart",
    Kind.ROUND_ABORTED: "round, fragment, reason",
    Kind.SETTING_CHANGED: "setting=revision; detail: values {key: value}, who; of a quarantine: peer, reason",
    Kind.SETTING_REFUSED: "reason; detail: values, who",
    Kind.PROCESS_STARTED: "peer, value=process number",
    Kind.PROCESS_ENDED: "peer, value=process number, reason=exit code or signal; detail: line (if it said one)",
    Kind.FAULT_INJECTED: "peer, reason=fault kind, value=length [s]; detail: fault, parameters, until_ns, effect",
    Kind.FAULT_ENDED: "peer, reason=fault kind, value=time that it acted [s]; detail: fault, began_ns, "
    "why=over|healed|used_up",
    Kind.EVALUATED: "value=validation loss, tokens=merged so far, steps=merges; detail: versions, seconds",
}
"""Which columns a kind fills, as text for readers and for the tape's documentation."""

DETAILS: dict[Kind, dict[str, str]] = {
    Kind.STEP_ENDED: {
        "batch": "sequences",
        "accumulation": "1",
        "start_ns": "ns",
        "end_ns": "ns",
        "injected_ns": "ns",
        "waited_ns": "ns",
    },
    Kind.UPDATE_FOLDED: {
        "reference": "own step n of the copy that a delay-corrected fold keeps, -1: the base",
        "included": "1 if UPDATE names a contribution of this interval",
        "anew": "1",
    },
    Kind.FAULT_APPLIED: {"round": "of the contribution, -1: the learner's own weights", "factor": "1", "seed": "1"},
    Kind.FRAGMENT_ARRIVED: {"bytes": "bytes", "captured_ns": "ns"},
    Kind.FRAGMENT_DROPPED: {"bytes": "bytes", "captured_ns": "ns"},
    Kind.MERGED: {
        "learners": "ids, ascending",
        "steps_captured": "own step n of each contribution",
        "c_steps": "1",
        "c_tokens": "tokens",
        "weights": "1",
        "base_versions": "1",
        "norms": "1",
        "cosines": "1",
        "digests": "xxh3-64 of each contribution as decoded",
        "norm": "1",
        "outer_digest": "xxh3-64 of the outer state",
        "weights_rule": "weight rule",
        "fresh_outer": "whether the outer state was forgotten before",
        "outer": "outer optimiser",
        "outer_rate": "1",
        "outer_momentum": "1",
        "first_ready_ns": "ns",
        "quorum_ns": "ns",
        "grace_ns": "ns",
        "pull_ns": "ns",
        "merge_ns": "ns",
        "flagged": "ids of those who are against the others in 3 rounds running and more, if there are any",
    },
    Kind.FAULT_INJECTED: {
        "fault": "number of the fault in the run",
        "until_ns": "ns",
        "factor": "1",
        "count": "messages",
        "effect": "0 if its target was gone",
        "delay_ns": "ns",
        "jitter_ns": "ns",
        "share": "1",
        "bytes_per_s": "bytes/s",
        "persistent": "1 if the learner's own weights are poisoned too",
        "planned": "number in the plan of the run, from 1",
        "skipped": "1 if it came due while nothing ran",
    },
    Kind.FAULT_ENDED: {"fault": "number of the fault in the run", "began_ns": "ns", "why": "word"},
    Kind.EVALUATED: {"versions": "per fragment", "seconds": "s"},
}
"""Keys of ``detail`` by kind, with their units."""
