"""The machine of a learner at a cut through the tape, run again on inputs that its records imply.

The inputs of learners are not on a tape, but their records say what they must have been: a step ended then, this PULL
and this UPDATE had come, and the messages are those that the syncer's machine sends.  The records that the machine
makes again are compared with those of the tape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from workbench.protocol import learner, learner_state
from workbench.protocol.actions import StartStep
from workbench.protocol.clocks import merged
from workbench.protocol.events import Adopted, Captured, Connected, Disconnected, FaultActed, Received, StepEnded
from workbench.protocol.messages import Change, Pull, Update, Welcome
from workbench.protocol.records import Kind, Record
from workbench.protocol.settings import FixedSettings, LearnerSettings
from workbench.replay.counterfactual.comparing import same

BOUNDARY = (Kind.SETTING_APPLIED, Kind.CONTRIBUTION_ACKNOWLEDGED, Kind.UPDATE_FOLDED)
"""What a boundary records behind the step that ended there."""

COMPARED = ("kind", "fragment", "round", "version", "base_version", "step", "global_step", "steps", "tokens", "reason")


class Mail(NamedTuple):
    """A message to a learner: when it was sent, on which connection."""

    time_ns: int
    connection: int
    channel: int
    message: Any


class Rebuilt(NamedTuple):
    """A learner at the cut.

    Attributes
    ----------
    machine : LearnerMachine
    step : StartStep or None
        The step that it makes.
    since_ns : int
        When that began.
    unheard : list of Mail
        Messages that have not reached it.
    unsent : list of int
        Numbers of records that it made and that are not in the journal: the rest of its last boundary.
    made, differing : int
        Records made again, and how many of them are not those of the tape.
    """

    machine: learner.LearnerMachine
    step: StartStep | None
    since_ns: int
    unheard: list[Mail]
    unsent: list[int]
    made: int
    differing: int


class Rebuilding:
    """One process of a learner from its JOIN to the cut.

    Parameters
    ----------
    state : LearnerState
        Of a new process.
    own : sequence of Record
        What it recorded, up to the cut.
    later : sequence of Record
        What it recorded behind it, as far as the tape knows.
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
        mail: Sequence[Mail],
        deaths: Sequence[int],
        delay_ns: int,
    ) -> None:
        self.machine = learner.LearnerMachine(state)
        self.own, self.later, self.mail, self.delay_ns = own, later, list(mail), delay_ns
        self.began_ns = mail[0].time_ns - 3 * delay_ns
        self.deaths = [at + delay_ns for at in deaths if at >= mail[0].time_ns]
        self.step: StartStep | None = None
        self.since_ns = 0
        self.made: list[Record] = []
        self._at = 0

    def run(self) -> Rebuilt:
        """Take everything in."""
        self.machine.start(self.began_ns)
        self._give(self.mail[0].time_ns - self.delay_ns, Connected(self.mail[0].connection))
        while self._at < len(self.own):
            record = self.own[self._at]
            before = len(self.made)
            self._uncaused(record.time_ns)
            _TAKE.get(Kind(record.kind), Rebuilding._nothing)(self, record)
            self._at += max(1, len(self.made) - before)
        self._died(2**62)
        self._settle()
        recorded = [*self.own, *self.later]
        pairs = zip(recorded, self.made, strict=False)
        differing = sum(any(not same(getattr(a, c), getattr(b, c)) for c in COMPARED) for a, b in pairs)
        differing += max(0, len(self.own) - len(self.made))
        more = [r.seq for r in self.made if not self.own or r.seq > self.own[-1].seq]
        return Rebuilt(self.machine, self.step, self.since_ns, self.mail, more, len(self.made), differing)

    # inputs

    def _give(self, now: int, event: Any) -> None:
        state = self.machine.state
        state.wake_at, state.last_heard = learner_state.UNSET, now  # nobody woke it late, and the syncer was there
        known = state.seq
        for action in self.machine.handle(now, event):
            if isinstance(action, StartStep):
                self.step, self.since_ns = action, now
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
            if not isinstance(mail.message, Pull | Update) and not self._is_first_welcome(mail):
                self._died(mail.time_ns)
                self._hand(mail, now)
        self._died(now)

    def _died(self, now: int) -> None:
        while self.deaths and self.deaths[0] <= now:
            at = self.deaths.pop(0)
            for mail in [m for m in self.mail if m.time_ns <= at and isinstance(m.message, Update)]:
                self._hand(mail, at)
            self._give(at, Disconnected(self.machine.state.connection))

    def _is_first_welcome(self, mail: Mail) -> bool:
        return isinstance(mail.message, Welcome) and not self.machine.state.has_state

    def _find(self, kind: type, origin: int) -> Mail | None:
        mine = (m for m in self.mail if isinstance(m.message, kind))
        return next((m for m in mine if getattr(m.message, "origin", None) == origin), None)

    def _before_it(self, mail: Mail, now: int) -> None:
        """Control messages that cannot have been overtaken."""
        for other in [
            m for m in self.mail if m.channel == mail.channel and m.time_ns <= mail.time_ns and m is not mail
        ]:
            if not isinstance(other.message, Pull | Update):
                self._hand(other, now)

    # records

    def _nothing(self, record: Record) -> None:
        """A record that follows from an input that was given before."""

    def _adopted(self, record: Record) -> None:
        welcome = self._find(Welcome, record.cause[1]) if record.cause is not None else None
        if welcome is not None:
            self._hand(welcome, record.time_ns)
        self._updates_of_boundary(record)
        self._give(record.time_ns, Adopted(record.digest))

    def _stepped(self, record: Record) -> None:
        self._updates_of_boundary(record)
        d = record.detail
        event = StepEnded(record.value, record.tokens, d["batch"], d["accumulation"], d["start_ns"], d["injected_ns"])
        self.step = None
        self._give(record.time_ns, event)

    def _updates_of_boundary(self, record: Record) -> None:
        """What lay in the inbox when the boundary came, in the order in which it is folded."""
        for other in (*self.own[self._at + 1 :], *self.later):
            if other.time_ns != record.time_ns or other.kind not in BOUNDARY:
                break
            self._cause_of(other, record.time_ns)

    def _cause_of(self, record: Record, now: int) -> None:
        if record.kind == Kind.SETTING_APPLIED:
            wanted = (m for m in self.mail if isinstance(m.message, Change) and m.message.revision == record.setting)
            mail = next(wanted, None)
        else:
            mail = self._find(Update, record.cause[1]) if record.cause is not None else None
        if mail is not None:
            self._hand(mail, now)

    def _alone(self, record: Record) -> None:
        self._cause_of(record, record.time_ns)

    def _pulled(self, record: Record) -> None:
        mail = self._find(Pull, record.cause[1]) if record.cause is not None else None
        if mail is None:
            return
        if record.kind == Kind.PULL_REFUSED and record.reason == "update_unfolded":
            self._unfolded(record)
        self._before_it(mail, record.time_ns)
        self._hand(mail, record.time_ns)
        if record.kind == Kind.FRAGMENT_CAPTURED:
            nbytes = record.detail.get("bytes", 0)
            self._give(record.time_ns, Captured(record.round, record.fragment, record.digest, nbytes, -1))

    def _unfolded(self, record: Record) -> None:
        """An UPDATE of the fragment lay there: the one that is folded next, and those that are folded before it."""
        if record.fragment in self.machine.state.inbox:
            return
        for other in (*self.own[self._at + 1 :], *self.later):
            if other.kind == Kind.UPDATE_FOLDED:
                self._cause_of(other, record.time_ns)
                if other.fragment == record.fragment:
                    return

    def _faulted(self, record: Record) -> None:
        self._give(record.time_ns, FaultActed(record.reason, record.fragment, record.detail))

    def _settle(self) -> None:
        """What it has recorded is in the journal; its heartbeats go on in their own time."""
        state = self.machine.state
        if not self.own:
            return
        last = self.own[-1]
        more = [r for r in self.made if r.seq > last.seq]
        state.seq = more[-1].seq if more else last.seq
        state.clock = merged(state.clock, last.clock)
        state.outbox.unacked, state.outbox.acked, state.outbox.sent = more, last.seq, [last.seq, last.seq]
        state.outbox.progress_at = state.last_heard = last.time_ns
        beats = (last.time_ns - self.began_ns) // state.fixed.heartbeat_ns + 1
        state.next_beat = self.began_ns + beats * state.fixed.heartbeat_ns
        state.wake_at = state.next_beat
        if state.welcomed:
            state.join_again_at = learner_state.UNSET
        else:
            state.wake_at = min(state.wake_at, state.join_again_at)


_TAKE: dict[Kind, Any] = {
    Kind.STATE_ADOPTED: Rebuilding._adopted,
    Kind.STEP_ENDED: Rebuilding._stepped,
    Kind.UPDATE_FOLDED: Rebuilding._alone,
    Kind.CONTRIBUTION_ACKNOWLEDGED: Rebuilding._alone,
    Kind.SETTING_APPLIED: Rebuilding._alone,
    Kind.FRAGMENT_CAPTURED: Rebuilding._pulled,
    Kind.PULL_REFUSED: Rebuilding._pulled,
    Kind.FAULT_APPLIED: Rebuilding._faulted,
}


def rebuild(
    learner_id: int,
    number: int,
    fixed: FixedSettings,
    settings: LearnerSettings,
    own: Sequence[Record],
    later: Sequence[Record],
    mail: Sequence[Mail],
    deaths: Sequence[int],
    delay_ns: int,
) -> Rebuilt:
    """A learner's machine after the records ``own`` of its process ``number``; see `Rebuilding`."""
    state = learner_state.new_state(learner_id, number, fixed, settings)
    return Rebuilding(state, own, later, mail, deaths, delay_ns).run()
