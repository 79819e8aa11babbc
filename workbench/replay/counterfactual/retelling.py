"""The schedule of a tape kept and everything computed anew: the syncer's machine on its recorded inputs.

The machine makes the records of the syncer; those of the learners are renewed by their programs.  The first record
that is another than the tape's, in a column of the schedule, is a branch: from there on the tape says no more what
would have happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from workbench.algorithms.schedule import offsets
from workbench.config import RunConfig
from workbench.protocol import actions as act
from workbench.protocol import events as ev
from workbench.protocol import restart, syncer
from workbench.protocol.messages import Fragment, Join, Metadata
from workbench.protocol.records import EVALUATOR, FIRST_LEARNER, Kind, Record
from workbench.protocol.settings import fixed_settings_of, settings_book_of
from workbench.replay.counterfactual.comparing import differs
from workbench.replay.counterfactual.learning import RetoldLearner
from workbench.replay.counterfactual.parent import Parent
from workbench.replay.program import UpdateFolded, read_programs
from workbench.simulate.numbers import Numbers
from workbench.tape import Input

_encode = msgspec.msgpack.Encoder().encode
_record = msgspec.msgpack.Decoder(Record).decode

OWN_HANDLES = 1 << 52
"""Handles of payloads that are not on the tape begin here."""
VERSIONS_KEPT = 3


class Branch(NamedTuple):
    """Where a counterfactual leaves the tape.

    Attributes
    ----------
    event : int
        First event of the tape that does not happen as recorded.
    time_ns : int
        The syncer's time [ns].
    number : int
        The input of the syncer's machine at which it happens; it is the last that was taken, unless ``before``.
    before : bool
        The branch lies before that input.
    what : str
        In which column, or why.
    actions : list of Action
        What the machine answered to that input: still to be done.
    """

    event: int
    time_ns: int
    number: int
    before: bool
    what: str
    actions: list[Any]

    @property
    def past_ns(self) -> int:
        """Until when things have happened as on the tape: what is at the time of a fault that is gone has not."""
        return self.time_ns - self.before


class Sent(NamedTuple):
    """A message of the syncer: when it left, in which of its lives."""

    time_ns: int
    life: int
    send: act.Send


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
    ) -> None:
        self.parent, self.config, self.numbers = parent, config, numbers
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
        programs = read_programs(parent.records).steps
        self.learners = {
            p: RetoldLearner(p, steps, parent.records, numbers, self.theta, self.settings)
            for p, steps in programs.items()
            if p >= FIRST_LEARNER
        }
        folds = (s for steps in programs.values() for s in steps if isinstance(s, UpdateFolded))
        self._folds = Counter((fold.fragment, fold.version) for fold in folds)
        self._evals = Counter(
            pair for r in parent.records if r.kind == Kind.EVALUATED for pair in enumerate(r.detail["versions"])
        )
        self._thetas = {(p, 0): flat.copy() for p, flat in enumerate(numbers.initial)}
        self._alike: dict[tuple[int, int], bool] = {(p, 0): True for p in range(config.fragments)}
        self._recorded = {(r.fragment, r.version): r for r in parent.records if r.kind == Kind.MERGED}
        self._tokens: dict[tuple[int, int], int] = {(p, 0): 0 for p in range(config.fragments)}

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

    def theta(self, p: int, version: int) -> np.ndarray:
        """Version of a fragment for one of its folds."""
        self._folds[p, version] -= 1
        return self._thetas[p, version]

    def kept(self, p: int, version: int) -> np.ndarray:
        """A version that may still be on its way to a learner; the current one where it is not kept any more."""
        found = self._thetas.get((p, version))
        return found if found is not None else self.numbers.current[p]

    # the syncer

    def _start_up_to(self, incarnation: int) -> None:
        """Start the lives of the syncer that the tape has up to this one."""
        while self.lives < min(incarnation, len(self.parent.starts)):
            record = self.parent.records[self.parent.starts[self.lives]]
            uncommitted: list[tuple[int, int, int]] = []
            if record.reason == "restart":
                for round_ in self.machine.state.rounds.values():
                    for contribution in round_.here.values():
                        self.numbers.release(contribution.handle)
                found = restart.restore(self.fixed, settings_book_of(self.config), self.records)
                self.machine = syncer.SyncerMachine(found.state)
                self.numbers.recover(found.state.versions)
                for p, version in enumerate(found.state.versions):
                    self._keep_theta(p, version)
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
            self._keep_theta(event.fragment, event.version)
        found = self._difference(start, stop, made)
        if found is None and self.from_round is not None and self.machine.state.opened_t >= self.from_round:
            found = len(self.records), "round"
        if found is None:
            self._release(done)
            return None
        return Branch(found[0], item.time_ns, number, False, found[1], done)

    def _difference(self, start: int, stop: int, made: list[Record]) -> tuple[int, str] | None:
        """First event that is not as recorded, and in which column; at the end of a torn tape more may be made."""
        recorded = self.parent.records[start:stop]
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
                self._note_merge(record)
        return made

    def _release(self, done: list[Any]) -> None:
        for action in done:
            if type(action) is act.Release:
                self.numbers.release(action.handle)

    def _journal(self, inputs: list[Input], records: list[Record]) -> None:
        self.log.append((inputs, records))
        self.records += records

    def _note_merge(self, record: Record) -> None:
        p, version = record.fragment, record.version
        there = self._recorded.get((p, version))
        self._alike[p, version] = there is not None and there.digest == record.digest
        self._tokens[p, version] = self._tokens[p, version - 1] + record.tokens

    def _keep_theta(self, p: int, version: int) -> None:
        """Keep a version that will be folded or evaluated, and the newest few; let others go."""
        self._thetas[p, version] = self.numbers.syncer.theta(p).copy()
        for key in [k for k in self._thetas if k[0] == p and k[1] <= version - VERSIONS_KEPT]:
            if self._folds[key] <= 0 and self._evals[key] <= 0:
                del self._thetas[key]

    # inputs with the values of now

    def _substituted(self, event: Any) -> Any:
        if isinstance(event, ev.Received):
            return self._received(event)
        if isinstance(event, ev.RecordsCame) and event.process == EVALUATOR:
            return ev.RecordsCame(event.process, [self._evaluated(record) for record in event.records])
        if isinstance(event, ev.MergeDone) and event.round in self.orders:
            return ev.MergeDone(event.round, event.fragment, *self.numbers.merge(self.orders.pop(event.round)))
        return event

    def _received(self, event: ev.Received) -> ev.Received:
        message: Any = event.message
        records = [self._renewed(record) for record in getattr(message, "records", ())]
        if hasattr(message, "records"):
            message = msgspec.structs.replace(message, records=records)
        if isinstance(message, Metadata | Join):
            return ev.Received(event.connection, self.counted(message))
        if isinstance(message, Fragment):
            return self._fragment(event, message)
        return ev.Received(event.connection, message, event.finite, event.fits, event.norm)

    def _renewed(self, record: Record) -> Record:
        """A learner's record with the values of now; one that never entered the journal stays as it is."""
        key = (record.process, record.seq)
        known = self.renewed.get(key)
        event = self.parent.event_of.get(key)
        if event is None or differs(self.parent.records[event], record):
            return record
        if known is None:
            known = self.renewed[key] = _record(_encode(self.learners[record.process].renew(event)))
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
        if captured is None or own is None or message.handle < 0:
            return ev.Received(event.connection, message, event.finite, event.fits, event.norm)
        self.numbers.payloads[message.handle] = self.numbers.payloads.pop(own)
        message = msgspec.structs.replace(message, steps=captured.steps, tokens=captured.tokens, digest=captured.digest)
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
            self.renewed[key] = self._evaluate(record)
        return self.renewed[key]

    def _evaluate(self, record: Record) -> Record:
        pairs = list(enumerate(record.detail["versions"]))
        self._evals.subtract(pairs)
        if all(self._alike.get(pair, False) for pair in pairs):
            return record
        loss = self.numbers.program.evaluate([self._thetas[pair] for pair in pairs])
        if all(self._tokens[pair] == self._recorded_tokens(pair) for pair in pairs):
            return msgspec.structs.replace(record, value=loss)
        sizes = self.numbers.fragmentation.sizes
        tokens = sum(size * self._tokens[pair] for size, pair in zip(sizes, pairs, strict=True)) // sum(sizes)
        return msgspec.structs.replace(record, value=loss, tokens=tokens)

    def _recorded_tokens(self, pair: tuple[int, int]) -> int:
        p, version = pair
        return sum(self._recorded[p, v].tokens for v in range(1, version + 1))
