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
    """Events at which totals changed (change,), the ledger's counts before the first of them and after each."""

    events: np.ndarray[Any, Any]
    counts: list[tuple[int, ...]]
    ledger: Ledger


def totals_at(tree: xr.DataTree, event: int) -> dict[str, float]:
    """Run totals ``tokens_*`` just after an event; fragments weigh the same where the tape has no manifest."""
    course: _Course = tree.wb.kept(_course_of)
    return course.ledger.totals_of(course.counts[int(np.searchsorted(course.events, event, "right"))])


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
    events, counts = [], [ledger.counts()]
    records = moving_records(
        lambda name: np.asarray(words[own[name]]) if name == "reason" else own[name],
        details, contributions, merges, folds,
    )  # fmt: skip
    for event, record in records:
        ledger.apply(record)
        now = ledger.counts()
        if now != counts[-1]:
            events.append(event)
            counts.append(now)
    return _Course(np.array(events, np.int64), counts, ledger)


_CONTRIBUTIONS = ("fate", "merge", "learner", "step", "c_tokens")
