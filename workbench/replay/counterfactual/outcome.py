"""What came of a counterfactual: parent against child, with an interval where there are several."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import xarray as xr

from workbench.protocol.records import Kind, Record, label_of
from workbench.replay.counterfactual.calibration import Calibration
from workbench.tape import open_tape

NUMBERS = (
    "val_loss_last",
    "tokens_merged",
    "tokens_processed",
    "participation",
    "goodput",
    "merges",
    "rounds",
    "time_s",
)
"""Of `workbench.analysis.summary`."""


@dataclass(frozen=True)
class WhatIf:
    """A counterfactual; usable wherever a run folder is.

    Attributes
    ----------
    kind : str
        ``arithmetic``: one exact answer on the schedule of the tape; ``schedule``: virtual time from the branch on.
    asked : str
        The class of what was asked, where a decision that depends on values turned it into a change of schedule.
    changes : dict
        Keys with their new values.
    without : tuple of str
        Faults that were removed, in words.
    branch_event : int or None
        Event of the parent at which it was left; None: nowhere.
    branch : str
        What that was, in words.
    shared_events : int
        Events that both have.
    parent : dict
        Numbers of the parent.
    children : list of dict
        The same of each child.
    runs : list of Path
        Folders of the children.
    drawn, used : dict by kind
        Durations that were not on the tape and were drawn, and all that were needed; of all children together.
    rebuilt, differing : int
        Records of learners that their machines made again at the branch, and how many came out otherwise.
    learners_per_core : float or None
        Of the parent's machine.
    added : tuple of str
        Faults that were added, in words; one that was moved was removed and added.
    seeds_asked : int
        Children that were asked for: an answer without draws has one.
    unlike : int or None
        If nothing was changed: records of the child that are not the parent's, 0 for bit for bit.
    calibration : Calibration or None
        If nothing was changed and everything simulated again: how near it came.
    from_round : int or None
        The round from which on the change acts.
    """

    kind: str
    asked: str
    changes: dict[str, Any]
    without: tuple[str, ...]
    branch_event: int | None
    branch: str
    shared_events: int
    parent: dict[str, Any]
    children: list[dict[str, Any]]
    runs: list[Path]
    drawn: dict[str, int]
    used: dict[str, int]
    rebuilt: int
    differing: int
    learners_per_core: float | None
    added: tuple[str, ...] = ()
    seeds_asked: int = 1
    unlike: int | None = None
    calibration: Calibration | None = None
    from_round: int | None = None

    def __fspath__(self) -> str:
        """Folder of the first child."""
        return os.fspath(self.runs[0])

    @property
    def path(self) -> Path:
        """Folder of the first child."""
        return self.runs[0]

    @cached_property
    def tape(self) -> xr.DataTree:
        """Tape of the first child."""
        return open_tape(self.runs[0])

    @property
    def seeds(self) -> int:
        """How many children there are."""
        return len(self.children)

    @property
    def interval(self) -> dict[str, tuple[float, float, float] | None]:
        """Median, least and largest of each number over the seeds; None where a child has none."""
        return {name: _spread([child[name] for child in self.children]) for name in self.parent}

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return {
            "class": self.kind,
            "asked": self.asked,
            "seeds": self.seeds,
            "seeds_asked": self.seeds_asked,
            "branch_event": self.branch_event,
            "branch": self.branch,
            "shared_events": self.shared_events,
            "changed": bool(self.changes or self.without or self.added),
            "changes": self.changes,
            "from_round": self.from_round,
            "without": list(self.without),
            "added": list(self.added),
            "bit_exact": None if self.unlike is None else self.unlike == 0,
            "records_unlike": self.unlike,
            "calibration": None if self.calibration is None else self.calibration._asdict(),
            "parent": self.parent,
            "child": {name: spread[0] if spread else None for name, spread in self.interval.items()},
            "interval": {name: list(spread) if spread else None for name, spread in self.interval.items()},
            "children": self.children,
            "durations_used": self.used,
            "durations_drawn": self.drawn,
            "learner_records_rebuilt": self.rebuilt,
            "learner_records_differing": self.differing,
            "learners_per_core": self.learners_per_core,
            "tape": str(self.path),
            "tapes": [str(path) for path in self.runs],
        }

    def __repr__(self) -> str:
        where = f" from event {self.branch_event}" if self.branch_event is not None else ""
        return f"WhatIf({self.kind}{where}, {self.seeds} seed{'s' * (self.seeds != 1)}, {self.path})"

    def _repr_html_(self) -> str:
        card: str = import_module("workbench.views.what_if_card").what_if_card(self)
        return card


def numbers_of(tape: xr.DataTree) -> dict[str, Any]:
    """Loss, merged tokens, participation, goodput, merges, and the time from the start of rounds to the close."""
    found: Mapping[str, Any] = tape.wb.summary()
    return {name: found[name] for name in NUMBERS}


def words_of(record: Record, event: int, began_ns: int) -> str:
    """An event in words, its time from the start of rounds."""
    where = "".join(f", {k} {v}" for k, v in (("round", record.round), ("fragment", record.fragment)) if v >= 0)
    peer = f" of {label_of(record.peer)}" if record.peer >= 0 else ""
    name = Kind(record.kind).name.lower().replace("_", " ")
    time_s = (record.time_ns - began_ns) / 1e9
    at = f"at {time_s:.2f} s" if time_s >= 0 else "before rounds began"
    return f"event {event} {at}: {name}{peer}{where} ({label_of(record.process)})"


def _spread(values: Sequence[Any]) -> tuple[float, float, float] | None:
    if any(value is None for value in values):
        return None
    return median(values), min(values), max(values)
