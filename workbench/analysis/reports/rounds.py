"""How long rounds took and where, how many learners each merge had, and the waits between merges."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from workbench.analysis.arrays import spans
from workbench.analysis.arrays.rounds import DURATIONS, OUTCOMES, rounds
from workbench.analysis.arrays.self_stops import self_stops
from workbench.analysis.arrays.spread import spread
from workbench.analysis.arrays.tables import NS, Tables, events_of, since_began
from workbench.analysis.bound import Gaps, gaps, shortest_bound_s
from workbench.analysis.fault_waits import fault_waits
from workbench.analysis.from_tape import config_of, tables_of
from workbench.analysis.labelled import Source
from workbench.config import RunConfig
from workbench.protocol.records import FIRST_LEARNER, Kind

GAPS_SHOWN = 5


def report(source: Source, config: RunConfig | None = None) -> dict[str, Any]:
    """Report the rounds.

    Returns
    -------
    dict
        ``opened``, ``outcomes`` (of the opened ones), ``skipped`` (by reason; those passed over without having been
        opened too), ``aborted`` (by reason), ``restarted``, ``quorums_again`` (quorums reached beyond the first of a
        round: fewer than K were left in the meantime).
        ``durations_s``: spread of each state in merged rounds, and of ``total`` from the first ready learner until
        UPDATE was sent; ``contributors``: rows of ``learners``, ``merges`` that had so many, ``share``.
        ``between_merges_s`` (spread) and ``longest_between`` (``start_s``, ``for_s``); ``merge_availability``,
        ``late_s`` (beyond the bound), ``gaps_found`` and ``gaps``: the longest times in which a merge was due
        (``start_s``, ``gap_s``, ``self_stopped_s``, ``bound_s``, ``excess_s``), those shorter than any bound
        (``gaps_from_s``) left out.
        ``at_faults``: for each fault ``kind``, ``learner`` (-1: the syncer), ``start_s``, ``for_s``, the longest time
        between two merges around it (``longest_s``, None if there were no two), and B from the step times before it
        (``bound_s``, infinite if there was none).  ``start_s`` counts from the start of rounds.
    """
    tables, config = tables_of(source), config or config_of(source)
    found = rounds(tables)
    outcomes = Counter(OUTCOMES[outcome] for outcome in found["outcome"].tolist())
    quorums = len(events_of(tables, Kind.QUORUM_REACHED))
    return {
        "opened": len(found["round"]),
        "outcomes": dict(outcomes),
        "skipped": _reasons(tables, Kind.ROUND_SKIPPED),
        "aborted": _reasons(tables, Kind.ROUND_ABORTED),
        "restarted": len(events_of(tables, Kind.ROUND_RESTARTED)),
        "quorums_again": max(0, quorums - int((~np.isnan(found["grace_s"])).sum())),
        "durations_s": _durations(found),
        "contributors": _contributors(tables),
        **_between(tables),
        **_gaps(tables, gaps(tables, config)),
        "gaps_from_s": shortest_bound_s(config),
        "at_faults": _at_faults(tables, config),
        "self_stopped_s": spans.length(self_stops(tables)) * NS,
    }


def _at_faults(tables: Tables, config: RunConfig) -> list[dict[str, Any]]:
    return [
        {
            "kind": wait.kind,
            "learner": wait.process - FIRST_LEARNER if wait.process >= FIRST_LEARNER else -1,
            "start_s": since_began(tables, wait.start_ns),
            "for_s": (wait.end_ns - wait.start_ns) * NS,
            "longest_s": None if np.isnan(wait.longest_s) else wait.longest_s,
            "bound_s": wait.bound_s,
        }
        for wait in fault_waits(tables, config)
    ]


def _durations(found: dict[str, Any]) -> dict[str, Any]:
    merged = found["outcome"] == OUTCOMES.index("merged")
    told = {name.removesuffix("_s"): spread(found[name][merged]) for name in DURATIONS}
    total = np.sum([found[name][merged] for name in DURATIONS[1:]], 0)
    return {**told, "total": spread(total)}


def _reasons(tables: Tables, kind: Kind) -> dict[str, int]:
    return dict(Counter(tables["events"]["reason"][events_of(tables, kind)].tolist()).most_common())


def _contributors(tables: Tables) -> list[dict[str, Any]]:
    counts = tables["merges"]["included"].sum(1, dtype=np.int64)
    numbers, merges = np.unique(counts, return_counts=True)
    return [
        {"learners": learners, "merges": found, "share": found / len(counts)}
        for learners, found in zip(numbers.tolist(), merges.tolist(), strict=True)
    ]


def _between(tables: Tables) -> dict[str, Any]:
    times = np.sort(since_began(tables, tables["events"]["time_ns"][tables["merges"]["event"]]))
    waits = np.diff(times)
    longest = np.argsort(-waits, kind="stable")[:GAPS_SHOWN].tolist()
    rows = [{"start_s": float(times[at]), "for_s": float(waits[at])} for at in longest]
    return {"between_merges_s": spread(waits), "longest_between": rows}


def _gaps(tables: Tables, found: Gaps) -> dict[str, Any]:
    length = (found.end_ns - found.start_ns) * NS
    longest = np.argsort(-length, kind="stable")[:GAPS_SHOWN].tolist()
    rows = [
        {
            "start_s": float(since_began(tables, found.start_ns[at])),
            "gap_s": float(length[at]),
            "self_stopped_s": float(found.stopped_ns[at]) * NS,
            "bound_s": float(found.bound_s[at]),
            "excess_s": float(found.excess_s[at]),
        }
        for at in longest
    ]
    availability = found.merge_availability
    return {
        "merge_availability": None if np.isnan(availability) else availability,
        "late_s": float(found.excess_s.sum()),
        "gaps_found": len(length),
        "gaps": rows,
    }
