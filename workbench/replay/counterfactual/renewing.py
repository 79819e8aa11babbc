"""The inputs of a tape with the values of now: what learners sent, what came of merges, evaluations and snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from workbench.config import RunConfig
from workbench.protocol import actions as act
from workbench.protocol import events as ev
from workbench.protocol.messages import Fragment, Join, Metadata, StateCopy
from workbench.protocol.records import FIRST_LEARNER, Kind, Record
from workbench.protocol.settings import learner_settings_of
from workbench.replay.counterfactual.comparing import differs
from workbench.replay.counterfactual.handed_on import HandedOn
from workbench.replay.counterfactual.learning import RetoldLearner
from workbench.replay.counterfactual.parent import Parent
from workbench.replay.counterfactual.renumbering import Renumbered
from workbench.replay.counterfactual.versions import Versions
from workbench.replay.program import read_programs
from workbench.simulate.numbers import Numbers

_encode = msgspec.msgpack.Encoder().encode
_record = msgspec.msgpack.Decoder(Record).decode

OWN_HANDLES = 1 << 52
"""Handles of payloads that are not on the tape of a run begin here; each generation of answers has its own."""


class Renewing:
    """What a tape's processes sent to its syncer, computed anew.

    Parameters
    ----------
    parent : Parent
    config : RunConfig
        With the changes.
    numbers : Numbers
        Executors under that configuration.
    renumbered : Renumbered
        Records that are gone, or more.

    Attributes
    ----------
    settings : dict of int to LearnerSettings
        By revision.
    orders : dict of round to Merge
        Merges that are under way.
    writing : dict of snapshot to (int, WriteSnapshot)
        Since when [ns] a snapshot whose parts are there is being written.
    handed_on : HandedOn
        States of learners for others and for snapshots.
    versions : Versions
    learners : dict of process to RetoldLearner
    """

    def __init__(self, parent: Parent, config: RunConfig, numbers: Numbers, renumbered: Renumbered) -> None:
        self.parent, self.config, self.numbers, self.renumbered = parent, config, numbers, renumbered
        numbers.next_handle = OWN_HANDLES * (parent.generation + 1)
        self.settings = {0: learner_settings_of(config)}
        self.orders: dict[int, act.Merge] = {}
        self.writing: dict[int, tuple[int, act.WriteSnapshot]] = {}
        self.renewed: dict[tuple[int, int], Record] = {}
        read = read_programs(parent.records)
        self.handed_on = HandedOn(read)
        self.versions = Versions(parent.records, read.steps, numbers)
        made = (parent.records, numbers, self.versions.theta, self.settings, self.handed_on, renumbered)
        self.learners = {
            p: RetoldLearner(p, renumbered.program(p, steps), *made)
            for p, steps in read.steps.items()
            if p >= FIRST_LEARNER
        }

    def substituted(self, event: Any) -> Any:
        """An input of the syncer's machine as it is now."""
        if isinstance(event, ev.Received):
            return self._received(event)
        if isinstance(event, ev.RecordsCame):
            came = self.renumbered.records(event.records)
            return ev.RecordsCame(event.process, [self._evaluated(record) for record in came])
        if isinstance(event, ev.MergeDone) and event.round in self.orders:
            return ev.MergeDone(event.round, event.fragment, *self.numbers.merge(self.orders.pop(event.round)))
        if isinstance(event, ev.SnapshotWritten) and not event.reason and event.snapshot in self.writing:
            _, order = self.writing.pop(event.snapshot)
            return ev.SnapshotWritten(event.snapshot, *self.numbers.write_snapshot(order))
        return event

    def _received(self, event: ev.Received) -> ev.Received:
        sent: Any = event.message
        kept = [r for r in sent.records if (r.process, r.seq) not in self.renumbered.gone]
        renewed = [made for record in kept for made in (*self._put_before(record), self._renewed(record))]
        message = msgspec.structs.replace(sent, records=renewed)
        if isinstance(message, Metadata | Join):
            message = self.counted(message)
        if isinstance(message, Fragment):
            return self._fragment(event, message)
        if isinstance(message, StateCopy):
            self._arrives(message)
            message = self.handed_on.message(message, sent.learner + FIRST_LEARNER)
        message = self.renumbered.message(message, sent.learner + FIRST_LEARNER)
        return ev.Received(event.connection, message, event.finite, event.fits, event.norm)

    def _arrives(self, message: StateCopy) -> None:
        """A state reaches the syncer, under the handle of the tape; one that did not come whole is none."""
        process = message.learner + FIRST_LEARNER
        data = self.handed_on.arrived(process, message.copied)
        if data is not None and message.handle >= 0:
            self.numbers.payloads[message.handle] = data

    def _put_before(self, record: Record) -> list[Record]:
        """Records that are put in before one that is in the journal."""
        event = self.parent.event_of.get((record.process, record.seq))
        is_there = event is not None and not differs(self.parent.records[event], record)
        return self.renumbered.before(record) if is_there else []

    def _renewed(self, record: Record) -> Record:
        """A learner's record with the values of now; one that never entered the journal stays as it is."""
        key = (record.process, record.seq)
        known = self.renewed.get(key)
        event = self.parent.event_of.get(key)
        if event is None or differs(self.parent.records[event], record):
            return record
        if known is None:
            renewed = self.renumbered.record(self.learners[record.process].renew(event))
            known = self.renewed[key] = _record(_encode(renewed))
        return known

    def counted(self, message: Any) -> Any:
        """Counters as they are now, if a fold keeps more or less than it did; as sent where the journal ends before."""
        process = message.learner + FIRST_LEARNER
        seq = message.clock[process] if process < len(message.clock) else 0
        found = self.learners[process].counters_at(seq) if (process, seq) in self.parent.event_of else None
        if found is None:
            return message
        return msgspec.structs.replace(message, c_steps=found[0], c_tokens=found[1])

    def _fragment(self, event: ev.Received, message: Fragment) -> ev.Received:
        """A contribution: its payload lies under the handle of the tape from now on."""
        process = message.learner + FIRST_LEARNER
        captured = self.renewed.get((process, message.origin))
        own = self.learners[process].handles.pop(message.origin, None) if captured is not None else None
        message = self.renumbered.message(message, process)
        if captured is None or own is None or (message.handle < 0 and not self.renumbered.gone):
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
