"""A syncer's state from its journal, or from where a snapshot was taken (PROTOCOL sections 12 and 13)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from workbench.protocol import averages, guards, quorum
from workbench.protocol.arrivals import folded_anew
from workbench.protocol.clocks import merged
from workbench.protocol.member_state import Member, new_member
from workbench.protocol.moments import UNSET
from workbench.protocol.pacer import next_round, renew_closed_below
from workbench.protocol.records import FIRST_LEARNER, SYNCER, Kind, Record, learner_of
from workbench.protocol.round_state import Round, RoundState
from workbench.protocol.settings import FixedSettings, SettingsBook
from workbench.protocol.syncer import new_state
from workbench.protocol.syncer_state import SyncerState


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
    aborted : list of (round, fragment)
        Rounds that were open and are given up, since everything goes back to a snapshot.
    """

    state: SyncerState
    uncommitted: list[tuple[int, int, int]]
    reopened: list[int]
    aborted: list[tuple[int, int]] = []


class Kept(msgspec.Struct):
    """What a syncer was when it recorded a snapshot: all that goes back with it."""

    versions: list[int]
    version_rounds: list[int]
    outer_revision: list[int]
    merges: int
    opened_t: int
    began: bool
    book: SettingsBook
    last_merged: dict[int, list[int]]
    last_merged_step: dict[int, list[int]]
    anew: dict[int, list[int]]
    quarantined: dict[int, bool]


class Restoring(msgspec.Struct):
    """A state that is being rebuilt, and what was seen on the way."""

    state: SyncerState
    uncommitted: dict[int, tuple[int, int, int]] = {}
    kept: dict[int, Kept] = {}
    aborted: list[tuple[int, int]] = []


def restore(
    fixed: FixedSettings, book: SettingsBook, records: Iterable[Record], cut: dict[str, Any] | None = None
) -> Recovered:
    """Rebuild versions, rounds, members and settings from the records of a journal.

    Parameters
    ----------
    fixed : FixedSettings
    book : SettingsBook
        The settings that the run began with; changes in the journal are applied again.
    records : iterable of Record
    cut : dict, optional
        The snapshot that everything goes back to, from `cut_of`: the next epoch begins.
    """
    restoring = Restoring(new_state(fixed, book))
    state = restoring.state
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
        _apply(restoring, record)
    if cut is not None:
        _go_back(restoring, cut, state.epoch + 1)
    state.next_t, state.next_p = next_round(state, max(state.opened_t, state.next_t - 1))
    for member in state.members.values():
        member.connected = False
        member.connection = UNSET
    renew_closed_below(state)
    found = restoring
    return Recovered(state, list(found.uncommitted.values()), sorted(state.rounds), found.aborted)


def cut_of(records: Iterable[Record], snapshot: int = -1) -> dict[str, Any] | None:
    """What a resume goes back to: a complete snapshot of the present epoch's past, by default the newest.

    Returns
    -------
    dict or None
        ``snapshot``, ``versions``, ``steps`` (own step of every learner), ``parts`` and ``open`` (own step, and
        tokens of the open intervals by fragment, of those whose state is in it), ``digest``; None if there is none, or
        not that one.
    """
    found: dict[int, dict[str, Any]] = {}
    for record in records:
        if record.kind == Kind.SNAPSHOT_COMPLETED:
            number = int(record.value)
            detail = {name: record.detail[name] for name in ("versions", "steps", "parts", "open")}
            found[number] = {"snapshot": number, **detail, "digest": record.digest}
        elif record.kind == Kind.SYNCER_STARTED and record.detail.get("cut"):
            back = record.detail["cut"]["snapshot"]
            found = {number: one for number, one in found.items() if number <= back}
    return found.get(max(found, default=-1) if snapshot < 0 else snapshot)


def _keep(state: SyncerState) -> Kept:
    members = state.members
    kept = Kept(
        state.versions,
        state.version_rounds,
        state.outer_revision,
        state.merges,
        min(state.rounds, default=state.opened_t + 1) - 1,
        state.began,
        state.book,
        {m: member.last_merged for m, member in members.items()},
        {m: member.last_merged_step for m, member in members.items()},
        {m: member.anew for m, member in members.items()},
        {m: member.quarantined for m, member in members.items()},
    )
    return msgspec.msgpack.decode(msgspec.msgpack.encode(kept), type=Kept)


def _go_back(restoring: Restoring, cut: dict[str, Any], epoch: int) -> None:
    """Everything that a snapshot holds is as it was; who has which number, and what the journal holds, stays."""
    state, back = restoring.state, restoring.kept[cut["snapshot"]]
    back = msgspec.msgpack.decode(msgspec.msgpack.encode(back), type=Kept)
    restoring.aborted = [(r.t, r.p) for r in state.rounds.values()]
    restoring.uncommitted.clear()
    state.epoch, state.rounds, state.finished = epoch, {}, False
    state.versions, state.version_rounds, state.outer_revision = back.versions, back.version_rounds, back.outer_revision
    state.merges, state.opened_t, state.next_t = back.merges, back.opened_t, back.opened_t + 1
    state.began, state.book = back.began, back.book
    blank, steps = [-1] * state.fixed.fragments, {int(m): n for m, n in cut["steps"].items()}
    for learner, member in state.members.items():
        member.last_merged = back.last_merged.get(learner, list(blank))
        member.last_merged_step = back.last_merged_step.get(learner, list(blank))
        member.anew = back.anew.get(learner, [0] * state.fixed.fragments)
        member.quarantined = back.quarantined.get(learner, False)
        member.last_step = steps.get(learner, 0)
    state.snapshot_done = state.resumed_from = cut["snapshot"]
    state.snapshot_steps = {int(m): n for m, n in cut["parts"].items()}
    state.snapshot_merges = state.merges


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


def _apply(restoring: Restoring, record: Record) -> None:
    kind, state, uncommitted = record.kind, restoring.state, restoring.uncommitted
    if kind in _SNAPSHOT_KINDS and record.process == SYNCER:
        _apply_snapshot(restoring, record)
    elif kind == Kind.ROUNDS_BEGAN:
        state.began = True
    elif kind == Kind.LEARNER_JOINED:
        _joined(state, record)
    elif kind == Kind.PROCESS_ENDED and learner_of(record.peer) in state.members:
        member = _member(state, learner_of(record.peer))
        member.ended = max(member.ended, int(record.value))
    elif kind == Kind.LEARNER_LOST and record.reason == "left":
        member = _member(state, learner_of(record.peer))
        member.ended = max(member.ended, member.process_number)
    elif kind == Kind.LEARNER_ADDED:
        state.added.append(learner_of(record.peer))
    elif kind == Kind.LEARNER_LOST and record.reason == "removed":
        _removed(state, record)
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
    elif kind == Kind.FRAGMENT_DROPPED and record.reason in guards.POISON:
        _refused(state, record)
    elif kind in (Kind.QUORUM_LOST, Kind.QUORUM_REGAINED):
        state.quorum_lost = kind == Kind.QUORUM_LOST
    elif kind == Kind.RUN_ENDED:
        state.finished = True


_SNAPSHOT_KINDS = (Kind.SNAPSHOT_RECORDED, Kind.SNAPSHOT_COMPLETED, Kind.SYNCER_STARTED)


def _apply_snapshot(restoring: Restoring, record: Record) -> None:
    """Snapshots begun and complete; a syncer that went back to one."""
    state = restoring.state
    if record.kind == Kind.SNAPSHOT_RECORDED:
        state.snapshot_serial = int(record.value)
        state.snapshot_merges = state.merges
        restoring.kept[state.snapshot_serial] = _keep(state)
    elif record.kind == Kind.SNAPSHOT_COMPLETED:
        state.snapshot_done = int(record.value)
        state.snapshot_steps = {int(m): n for m, n in record.detail["parts"].items()}
    elif record.detail.get("cut"):
        _go_back(restoring, record.detail["cut"], record.epoch)
        restoring.aborted = []
    elif record.reason == "resume":
        state.finished = False
        state.resumed_from = -1


def _removed(state: SyncerState, record: Record) -> None:
    """No process of this learner is taken in any more."""
    learner = learner_of(record.peer)
    state.removed.append(learner)
    member = state.members.get(learner)
    if member is not None:
        member.ended = max(member.ended, member.process_number)


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
        member = _member(state, learner_of(record.peer))
        member.quarantined, member.poisonings = values["quarantined"], 0
    else:
        state.book.apply(values, state.fixed, len(quorum.expected(state)))
        state.changed_seq = record.seq


def _refused(state: SyncerState, record: Record) -> None:
    """A contribution that was refused for what it holds."""
    member = _member(state, learner_of(record.peer))
    guards.count_refusal(member, record.reason, record.detail)
    if record.reason in guards.REFUSED:
        state.anew_serial += 1
        member.anew[record.fragment] = state.anew_serial


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
    guards.count_merge(state.members, p, detail["learners"], detail["c_steps"], detail["norms"], detail["cosines"])
