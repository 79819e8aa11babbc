"""What a cursor on a tape may move along: wall time, tokens, rounds, or causal rank."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from workbench.protocol.records import Kind
from workbench.tape.causal_order import index_of

Floats = np.ndarray[Any, np.dtype[np.float64]]

NAMES = {"wall": "wall time", "tokens": "tokens processed", "rounds": "rounds opened", "rank": "causal rank"}
UNITS = {"wall": "s", "tokens": "tokens", "rounds": "global step", "rank": "events before it"}


class Timeline(NamedTuple):
    """One axis.

    Attributes
    ----------
    name : str
    values : ndarray (event,)
        Where each event stands on it; a cause never stands behind its effect.
    until : ndarray (event,)
        The same, but of all events up to each: never falls.
    low, high : float
        Its ends.
    """

    name: str
    values: Floats
    until: Floats
    low: float
    high: float

    def part(self, event: int) -> float:
        """Where an event stands, from 0 to 1."""
        return float(np.clip(self.part_of(self.values[event]), 0.0, 1.0))

    def part_of(self, value: Any) -> Any:
        """Where a value stands, from 0 to 1."""
        return (value - self.low) / (self.high - self.low)

    def event_at(self, part: float) -> int:
        """The last event up to a part of the axis."""
        value = self.low + part * (self.high - self.low)
        return int(np.clip(np.searchsorted(self.until, value, "right") - 1, 0, len(self.until) - 1))

    def text(self, value: float) -> str:
        """A place on the axis, for people."""
        return f"{value:.2f} s" if self.name == "wall" else f"{value:,.0f} {UNITS[self.name]}"


def timeline(tape: xr.DataTree, name: str, time_s: Floats) -> Timeline:
    """Lay the events of a tape along an axis.

    Parameters
    ----------
    tape : xarray.DataTree
    name : str
        Of `NAMES`.
    time_s : ndarray (event,)
        From the start of rounds [s].
    """
    values = {"wall": lambda: time_s, "tokens": lambda: _tokens(tape), "rounds": lambda: _rounds(tape),
              "rank": lambda: _ranks(tape)}[name]()  # fmt: skip
    until = np.maximum.accumulate(values)
    low = float(until[0])
    return Timeline(name, values, until, low, max(float(until[-1]), low + 1e-9))


def _tokens(tape: xr.DataTree) -> Floats:
    events = tape["events"].dataset
    stepped = events["kind"].values == int(Kind.STEP_ENDED)
    return np.cumsum(np.where(stepped, events["tokens"].values, 0)).astype(float)


def _rounds(tape: xr.DataTree) -> Floats:
    events = tape["events"].dataset
    opened = events["kind"].values == int(Kind.ROUND_OPENED)
    return np.maximum.accumulate(np.where(opened, events["round"].values, 0)).astype(float)


def _ranks(tape: xr.DataTree) -> Floats:
    """Events in the past of each: what happened before another has fewer."""
    index = index_of(tape)
    found = np.zeros(index.count)
    for p, (rows, clocks) in enumerate(zip(index.rows, index.clocks, strict=True)):
        for q, seqs in enumerate(index.seqs):
            found[rows] += np.arange(len(rows)) if p == q else np.searchsorted(seqs, clocks[q], "right")
    return found
