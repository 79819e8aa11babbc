"""A learner process of the small world takes one input: its machine acts, its arithmetic keeps the books."""

from __future__ import annotations

from typing import Any

from workbench.protocol import actions as act
from workbench.protocol import events as ev
from workbench.protocol import learner_state
from workbench.protocol.learner import LearnerMachine
from workbench.protocol.settings import FixedSettings, LearnerSettings
from workbench.simulate.arithmetic import Ledgered, Work
from workbench.simulate.small import checks, forms
from workbench.simulate.small.forms import NOW
from workbench.simulate.small.tables import TOKENS, Event, Life, Outcome, Tables


def new_life(learner: int, number: int, fixed: FixedSettings, settings: LearnerSettings) -> Life:
    """A process that has not begun."""
    places = range(fixed.fragments)
    state = learner_state.new_state(learner, number, fixed, settings)
    return Life(number, state, [[] for _ in places], [-1 for _ in places], [[] for _ in places])


class LearnerRun:
    """One call of a learner's machine: does its actions, and collects what leaves the process.

    Parameters
    ----------
    tables : Tables
        Where messages and contributions get their numbers.
    life : Life
        The process, changed in place.
    """

    def __init__(self, tables: Tables, life: Life) -> None:
        self.tables = tables
        self.life = life
        self.learner = life.state.learner
        self.machine = LearnerMachine(life.state)
        self.effects: list[Event] = []
        self.ledger = Ledgered(len(life.base), TOKENS)
        self.ledger.work[self.learner] = life.work
        self.ledger.base[self.learner] = life.base
        self.ledger.host[self.learner] = [tuple(steps) for steps in life.host]
        self.ledger.kept = {(self.learner, p, step): steps for p, step, steps in life.kept}

    def take(self, event: Event) -> Outcome:
        """The process takes an input (``("start",)`` for its first actions)."""
        if event[0] == "age":
            forms.age_learner(self.life.state, event[1])
            return Outcome(self.tables.lives.put(self.life), ())
        self._do(self.machine.start(NOW) if event[0] == "start" else self.machine.handle(NOW, self._input(event)))
        checks.learner_rests(self.life.state, self.ledger)
        self._close()
        return Outcome(self.tables.lives.put(self.life), tuple(self.effects))

    def _input(self, event: Event) -> ev.LearnerInput:
        kind = event[0]
        if kind == "step":
            order = act.StartStep(self.life.step, self.life.state.g, 1, 1, 1.0)
            self.life.step = 0
            return ev.StepEnded(*self.ledger.step(self.learner, order), start_ns=NOW)
        if kind == "got":
            return ev.Received(event[1], self.tables.down.get(event[2]))
        if kind == "connected":
            return ev.Connected(event[1])
        return ev.Disconnected(event[1]) if kind == "closed" else ev.Woken()

    def _do(self, todo: list[act.Action]) -> None:
        for action in todo:
            checks.learner_acts(self.life.state, self.ledger, action, self.tables.works)
            self._do_one(action)

    def _do_one(self, action: Any) -> None:
        kind, ledger, learner = type(action), self.ledger, self.learner
        if kind is act.Send:
            number = self.tables.up.put(forms.tidy_message(action.message))
            self.effects.append(("send", action.connection, action.channel, number))
        elif kind is act.StartStep:
            self.life.step = action.step
        elif kind is act.Publish:
            ledger.publish(learner, action.fragment)
        elif kind is act.Capture:
            self._capture(action)
        elif kind is act.Fold:
            ledger.fold(learner, action)
        elif kind is act.ForgetCapture:
            ledger.forget(learner, action.fragment, action.step)
        elif kind is act.Adopt:
            self._do(self.machine.handle(NOW, ev.Adopted(ledger.adopt(learner, action.source))))
        elif kind is act.Connect:
            self.effects.append(("connect",))
        elif kind is act.Leave:
            raise checks.Broken(f"a learner leaves in the middle of a run: {action.reason}")

    def _capture(self, action: act.Capture) -> None:
        made = self.ledger.capture(self.learner, action.fragment, action.step, action.codec, None)
        work = self.ledger.payloads[made.handle]
        assert isinstance(work, Work)
        handle = self.tables.put_work(work)
        self._do(self.machine.handle(NOW, ev.Captured(action.round, action.fragment, 0, 1, handle)))

    def _close(self) -> None:
        """Put the books back into the process, and level its state."""
        life, learner = self.life, self.learner
        life.work, life.base = self.ledger.work[learner], self.ledger.base[learner]
        life.host = [list(steps) for steps in self.ledger.host[learner]]
        life.kept = sorted((p, step, steps) for (_, p, step), steps in self.ledger.kept.items())
        forms.tidy_learner(life.state)
