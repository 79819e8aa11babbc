"""Invariants of PROTOCOL section 15 for the breadth-first search: each looks at one step, or at one world.

They trust no counter of a machine: what the parameters of a learner hold comes from `Ledgered`, which steps
are merged from the merge orders, what is journalled from the records.
"""

from __future__ import annotations

from typing import Any

from workbench.protocol import actions as act
from workbench.protocol import events as ev
from workbench.protocol.learner_state import LearnerState
from workbench.protocol.messages import Fragment, Join, Metadata, Pull
from workbench.protocol.records import FIRST_LEARNER, SUPERVISOR, SYNCER, Kind, Record, learner_of, process_of
from workbench.protocol.round_state import RoundState
from workbench.protocol.syncer_state import SyncerState
from workbench.simulate.arithmetic import Ledgered, Work


class Broken(AssertionError):
    """An invariant does not hold; the message names it and the values."""


def need(holds: bool, what: str, *values: Any) -> None:
    """Raise `Broken` unless ``holds``."""
    if not holds:
        raise Broken(f"{what}: {', '.join(map(str, values))}")


# a learner


def learner_acts(state: LearnerState, ledger: Ledgered, action: act.Action, works: list[Work]) -> None:
    """Before a learner's action is done: what it sends and captures is what its parameters hold."""
    learner = state.learner
    if isinstance(action, act.Capture):
        p = action.fragment
        need(p not in state.inbox, "3: captured while an UPDATE lies unfolded", learner, p)
        need(bool(ledger.host[learner][p]), "3: captured without a step", learner, p)
        need(ledger.base[learner][p] == state.base[p], "3: base of the copy", ledger.base[learner][p], state.base[p])
    elif isinstance(action, act.StartStep):
        need(action.step == state.n + 1, "8: own step repeated or left out", learner, state.n, action.step)
    elif isinstance(action, act.Fold):
        need(action.version > ledger.base[learner][action.fragment], "9: base falls", learner, action)
    elif isinstance(action, act.Send):
        _learner_sends(state, ledger, action.message, works)


def _learner_sends(state: LearnerState, ledger: Ledgered, message: Any, works: list[Work]) -> None:
    learner = state.learner
    if isinstance(message, Metadata) or (isinstance(message, Join) and message.has_state):
        held = [len(steps) for steps in ledger.work[learner]]
        need(
            message.c_steps == held,
            "7: counters differ from the work since the last fold",
            learner,
            message.c_steps,
            held,
        )
    elif isinstance(message, Fragment):
        work = works[message.handle]
        counted = (message.steps, message.step, message.base_version)
        held_by_copy = (len(work.steps), work.steps[-1], work.base_version)
        need(counted == held_by_copy, "3: counters captured with another copy", learner, counted, held_by_copy)
    if not isinstance(message, Join):
        seqs = [record.seq for record in message.records]
        need(seqs == sorted(set(seqs)), "6: records out of order", seqs)


def learner_rests(state: LearnerState, ledger: Ledgered) -> None:
    """After a learner's actions: it trains, or says why not; bases are those of its parameters."""
    if not state.has_state:
        return
    need(ledger.base[state.learner] == state.base, "9: base is not what was folded", state.base)
    need(len(state.inbox) <= len(state.base), "10: inbox", len(state.inbox))
    kept = [record.seq for record in state.outbox.unacked]
    expected = list(range(state.outbox.acked + 1, state.seq + 1))
    need(kept == expected, "6: records kept until acknowledged", state.learner, kept, expected)
    idle = not state.stepping
    need(not idle or state.settings.lead is not None, "a learner without a lead waits", state.learner)
    need(idle == (state.waiting_since >= 0), "9 (section): idle without waiting", state.learner)


# the syncer


def syncer_acted(
    before: SyncerState | None, event: ev.SyncerInput | None, after: SyncerState, done: list[act.Action]
) -> None:
    """After the syncer's actions on one input (and on what the transport took of them)."""
    fragments = [r.p for r in after.rounds.values()]
    few = len(fragments) <= after.fixed.in_flight_max and len(set(fragments)) == len(fragments)
    need(few, "4: rounds in flight", [(r.t, r.p) for r in after.rounds.values()])
    appended = 0
    for action in done:
        if isinstance(action, act.Append):
            appended += sum(record.process == SYNCER for record in action.records)
            for record in action.records:
                _syncer_records(before, after, record)
        elif isinstance(action, act.Send):
            origin = getattr(action.message, "origin", 0)
            need(origin <= appended, "6: sent before its record", type(action.message).__name__, origin, appended)
            if isinstance(action.message, Pull):
                _pulls(after, action)
    need(appended == after.seq, "6: records made and not journalled", appended, after.seq)
    if before is not None and isinstance(event, ev.Received):
        _effect_after_record(before, event.message, after)


def _pulls(after: SyncerState, action: act.Send) -> None:
    message: Any = action.message
    member = next((m for m in after.members.values() if m.connection == action.connection), None)
    need(member is not None and member.connected and member.healed, "3: pulled without taking part", action)
    assert member is not None
    p, round_ = message.fragment, after.rounds[message.round]
    fits = message.base_version == member.base[p] == after.versions[p] and member.c_steps[p] >= 1
    need(fits, "3: pulled without being clean", member.learner, p, member.base, member.c_steps, after.versions)
    heard = member.g >= round_.t or member.metadata_at >= round_.first_ready_at
    need(heard, "3: pulled without being admitted", member.learner, round_.t, member.g)
    need(member.learner not in round_.here, "2: pulled though its fragment is here", member.learner, round_.t)


def _syncer_records(before: SyncerState | None, after: SyncerState, record: Record) -> None:
    if record.kind == Kind.FRAGMENT_ARRIVED:
        assert before is not None
        round_ = before.rounds.get(record.round)
        need(round_ is not None and round_.state < RoundState.MERGING, "a fragment of a closed round is used", record)
        assert round_ is not None
        learner = learner_of(record.peer)
        need(learner not in round_.here, "2: two fragments of one learner in a round", record.round, learner)
    elif record.kind == Kind.QUORUM_REACHED:
        quorum = after.book.policy.quorum
        able = [m for m in after.members.values() if m.connected and m.healed and m.g >= record.round]
        here = after.rounds[record.round].here if record.round in after.rounds else {}
        count = len({m.learner for m in able} | set(here))
        need(count >= quorum, "quorum without K ready learners", record.round, count, quorum)


def _effect_after_record(before: SyncerState, message: Any, after: SyncerState) -> None:
    """What a learner says has an effect only if its records up to then are in the journal."""
    process = process_of(message.learner)
    made = message.clock[process] if len(message.clock) > process else 0
    member = after.members.get(message.learner)
    if isinstance(message, Join) or member is None or made <= member.known_seq:
        return
    old = before.members[message.learner]
    same = (member.n, member.g, member.base, member.c_steps) == (old.n, old.g, old.base, old.c_steps)
    held = {t: sorted(r.here) for t, r in after.rounds.items()} == {t: sorted(r.here) for t, r in before.rounds.items()}
    need(same and held, "6: an effect before its record", message, member.known_seq)


# the journal


def journal_takes(state: SyncerState, records: list[Record]) -> None:
    """Before records are appended: each follows from those before it."""
    seqs = {process_of(m.learner): m.known_seq for m in state.members.values()}
    seqs[SUPERVISOR] = state.known_seq.get(SUPERVISOR, 0)
    steps = {process_of(m.learner): m.last_step for m in state.members.values()}
    versions, lives = list(state.versions), {m.learner: m.incarnation for m in state.members.values()}
    last_t = state.opened_t
    for record in records:
        process = record.process
        if process != SYNCER:
            need(record.seq == seqs.get(process, 0) + 1, "6: journal skips or repeats", process, seqs, record.seq)
            seqs[process] = record.seq
        if record.kind == Kind.STEP_ENDED:
            need(record.step == steps.get(process, 0) + 1, "8: own steps not consecutive", process, steps, record.step)
            steps[process] = record.step
        elif record.kind == Kind.MERGED:
            need(record.version == versions[record.fragment] + 1, "1: version does not rise by one", record)
            versions[record.fragment] = record.version
        elif record.kind == Kind.LEARNER_JOINED:
            learner = learner_of(record.peer)
            need(record.version == lives.get(learner, 0) + 1, "incarnation is not the next", lives, record.version)
            lives[learner] = record.version
        elif record.kind == Kind.ROUND_OPENED:
            fixed = state.fixed
            due = record.round > last_t and fixed.offsets[record.fragment] == record.round % fixed.period
            need(due, "rounds open in order of t, each with its fragment", last_t, record)
            last_t = record.round
        if process >= FIRST_LEARNER:
            need(learner_of(process) in lives, "6: records of a learner that never joined", process)


def journalled_view(state: SyncerState) -> dict[str, Any]:
    """What the journal has to know of a syncer: the same for a living one and for what a restart makes of its records.

    A merge that is being committed is in the journal, so it counts as made.
    """
    committing = [r for r in state.rounds.values() if r.state == RoundState.COMMITTING]
    versions = list(state.versions)
    merged = {
        (m.learner, p): (m.last_merged[p], m.last_merged_step[p])
        for m in state.members.values()
        for p in range(len(versions))
    }
    for round_ in committing:
        versions[round_.p] += 1
        for learner in round_.merging:
            merged[learner, round_.p] = (versions[round_.p], round_.here[learner].step)
    return {
        "versions": versions,
        "rounds": sorted(t for t, r in state.rounds.items() if r not in committing),
        "next round": state.next_t,
        "lives of the syncer": state.incarnation,
        "merges": state.merges + len(committing),
        "began": state.began,
        "members": [
            (m.learner, m.process_number, m.incarnation, m.known_seq, m.last_step) for m in state.members.values()
        ],
        "last merged": merged,
    }


def journal_agrees(live: dict[str, Any], restored: dict[str, Any]) -> None:
    """A restart of the syncer now would find what the living one knows."""
    for name, value in live.items():
        need(value == restored[name], f"6: {name} and the journal", value, restored[name])


# merges


def merge_ordered(state_quorum: int, versions: tuple[int, ...], order: act.Merge, works: list[Work]) -> None:
    """A merge holds at most one contribution of a learner, its own work, on the current version, and K of them."""
    need(order.learners == sorted(set(order.learners)), "2: a learner twice in a merge", order.learners)
    need(len(order.learners) >= state_quorum, "a merge of fewer than K", order.learners, state_quorum)
    need(order.version == versions[order.fragment] + 1, "1: merged into another version", order.version, versions)
    for learner, handle in zip(order.learners, order.handles, strict=True):
        work = works[handle]
        own = work.learner == learner and work.fragment == order.fragment
        need(own, "2: another learner's work", learner, order.fragment, work)
        need(bool(work.steps), "3: a contribution without a step", work)
        need(work.base_version == order.version - 1, "3: rests on another version", work, order.version)
