"""Canonical forms of machine states, messages and records for the breadth-first search.

Two states that cannot behave differently have to be the same bytes, else a search never meets a state
twice.  What is levelled, and why it cannot matter:

- *Time*: it is always `NOW`; when it passes, every time that a machine holds moves back instead.  Only order
  counts between the arrival of a METADATA and the first ready learner (rule ``fresh``), so those times are
  ranked within a millisecond.  Times that only reports read (opened, merge begun, pull sent) are all `NOW`.
- *Vector clocks*: machines decide by one entry alone, the own entry of a learner's message (are its records
  complete?), which stays; causality of records is tested elsewhere.
- *The syncer's own seq*, origins, causes, and what records say beyond that which a restart reads: only tapes read it.
- *Averages of durations* are those of a network that has not been measured: steps are reported as instantaneous,
  an UPDATE counts as under way for 2 s, a pull limit is its least value.  They set times, which the search
  chooses itself.
- *Counts of rounds missed* end in a report and in nothing else.
- *Norms of contributions* are all the same here, so that no guard refuses one.
- The order of keys in ``here``, ``pulls``, ``sent`` and ``captures`` (all read by key or in sorted order); that
  of the inbox and of waiting updates is the order of arrival and stays.
"""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from workbench.protocol.learner_state import UNSET as LEARNER_UNSET
from workbench.protocol.learner_state import LearnerState
from workbench.protocol.learner_state import shift as shift_learner_times
from workbench.protocol.messages import Fragment, LearnerMessage, Message
from workbench.protocol.moments import NEVER, UNSET
from workbench.protocol.records import Record, process_of
from workbench.protocol.settings import SECOND
from workbench.protocol.syncer_state import SyncerState
from workbench.protocol.syncer_state import shift as shift_syncer_times

NOW = 1_000 * SECOND
"""The present, in every state; past times stay positive, since machines read negative ones as unset."""
MILLI = SECOND // 1_000
MICRO = MILLI // 1_000
ASKED_AGAIN_FOR_NS = SECOND // 2
LEARNER_MESSAGES = get_args(LearnerMessage)


def tidy_record(record: Record) -> Record:
    """A record without times, clock and cause."""
    return msgspec.structs.replace(
        record,
        time_ns=0,
        clock=(),
        cause=None,
        digest=0,
        seq=record.seq if record.process else 0,
        detail={key: 0 if key.endswith("_ns") else value for key, value in record.detail.items()},
    )


def own_clock(clock: tuple[int, ...], process: int) -> tuple[int, ...]:
    """The clock with nothing but the own entry of ``process``."""
    return (0,) * process + (clock[process],) if len(clock) > process else ()


def tidy_message(message: Message) -> Message:
    """A message with what its receiver decides by; changed in place."""
    changing: Any = message
    if isinstance(message, LEARNER_MESSAGES):
        changing.clock = own_clock(message.clock, process_of(message.learner))
        changing.records = [tidy_record(record) for record in message.records]
        if isinstance(message, Fragment):
            changing.captured_ns = changing.digest = 0
    else:
        changing.clock = ()
    if hasattr(message, "origin"):
        changing.origin = 0
    return message


def tidy_syncer(state: SyncerState) -> None:
    """Level a syncer's state in place."""
    state.clock = ()
    state.seq = state.changed_seq = state.snapshot_at = 0
    state.sync_since = [UNSET] * len(state.sync_since)
    state.xi_quorum = state.xi_sync = 0.0
    state.xi_quorum_known = state.xi_sync_known = False
    state.merged_at = [NEVER] * len(state.merged_at)
    state.sync_since = [UNSET] * len(state.sync_since)
    state.changed_seq = 0
    if state.began:
        state.start_until = UNSET
    for member in state.members.values():
        member.step_ema = member.pull_ema = -1.0
        member.send_ema = float(SECOND)
        member.recent = []
        member.asked = dict.fromkeys(sorted(member.asked), NOW)
        member.unanswered = 0
        member.median_ns = member.joined_seq = member.rounds_missed = 0
        member.missed_why = {}
        member.norms, member.norm_steps = {}, {}
        member.blocked = ["blocked" if why else "" for why in member.blocked]
        member.sent = dict(sorted(member.sent.items()))
        if NOW - member.asked_again_at >= ASKED_AGAIN_FOR_NS:
            member.asked_again_at = NEVER
    for round_ in state.rounds.values():
        round_.opened_at = NOW
        round_.left_out = {}
        for name in ("grace_ended_at", "merge_at"):
            if getattr(round_, name) != UNSET:
                setattr(round_, name, NOW)
        for pull in round_.pulls.values():
            pull.sent_at = NOW
        round_.here = dict(sorted(round_.here.items()))
        round_.pulls = dict(sorted(round_.pulls.items()))
    _rank_times(state)
    if state.wake_at != UNSET:
        state.wake_at = max(NOW + MILLI, (state.wake_at + MILLI // 2) // MILLI * MILLI)


def _rank_times(state: SyncerState) -> None:
    """Keep the order of arrivals and of first-ready times, a microsecond apart, within each millisecond."""
    times = {member.metadata_at for member in state.members.values()}
    times |= {round_.first_ready_at for round_ in state.rounds.values()}
    ranked = {NEVER: NEVER, UNSET: UNSET}
    in_age: dict[int, int] = {}
    for at in sorted(times - ranked.keys(), reverse=True):
        age = (NOW - at) // MILLI
        in_age[age] = in_age.get(age, 0) + 1
        ranked[at] = NOW - age * MILLI - in_age[age] * MICRO
    for member in state.members.values():
        member.metadata_at = ranked[member.metadata_at]
    for round_ in state.rounds.values():
        round_.first_ready_at = ranked[round_.first_ready_at]


def tidy_learner(state: LearnerState) -> None:
    """Level a learner's state in place."""
    state.clock = own_clock(state.clock, process_of(state.learner))
    state.step_ns = state.waited_ns = 0
    if state.adopting_cause is not None:
        state.adopting_cause = (0, 0)
    box = state.outbox
    box.unacked = [tidy_record(record) for record in box.unacked]
    if not box.unacked:
        box.progress_at = NOW
    for update in state.inbox.values():
        update.origin = 0
        update.clock = ()
    for copies in state.captures.values():
        for copy in copies:
            copy.cause = (0, 0)
    state.captures = dict(sorted(state.captures.items()))
    if state.waiting_since != LEARNER_UNSET:
        state.waiting_since = NOW


def age_syncer(state: SyncerState, passed_ns: int) -> None:
    """Let time pass for a syncer."""
    shift_syncer_times(state, -passed_ns, NEVER)
    if state.wake_at != UNSET:
        state.wake_at -= passed_ns


def age_learner(state: LearnerState, passed_ns: int) -> None:
    """Let time pass for a learner."""
    shift_learner_times(state, -passed_ns, NEVER)
    if state.wake_at != LEARNER_UNSET:
        state.wake_at -= passed_ns
