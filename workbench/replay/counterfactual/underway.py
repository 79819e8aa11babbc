"""What was under way when a tape is left: messages, merges, commits, UPDATEs in the transport's hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from workbench.protocol import actions as act
from workbench.protocol import events as ev
from workbench.protocol.acting import TO_LEARNER
from workbench.protocol.member_state import Member
from workbench.protocol.messages import (
    Change,
    CopyAsked,
    Fragment,
    Mark,
    Marker,
    Metadata,
    PeerState,
    Pull,
    Refused,
    StateCopy,
    Update,
    Welcome,
)
from workbench.protocol.moments import UNSET
from workbench.protocol.records import Kind, process_of
from workbench.protocol.round_state import Round, RoundState
from workbench.replay.counterfactual.branch import Branch
from workbench.replay.counterfactual.durations import KeyedTimes
from workbench.replay.counterfactual.parent import Parent
from workbench.replay.counterfactual.rebuilt import Mail, Rebuilt
from workbench.replay.counterfactual.retelling import Retelling
from workbench.simulate import doing
from workbench.simulate.arithmetic import CaptureNumbers
from workbench.simulate.doing import committed, merged
from workbench.simulate.mailing import arrive_down, arrive_up
from workbench.simulate.numbers import Numbers
from workbench.simulate.processes import LearnerProcess
from workbench.simulate.world import World
from workbench.training.held_state import state_digest

AWAITED = Change | CopyAsked | PeerState | Marker | Welcome
"""Messages that come as long as somebody waits for them: the record that tells of them is made later."""
LOST_DELAYS = 10
"""A message without a trace that is older than so many delays was lost."""


class UnderWay:
    """Puts into a world what is to arrive, or to be through, after the branch.

    Parameters
    ----------
    world : World
        Of the branch.
    parent : Parent
    told : Retelling
    branch : Branch
    numbers : Numbers
        Of the world.
    times : KeyedTimes
    """

    def __init__(
        self, world: World, parent: Parent, told: Retelling, branch: Branch, numbers: Numbers, times: KeyedTimes
    ) -> None:
        self.world, self.parent, self.told, self.branch, self.numbers, self.times = (
            world, parent, told, branch, numbers, times,
        )  # fmt: skip
        self.now = branch.time_ns

    def theta_handle(self, p: int, version: int) -> int:
        """Handle of a version that is on its way to a learner."""
        self.numbers.next_handle += 1
        self.numbers.payloads[self.numbers.next_handle] = self.told.versions.kept(p, version)
        return self.numbers.next_handle

    def mail(self, learner: int, unheard: Sequence[Mail], state: Any) -> None:
        """Messages to a learner that lives; ``state`` is its machine's."""
        for mail in unheard:
            link = self.world.network.connections.get(mail.connection)
            if link is None or mail.connection != state.connection:
                continue
            message = mail.message
            if self._is_over(learner, message):
                continue
            if isinstance(message, Update):
                at = mail.time_ns + self.times.sent_before(learner, message.origin, handed=False)
            else:
                at = mail.time_ns + self.times.message_ns(learner, TO_LEARNER, message, 0)
            stale = isinstance(message, Update) and message.version <= state.base[message.fragment]
            if stale or (
                at < self.now - LOST_DELAYS * self.times.measured.delay_ns and not self._came(learner, message)
            ):
                continue
            if isinstance(message, Update):
                message.handle = self.theta_handle(message.fragment, message.version)
            elif isinstance(message, PeerState):
                message.handle = self.numbers.share(message.handle)
            at = max(at, link.last_at[TO_LEARNER][mail.channel])
            link.last_at[TO_LEARNER][mail.channel] = at
            self.world.at(at, arrive_down, (self.world, mail.connection, message))

    def _came(self, learner: int, message: Any) -> bool:
        """Whether the tape knows that a message reached its learner."""
        if isinstance(message, Update):
            return message.origin in self.times.measured.folded
        if isinstance(message, AWAITED):
            return True
        return isinstance(message, Pull) and self.times.measured.has("down", learner, message.round)

    def _is_over(self, learner: int, message: Any) -> bool:
        """Whether nobody waits any more for what a message about a state, or a snapshot, is to bring about."""
        state = self.world.syncer.machine.state
        if isinstance(message, CopyAsked):
            asked = (t for t in state.transfers.values() if (t.donor, t.number) == (learner, message.number))
            return all(transfer.relayed for transfer in asked)
        if isinstance(message, PeerState):
            transfer = state.transfers.get(learner)
            return transfer is None or transfer.number != message.number or transfer.handle not in self.numbers.payloads
        if isinstance(message, Marker):
            return state.snapshot is None or state.snapshot.number != message.snapshot
        return False

    def states(self, process: LearnerProcess, found: Rebuilt) -> None:
        """Copies of a learner's state that somebody waits for: being encoded, or lying there until they may leave."""
        state, learner = process.machine.state, process.learner
        state.copies = {}
        for number, copied in found.copies.items():
            data = self.told.handed_on.left(process_of(learner), copied.seq)
            if data is None or not self._is_waited_for(learner, number):
                continue
            self.numbers.next_handle += 1
            self.numbers.payloads[self.numbers.next_handle] = data
            state.copies[number] = copied
            if copied.handle != UNSET:
                copied.handle = self.numbers.next_handle
                continue
            made = CaptureNumbers(state_digest(data), data.nbytes, self.numbers.next_handle)
            took = self.times.copy_ns(learner, abs(number), number < 0)
            records = (r for r in (*self.told.records, *state.outbox.unacked) if r.process == process_of(learner))
            began = next((r.time_ns for r in records if r.seq == copied.seq), self.now)
            self._at_or_now(began + took, doing.copied, (self.world, process, number, made))
        state.cut = self._cut_of(state, found)
        for mark in found.marks:
            at = self.now + self.times.measured.delay_ns
            self.world.at(at, arrive_up, (self.world, state.connection, mark))

    @staticmethod
    def _cut_of(state: Any, found: Rebuilt) -> Any:
        """The snapshot that a learner has still to take, or whose copy has still to leave."""
        cut = found.cut
        return cut if cut is not None and (not cut.taken or -cut.snapshot in state.copies) else None

    def _is_waited_for(self, learner: int, number: int) -> bool:
        state = self.world.syncer.machine.state
        if number >= 0:
            return any((t.donor, t.number) == (learner, number) and not t.relayed for t in state.transfers.values())
        taking = state.snapshot
        part = taking.parts.get(learner) if taking is not None and taking.number == -number else None
        return part is not None and not part.kept

    def snapshot(self) -> None:
        """A snapshot whose parts are there and that does not lie on disk yet."""
        begun = {a.snapshot for a in self.branch.actions if isinstance(a, act.WriteSnapshot)}
        for number, (since, order) in self.told.writing.items():
            if number not in begun:
                at = since + self.times.write_ns(number)
                self._at_or_now(at, doing.written, (self.world, self.world.syncer, order))

    def _at_or_now(self, at: int, what: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.world.at(max(at, self.now), what, arguments)

    def merges(self) -> None:
        """Merges and commits of rounds, but those that the answer of the branch begins."""
        state = self.world.syncer.machine.state
        begun = {a.round for a in self.branch.actions if isinstance(a, act.Merge | act.Commit)}
        for round_ in state.rounds.values():
            if round_.t in begun:
                continue
            if round_.state == RoundState.MERGING and round_.t in self.told.orders:
                at = round_.merge_at + self.times.merge_ns(round_.p, round_.t)
                self._at(at, merged, self.told.orders[round_.t])
            elif round_.state == RoundState.COMMITTING:
                self._commit(round_, state.versions[round_.p] + 1)

    def _commit(self, round_: Round, version: int) -> None:
        made = [r.time_ns for r in self.told.records if r.kind == Kind.MERGED and r.round == round_.t]
        at = made[-1] + self.times.commit_ns(round_.p, round_.t)
        self._at(at, committed, act.Commit(round_.t, round_.p, version))

    def _at(self, at: int, what: Any, order: Any) -> None:
        self.world.at(max(at, self.now), what, (self.world, self.world.syncer, order))

    def inputs(self) -> None:
        """What left for the syncer and has not reached it."""
        world = self.world
        for number in range(self.branch.number + (0 if self.branch.before else 1), len(self.parent.inputs)):
            item, event = self.parent.inputs[number], self.parent.decoded(number)
            if item.incarnation != self.told.lives:
                break
            at = max(item.time_ns, self.now)
            if isinstance(event, ev.Received):
                message = self._left_before(event)
                if message is not None:
                    world.at(at, arrive_up, (world, event.connection, message))
            elif isinstance(event, ev.Disconnected) and self._closed_before(event.connection):
                world.at(at, world.give, (world.syncer, event))
        self._handed()

    def _left_before(self, event: ev.Received) -> Any:
        """A message whose own record is in the journal and which is not, with the values of now."""
        message: Any = event.message
        member = self.world.syncer.machine.state.members.get(message.learner)
        if member is None or not isinstance(message, Fragment | Refused | Metadata | StateCopy | Mark):
            return None
        present = message.incarnation == member.incarnation and member.connection == event.connection
        if not present or message.origin > member.known_seq:
            return None
        if isinstance(message, Metadata):
            return None if message.waiting or message.n <= member.n else self.told.counted(message)
        if isinstance(message, StateCopy):
            return self._copy_left(message)
        return self.told.fragment_under_way(message) if isinstance(message, Fragment) else message

    def _copy_left(self, message: StateCopy) -> StateCopy | None:
        """A state that has left its learner and not reached the syncer: its learner sends it no second time."""
        process = self.world.learners.get(message.learner)
        number = -message.number if message.snapshot else message.number
        copied = process.machine.state.copies.get(number) if process is not None else None
        if process is None or copied is None or (copied.seq, copied.origin) != (message.copied, message.origin):
            return None
        del process.machine.state.copies[number]
        if message.snapshot:
            process.machine.state.cut = None
        changed = self.told.handed_on.message(message, process.process)
        return msgspec.structs.replace(changed, handle=copied.handle)

    def _closed_before(self, connection: int) -> bool:
        """Whether the process behind a connection is gone by now."""
        link = self.world.network.connections.get(connection)
        process = self.world.learners.get(link.learner) if link is not None else None
        return link is not None and process is not None and (not process.alive or process.number != link.process_number)

    def _handed(self) -> None:
        """UPDATEs that the transport has and has not taken yet, but those of the answer of the branch."""
        answered = [a for a in self.branch.actions if _is_update(a)]
        sending = {(a.connection, a.message.fragment) for a in answered}
        for member in self.world.syncer.machine.state.members.values():
            if member.in_hand != UNSET and (member.connection, member.in_hand) not in sending:
                self._handed_to(member, member.in_hand)

    def _handed_to(self, member: Member, p: int) -> None:
        mine = (s for s in reversed(self.told.sent) if s.send.connection == member.connection)
        sent = next((s for s in mine if _is_update(s.send) and s.send.message.fragment == p), None)  # type: ignore[union-attr]
        if sent is None:
            return
        message: Any = sent.send.message
        at = sent.time_ns + self.times.sent_before(member.learner, message.origin, handed=True)
        event = ev.Handed(member.connection, p, message.version)
        self.world.at(max(at, self.now), self.world.give, (self.world.syncer, event))


def _is_update(action: Any) -> bool:
    return isinstance(action, act.Send) and isinstance(action.message, Update)
