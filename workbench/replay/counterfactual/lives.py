"""The learners at a branch: which process of each is there, how it is connected, and what its machine is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from workbench.config import ConfigError
from workbench.protocol.events import Received
from workbench.protocol.faults import FaultPlan
from workbench.protocol.messages import Join
from workbench.protocol.records import SYNCER, Kind, Record, learner_of, process_of
from workbench.protocol.settings import learner_settings_of
from workbench.replay.counterfactual.branch import Branch
from workbench.replay.counterfactual.by_hand import by_hand
from workbench.replay.counterfactual.ends import Ended
from workbench.replay.counterfactual.parent import Parent
from workbench.replay.counterfactual.plan import Struck
from workbench.replay.counterfactual.rebuilding import rebuild
from workbench.replay.counterfactual.rebuilt import Mail, Rebuilt
from workbench.replay.counterfactual.retelling import Retelling

SECOND = 10**9


class Life(NamedTuple):
    """One process of a learner: its number, when it was started, when it ended and that was seen (-1: not so).

    ``snapshot`` is that which it goes on from, -1 for none.
    """

    learner: int
    number: int
    started_ns: int
    ended_ns: int
    seen_ns: int
    snapshot: int = -1

    def has_ended(self, now: int) -> bool:
        """Whether it has ended by then."""
        return 0 <= self.ended_ns <= now


class Connection(NamedTuple):
    """A connection as the syncer numbers it: which process it belongs to, in which life of the syncer.

    ``asked_ns`` is when the syncer took its JOIN in, ``asked_at`` at which input.
    """

    number: int
    syncer_life: int
    learner: int
    process_number: int
    asked_ns: int
    asked_at: int


class AtBranch(NamedTuple):
    """The learners at a branch.

    Attributes
    ----------
    lives : dict of learner to list of Life
        All of the tape.
    connections : list of Connection
        All of the tape.
    rebuilt : dict of learner to Rebuilt
        Of those processes that live and whose JOIN the syncer has taken in.
    """

    lives: dict[int, list[Life]]
    connections: list[Connection]
    rebuilt: dict[int, Rebuilt]


class Cut(NamedTuple):
    """Where a world takes over.

    Attributes
    ----------
    branch : Branch
    learners : AtBranch
    struck : sequence of Struck
        Faults that struck before and stay.
    ends : sequence of Ended
        Processes that end without a fault.
    plan : FaultPlan
        Faults that are still to come.
    """

    branch: Branch
    learners: AtBranch
    struck: Sequence[Struck]
    ends: Sequence[Ended]
    plan: FaultPlan


def learners_at(parent: Parent, told: Retelling, branch: Branch, delay_ns: int) -> AtBranch:
    """Find the learners' machines as they were at a branch; their arrays in ``told`` go on to the same point."""
    lives, connections = lives_of(parent), connections_of(parent)
    rebuilt = {}
    for learner in (*range(told.config.learners), *told.machine.state.added):
        begun = [life for life in lives.get(learner, ()) if life.started_ns <= branch.past_ns]
        if not begun or begun[-1].has_ended(branch.past_ns):
            continue
        life = begun[-1]
        mine = [c for c in connections if (c.learner, c.process_number) == (learner, life.number)]
        mail = _mail(told, branch, mine)
        asked = [c for c in mine if c.asked_at <= branch.number - branch.before]
        if asked:
            found = _rebuilt(parent, told, branch, life, asked[0], mail, delay_ns)
            if not found.goes_on:
                raise ConfigError(
                    f"the tape does not hold enough of what L{learner} had heard at {branch.time_ns / SECOND:.2f} s of "
                    "the run to go on from there; ask from another round (--from-round) or for the whole (--resimulate)"
                )
            told.advance(process_of(learner), found.unsent)
            rebuilt[learner] = found
    return AtBranch(lives, connections, rebuilt)


def lives_of(parent: Parent) -> dict[int, list[Life]]:
    """All processes of each learner, in order; one that was killed ended then, whenever that was seen.

    When a run is resumed, all that were there have ended; where it goes back to a snapshot, the next process of each
    learner that is in it goes on from there.
    """
    found: dict[int, list[Life]] = {}
    first, parts, snapshot = 0, set[int](), -1
    for loss in (*parent.losses, None):
        made = _lives_in(parent.records[first : loss.event if loss is not None else None])
        for learner, own in made.items():
            if learner in parts:
                own[0] = own[0]._replace(snapshot=snapshot)
            found.setdefault(learner, []).extend(own)
        if loss is not None:
            for own in found.values():
                own[:] = [_ended(life, loss.at_ns) if life.seen_ns < 0 else life for life in own]
            first, snapshot = loss.event, loss.snapshot
            parts = {int(m) for m in loss.cut["parts"]} if loss.cut is not None else set()
    return found


def _lives_in(records: Sequence[Record]) -> dict[int, list[Life]]:
    """Processes that were started between two resumes."""
    found: dict[int, list[Life]] = {}
    for r in sorted(records, key=lambda r: r.time_ns):
        learner = learner_of(r.peer)
        if r.kind == Kind.PROCESS_STARTED and learner >= 0:
            found.setdefault(learner, []).append(Life(learner, int(r.value), r.time_ns, -1, -1))
            continue
        own = found.get(learner, [])
        if r.kind == Kind.PROCESS_ENDED:
            own[:] = [_ended(life, r.time_ns) if life.number == int(r.value) else life for life in own]
        elif own and own[-1].ended_ns < 0 and _kills(r):
            own[-1] = own[-1]._replace(ended_ns=r.time_ns)
    for p in by_hand(records):
        found.setdefault(p.learner, []).append(Life(p.learner, p.number, p.began_ns, p.lost_ns, p.lost_ns))
    return found


def _kills(r: Record) -> bool:
    return r.kind == Kind.FAULT_INJECTED and r.reason in ("kill", "exit") and bool(r.detail.get("effect"))


def _ended(life: Life, seen_ns: int) -> Life:
    return life._replace(ended_ns=life.ended_ns if life.ended_ns >= 0 else seen_ns, seen_ns=seen_ns)


def connections_of(parent: Parent) -> list[Connection]:
    """All connections on which a process has asked to take part."""
    found: dict[tuple[int, int], Connection] = {}
    for number, item in enumerate(parent.inputs):
        event = parent.decoded(number)
        if isinstance(event, Received) and isinstance(event.message, Join):
            message = event.message
            made = Connection(
                event.connection, item.incarnation, message.learner, message.process_number, item.time_ns, number
            )
            found.setdefault((made.syncer_life, made.number), made)
    return list(found.values())


def _mail(told: Retelling, branch: Branch, mine: list[Connection]) -> list[Mail]:
    """What was sent to a process before the answer that is still to be given."""
    names = {(c.syncer_life, c.number) for c in mine}
    return [
        Mail(s.time_ns, s.send.connection, s.send.channel, msgspec.structs.replace(s.send.message))
        for s in told.sent
        if (s.life, s.send.connection) in names and not any(s.send is a for a in branch.actions)
    ]


def _rebuilt(
    parent: Parent, told: Retelling, branch: Branch, life: Life, asked: Connection, mail: list[Mail], delay_ns: int
) -> Rebuilt:
    process = process_of(life.learner)
    joins = (r for r in told.records if r.kind == Kind.LEARNER_JOINED and r.peer == process)
    first = next((r.version for r in joins if int(r.value) == life.number), 2**31)
    own = [r for r in told.records if r.process == process and r.incarnation >= first]
    member = told.machine.state.members.get(life.learner)
    known = member.known_seq if member is not None else 0
    later = [r for r in parent.records[branch.event :] if _is_later(r, process, first, known)]
    settings = learner_settings_of(told.config)
    ended = (r for r in parent.records if r.kind == Kind.PROCESS_ENDED and r.peer == SYNCER)
    deaths = [r.time_ns for r in ended if r.time_ns <= branch.past_ns]
    facts = told.numbers.facts(life.snapshot, life.learner) if life.snapshot >= 0 else None
    began = (mail[0].time_ns, mail[0].connection) if mail else (asked.asked_ns, asked.number)
    return rebuild(
        life.learner, life.number, told.fixed, settings, own, later, began, mail, deaths, delay_ns, life.snapshot, facts
    )


def _is_later(r: Record, process: int, first: int, known: int) -> bool:
    return r.process == process and r.incarnation >= first and r.seq > known
