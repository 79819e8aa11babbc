"""What a counterfactual reads of the run that it starts from."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import xarray as xr

from workbench.config import RunConfig, from_toml
from workbench.protocol.events import SyncerInput
from workbench.protocol.records import SYNCER, Kind, Record, label_of
from workbench.replay.environment import check_training
from workbench.tape import Input, TapeError, open_tape
from workbench.tape.errors import first_line

_decode = msgspec.msgpack.Decoder(SyncerInput).decode


class Loss(NamedTuple):
    """A run that had ended, or was lost with all its processes, and was resumed.

    Attributes
    ----------
    event : int
        Event of the syncer's start.
    at_ns, again_ns : int
        The last time before it, and when it went on [ns].
    cut : dict or None
        Of the snapshot that it went back to; None where nothing was lost.
    """

    event: int
    at_ns: int
    again_ns: int
    cut: dict[str, Any] | None

    @property
    def snapshot(self) -> int:
        """Number of that snapshot, -1 for none."""
        return int(self.cut["snapshot"]) if self.cut is not None else -1


@dataclass(frozen=True)
class Parent:
    """A run as its tape has it.

    Attributes
    ----------
    path : str
        Where it was opened.
    tape : xarray.DataTree
    config : RunConfig
        What it began with.
    records : list of Record
        In journal order.
    inputs : list of Input
        Of the syncer's machine.
    positions : list of int
        For each input, how many records stand before it.
    """

    path: str
    tape: xr.DataTree
    config: RunConfig
    records: list[Record]
    inputs: list[Input]
    positions: list[int]

    @property
    def header(self) -> Mapping[str, Any]:
        """Root attributes of the tape."""
        return {str(key): value for key, value in self.tape.attrs.items()}

    @property
    def generation(self) -> int:
        """0 for a run that happened, 1 for an answer about one, 2 for an answer about that."""
        parent = self.header.get("parent")
        return int(parent.get("generation", 1)) if isinstance(parent, Mapping) else 0

    @cached_property
    def began_ns(self) -> int:
        """Start of rounds: the origin of the times that people read."""
        return next((r.time_ns for r in self.records if r.kind == Kind.ROUNDS_BEGAN), 0)

    @cached_property
    def ended_ns(self) -> int:
        """The last time on the tape."""
        return max(r.time_ns for r in self.records)

    @cached_property
    def starts(self) -> list[int]:
        """Events at which a life of the syncer begins."""
        return [i for i, r in enumerate(self.records) if r.process == SYNCER and r.kind == Kind.SYNCER_STARTED]

    @cached_property
    def losses(self) -> list[Loss]:
        """Every time that the run was resumed."""
        found = []
        for event in self.starts:
            r = self.records[event]
            if r.reason == "resume" and event:
                at_ns = max(before.time_ns for before in self.records[:event])
                found.append(Loss(event, min(at_ns, r.time_ns), r.time_ns, r.detail.get("cut")))
        return found

    @cached_property
    def ends(self) -> list[int]:
        """For each input, where its records end: before those of the next input, or of another life of the syncer."""
        ends = []
        lives = set(self.starts)
        after = [*self.positions[1:], len(self.records)]
        for start, stop in zip(self.positions, after, strict=True):
            ends.append(next((i for i in range(start, stop) if i in lives), stop))
        return ends

    @cached_property
    def by_epoch(self) -> list[Parent]:
        """The run cut where it went back to a snapshot: what happened in each epoch, alone."""
        last = max(r.epoch for r in self.records)
        if not last:
            return [self]
        lives = [self.records[event].epoch for event in self.starts]
        parts = []
        for epoch in range(last + 1):
            events = [i for i, r in enumerate(self.records) if r.epoch == epoch]
            mine = [i for i, item in enumerate(self.inputs) if lives[max(1, item.incarnation) - 1] == epoch]
            records, inputs = [self.records[i] for i in events], [self.inputs[i] for i in mine]
            positions = [bisect_left(events, self.positions[i]) for i in mine]
            parts.append(Parent(self.path, self.tape, self.config, records, inputs, positions))
        return parts

    @cached_property
    def event_of(self) -> dict[tuple[int, int], int]:
        """Event of each record by (process, seq)."""
        return {(r.process, r.seq): i for i, r in enumerate(self.records)}

    def decoded(self, number: int) -> Any:
        """An input of the syncer's machine.

        Raises
        ------
        TapeError
            The tape is of another version.
        """
        item = self.inputs[number]
        try:
            return _decode(item.data)
        except msgspec.DecodeError as error:
            raise TapeError(
                f"input {number} of {label_of(item.process)} is none of this version ({first_line(error)}); "
                "ask with the version that made the tape"
            ) from error


def read_parent(run: str | Path | xr.DataTree, path: str = "") -> Parent:
    """Read all that a counterfactual needs of a run; ``path`` says where an open tape lies.

    Raises
    ------
    TapeError
        There is no tape, or it holds no training run or nothing that happened.
    """
    tape = run if isinstance(run, xr.DataTree) else open_tape(run)
    check_training(tape, path or ("" if isinstance(run, xr.DataTree) else str(run)))
    records, inputs = tape.wb.records(), tape.wb.inputs()
    if not records or not inputs:
        raise TapeError(f"{tape.name} holds nothing that happened; expected a run that its syncer has recorded")
    numbers = [i for i, item in enumerate(inputs) if item.process == SYNCER]
    positions = tape["inputs"].dataset["event"].values[numbers].tolist()
    if not isinstance(run, xr.DataTree):
        path = str(Path(run).resolve())
    config = from_toml(tape.attrs["config"])
    return Parent(path or str(tape.name), tape, config, records, [inputs[i] for i in numbers], positions)
