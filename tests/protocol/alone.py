"""A learner machine alone; its syncer is played by hand."""

from __future__ import annotations

from typing import Any

from tests.protocol.puppets import STEP_NS, TOKENS, config_of, fixed_of
from workbench.protocol import actions as act
from workbench.protocol import events as ev
from workbench.protocol import learner_state
from workbench.protocol import messages as msg
from workbench.protocol.learner import LearnerMachine
from workbench.protocol.records import Kind, Record
from workbench.protocol.settings import (
    learner_settings_of,
)


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
