"""What the syncer reported of its own accord: starved and stalled learners, lost quorums, its own stops.

Points in time are seconds from the start of rounds.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from workbench.analysis.arrays.tables import NS, Tables, details_of, events_of, run_span, since_began
from workbench.protocol.records import Kind, label_of, learner_of

DEADLY = ("kill", "exit", "kill_syncer")
"""Kinds of fault that end a process."""
FAULT_SHOWS_NS = 5_000_000_000
"""For so long after such a fault the end of its target is taken to be the fault's."""


def starved(tables: Tables) -> list[dict[str, Any]]:
    """Learners that were left out of 2 H rounds in a row while connected and healed, by learner.

    Returns
    -------
    list of dict
        ``learner``, ``reports``, ``rounds_missed``, ``first_s``, ``cause`` (most often named) and ``remedy``.
    """
    events, details = tables["events"], details_of(tables, Kind.LEARNER_STARVED)
    found: dict[int, dict[str, Any]] = {}
    causes: dict[int, Counter[str]] = {}
    remedies = {}
    for event in events_of(tables, Kind.LEARNER_STARVED).tolist():
        learner, cause = learner_of(int(events["peer"][event])), str(events["reason"][event])
        mine = found.setdefault(learner, {"learner": learner, "reports": 0, "rounds_missed": 0})
        mine.setdefault("first_s", float(since_began(tables, events["time_ns"][event])))
        mine["reports"] += 1
        mine["rounds_missed"] += int(events["steps"][event])
        detail = details.get(event, {})
        causes.setdefault(learner, Counter()).update(detail.get("causes") or {cause: int(events["steps"][event])})
        remedies[cause] = str(detail.get("remedy", ""))
    for learner, mine in found.items():
        mine["cause"] = causes[learner].most_common(1)[0][0]
        mine["remedy"] = remedies.get(mine["cause"], "")
    return [found[learner] for learner in sorted(found)]


def stalled(tables: Tables) -> list[dict[str, Any]]:
    """Learners that made no step for so long that their METADATA no longer counted, by learner.

    Returns
    -------
    list of dict
        ``learner``, ``reports``, ``first_s``.
    """
    events = tables["events"]
    found: dict[int, dict[str, Any]] = {}
    for event in events_of(tables, Kind.LEARNER_STALLED).tolist():
        learner, time_s = learner_of(int(events["peer"][event])), float(since_began(tables, events["time_ns"][event]))
        found.setdefault(learner, {"learner": learner, "reports": 0, "first_s": time_s})["reports"] += 1
    return [found[learner] for learner in sorted(found)]


def quorums_lost(tables: Tables) -> list[dict[str, Any]]:
    """Times in which fewer than K learners could have taken part.

    Returns
    -------
    list of dict
        ``start_s``, ``for_s`` (up to the end of the run if it was not regained), ``regained``, ``possible``,
        ``quorum``, ``missing`` (labels), ``quarantined`` (those of them that only a release lets in again), ``awaited``
        (rounds had not begun: there had been no quorum that could be lost).
    """
    events, details = tables["events"], details_of(tables, Kind.QUORUM_LOST)
    first = events_of(tables, Kind.ROUNDS_BEGAN)
    regained = events_of(tables, Kind.QUORUM_REGAINED)
    began, closed = run_span(tables)
    result = []
    for event in events_of(tables, Kind.QUORUM_LOST).tolist():
        later = regained[regained > event]
        start, end = int(events["time_ns"][event]), int(events["time_ns"][later[0]]) if len(later) else closed
        result.append({
            "start_s": (start - began) * NS,
            "for_s": (end - start) * NS,
            "regained": bool(len(later)),
            "possible": int(events["value"][event]),
            "quorum": int(events["steps"][event]),
            "missing": list(details.get(event, {}).get("missing", ())),
            "quarantined": list(details.get(event, {}).get("quarantined", ())),
            "awaited": not len(first) or event < int(first[0]),
        })  # fmt: skip
    return result


def own_stops(tables: Tables) -> list[dict[str, Any]]:
    """Times at which the syncer noticed that it had itself been stopped: ``time_s`` and ``for_s``."""
    events = tables["events"]
    return [
        {"time_s": float(since_began(tables, events["time_ns"][event])), "for_s": float(events["value"][event])}
        for event in events_of(tables, Kind.SELF_STOPPED).tolist()
    ]


def syncer_restarts(tables: Tables) -> int:
    """Starts of the syncer while the run went on."""
    reasons = tables["events"]["reason"][events_of(tables, Kind.SYNCER_STARTED)].astype(str)
    return int((reasons == "restart").sum())


def own_ends(tables: Tables) -> list[dict[str, Any]]:
    """Processes that ended by themselves or by a hand from outside: no injected fault, and not with the run.

    Returns
    -------
    list of dict
        ``time_s``, ``process`` (label), ``how`` (exit code or signal), ``line`` (the last that it said, or empty).
    """
    events, details = tables["events"], details_of(tables, Kind.PROCESS_ENDED)
    struck = events_of(tables, Kind.FAULT_INJECTED)
    struck = struck[np.isin(events["reason"][struck].astype(str), DEADLY)]
    _, closed = run_span(tables)
    found = []
    for event in events_of(tables, Kind.PROCESS_ENDED).tolist():
        time_ns, peer, how = int(events["time_ns"][event]), int(events["peer"][event]), str(events["reason"][event])
        before = time_ns - events["time_ns"][struck[events["peer"][struck] == peer]]
        if how == "exit 0" or time_ns >= closed or ((before >= 0) & (before < FAULT_SHOWS_NS)).any():
            continue
        line = str(details.get(event, {}).get("line", ""))
        found.append(
            {"time_s": float(since_began(tables, time_ns)), "process": label_of(peer), "how": how, "line": line}
        )
    return found


def left_by_hand(tables: Tables) -> list[dict[str, Any]]:
    """Processes that no supervisor watched and that were lost for good before the run's end, as the syncer saw it.

    Returns
    -------
    list of dict
        ``learner``, ``time_s``, ``reason`` (of its loss), ``again_s`` (until another process of it joined, or None).
    """
    events = tables["events"]
    peers, values, times = events["peer"], events["value"], events["time_ns"]
    watched = {(int(peers[e]), int(values[e])) for e in events_of(tables, Kind.PROCESS_STARTED)}
    joins = events_of(tables, Kind.LEARNER_JOINED)
    joins = joins[[(int(peers[e]), int(values[e])) not in watched for e in joins]] if len(joins) else joins
    found = []
    for event in events_of(tables, Kind.LEARNER_LOST).tolist():
        mine = joins[peers[joins] == peers[event]]
        before, after = mine[mine < event], mine[mine > event]
        came_back = len(after) and len(before) and values[after[0]] == values[before[-1]]
        if not len(before) or came_back or str(events["reason"][event]) in ("ended", "removed"):
            continue
        again = float((times[after[0]] - times[event]) * NS) if len(after) else None
        found.append({
            "learner": learner_of(int(peers[event])),
            "time_s": float(since_began(tables, times[event])),
            "reason": str(events["reason"][event]),
            "again_s": again,
        })  # fmt: skip
    return found


def settings_changed(tables: Tables) -> list[dict[str, Any]]:
    """Live settings that were accepted, in order: ``time_s``, ``revision``, ``who``, ``values``."""
    events, details = tables["events"], details_of(tables, Kind.SETTING_CHANGED)
    return [
        {
            "time_s": float(since_began(tables, events["time_ns"][event])),
            "revision": int(events["setting"][event]),
            "who": str(details.get(event, {}).get("who", "")),
            "values": dict(details.get(event, {}).get("values", {})),
        }
        for event in events_of(tables, Kind.SETTING_CHANGED).tolist()
        if "quarantined" not in details.get(event, {}).get("values", {})
    ]
