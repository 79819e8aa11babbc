"""Machines driven by hand: a syncer that talks to learners of which only the messages exist, and a learner alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from workbench.algorithms.schedule import offsets
from workbench.config import RunConfig
from workbench.protocol import actions as act
from workbench.protocol import events as ev
from workbench.protocol import learner_state, restart
from workbench.protocol import messages as msg
from workbench.protocol.clocks import ticked
from workbench.protocol.learner import LearnerMachine
from workbench.protocol.records import SUPERVISOR, Kind, Record, process_of
from workbench.protocol.settings import (
    FixedSettings,
    SettingsBook,
    fixed_settings_of,
    learner_settings_of,
    merge_settings_of,
    policy_of,
)
from workbench.protocol.syncer import SyncerMachine, new_state
from workbench.protocol.syncer_state import Member, Round, RoundState, SyncerState

SECOND = 10**9
MS = 10**6
STEP_NS = 100 * MS
TOKENS = 100


def config_of(**keys: Any) -> RunConfig:
    """A small run: 2 learners, one fragment due at every second step, no overlap, closed at quorum."""
    small = {"learners": 2, "rounds": 1000, "period": 2, "fragments": 1, "overlap": 0, "grace": "none"}
    return RunConfig(**{**small, **keys})


def fixed_of(config: RunConfig) -> FixedSettings:
    """Fixed settings with evenly spread offsets."""
    return fixed_settings_of(config, offsets(config.fragments, config.period))


def book_of(config: RunConfig) -> SettingsBook:
    """The settings that a run begins with."""
    return SettingsBook(0, policy_of(config), merge_settings_of(config), learner_settings_of(config), config.inner.rate)


def record(kind: Kind, process: int, seq: int, incarnation: int = 1, time_ns: int = 0, **columns: Any) -> Record:
    """A record of a process that knows of itself only."""
    return Record(kind, process, incarnation, seq, time_ns, ticked((), process, seq), **columns)


@dataclass
class Puppet:
    """A learner of which only the messages exist; what it says is set by hand."""

    learner: int
    connection: int
    fragments: int
    number: int = 1
    incarnation: int = 0
    seq: int = 0
    n: int = 0
    g: int = 0
    base: list[int] = field(default_factory=list)
    c_steps: list[int] = field(default_factory=list)
    has_state: bool = False
    healed: bool = False
    revision: int = 0
    step_ns: int = STEP_NS
    unsent: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.base = [-1] * self.fragments
        self.c_steps = [0] * self.fragments

    def record(self, kind: Kind, **columns: Any) -> int:
        """Make the next record; returns its seq."""
        self.seq += 1
        self.unsent.append(record(kind, process_of(self.learner), self.seq, self.incarnation, **columns))
        return self.seq

    def attach(self) -> list[Record]:
        """What was not sent yet."""
        taken, self.unsent = self.unsent, []
        return taken

    @property
    def clock(self) -> tuple[int, ...]:
        """Own entry only."""
        return ticked((), process_of(self.learner), self.seq)

    def count_step(self, tokens: int = TOKENS) -> None:
        """One more step, recorded."""
        self.n += 1
        self.c_steps = [c + 1 for c in self.c_steps]
        self.healed = self.healed or min(self.base) >= 0
        detail = {"start_ns": 0, "end_ns": self.step_ns, "injected_ns": 0, "waited_ns": 0}
        self.record(Kind.STEP_ENDED, step=self.n, global_step=self.g, steps=1, tokens=tokens, detail=detail)
        self.g += 1

    def join(self) -> msg.Join:
        """Ask to take part."""
        tokens = [c * TOKENS for c in self.c_steps]
        return msg.Join(
            self.learner, self.number, self.n, self.g, list(self.c_steps), tokens, list(self.base), self.has_state,
            self.healed, self.clock, self.attach(),
        )  # fmt: skip

    def metadata(self, **changes: Any) -> msg.Metadata:
        """Progress."""
        fields: dict[str, Any] = {
            "learner": self.learner, "incarnation": self.incarnation, "n": self.n, "g": self.g,
            "c_steps": list(self.c_steps), "c_tokens": [c * TOKENS for c in self.c_steps], "base": list(self.base),
            "step_ns": self.step_ns, "healed": self.healed, "waiting": False, "origin": self.seq, "clock": self.clock,
            "records": self.attach(), "revision": self.revision,
        }  # fmt: skip
        return msg.Metadata(**{**fields, **changes})

    def fragment(self, t: int, p: int = 0, **changes: Any) -> msg.Fragment:
        """An answer to a PULL."""
        steps = self.c_steps[p]
        captured = {"fragment": p, "round": t, "base_version": self.base[p], "step": self.n, "reason": "f32"}
        self.record(Kind.FRAGMENT_CAPTURED, steps=steps, tokens=steps * TOKENS, **captured)
        fields: dict[str, Any] = {
            "learner": self.learner, "incarnation": self.incarnation, "round": t, "fragment": p,
            "base_version": self.base[p], "step": self.n, "steps": steps, "tokens": steps * TOKENS, "codec": "f32",
            "digest": 7, "nbytes": 400, "captured_ns": 0, "origin": self.seq, "clock": self.clock,
            "records": self.attach(), "handle": 1000 * (self.learner + 1) + t,
        }  # fmt: skip
        return msg.Fragment(**{**fields, **changes})

    def refusal(self, t: int, p: int = 0, reason: str = "no_steps") -> msg.Refused:
        """Another answer to a PULL."""
        self.record(Kind.PULL_REFUSED, fragment=p, round=t, base_version=self.base[p], reason=reason)
        return msg.Refused(self.learner, self.incarnation, t, p, reason, self.seq, self.clock, self.attach())

    def heartbeat(self) -> msg.Heartbeat:
        """It lives."""
        return msg.Heartbeat(self.learner, self.incarnation, self.clock, self.attach())


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


class Alone:
    """A learner machine whose syncer is played by hand; everything that it did is kept."""

    def __init__(self, learner: int = 0, **keys: Any) -> None:
        self.config = config_of(**keys)
        settings = learner_settings_of(self.config)
        self.machine = LearnerMachine(learner_state.new_state(learner, 1, fixed_of(self.config), settings))
        self.now = 0
        self.sent: list[tuple[int, Any]] = []
        self.orders: list[Any] = []
        self.syncer_seq = 10
        self.last: list[act.Action] = []

    @property
    def state(self) -> learner_state.LearnerState:
        """What the machine knows."""
        return self.machine.state

    def _keep(self, done: list[act.Action]) -> list[act.Action]:
        self.last = done
        for action in done:
            if isinstance(action, act.Send):
                self.sent.append((action.channel, action.message))
            else:
                self.orders.append(action)
        return done

    def give(self, event: Any, after: int = 0) -> list[act.Action]:
        """An input, ``after`` ns later."""
        self.now += after
        return self._keep(self.machine.handle(self.now, event))

    def hears(self, message: Any, after: int = 0, connection: int = 1) -> list[act.Action]:
        """A message of the syncer arrives."""
        return self.give(ev.Received(connection, message), after)

    def of(self, kind: type) -> list[Any]:
        """Messages of a type that it sent, in order."""
        return [message for _, message in self.sent if type(message) is kind]

    def did(self, kind: type) -> list[Any]:
        """Actions of a type, in order."""
        return [order for order in self.orders if type(order) is kind]

    def records(self, *kinds: Kind) -> list[Record]:
        """Unacknowledged records of these kinds."""
        return [r for r in self.state.outbox.unacked if r.kind in kinds]

    @property
    def clock(self) -> tuple[int, ...]:
        """The syncer's clock."""
        self.syncer_seq += 1
        return (self.syncer_seq,)

    def welcome(self, incarnation: int = 1, **changes: Any) -> msg.Welcome:
        """A WELCOME of this run."""
        fields: dict[str, Any] = {
            "incarnation": incarnation, "epoch": 0, "versions": [0] * self.config.fragments, "t": 1, "revision": 0,
            "settings": {}, "first_step": 1, "first_seq": 1, "rejoin": False, "acked": 0, "closed_below": 1,
            "origin": self.syncer_seq, "clock": self.clock,
        }  # fmt: skip
        return msg.Welcome(**{**fields, **changes})

    def live(self) -> Alone:
        """Connect, be welcomed, adopt the first weights: the first step begins, unless a lead forbids it."""
        self._keep(self.machine.start(self.now))
        self.give(ev.Connected(1))
        self.hears(self.welcome())
        self.give(ev.Adopted(5))
        return self

    def step(self, after: int = STEP_NS, tokens: int = TOKENS, loss: float = 2.0) -> list[act.Action]:
        """The step in progress ends."""
        return self.give(ev.StepEnded(loss, tokens, 8, 1, self.now), after)

    def update(self, version: int, p: int = 0, t: int = 0, **changes: Any) -> msg.Update:
        """An UPDATE."""
        fields: dict[str, Any] = {
            "incarnation": self.state.incarnation, "fragment": p, "version": version, "round": t, "last_merged": -1,
            "last_merged_step": -1, "anew": 0, "acked": 0, "closed_below": 1, "origin": self.syncer_seq,
            "clock": self.clock, "handle": 100 + version,
        }  # fmt: skip
        return msg.Update(**{**fields, **changes})

    def healed(self, steps: int = 1) -> Alone:
        """Live, with version 0 of everything folded, and ``steps`` steps made since."""
        self.live()
        for p in range(self.config.fragments):
            self.hears(self.update(0, p))
        if self.state.stepping:
            self.step()
        for _ in range(steps):
            self.step()
        return self

    def pull(self, t: int, p: int = 0, base: int = 0, **changes: Any) -> msg.Pull:
        """A PULL."""
        fields: dict[str, Any] = {
            "incarnation": self.state.incarnation, "round": t, "fragment": p, "base_version": base, "codec": "f32",
            "acked": 0, "closed_below": 1, "origin": self.syncer_seq, "clock": self.clock,
        }  # fmt: skip
        return msg.Pull(**{**fields, **changes})

    def contribute(self, t: int, p: int = 0) -> msg.Fragment:
        """Be pulled and answer."""
        self.hears(self.pull(t, p, self.state.base[p]))
        self.give(ev.Captured(t, p, 9, 400, 50 + t))
        fragment: msg.Fragment = self.of(msg.Fragment)[-1]
        return fragment

    def notice(self, t: int, **changes: Any) -> msg.Notice:
        """A round was closed without an update."""
        fields = {"acked": 0, "closed_below": 1, "clock": self.clock}
        return msg.Notice(self.state.incarnation, t, **{**fields, **changes})

    def beat(self, **changes: Any) -> msg.Beat:
        """The syncer lives."""
        fields = {"acked": 0, "closed_below": 1, "clock": self.clock}
        return msg.Beat(self.state.incarnation, **{**fields, **changes})
