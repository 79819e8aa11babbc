"""What the parts of the syncer machine share: its state, the time, and the list of actions it is making."""

from __future__ import annotations

from typing import Any

from workbench.protocol.actions import Action, Append, Send
from workbench.protocol.clocks import merged, ticked
from workbench.protocol.member_state import Member
from workbench.protocol.messages import BULK, CONTROL, Message
from workbench.protocol.records import SYNCER, Kind, Record
from workbench.protocol.syncer_state import SyncerState

LATE_WAKE_NS = 500_000_000
"""A machine that is woken later than this was itself stopped (PROTOCOL section 10)."""


class SyncerCore:
    """State, time and the actions of the input that is being handled."""

    __slots__ = ("now", "out", "state")

    def __init__(self, state: SyncerState) -> None:
        self.state = state
        self.now = 0
        self.out: list[Action] = []

    def record(self, kind: Kind, cause: tuple[int, int] | None = None, **columns: Any) -> int:
        """Make the syncer's next record, appended before any later action; returns its seq."""
        state = self.state
        state.seq += 1
        state.clock = ticked(state.clock, SYNCER, state.seq)
        made = Record(
            kind, SYNCER, state.incarnation, state.seq, self.now, state.clock, cause, epoch=state.epoch, **columns
        )
        self.append([made])
        return state.seq

    def append(self, records: list[Record]) -> None:
        """Journal ``records`` ahead of all that follows."""
        if self.out and type(self.out[-1]) is Append:
            self.out[-1].records.extend(records)
        else:
            self.out.append(Append(list(records)))

    def hear(self, clock: tuple[int, ...]) -> None:
        """A receive: elementwise maximum of the clocks."""
        self.state.clock = merged(self.state.clock, clock)

    def send(self, member: Member, message: Message, bulk: bool = False) -> None:
        """Send to a learner on its connection."""
        self.out.append(Send(member.connection, BULK if bulk else CONTROL, message))

    def possible(self) -> list[Member]:
        """Learners that may count toward a quorum sooner or later: connected and not quarantined."""
        return [m for m in self.state.members.values() if m.connected and not m.quarantined]
