"""The syncer's machine run again on its recorded inputs: it must make the records of the journal once more.

Every real run is so a test of the machine: of its decisions, not only of the sums that follow from them
(PROTOCOL section 15, invariant 13).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import xarray as xr

from workbench.algorithms.schedule import offsets
from workbench.config import RunConfig, from_toml
from workbench.protocol import restart, syncer
from workbench.protocol.actions import Action, Append
from workbench.protocol.events import SyncerInput
from workbench.protocol.records import SYNCER, Kind, Record, label_of
from workbench.protocol.settings import fixed_settings_of, settings_book_of
from workbench.tape import Input, TapeError, open_tape
from workbench.tape.errors import first_line

_decode = msgspec.msgpack.Decoder(SyncerInput).decode
_record = msgspec.msgpack.Decoder(Record).decode
_encode = msgspec.msgpack.Encoder().encode


class MachinesReport(NamedTuple):
    """Outcome of running the syncer's machine again.

    Attributes
    ----------
    equal : bool
        It made every record of the tape, in every column, and no other.
    inputs, records, compared : int
        Inputs taken, records on the tape, records that were made and are equal.
    lives : int
        Starts of the syncer.
    first_difference : str or None
        The first record that differs, one line.
    """

    equal: bool
    inputs: int
    records: int
    compared: int
    lives: int
    first_difference: str | None


class MachineDiffers(Exception):
    """A record that the machine makes is not the one of the tape."""


def rerun_machines(run: str | Path | xr.DataTree) -> MachinesReport:
    """Run the syncer's machine again on the inputs of a tape and compare what it records, column by column.

    Records of learners, supervisor and evaluator enter the journal through the syncer's machine, so that the whole
    journal is compared.  A syncer that was killed starts again from the records before its restart; what it would have
    recorded further of the input that it died with is not missed.

    Parameters
    ----------
    run : path or xarray.DataTree
        Run folder, tape, or an open tape.

    Raises
    ------
    TapeError
        There is no tape, it is damaged, or it holds records but no inputs.
    """
    tape = run if isinstance(run, xr.DataTree) else open_tape(run)
    if not tape.attrs.get("config"):
        raise TapeError(f"{tape.name} holds no configuration; expected the tape of a training run")
    records, inputs = tape.wb.records(), tape.wb.inputs()
    if records and not inputs:
        raise TapeError(f"{tape.name} holds no inputs of machines; expected those of its syncer")
    rerun = Rerun(from_toml(tape.attrs["config"]), records, bool(tape.attrs["closed"]))
    return rerun.run(inputs)


class Rerun:
    """One run of the syncer's machine through all its lives.

    Parameters
    ----------
    config : RunConfig
    records : sequence of Record
        Of the tape, in journal order.
    closed : bool
        Whether the tape is complete: if not, the machine may make more than it holds.
    """

    def __init__(self, config: RunConfig, records: Sequence[Record], closed: bool = True) -> None:
        self.config, self.records, self.closed = config, records, closed
        self.fixed = fixed_settings_of(config, offsets(config.fragments, config.period))
        self.starts = [
            event for event, r in enumerate(records) if r.process == SYNCER and r.kind == Kind.SYNCER_STARTED
        ]
        self.machine = syncer.SyncerMachine(syncer.new_state(self.fixed, settings_book_of(config)))
        self.lives = 0
        self.compared = 0
        self.cut_off = ""

    def run(self, inputs: Iterable[Input]) -> MachinesReport:
        """Feed all inputs; stop at the first record that differs."""
        taken = 0
        difference = None
        try:
            for item in inputs:
                if item.process != SYNCER:
                    continue
                self._start_up_to(item.incarnation)
                if self.cut_off:
                    raise MachineDiffers(
                        f"event {self.compared}: the machine makes {self.cut_off} here, which the tape lacks"
                    )
                self._compare(self.machine.handle(item.time_ns, self._decoded(item, taken)))
                taken += 1
            self._start_up_to(len(self.starts))
            if self.compared < len(self.records):
                left = len(self.records) - self.compared
                raise MachineDiffers(
                    f"event {self.compared}: {_name(self.records[self.compared])} and {left - 1} more are on the tape, "
                    "the machine makes no further record"
                )
        except MachineDiffers as found:
            difference = str(found)
        return MachinesReport(difference is None, taken, len(self.records), self.compared, self.lives, difference)

    def _decoded(self, item: Input, number: int) -> Any:
        try:
            return _decode(item.data)
        except msgspec.DecodeError as error:
            raise TapeError(
                f"input {number} of {label_of(item.process)} is none of this version ({first_line(error)}); "
                "run the machines with the version that made the tape"
            ) from error

    def _start_up_to(self, incarnation: int) -> None:
        """Start the lives of the syncer that the tape has up to this one."""
        while self.lives < min(incarnation, len(self.starts)):
            at = self.starts[self.lives]
            record = self.records[at]
            uncommitted: list[tuple[int, int, int]] = []
            cut, aborted = record.detail.get("cut"), []
            if record.reason != "new":
                found = restart.restore(self.fixed, settings_book_of(self.config), self.records[:at], cut)
                self.machine = syncer.SyncerMachine(found.state)
                uncommitted, aborted = found.uncommitted, found.aborted
            self.lives += 1
            self.cut_off = ""
            self._compare(self.machine.start(record.time_ns, record.reason, uncommitted, cut, aborted))

    def _compare(self, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, Append):
                for record in action.records:
                    self._compare_record(_record(_encode(record)))

    def _compare_record(self, made: Record) -> None:
        """Compare with the next record of the tape; ``made`` has been through the journal's encoding.

        The records of one input may be several writes.  Of the last input of a life that was killed the tape may so
        hold only the first.
        """
        if self.cut_off or self.starts[self.lives : self.lives + 1] == [self.compared]:
            self.cut_off = self.cut_off or _name(made)
            return
        if self.compared == len(self.records):
            if self.closed:
                raise MachineDiffers(f"the machine makes {_name(made)} after the last event of the tape")
            return
        recorded = self.records[self.compared]
        for column in Record.__struct_fields__:
            there, here = getattr(recorded, column), getattr(made, column)
            if not _same(there, here):
                raise MachineDiffers(
                    f"event {self.compared}: {_name(recorded)}: {column} is {there!r} on the tape, {here!r} here"
                )
        self.compared += 1


def _name(record: Record) -> str:
    where = "".join(f", {k} {v}" for k, v in (("round", record.round), ("fragment", record.fragment)) if v >= 0)
    return f"{Kind(record.kind).name.lower()} of {label_of(record.process)}{where}"


def _same(a: Any, b: Any) -> bool:
    """Equality in which NaN equals itself."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b or (a != a and b != b))
