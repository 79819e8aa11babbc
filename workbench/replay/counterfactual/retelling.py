"""The schedule of a tape kept and everything computed anew: the syncer's machine on its recorded inputs.

The machine makes the records of the syncer; those of the learners are renewed by their programs.  The first record
that is another than the tape's, in a column of the schedule, is a branch: from there on the tape says no more what
would have happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from workbench.algorithms.schedule import offsets
from workbench.config import RunConfig
from workbench.protocol import actions as act
from workbench.protocol import events as ev
from workbench.protocol import restart, syncer
from workbench.protocol.records import SYNCER, Kind, Record
from workbench.protocol.settings import fixed_settings_of, settings_book_of
from workbench.replay.counterfactual.branch import Branch, Sent
from workbench.replay.counterfactual.comparing import differs
from workbench.replay.counterfactual.parent import Parent
from workbench.replay.counterfactual.put_in import PutIn
from workbench.replay.counterfactual.renewing import Renewing
from workbench.replay.counterfactual.renumbering import Renumbered
from workbench.replay.counterfactual.turn import Turn
from workbench.simulate.numbers import Numbers
from workbench.tape import Input

_encode = msgspec.msgpack.Encoder().encode
_record = msgspec.msgpack.Decoder(Record).decode

WHO = "what-if"
"""Who asks for the changes."""


class Retelling(Renewing):
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
    asked : (Turn, mapping), optional
        Ask for other settings there, and branch behind the input that follows.
    renumbered : Renumbered, optional
        Without records of numeric faults that are gone, or with those of a change that keeps the schedule.

    Attributes
    ----------
    log : list of (inputs, records)
        The new journal so far.
    sent : list of Sent
        All messages of the syncer.
    """

    def __init__(
        self,
        parent: Parent,
        config: RunConfig,
        numbers: Numbers,
        stop_ns: int | None = None,
        asked: tuple[Turn, Mapping[str, Any]] | None = None,
        renumbered: Renumbered | None = None,
    ) -> None:
        super().__init__(parent, config, numbers, renumbered or Renumbered())
        self.stop_ns, self.asked = stop_ns, asked
        self.fixed = fixed_settings_of(config, offsets(config.fragments, config.period))
        self.machine = syncer.SyncerMachine(syncer.new_state(self.fixed, settings_book_of(config)))
        self.log: list[tuple[list[Input], list[Record]]] = []
        self.records: list[Record] = []
        self.sent: list[Sent] = []
        self.lives = 0
        self.done: list[Any] = []
        self._torn = {*parent.starts, *([] if parent.header["closed"] else [len(parent.records)])}

    def run(self, progress: Callable[[int], None] | None = None) -> Branch | None:
        """Take all inputs, or those before the branch, which is returned."""
        for number, item in enumerate(self.parent.inputs):
            if self.stop_ns is not None and item.time_ns >= self.stop_ns:
                starts = (self.parent.records[event].time_ns for event in self.parent.starts)
                self._start_up_to(sum(at < self.stop_ns for at in starts))
                return Branch(len(self.records), self.stop_ns, number, True, "fault", [])
            self._start_up_to(item.incarnation)
            put_in = self.renumbered.put_in
            if put_in is not None and put_in.turn.number == number:
                self._put_in(put_in, item.time_ns)
            if self.asked is not None and self.asked[0].number == number:
                return self._ask(self.asked[1], number, item)
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
            cut, aborted = record.detail.get("cut"), []
            if record.reason != "new":
                cut = restart.cut_of(self.records, cut["snapshot"]) if cut else None
                found = self._restored(cut)
                uncommitted, aborted = found.uncommitted, found.aborted
            self.lives += 1
            self.done = self.machine.start(record.time_ns, record.reason, uncommitted, cut, aborted)
            self._journal([], self._note(record.time_ns, self.done))
            self._snapshots(record.time_ns, self.done)

    def _restored(self, cut: dict[str, Any] | None) -> restart.Recovered:
        """Another syncer reads the journal, and the slots or a snapshot."""
        state = self.machine.state
        held = [c.handle for round_ in state.rounds.values() for c in round_.here.values()]
        held += [transfer.handle for transfer in state.transfers.values()]
        for handle in (*held, *(state.snapshot.handles if state.snapshot is not None else ())):
            self.numbers.release(handle)
        self.numbers.incomplete.clear()
        self.writing.clear()
        self.orders = {}
        found = restart.restore(self.fixed, settings_book_of(self.config), self.records, cut)
        self.machine = syncer.SyncerMachine(found.state)
        if cut is None:
            self.numbers.recover(found.state.versions)
        else:
            self.numbers.go_back(cut["snapshot"])
            self.versions.go_back(found.state.versions)
            for revision in [r for r in self.settings if r > found.state.book.revision]:
                del self.settings[revision]
        for p, version in enumerate(found.state.versions):
            self.versions.keep(p, version)
        return found

    def _put_in(self, put_in: PutIn, now: int) -> None:
        """Ask for the change that keeps the schedule: one record more, and nothing that anybody does otherwise."""
        put_in.revision = self.machine.state.book.revision
        event = ev.SettingsAsked(put_in.values, WHO)
        made = self._note(now, self._handled(now, event))
        put_in.settings = self.settings[put_in.revision + 1]
        for learner in self.learners.values():
            learner.changed = put_in.settings
        self._journal([Input(SYNCER, self.lives, now, _encode(event))], made)

    def _ask(self, values: Mapping[str, Any], number: int, item: Input) -> Branch:
        """Ask for other settings before an input, and branch there: whatever it brings, it comes to other settings."""
        event = ev.SettingsAsked(dict(values), WHO)
        first = len(self.records)
        asked = self._handled(item.time_ns, event)
        made = self._note(item.time_ns, asked)
        self._journal([Input(SYNCER, self.lives, item.time_ns, _encode(event))], made)
        self._take(number, item)
        return Branch(first, item.time_ns, number, False, "round", [*asked, *self.done])

    def _handled(self, now: int, event: Any) -> list[Any]:
        """What the machine answers; settings of learners are remembered by their revision."""
        done = self.machine.handle(now, event)
        book = self.machine.state.book
        if book.revision not in self.settings:
            self.settings[book.revision] = msgspec.structs.replace(book.learner)
        return done

    def _take(self, number: int, item: Input) -> Branch | None:
        start, stop = self.parent.positions[number], self.parent.ends[number]
        event = self.substituted(self.parent.decoded(number))
        self.done = done = self._handled(item.time_ns, event)
        made = self._note(item.time_ns, done)
        recorded = self.renumbered.records(self.parent.records[start:stop])
        if stop in self._torn:  # of the last input of a life that was killed only a part may be in the journal
            made = made[: len(recorded)]
        self._journal([Input(item.process, item.incarnation, item.time_ns, _encode(event))], made)
        if isinstance(event, ev.CommitDone):
            self.numbers.commit(event.fragment, event.version)
            self.versions.keep(event.fragment, event.version)
        self._snapshots(item.time_ns, done)
        found = _difference(start, recorded, made)
        if found is None:
            self._release(done)
            return None
        return Branch(found[0], item.time_ns, number, False, found[1], done)

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

    def _snapshots(self, now: int, done: list[Any]) -> None:
        """Snapshots are taken and put together as the machine says; they are written when the tape says so."""
        for action in done:
            kind = type(action)
            if kind is act.TakeSnapshot:
                self.numbers.take_snapshot(action.snapshot, action.versions)
            elif kind is act.KeepPart:
                self.numbers.keep_part(action.snapshot, action.learner, action.handle)
            elif kind is act.WriteSnapshot:
                self.writing[action.snapshot] = now, action
            elif kind is act.DropSnapshot:
                self.numbers.drop_snapshot(action.snapshot)
                self.writing.pop(action.snapshot, None)

    def _release(self, done: list[Any]) -> None:
        for action in done:
            if type(action) is act.Release:
                self.numbers.release(action.handle)

    def _journal(self, inputs: list[Input], records: list[Record]) -> None:
        self.log.append((inputs, records))
        self.records += records


def _difference(start: int, recorded: list[Record], made: list[Record]) -> tuple[int, str] | None:
    """First event that is not as recorded, and in which column."""
    for k, (there, here) in enumerate(zip(recorded, made, strict=False)):
        column = differs(there, here)
        if column:
            return start + k, column
    if len(made) == len(recorded):
        return None
    return start + min(len(made), len(recorded)), "kind"
