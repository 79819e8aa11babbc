"""What the parts of a learner machine share: its state, the time, and the list of actions it is making."""

from __future__ import annotations

from typing import Any

from workbench.protocol import outbox
from workbench.protocol.actions import Action, Send
from workbench.protocol.clocks import merged, ticked
from workbench.protocol.learner_state import LearnerState
from workbench.protocol.messages import BULK, CONTROL, Heartbeat, Join, Message, Metadata
from workbench.protocol.records import Kind, Record, process_of


class LearnerCore:
    """State, time and the actions of the input that is being handled."""

    __slots__ = ("now", "out", "process", "state")

    def __init__(self, state: LearnerState) -> None:
        self.state = state
        self.process = process_of(state.learner)
        self.now = 0
        self.out: list[Action] = []

    def record(self, kind: Kind, cause: tuple[int, int] | None = None, **columns: Any) -> int:
        """Make the learner's next record; returns its seq."""
        state = self.state
        state.seq += 1
        state.clock = ticked(state.clock, self.process, state.seq)
        made = Record(
            kind,
            self.process,
            state.incarnation,
            state.seq,
            self.now,
            state.clock,
            cause,
            epoch=state.epoch,
            **columns,
        )
        outbox.put(state.outbox, made, self.now)
        return state.seq

    def hear(self, clock: tuple[int, ...]) -> None:
        """A receive: elementwise maximum of the clocks."""
        self.state.clock = merged(self.state.clock, clock)

    def send(self, message: Message, bulk: bool = False) -> None:
        """Send to the syncer on the present connection."""
        self.out.append(Send(self.state.connection, BULK if bulk else CONTROL, message))

    def send_join(self) -> None:
        """Ask to take part."""
        s = self.state
        outbox.rewind(s.outbox)
        self.send(
            Join(
                s.learner,
                s.process_number,
                s.n,
                s.g,
                list(s.c_steps),
                list(s.c_tokens),
                list(s.base),
                s.has_state,
                s.healed,
                s.clock,
                outbox.take(s.outbox, CONTROL),
                {} if s.has_state else s.identity,
                s.awaiting,
                s.restored,
            )
        )

    def send_metadata(self, leaving: bool = False) -> None:
        """Say how far the learner is, with the records that control has not carried."""
        s = self.state
        if not s.welcomed:
            return
        self.send(
            Metadata(
                s.learner,
                s.incarnation,
                s.n,
                s.g,
                list(s.c_steps),
                list(s.c_tokens),
                list(s.base),
                s.step_ns,
                s.healed,
                s.waiting_since >= 0,
                s.seq,
                s.clock,
                outbox.take(s.outbox, CONTROL),
                leaving,
                max(s.revision, s.asked_revision),
                s.awaiting,
            )
        )

    def send_heartbeat(self) -> None:
        """Say that the learner lives."""
        s = self.state
        self.send(Heartbeat(s.learner, s.incarnation, s.clock, outbox.take(s.outbox, CONTROL)))
