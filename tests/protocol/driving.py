"""Machines driven by hand: a syncer that talks to puppets, or a learner alone; all of it by (now, event)."""

from __future__ import annotations

from typing import Any

from tests.protocol.alone import Alone
from tests.protocol.puppets import MS, SECOND, STEP_NS, TOKENS, Puppet, book_of, config_of, fixed_of, record
from workbench.protocol import actions as act
from workbench.protocol import events as ev
from workbench.protocol import messages as msg
from workbench.protocol import restart
from workbench.protocol.member_state import Member
from workbench.protocol.records import SUPERVISOR, Kind, Record, process_of
from workbench.protocol.round_state import Round, RoundState
from workbench.protocol.syncer import SyncerMachine, new_state
from workbench.protocol.syncer_state import SyncerState

__all__ = [
    "MS",
    "SECOND",
    "STEP_NS",
    "TOKENS",
    "Alone",
    "Puppet",
    "Talk",
    "begun",
    "book_of",
    "config_of",
    "fixed_of",
    "record",
]


class Talk:
    """A syncer machine and the puppets that talk to it; everything that it did is kept.

    ``hand`` says whether the transport takes every UPDATE at once.
    """

    def __init__(self, machine: SyncerMachine | None = None, **keys: Any) -> None:
        self.config = config_of(**keys)
        self.machine = machine or SyncerMachine(new_state(fixed_of(self.config), book_of(self.config)))
        self.now = 0
        self.records: list[Record] = []
        self.sent: list[tuple[int, Any]] = []
        self.orders: list[Any] = []
        self.puppets: dict[int, Puppet] = {}
        self.connections = 0
        self.supervisor_seq = 0
        self.hand = True

    @property
    def state(self) -> SyncerState:
        """What the machine knows."""
        return self.machine.state

    def member(self, learner: int) -> Member:
        """A learner as the syncer sees it."""
        return self.state.members[learner]

    def round(self, t: int) -> Round:
        """A round in flight."""
        return self.state.rounds[t]

    def state_of(self, t: int) -> str:
        """Name of the state of a round."""
        return RoundState(self.round(t).state).name

    def of(self, *kinds: Kind) -> list[Record]:
        """Records of these kinds."""
        return [r for r in self.records if r.kind in kinds]

    def to(self, learner: int, kind: type) -> list[Any]:
        """Messages of a type that went to a learner, in order."""
        return [m for connection, m in self.sent if type(m) is kind and connection == self.puppets[learner].connection]

    # inputs

    def start(self, reason: str = "new") -> Talk:
        """The process starts."""
        self._keep(self.machine.start(self.now, reason))
        return self

    def give(self, event: Any, after: int = 0) -> list[act.Action]:
        """An input, ``after`` ns later."""
        self.now += after
        done = self.machine.handle(self.now, event)
        self._keep(done)
        return done

    def _keep(self, done: list[act.Action]) -> None:
        handed = []
        for action in done:
            if isinstance(action, act.Append):
                self.records.extend(action.records)
            elif isinstance(action, act.Send):
                self.sent.append((action.connection, action.message))
                if self.hand and isinstance(action.message, msg.Update):
                    handed.append(ev.Handed(action.connection, action.message.fragment, action.message.version))
            else:
                self.orders.append(action)
        for event in handed:
            self.give(event)

    def says(self, learner: int, message: Any, after: int = 0, **seen: Any) -> list[act.Action]:
        """A message of a puppet arrives."""
        return self.give(ev.Received(self.puppets[learner].connection, message, **seen), after)

    def pass_time(self, seconds: float, alive: tuple[int, ...] = ()) -> None:
        """Let time pass: wake the machine when it wants, and let the puppets that are alive send heartbeats."""
        end, next_beat = self.now + int(seconds * SECOND), self.now
        while True:
            due = min(self.machine.wake_at, next_beat + self.state.fixed.heartbeat_ns if alive else 2**63)
            if due > end or self.state.finished:
                break
            self.now = max(due, self.now)
            if alive and self.now >= next_beat + self.state.fixed.heartbeat_ns:
                next_beat = self.now
                for learner in alive:
                    self.says(learner, self.puppets[learner].heartbeat())
            self.give(ev.Woken())
        self.now = end

    # what learners do

    def join(self, learner: int, number: int | None = None, after: int = 0) -> Puppet:
        """A process joins on a new connection: another one with ``number``, else the one that is there."""
        self.connections += 1
        puppet = self.puppets.get(learner)
        if puppet is None or number is not None:
            fragments = self.state.fixed.fragments
            puppet = self.puppets[learner] = Puppet(learner, self.connections, fragments, number or 1)
        puppet.connection = self.connections
        self.says(learner, puppet.join(), after)
        welcomes = self.to(learner, msg.Welcome)
        if welcomes:
            self.welcomed(puppet, welcomes[-1])
        return puppet

    @staticmethod
    def welcomed(puppet: Puppet, message: msg.Welcome) -> None:
        """Take the incarnation, and at the first time the numbers."""
        puppet.incarnation = message.incarnation
        if not puppet.has_state:
            puppet.has_state = True
            puppet.n, puppet.seq = message.first_step - 1, message.first_seq - 1
            puppet.record(Kind.STATE_ADOPTED, reason="initial", step=puppet.n)

    def step(self, learner: int, after: int = 0, g: int | None = None, count: int = 1) -> None:
        """A step ends and its METADATA arrives; ``g`` sets the global step after it."""
        puppet = self.puppets[learner]
        for _ in range(count):
            puppet.count_step()
        puppet.g = puppet.g if g is None else g
        self.says(learner, puppet.metadata(), after)

    def fold(self, learner: int, p: int = 0, anew: int = 0) -> None:
        """A puppet folds the current version of a fragment; its next message says so."""
        puppet = self.puppets[learner]
        version = self.state.versions[p]
        columns = {"fragment": p, "version": version, "base_version": puppet.base[p], "step": puppet.n}
        puppet.record(Kind.UPDATE_FOLDED, detail={"anew": anew}, **columns)
        puppet.base[p] = version
        puppet.c_steps[p] = 0

    def heal(self, learner: int, after: int = 0) -> None:
        """Fold every fragment, then make a step that tells it; g stays where it is."""
        puppet = self.puppets[learner]
        for p in range(puppet.fragments):
            self.fold(learner, p)
        self.step(learner, after, g=puppet.g)

    def answer(self, learner: int, t: int, p: int = 0, after: int = 0, **seen: Any) -> None:
        """A puppet sends the fragment it was asked for."""
        self.says(learner, self.puppets[learner].fragment(t, p), after, **seen)

    def merged(self, finite: bool = True, after: int = MS) -> act.Merge:
        """The arithmetic is through with the last order."""
        order: act.Merge = next(o for o in reversed(self.orders) if isinstance(o, act.Merge))
        ones = [1.0] * len(order.learners)
        self.give(ev.MergeDone(order.round, order.fragment, finite, 1, 2, 1.0, ones, ones, [1] * len(ones)), after)
        return order

    def committed(self, after: int = MS) -> act.Commit:
        """The slot of the last commit is the current one."""
        order: act.Commit = next(o for o in reversed(self.orders) if isinstance(o, act.Commit))
        self.give(ev.CommitDone(order.round, order.fragment, order.version), after)
        return order

    def finish_round(self) -> None:
        """Merge and commit what was ordered."""
        self.merged()
        self.committed()

    def exits(self, learner: int, number: int = 1) -> None:
        """The supervisor sees a process exit."""
        self.supervisor_seq += 1
        columns: dict[str, Any] = {"peer": process_of(learner), "value": float(number), "reason": "SIGKILL"}
        seen = record(Kind.PROCESS_ENDED, SUPERVISOR, self.supervisor_seq, time_ns=self.now, **columns)
        self.give(ev.RecordsCame(SUPERVISOR, [seen]))

    def restarted(self) -> Talk:
        """Another syncer process, from the journal of this one; the puppets' connections are gone."""
        found = restart.restore(fixed_of(self.config), book_of(self.config), self.records)
        after = Talk(SyncerMachine(found.state))
        after.config, after.now, after.records = self.config, self.now, list(self.records)
        after.puppets, after.connections = self.puppets, self.connections
        after._keep(after.machine.start(after.now, "restart", found.uncommitted))
        return after


def begun(healed: bool = True, **keys: Any) -> Talk:
    """A run whose learners have all joined, and by default are healed, with c_steps = 1 and g = 0."""
    talk = Talk(**keys).start()
    for learner in range(talk.config.learners):
        talk.join(learner)
    if healed:
        for learner in range(talk.config.learners):
            talk.heal(learner)
    return talk
