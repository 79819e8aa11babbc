"""What guards refused, whom they flagged, and who was quarantined."""

from __future__ import annotations

from collections import Counter
from typing import Any

from workbench.analysis.arrays.tables import Tables, details_of, events_of, since_began
from workbench.protocol.guards import POISON
from workbench.protocol.records import Kind, learner_of


def refused(tables: Tables) -> list[dict[str, Any]]:
    """Contributions that were refused for what they held, and learners that were flagged, by learner.

    Returns
    -------
    list of dict
        ``learner``, ``reasons`` (how often by reason) and ``flagged`` (merges that it was flagged in).
    """
    events = tables["events"]
    reasons: dict[int, Counter[str]] = {}
    for event in events_of(tables, Kind.FRAGMENT_DROPPED).tolist():
        reason = str(events["reason"][event])
        if reason in POISON:
            reasons.setdefault(learner_of(int(events["peer"][event])), Counter())[reason] += 1
    flagged = Counter(m for detail in details_of(tables, Kind.MERGED).values() for m in detail.get("flagged", ()))
    return [
        {"learner": m, "reasons": dict(reasons.get(m, Counter()).most_common()), "flagged": flagged[m]}
        for m in sorted({*reasons, *flagged})
    ]


def quarantines(tables: Tables) -> list[dict[str, Any]]:
    """Quarantines and releases, in order: ``time_s``, ``learner``, ``quarantined``, ``who``, ``why`` (if a guard)."""
    events, details = tables["events"], details_of(tables, Kind.SETTING_CHANGED)
    return [
        {
            "time_s": float(since_began(tables, events["time_ns"][event])),
            "learner": learner_of(int(events["peer"][event])),
            "quarantined": bool(detail["values"]["quarantined"]),
            "who": str(detail.get("who", "")),
            "why": str(events["reason"][event]),
        }
        for event, detail in sorted(details.items())
        if "quarantined" in detail.get("values", {})
    ]
