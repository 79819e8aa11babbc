"""How learners and runs came back: states that were taken, snapshots, resumes.

Points in time are seconds from the start of rounds.
"""

from __future__ import annotations

from typing import Any

from workbench.analysis.arrays.tables import NS, Tables, details_of, events_of, since_began
from workbench.protocol.records import Kind, label_of, learner_of
from workbench.protocol.snapshots import why_given_up


def recoveries(tables: Tables) -> list[dict[str, Any]]:
    """States that learners began with other than the first weights, in order.

    Returns
    -------
    list of dict
        ``time_s``, ``learner``, ``source`` (``peer``, ``snapshot``: moments alone, ``own``: all of itself, after a
        resume), ``donor`` (label of the peer, or None), ``snapshot`` (number, or None), ``took_s`` (since the process
        took part) and ``bytes`` (of a peer's state, or None).
    """
    events, sent = tables["events"], _sent(tables)
    since: dict[int, int] = {}
    found = []
    for event in events_of(tables, Kind.STATE_ADOPTED, Kind.RESTORED).tolist():
        kind, process, time_ns = (int(events[name][event]) for name in ("kind", "process", "time_ns"))
        reason, learner = str(events["reason"][event]), learner_of(process)
        if learner < 0:
            continue
        if kind == Kind.STATE_ADOPTED and reason == "initial":
            since[process] = time_ns
            continue
        source = "own" if kind == Kind.RESTORED else reason
        peer = int(events["peer"][event])
        found.append(
            {
                "time_s": float(since_began(tables, time_ns)),
                "learner": learner,
                "source": source,
                "donor": label_of(peer) if source == "peer" else None,
                "snapshot": None if source == "peer" else int(events["value"][event]),
                "took_s": (time_ns - since[process]) * NS if source != "own" and process in since else None,
                "bytes": sent.get((peer, int(events["version"][event]))) if source == "peer" else None,
            }
        )
    return found


def _sent(tables: Tables) -> dict[tuple[int, int], int]:
    """Bytes of the states that were passed on, by donor and the number of its record."""
    version = tables["events"]["version"]
    details = details_of(tables, Kind.STATE_SENT)
    return {(int(d["donor"]), int(version[event])): int(d["bytes"]) for event, d in details.items()}


def snapshots_taken(tables: Tables) -> dict[str, Any]:
    """Snapshots of the run.

    Returns
    -------
    dict
        ``complete`` (how many), ``newest`` (number, or None), ``newest_s`` (when it lay on disk) and ``given_up``
        (``time_s``, ``snapshot``, ``reason``, one for each).
    """
    events = tables["events"]
    complete = events_of(tables, Kind.SNAPSHOT_COMPLETED)
    details = details_of(tables, Kind.SNAPSHOT_ABANDONED)
    newest = int(complete[-1]) if len(complete) else None
    return {
        "complete": len(complete),
        "newest": None if newest is None else int(events["value"][newest]),
        "newest_s": None if newest is None else float(since_began(tables, events["time_ns"][newest])),
        "given_up": [
            {
                "time_s": float(since_began(tables, events["time_ns"][event])),
                "snapshot": int(events["value"][event]),
                "reason": why_given_up(str(events["reason"][event]), details.get(event, {})),
            }
            for event in events_of(tables, Kind.SNAPSHOT_ABANDONED).tolist()
        ],
    }


def resumes(tables: Tables) -> list[dict[str, Any]]:
    """Resumes of the run, in order: ``time_s``, ``epoch``, ``snapshot`` (that it went back to; None: nothing lost)."""
    events, details = tables["events"], details_of(tables, Kind.SYNCER_STARTED)
    return [
        {
            "time_s": float(since_began(tables, events["time_ns"][event])),
            "epoch": int(events["epoch"][event]),
            "snapshot": (details.get(event, {}).get("cut") or {}).get("snapshot"),
        }
        for event in events_of(tables, Kind.SYNCER_STARTED).tolist()
        if str(events["reason"][event]) == "resume"
    ]
