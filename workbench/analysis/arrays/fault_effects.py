"""Injected faults, and what came of each: the merges that its target missed, and when it was merged again."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.analysis.arrays.incidents import DEADLY
from workbench.analysis.arrays.presence import acted, ends
from workbench.analysis.arrays.tables import NS, Array, Tables, details_of, events_of, run_span
from workbench.protocol.records import Kind, learner_of, process_of

ENDLESS_NS = 2**62


def fault_effects(tables: Tables) -> list[dict[str, Any]]:
    """One entry for each fault, in journal order.

    Returns
    -------
    list of dict
        ``time_s``, from the start of rounds; ``kind``; ``learner`` (None for the syncer); ``for_s`` (0 for one that
        acts once, None for one without an end); ``effect`` (False: its target was gone); ``skipped`` (it came due
        while nothing ran, between a loss of the run and its resume); ``merges_missed`` by the
        learner from the fault to the merge that contains it again, and ``merged_again_s``, when that was, None if
        never (of a learner alone); ``without_merge_s``, the time between the merges before and after (of the syncer
        alone).
    """
    merged_ns = tables["events"]["time_ns"][tables["merges"]["event"]]
    included = tables["merges"]["included"]
    details, known = details_of(tables, Kind.FAULT_INJECTED), ends(tables)
    return [
        _effect(tables, event, details.get(event, {}), known, merged_ns, included)
        for event in events_of(tables, Kind.FAULT_INJECTED).tolist()
    ]


def _effect(
    tables: Tables, event: int, detail: dict[str, Any], known: dict[int, int], merged_ns: Array, included: Array
) -> dict[str, Any]:
    events, began = tables["events"], run_span(tables)[0]
    start, learner = int(events["time_ns"][event]), learner_of(int(events["peer"][event]))
    until = known.get(detail.get("fault", -1), int(detail.get("until_ns", start)))
    endless = until < 0 or until >= ENDLESS_NS
    found: dict[str, Any] = {
        "time_s": (start - began) * NS,
        "kind": str(events["reason"][event]),
        "learner": learner if learner >= 0 else None,
        "for_s": None if endless else max(until - start, 0) * NS,
        "effect": acted(detail),
        "skipped": bool(detail.get("skipped")),
    }
    if not found["effect"]:
        return found
    if learner < 0:
        return found | {"without_merge_s": _around(merged_ns, start)}
    deadly = found["kind"] in DEADLY
    over = until if not endless else ENDLESS_NS if deadly else start
    if deadly:
        over = _joined_again(tables, learner, start, over)
    missed, again = _missed(merged_ns, included, learner, start, over)
    return found | {"merges_missed": missed, "merged_again_s": None if again is None else (again - began) * NS}


def _joined_again(tables: Tables, learner: int, start: int, default: int) -> int:
    """When another process of a learner joined after the end of one [ns]; what that had sent may still be merged."""
    events = tables["events"]
    joins = events_of(tables, Kind.LEARNER_JOINED)
    joins = joins[(events["peer"][joins] == process_of(learner)) & (events["time_ns"][joins] > start)]
    return int(events["time_ns"][joins[0]]) if len(joins) else default


def _missed(merged_ns: Array, included: Array, learner: int, start: int, until: int) -> tuple[int, int | None]:
    """Merges without the learner from the fault to the first one after its end that has it, and when that was [ns]."""
    has = included[:, learner] == 1 if learner < included.shape[1] else np.zeros(len(merged_ns), bool)
    again = np.flatnonzero(has & (merged_ns >= until))
    last = int(again[0]) if len(again) else len(merged_ns)
    since = int(np.searchsorted(merged_ns, start))
    return int((~has[since:last]).sum()), int(merged_ns[last]) if len(again) else None


def _around(merged_ns: Array, start: int) -> float | None:
    """Time between the merges before and after a moment [s]; None without both."""
    at = int(np.searchsorted(merged_ns, start))
    return float(merged_ns[at] - merged_ns[at - 1]) * NS if 0 < at < len(merged_ns) else None
