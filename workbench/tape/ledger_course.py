"""Run totals of the token ledger as of any event: the ledger is run once, its totals are kept where they change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from workbench.protocol.records import FIRST_LEARNER, Kind
from workbench.tape.ledger import Ledger
from workbench.tape.ledger_rows import moving_records
from workbench.tape.own_events import OwnEvents, own_events

FATED = (
    Kind.STEP_ENDED, Kind.UPDATE_FOLDED, Kind.MERGED, Kind.STATE_ADOPTED, Kind.LEARNER_JOINED, Kind.LEARNER_LOST,
    Kind.PROCESS_ENDED, Kind.SYNCER_STARTED, Kind.RUN_ENDED, Kind.ROUND_ABORTED,
)  # fmt: skip
"""Kinds that process tokens or decide their fate; of `MOVES` the others tell why a fate is what it is, or check."""
_DETAILED = (Kind.STATE_ADOPTED, Kind.SYNCER_STARTED)


class _Course(NamedTuple):
    """What the totals are made of.

    Attributes
    ----------
    events : ndarray (change,)
        At which tokens got a fate, or another one.
    fates : list of tuple of int
        The ledger's counts by fate before the first of them, and after each.
    steps, processed : ndarray
        Events of steps (step,); tokens processed before the first and after each (step + 1,).
    ledger : Ledger
    """

    events: np.ndarray[Any, Any]
    fates: list[tuple[int, ...]]
    steps: np.ndarray[Any, Any]
    processed: np.ndarray[Any, Any]
    ledger: Ledger


def totals_at(tree: xr.DataTree, event: int) -> dict[str, float]:
    """Run totals ``tokens_*`` just after an event; fragments weigh the same where the tape has no manifest."""
    course: _Course = tree.wb.kept(_course_of)
    processed = int(course.processed[np.searchsorted(course.steps, event, "right")])
    fates = course.fates[int(np.searchsorted(course.events, event, "right"))]
    return course.ledger.totals_of((processed, *fates))


def fragment_sizes(tree: xr.DataTree) -> list[int] | None:
    """Elements of each fragment, from a tape's model manifest; None where it has none."""
    manifest = tree.attrs.get("manifest")
    tensors: list[Any] = list(manifest.values()) if isinstance(manifest, Mapping) else list(manifest or ())
    if not tensors or not all(isinstance(t, Mapping) and "fragment" in t and "shape" in t for t in tensors):
        return None
    sizes = [0] * (max(int(tensor["fragment"]) for tensor in tensors) + 1)
    for tensor in tensors:
        sizes[int(tensor["fragment"])] += math.prod(int(n) for n in tensor["shape"])
    return sizes if min(sizes) > 0 else None


def _course_of(tree: xr.DataTree) -> _Course:
    own = own_events(tree)
    words = np.array(own.words, object)
    sizes = fragment_sizes(tree) or [1] * max(1, int(own["fragment"].max(initial=-1)) + 1)
    ledger = Ledger(len(tree.wb.learners), len(sizes), sizes)
    details = {event: detail for kind in _DETAILED for event, detail in own.details(kind).items()}
    contributions = {name: tree["contributions"].dataset[name].values for name in _CONTRIBUTIONS}
    folds = {name: tree["folds"].dataset[name].values for name in ("event", "reference")}
    merges = tree["merges"].dataset["event"].values
    events, fates = [], [ledger.counts()[1:]]
    records = moving_records(
        lambda name: np.asarray(words[own[name]]) if name == "reason" else own[name],
        details, contributions, merges, folds, FATED,
    )  # fmt: skip
    for event, record in records:
        ledger.apply(record)
        if record.kind != Kind.STEP_ENDED and (now := ledger.counts()[1:]) != fates[-1]:
            events.append(event)
            fates.append(now)
    return _Course(np.array(events, np.int64), fates, *_processed(own), ledger)


def _processed(own: OwnEvents) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Events of steps that the ledger counts, and tokens processed before the first and after each."""
    counted = (own["kind"] == Kind.STEP_ENDED) & (own["process"] >= FIRST_LEARNER) & (own["tokens"] >= 0)
    steps = np.flatnonzero(counted)
    return steps, np.r_[0, np.cumsum(own["tokens"][steps])]


_CONTRIBUTIONS = ("fate", "merge", "learner", "step", "c_tokens")
