"""Run totals of the token ledger as of any event: the ledger is run once, its totals are kept where they change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from workbench.protocol.records import Kind
from workbench.tape.ledger import Ledger
from workbench.tape.ledger_rows import moving_records
from workbench.tape.own_events import own_events

_DETAILED = (Kind.GRACE_ENDED, Kind.STATE_ADOPTED, Kind.SYNCER_STARTED)


class _Course(NamedTuple):
    """Events at which totals changed (change,), ``names`` of the totals, and their values (change, total)."""

    events: np.ndarray[Any, Any]
    names: list[str]
    values: np.ndarray[Any, Any]


def totals_at(tree: xr.DataTree, event: int) -> dict[str, float]:
    """Run totals ``tokens_*`` just after an event; fragments weigh the same where the tape has no manifest."""
    course: _Course = tree.wb.kept(_course_of)
    row = course.values[int(np.searchsorted(course.events, event, "right"))]
    return dict(zip(course.names, row.tolist(), strict=True))


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
    events, values = [], [ledger.totals()]
    records = moving_records(
        lambda name: np.asarray(words[own[name]]) if name == "reason" else own[name],
        details, contributions, merges, folds,
    )  # fmt: skip
    for event, record in records:
        ledger.apply(record)
        totals = ledger.totals()
        if totals != values[-1]:
            events.append(event)
            values.append(totals)
    names = list(values[0])
    return _Course(np.array(events, np.int64), names, np.array([[row[name] for name in names] for row in values]))


_CONTRIBUTIONS = ("fate", "merge", "learner", "step", "c_tokens")
