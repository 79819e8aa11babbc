"""A syncer's state from its journal (PROTOCOL section 12)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from workbench.protocol import averages
from workbench.protocol.arrivals import folded_anew
from workbench.protocol.clocks import merged
from workbench.protocol.pacer import next_round, renew_closed_below
from workbench.protocol.records import FIRST_LEARNER, SYNCER, Kind, Record, learner_of
from workbench.protocol.settings import FixedSettings, SettingsBook
from workbench.protocol.syncer import new_state
from workbench.protocol.syncer_state import UNSET, Member, Round, RoundState, SyncerState, new_member


class Recovered(msgspec.Struct):
    """What `restore` found.

    Attributes
    ----------
    state : SyncerState
        Ready for `SyncerMachine.start` with reason ``restart``.
    uncommitted : list of (round, fragment, version)
        Merges that are in the journal and whose slot may not have become the current one.
    reopened : list of int
        Rounds that were open.
    """

    state: SyncerState
    uncommitted: list[tuple[int, int, int]]
    reopened: list[int]


def restore(fixed: FixedSettings, book: SettingsBook, records: Iterable[Record]) -> Recovered:
    """Rebuild versions, rounds, members and settings from the records of a journal.

    ``book`` holds the settings that the run began with; changes in the journal are applied again.
    """
    state = new_state(fixed, book)
    uncommitted: dict[int, tuple[int, int, int]] = {}
    for record in records:
        state.clock = merged(state.clock, record.clock)
        if record.process == SYNCER:
            state.seq = record.seq
            state.incarnation = record.incarnation
            state.epoch = record.epoch
        elif record.process >= FIRST_LEARNER:
            _learner_record(state, record)
        else:
            state.known_seq[record.process] = record.seq
        _apply(state, record, uncommitted)
    state.next_t, state.next_p = next_round(state, max(state.opened_t, state.next_t - 1))
    for member in state.members.values():
        member.connected = False
        member.connection = UNSET
    renew_closed_below(state)
    return Recovered(state, list(uncommitted.values()), sorted(state.rounds))


def _learner_record(state: SyncerState, record: Record) -> None:
    member = _member(state, learner_of(record.process))
    member.known_seq = record.seq
    if record.kind == Kind.STEP_ENDED:
        member.last_step = max(member.last_step, record.step)
        averages.sample_step(member, record.detail["end_ns"] - record.detail["start_ns"])
    elif record.kind == Kind.UPDATE_FOLDED:
        folded_anew(member, record)


def _member(state: SyncerState, learner: int) -> Member:
    if learner not in state.members:
        state.members[learner] = new_member(learner, state.fixed.fragments)
        state.members = dict(sorted(state.members.items()))
    return state.members[learner]


def _apply(state: SyncerState, record: Record, uncommitted: dict[int, tuple[int, int, int]]) -> None:
    kind = record.kind
    if kind == Kind.ROUNDS_BEGAN:
        state.began = True
    elif kind == Kind.LEARNER_JOINED:
        _joined(state, record)
    elif kind == Kind.PROCESS_ENDED and learner_of(record.peer) in state.members:
        member = _member(state, learner_of(record.peer))
        member.ended = max(member.ended, int(record.value))
    elif kind == Kind.LEARNER_LOST and record.reason == "left":
        member = _member(state, learner_of(record.peer))
        member.ended = max(member.ended, member.process_number)
    elif kind == Kind.SETTING_CHANGED:
        _apply_setting(state, record)
    elif kind == Kind.ROUND_OPENED:
        _reopen(state, record)
    elif kind == Kind.MERGED:
        _apply_merge(state, record)
        uncommitted[record.round] = (record.round, record.fragment, record.version)
    elif kind == Kind.MERGE_COMMITTED:
        uncommitted.pop(record.round, None)
    elif kind == Kind.ROUND_SKIPPED and record.reason == "backlog":
        state.next_t = int(record.value)
    elif kind in (Kind.ROUND_SKIPPED, Kind.ROUND_ABORTED):
        state.rounds.pop(record.round, None)
    elif kind == Kind.FRAGMENT_DROPPED and record.reason == "nonfinite":
        state.anew_serial += 1
        _member(state, learner_of(record.peer)).anew[record.fragment] = state.anew_serial
    elif kind in (Kind.QUORUM_LOST, Kind.QUORUM_REGAINED):
        state.quorum_lost = kind == Kind.QUORUM_LOST
    elif kind == Kind.RUN_ENDED:
        state.finished = True


def _joined(state: SyncerState, record: Record) -> None:
    """Incarnations go on; another process has steps of its own, and nothing of what was asked anew."""
    member = _member(state, learner_of(record.peer))
    if member.process_number != int(record.value):
        averages.forget_steps(member)
        member.anew = [0] * state.fixed.fragments
    member.process_number = int(record.value)
    member.incarnation = record.version


def _apply_setting(state: SyncerState, record: Record) -> None:
    values = record.detail["values"]
    if "quarantined" in values:
        _member(state, learner_of(record.peer)).quarantined = values["quarantined"]
    else:
        state.book.apply(values, state.fixed)
        state.changed_seq = record.seq


def _reopen(state: SyncerState, record: Record) -> None:
    """An open round is in the table until a record closes it; its arithmetic is that of its opening."""
    state.opened_t = record.round
    state.next_t = record.round + 1
    state.rounds[record.round] = Round(
        t=record.round,
        p=record.fragment,
        state=RoundState.OPEN,
        revision=record.setting,
        settings=state.book.merge,
        fresh_outer=state.outer_revision[record.fragment] < state.book.outer_since,
        opened_at=0,
    )


def _apply_merge(state: SyncerState, record: Record) -> None:
    """Versions and contributions; its timings stand for the averages of the syncer that is gone (all but the send)."""
    p, detail = record.fragment, record.detail
    state.rounds.pop(record.round, None)
    state.versions[p] = record.version
    state.version_rounds[p] = record.round
    state.outer_revision[p] = record.setting
    state.merges += 1
    averages.sample_quorum(state, detail["quorum_ns"] - detail["first_ready_ns"])
    averages.sample_sync(state, detail["merge_ns"] - detail["grace_ns"])
    for learner, step in zip(detail["learners"], detail["steps_captured"], strict=True):
        member = _member(state, learner)
        member.last_merged[p] = record.version
        member.last_merged_step[p] = step
