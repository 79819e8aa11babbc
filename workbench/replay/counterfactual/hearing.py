"""What a learner heard at a cut through the tape, and when: the tape holds what was sent to it, not what came.

Of most messages a record of the learner tells when they had come.  Of the others the time is that of a message that
nothing holds up; those that matter only to a learner that waits for its lead come when the tape shows its wait over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.protocol import learner, learner_state
from workbench.protocol.actions import Send, StartStep
from workbench.protocol.events import Connected, Disconnected, Received
from workbench.protocol.messages import (
    Beat,
    Begin,
    Change,
    CopyAsked,
    Mark,
    Marker,
    Notice,
    PeerState,
    Pull,
    Update,
    Welcome,
)
from workbench.protocol.records import Kind, Record
from workbench.replay.counterfactual.rebuilt import Mail

NEWS = Notice | Beat
"""Messages that matter to a learner only where they end its wait: the tape shows when that was."""

RECORDED = Pull | Update | Change | CopyAsked | PeerState | Marker
"""Messages of which a record tells when they came."""


class Hearing:
    """One process of a learner from its JOIN to the cut, and its mail.

    Parameters
    ----------
    state : LearnerState
        Of a new process.
    own : sequence of Record
        What it recorded, up to the cut.
    later : sequence of Record
        What it recorded behind it, as far as the tape knows.
    began : tuple of int
        When the syncer welcomed it, or took its JOIN in where the welcome is still to come, and on which connection.
    mail : sequence of Mail
        What was sent to it, in order.
    deaths : sequence of int
        When the syncer died.
    delay_ns : int
        Delay of a message that left no trace.
    """

    def __init__(
        self,
        state: learner_state.LearnerState,
        own: Sequence[Record],
        later: Sequence[Record],
        began: tuple[int, int],
        mail: Sequence[Mail],
        deaths: Sequence[int],
        delay_ns: int,
    ) -> None:
        self.machine = learner.LearnerMachine(state)
        self.own, self.later, self.mail, self.delay_ns = own, later, list(mail), delay_ns
        self.asked_ns, self.connection = began
        self.began_ns = self.asked_ns - 3 * delay_ns
        self.deaths = [at + delay_ns for at in deaths if at >= self.asked_ns]
        self.step: StartStep | None = None
        self.since_ns = 0
        self.made: list[Record] = []
        self.copies: dict[int, learner_state.Copy] = {}
        self.cut: learner_state.Cut | None = None
        self.marks: list[Mark] = []
        self._at = 0

    def _give(self, now: int, event: Any) -> None:
        state = self.machine.state
        state.wake_at, state.last_heard = learner_state.UNSET, now  # nobody woke it late, and the syncer was there
        known = state.seq
        for action in self.machine.handle(now, event):
            if isinstance(action, StartStep):
                self.step, self.since_ns = action, now
            elif isinstance(action, Send) and isinstance(action.message, Mark):
                self.marks.append(action.message)
        self.copies.update(state.copies)
        self.cut = state.cut or self.cut
        self.made += [r for r in state.outbox.unacked if r.seq > max(known, self._last())]

    def _last(self) -> int:
        return self.made[-1].seq if self.made else -1

    def _hand(self, mail: Mail, now: int) -> None:
        """Deliver a message, and what was sent on its channel before it."""
        self.mail.remove(mail)
        if mail.connection != self.machine.state.connection:
            self._give(now, Connected(mail.connection))
        self._give(now, Received(mail.connection, mail.message))

    def _uncaused(self, now: int) -> None:
        """Messages whose coming no record shows, as far as they are due, and the ends of syncers."""
        for mail in [m for m in self.mail if m.time_ns + self.delay_ns <= now]:
            if not isinstance(mail.message, RECORDED | NEWS) and not self._begins(mail):
                self._died(mail.time_ns)
                self._hand(mail, now)
        self._died(now)
        self._end_wait(now - 1)  # an UPDATE that ended it is recorded at that time

    def _end_wait(self, now: int) -> None:
        """What a learner had heard when its wait was over; earlier it cannot have come, else it had not waited."""
        state = self.machine.state
        while state.waiting_since != learner_state.UNSET and (over := self._wait_over_ns()) <= now:
            told = next((m for m in self.mail if isinstance(m.message, NEWS) and m.time_ns <= over), None)
            if told is None:
                return
            self._hand(told, over)

    def _wait_over_ns(self) -> int:
        """When the wait that goes on came to its end; never, as far as the tape knows, where its step never ended."""
        state = self.machine.state
        ended = (r for r in (*self.own[self._at :], *self.later) if r.kind == Kind.STEP_ENDED and r.step > state.n)
        step = next(ended, None)
        return 2**62 if step is None else state.waiting_since + int(step.detail["waited_ns"])

    def _hear_news(self, now: int) -> None:
        """At the cut a learner has heard what it should have, whether it needed it or not."""
        for mail in [m for m in self.mail if isinstance(m.message, NEWS) and m.time_ns + self.delay_ns <= now]:
            self._hand(mail, now)

    def _died(self, now: int) -> None:
        while self.deaths and self.deaths[0] <= now:
            at = self.deaths.pop(0)
            for mail in [m for m in self.mail if m.time_ns <= at and isinstance(m.message, Update)]:
                self._hand(mail, at)
            self._give(at, Disconnected(self.machine.state.connection))

    def _begins(self, mail: Mail) -> bool:
        """Whether a record tells when it came: that of a state that was adopted."""
        if isinstance(mail.message, Welcome):
            return not self.machine.state.has_state
        return isinstance(mail.message, Begin) and mail.message.source == "snapshot"

    def _find(self, kind: type, origin: int) -> Mail | None:
        mine = (m for m in self.mail if isinstance(m.message, kind))
        return next((m for m in mine if getattr(m.message, "origin", None) == origin), None)

    def _before_it(self, mail: Mail, now: int) -> None:
        """Control messages that cannot have been overtaken."""
        for other in [
            m for m in self.mail if m.channel == mail.channel and m.time_ns <= mail.time_ns and m is not mail
        ]:
            if not isinstance(other.message, RECORDED) and not self._begins(other):
                self._hand(other, now)
