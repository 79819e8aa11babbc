"""Who was in the merges, who could have been, and what kept the others out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.analysis.arrays.course import edges_ns, participation_course
from workbench.analysis.arrays.exclusions import ABSENCES, INCLUDED, UNEXPECTED_BUT_INCLUDED, counts, standings
from workbench.analysis.arrays.participation import Participation, participation
from workbench.analysis.arrays.tables import Array, since_began
from workbench.analysis.from_tape import tables_of
from workbench.analysis.labelled import Source
from workbench.config import RunConfig
from workbench.protocol.starvation import REMEDIES, cause_of

BINS = 20
"""Parts of the run over which shares are told."""


def report(source: Source, config: RunConfig | None = None) -> dict[str, Any]:
    """Report participation.

    Returns
    -------
    dict
        ``merges``, ``participation``, ``expected`` and ``included`` (of the expected, over all learners),
        ``left_out`` (causes for which expected learners were left out, in the syncer's words, with counts),
        ``not_expected`` (the same for learners that were not expected), ``remedies`` (by cause, what helps),
        ``by_learner`` and ``over_time`` (``edges_s``, ``participation``, ``contributors``; None where nobody was
        expected).
        Rows by learner hold ``learner``, ``merges`` = ``included`` + ``left_out_count`` + ``included_unexpected`` +
        ``not_expected_count``, ``expected``, ``participation``, ``left_out`` and ``not_expected`` by reason,
        ``alive``, ``reachable``, ``contributed`` (numbers of merges) and ``over_time``.
    """
    tables = tables_of(source)
    found = participation(tables)
    told = counts(standings(tables, found))
    by_time, share, contributors = participation_course(tables, found, BINS)
    learners = [
        _of_learner(learner, mine, found) | {"over_time": shares(by_time[learner])} for learner, mine in enumerate(told)
    ]
    left_out = _sum(row["left_out"] for row in learners)
    return {
        "merges": len(found.included),
        "participation": None if np.isnan(found.share) else found.share,
        "expected": int(found.expected.sum()),
        "included": int((found.included & found.expected).sum()),
        "left_out": left_out,
        "not_expected": _sum(row["not_expected"] for row in learners),
        "remedies": {reason: REMEDIES[reason] for reason in left_out if reason in REMEDIES},
        "by_learner": learners,
        "over_time": {
            "edges_s": since_began(tables, edges_ns(tables, BINS)).tolist(),
            "participation": shares(share),
            "contributors": shares(contributors),
        },
    }


def _of_learner(learner: int, told: Mapping[str, int], found: Participation) -> dict[str, Any]:
    expected, share = int(found.expected[:, learner].sum()), float(found.per_learner[learner])
    known = (INCLUDED, UNEXPECTED_BUT_INCLUDED, *ABSENCES)
    left_out: Counter[str] = Counter()
    for reason, count in told.items():
        if reason not in known:
            left_out[cause_of(reason)] += count
    not_expected = {reason: told[reason] for reason in ABSENCES if reason in told}
    return {
        "learner": learner,
        "merges": len(found.included),
        "expected": expected,
        "included": told.get(INCLUDED, 0),
        "participation": share if expected else None,
        "left_out": dict(left_out.most_common()),
        "left_out_count": sum(left_out.values()),
        "included_unexpected": told.get(UNEXPECTED_BUT_INCLUDED, 0),
        "not_expected": not_expected,
        "not_expected_count": sum(not_expected.values()),
        "alive": int(found.alive[:, learner].sum()),
        "reachable": int(found.reachable[:, learner].sum()),
        "contributed": int(found.included[:, learner].sum()),
    }


def _sum(parts: Any) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(total.most_common())


def shares(values: Array) -> list[float | None]:
    """Values as a list, None for NaN."""
    return [None if np.isnan(value) else float(value) for value in values]
