"""What a counterfactual reads of the run that it starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import xarray as xr

from workbench.config import RunConfig, from_toml
from workbench.protocol.events import SyncerInput
from workbench.protocol.records import SYNCER, Kind, Record, label_of
from workbench.tape import Input, TapeError, open_tape
from workbench.tape.errors import first_line

_decode = msgspec.msgpack.Decoder(SyncerInput).decode


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

    @cached_property
    def began_ns(self) -> int:
        """Start of rounds: the origin of the times that people read."""
        return next((r.time_ns for r in self.records if r.kind == Kind.ROUNDS_BEGAN), 0)

    @cached_property
    def ended_ns(self) -> int:
        """The last time on the tape."""
        return max(r.time_ns for r in self.records)

    @cached_property
    def last_round(self) -> int:
        """The last round that was opened; -1 if none was."""
        return max((r.round for r in self.records if r.kind == Kind.ROUND_OPENED), default=-1)

    @cached_property
    def starts(self) -> list[int]:
        """Events at which a life of the syncer begins."""
        return [i for i, r in enumerate(self.records) if r.process == SYNCER and r.kind == Kind.SYNCER_STARTED]

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
        There is no tape, it holds no training run or nothing that happened, or it went back to a snapshot.
    """
    tape = run if isinstance(run, xr.DataTree) else open_tape(run)
    if not tape.attrs.get("config"):
        raise TapeError(f"{tape.name} holds no configuration; expected the tape of a training run")
    records, inputs = tape.wb.records(), tape.wb.inputs()
    if not records or not inputs:
        raise TapeError(f"{tape.name} holds nothing that happened; expected a run that its syncer has recorded")
    resumed = next((event for event, r in enumerate(records) if r.epoch > 0), None)
    if resumed is not None:
        raise TapeError(
            f"event {resumed}: the run went back to a snapshot; what-if asks only runs of one epoch; ask about a run "
            "that did not go back"
        )
    numbers = [i for i, item in enumerate(inputs) if item.process == SYNCER]
    positions = tape["inputs"].dataset["event"].values[numbers].tolist()
    if not isinstance(run, xr.DataTree):
        path = str(Path(run).resolve())
    config = from_toml(tape.attrs["config"])
    return Parent(path or str(tape.name), tape, config, records, [inputs[i] for i in numbers], positions)
