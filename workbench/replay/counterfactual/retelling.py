"""The schedule of a tape kept and everything computed anew: the syncer's machine on its recorded inputs.

The machine makes the records of the syncer; those of the learners are renewed by their programs.  The first record
that is another than the tape's, in a column of the schedule, is a branch: from there on the tape says no more what
would have happened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from workbench.algorithms.schedule import offsets
from workbench.config import RunConfig
from workbench.protocol import actions as act
from workbench.protocol import events as ev
from workbench.protocol import restart, syncer
from workbench.protocol.messages import Fragment, Join, Metadata, StateCopy
from workbench.protocol.records import FIRST_LEARNER, Kind, Record
from workbench.protocol.settings import fixed_settings_of, settings_book_of
from workbench.replay.counterfactual.branch import Branch, Sent
from workbench.replay.counterfactual.comparing import differs
from workbench.replay.counterfactual.handed_on import HandedOn
from workbench.replay.counterfactual.learning import RetoldLearner
from workbench.replay.counterfactual.parent import Parent
from workbench.replay.counterfactual.versions import Versions
from workbench.replay.counterfactual.without import LeftOut
from workbench.replay.program import read_programs
from workbench.simulate.numbers import Numbers
from workbench.tape import Input
from workbench.training.snapshot_parts import SyncerPart

_encode = msgspec.msgpack.Encoder().encode
_record = msgspec.msgpack.Decoder(Record).decode

OWN_HANDLES = 1 << 52
"""Handles of payloads that are not on the tape begin here."""


class Retelling:
    """A parent's journal made again under another configuration.

    Parameters
    ----------
    parent : Parent
    config : RunConfig
        With the changes.
    numbers : Numbers
        Executors under that configuration.
    stop_ns : int, optional
        Branch before the first input at or after this time, whatever the machine says.
    from_round : int, optional
        Branch behind the input at which this round is opened.
    left_out : LeftOut, optional
        Records of numeric faults that are gone.

    Attributes
    ----------
    log : list of (inputs, records)
        The new journal so far.
    sent : list of Sent
        All messages of the syncer.
    orders : dict of round to Merge
        Merges that are under way.
    """

    def __init__(
        self,
        parent: Parent,
        config: RunConfig,
        numbers: Numbers,
        stop_ns: int | None = None,
        from_round: int | None = None,
        left_out: LeftOut | None = None,
    ) -> None:
        self.parent, self.config, self.numbers = parent, config, numbers
        self.left_out = left_out or LeftOut()
        self.stop_ns, self.from_round = stop_ns, from_round
        self.fixed = fixed_settings_of(config, offsets(config.fragments, config.period))
        self.machine = syncer.SyncerMachine(syncer.new_state(self.fixed, settings_book_of(config)))
        self.settings = {0: msgspec.structs.replace(self.machine.state.book.learner)}
        numbers.next_handle = OWN_HANDLES
        self.log: list[tuple[list[Input], list[Record]]] = []
        self.records: list[Record] = []
        self.sent: list[Sent] = []
        self.orders: dict[int, act.Merge] = {}
        self.lives = 0
        self.renewed: dict[tuple[int, int], Record] = {}
        read = read_programs(parent.records)
        programs = read.steps
        self.handed_on = HandedOn(read)
        self.parts: dict[int, int] = {}
        self.versions = Versions(parent.records, programs, numbers)
        made = (parent.records, numbers, self.versions.theta, self.settings, self.handed_on)
        self.learners = {
            p: RetoldLearner(p, self.left_out.program(p, steps), *made)
            for p, steps in programs.items()
            if p >= FIRST_LEARNER
        }

    def run(self, progress: Callable[[int], None] | None = None) -> Branch | None:
        """Take all inputs, or those before the branch, which is returned."""
        for number, item in enumerate(self.parent.inputs):
            if self.stop_ns is not None and item.time_ns >= self.stop_ns:
                return Branch(len(self.records), self.stop_ns, number, True, "fault", [])
            self._start_up_to(item.incarnation)
            branch = self._take(number, item)
            if branch is not None:
                return branch
            if progress is not None:
                progress(self.machine.state.merges)
        self._start_up_to(len(self.parent.starts))
        return None

    # the syncer

    def _start_up_to(self, incarnation: int) -> None:
        """Start the lives of the syncer that the tape has up to this one."""
        while self.lives < min(incarnation, len(self.parent.starts)):
            record = self.parent.records[self.parent.starts[self.lives]]
            uncommitted: list[tuple[int, int, int]] = []
            if record.reason != "new":
                for round_ in self.machine.state.rounds.values():
                    for contribution in round_.here.values():
                        self.numbers.release(contribution.handle)
                found = restart.restore(self.fixed, settings_book_of(self.config), self.records)
                self.machine = syncer.SyncerMachine(found.state)
                self.numbers.recover(found.state.versions)
                for p, version in enumerate(found.state.versions):
                    self.versions.keep(p, version)
                uncommitted = found.uncommitted
                self.orders = {}
            self.lives += 1
            made = self._note(record.time_ns, self.machine.start(record.time_ns, record.reason, uncommitted))
            self._journal([], made)

    def _take(self, number: int, item: Input) -> Branch | None:
        start, stop = self.parent.positions[number], self.parent.ends[number]
        event = self._substituted(self.parent.decoded(number))
        done = self.machine.handle(item.time_ns, event)
        book = self.machine.state.book
        if book.revision not in self.settings:
            self.settings[book.revision] = msgspec.structs.replace(book.learner)
        made = self._note(item.time_ns, done)
        self._journal([Input(item.process, item.incarnation, item.time_ns, _encode(event))], made)
        if isinstance(event, ev.CommitDone):
            self.numbers.commit(event.fragment, event.version)
            self.versions.keep(event.fragment, event.version)
        for action in done:
            if type(action) is act.TakeSnapshot:
                self.parts[action.snapshot] = self._part()
        found = self._difference(start, stop, made)
        if found is None and self.from_round is not None and self.machine.state.opened_t >= self.from_round:
            found = len(self.records), "round"
        if found is None:
            self._release(done)
            return None
        return Branch(found[0], item.time_ns, number, False, found[1], done)

    def _difference(self, start: int, stop: int, made: list[Record]) -> tuple[int, str] | None:
        """First event that is not as recorded, and in which column; at the end of a torn tape more may be made."""
        recorded = self.left_out.records(self.parent.records[start:stop])
        for k, (there, here) in enumerate(zip(recorded, made, strict=False)):
            column = differs(there, here)
            if column:
                return start + k, column
        if len(made) == len(recorded) or (stop == len(self.parent.records) and len(made) > len(recorded)):
            return None
        return start + min(len(made), len(recorded)), "kind"

    def _note(self, now: int, done: list[Any]) -> list[Record]:
        """Records that the machine made; messages and merges are remembered."""
        made: list[Record] = []
        for action in done:
            kind = type(action)
            if kind is act.Append:
                made += [_record(_encode(record)) for record in action.records]
            elif kind is act.Send:
                self.sent.append(Sent(now, self.lives, action))
            elif kind is act.Merge:
                self.orders[action.round] = action
        for record in made:
            if record.kind == Kind.MERGED:
                self.versions.merged(record)
        return made

    def _part(self) -> int:
        """Digest of Theta and outer state."""
        syncer, places = self.numbers.syncer, range(len(self.numbers.current))
        return SyncerPart(list(self.numbers.current), [syncer.outer_state(p) for p in places]).digest

    def _release(self, done: list[Any]) -> None:
        for action in done:
            if type(action) is act.Release:
                self.numbers.release(action.handle)

    def _journal(self, inputs: list[Input], records: list[Record]) -> None:
        self.log.append((inputs, records))
        self.records += records

    # inputs with the values of now

    def _substituted(self, event: Any) -> Any:
        if isinstance(event, ev.Received):
            return self._received(event)
        if isinstance(event, ev.RecordsCame):
            came = self.left_out.records(event.records)
            return ev.RecordsCame(event.process, [self._evaluated(record) for record in came])
        if isinstance(event, ev.MergeDone) and event.round in self.orders:
            return ev.MergeDone(event.round, event.fragment, *self.numbers.merge(self.orders.pop(event.round)))
        if isinstance(event, ev.SnapshotWritten) and not event.reason and event.snapshot in self.parts:
            return ev.SnapshotWritten(event.snapshot, self.parts[event.snapshot])
        return event

    def _received(self, event: ev.Received) -> ev.Received:
        sent: Any = event.message
        kept = [r for r in sent.records if (r.process, r.seq) not in self.left_out.gone]
        message = msgspec.structs.replace(sent, records=[self._renewed(record) for record in kept])
        if isinstance(message, Metadata | Join):
            message = self.counted(message)
        if isinstance(message, Fragment):
            return self._fragment(event, message)
        if isinstance(message, StateCopy):
            message = self.handed_on.message(message, sent.learner + FIRST_LEARNER)
        message = self.left_out.message(message, sent.learner + FIRST_LEARNER)
        return ev.Received(event.connection, message, event.finite, event.fits, event.norm)

    def _renewed(self, record: Record) -> Record:
        """A learner's record with the values of now; one that never entered the journal stays as it is."""
        key = (record.process, record.seq)
        known = self.renewed.get(key)
        event = self.parent.event_of.get(key)
        if event is None or differs(self.parent.records[event], record):
            return record
        if known is None:
            renewed = self.left_out.record(self.learners[record.process].renew(event))
            known = self.renewed[key] = _record(_encode(renewed))
        return known

    def counted(self, message: Any) -> Any:
        """Counters as they are now, if a fold keeps more or less than it did."""
        process = message.learner + FIRST_LEARNER
        seq = message.clock[process] if process < len(message.clock) else 0
        found = self.learners[process].counters_at(seq) if process in self.learners and seq else None
        if found is None:
            return message
        return msgspec.structs.replace(message, c_steps=found[0], c_tokens=found[1])

    def _fragment(self, event: ev.Received, message: Fragment) -> ev.Received:
        """A contribution: its payload lies under the handle of the tape from now on."""
        process = message.learner + FIRST_LEARNER
        captured = self.renewed.get((process, message.origin))
        own = self.learners[process].handles.pop(message.origin, None) if captured is not None else None
        message = self.left_out.message(message, process)
        if captured is None or own is None or (message.handle < 0 and not self.left_out):
            return ev.Received(event.connection, message, event.finite, event.fits, event.norm)
        handle = message.handle if message.handle >= 0 else own
        self.numbers.payloads[handle] = self.numbers.payloads.pop(own)
        values = {"steps": captured.steps, "tokens": captured.tokens, "digest": captured.digest}
        message = msgspec.structs.replace(message, handle=handle, nbytes=captured.detail["bytes"], **values)
        return ev.Received(event.connection, message, *self.numbers.looks(message.handle))

    def advance(self, process: int, seqs: Sequence[int]) -> None:
        """Let a learner's program go on to records that are not in the journal."""
        for seq in seqs:
            event = self.parent.event_of.get((process, seq))
            if event is not None:
                self.learners[process].renew(event)

    def fragment_under_way(self, message: Fragment) -> Fragment | None:
        """A contribution that has not arrived, with its payload under a handle of now; None if that is gone."""
        process = message.learner + FIRST_LEARNER
        captured = self.renewed.get((process, message.origin))
        own = self.learners[process].handles.get(message.origin)
        if captured is None or own is None:
            return None
        return msgspec.structs.replace(
            message, steps=captured.steps, tokens=captured.tokens, digest=captured.digest, handle=own
        )

    def _evaluated(self, record: Record) -> Record:
        """An evaluation: of weights that are the tape's it is the tape's."""
        if record.kind != Kind.EVALUATED:
            return record
        key = (record.process, record.seq)
        if key not in self.renewed:
            self.renewed[key] = self.versions.evaluated(record)
        return self.renewed[key]
