"""How much of the allocated time was useful, and what became of the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.analysis.arrays.course import edges_ns, useful_course
from workbench.analysis.arrays.tables import NS, run_span, since_began
from workbench.analysis.arrays.time_shares import CAUSES, time_shares, uptime
from workbench.analysis.from_tape import tables_of
from workbench.analysis.labelled import Source
from workbench.config import RunConfig

BINS = 40
"""Parts of the run over which useful time is told."""


def report(source: Source, config: RunConfig | None = None) -> dict[str, Any]:
    """Report goodput and badput.

    Returns
    -------
    dict
        ``duration_s``, ``allocated_s``, ``useful_s``, ``goodput`` and ``badput`` (by cause, adding up to 1 with it),
        ``badput_s``, ``uptime``, ``causes`` (the names), ``by_learner`` (``learner``, ``allocated_s``, ``useful_s``,
        ``goodput``, ``badput``, ``badput_s``, ``over_time``) and ``edges_s`` of the parts that ``over_time`` tells of:
        useful time over the time of the part.
    """
    tables = tables_of(source)
    shares, course = time_shares(tables), useful_course(tables, BINS)
    began, closed = run_span(tables)
    rows = []
    for learner, (allocated, useful, lost) in enumerate(
        zip(shares.allocated_ns.tolist(), shares.useful_ns.tolist(), shares.badput_ns.tolist(), strict=True)
    ):
        rows.append({
            "learner": learner,
            "allocated_s": allocated * NS,
            "useful_s": useful * NS,
            "goodput": useful / allocated if allocated else None,
            "badput": {cause: ns / allocated if allocated else None for cause, ns in zip(CAUSES, lost, strict=True)},
            "badput_s": {cause: ns * NS for cause, ns in zip(CAUSES, lost, strict=True)},
            "over_time": course[learner].tolist(),
        })  # fmt: skip
    return {
        "duration_s": (closed - began) * NS,
        "allocated_s": float(shares.allocated_ns.sum()) * NS,
        "useful_s": float(shares.useful_ns.sum()) * NS,
        "goodput": _known(shares.goodput),
        "badput": {cause: _known(share) for cause, share in shares.badput.items()},
        "badput_s": dict(zip(CAUSES, (shares.badput_ns.sum(0) * NS).tolist(), strict=True)),
        "uptime": _known(uptime(tables)),
        "causes": list(CAUSES),
        "by_learner": rows,
        "edges_s": since_began(tables, edges_ns(tables, BINS)).tolist(),
    }


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
