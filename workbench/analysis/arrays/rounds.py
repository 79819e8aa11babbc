"""The rounds, with how long each of their states took."""

from __future__ import annotations

import numpy as np

from workbench.analysis.arrays.lookup import last_before
from workbench.analysis.arrays.tables import NS, Array, Tables, events_of
from workbench.protocol.records import Kind

OUTCOMES = ("open", "merged", "skipped", "aborted")
DURATIONS = ("open_s", "ready_s", "grace_s", "pull_s", "merge_s", "commit_s", "send_s")
"""Until the first learner was ready; until the quorum; grace; pull; arithmetic; commit; until UPDATE was sent."""


def rounds(tables: Tables) -> dict[str, Array]:
    """One row per opened round, in order of opening.

    Where a round went back to READY its last quorum and grace count; where its syncer restarted it, its first opening.

    Returns
    -------
    dict of str to ndarray (round,)
        ``round``, ``fragment``, ``version``, ``epoch``, ``outcome`` (index into `OUTCOMES`), ``included`` (learners),
        ``opened_ns`` and the `DURATIONS` [s], NaN where a state was not reached; all on the syncer's clock.
    """
    events, merges = tables["events"], tables["merges"]
    opened = events_of(tables, Kind.ROUND_OPENED)
    times: dict[str, Array] = {"opened": events["time_ns"][opened].astype(float)}
    kinds = {"ready": Kind.ROUND_READY, "quorum": Kind.QUORUM_REACHED, "grace": Kind.GRACE_ENDED, "merged": Kind.MERGED}
    kinds |= {"committed": Kind.MERGE_COMMITTED}
    found = {name: _last(tables, opened, kind) for name, kind in kinds.items()}
    for name, event in found.items():
        times[name] = np.where(event >= 0, events["time_ns"][event].astype(float), np.nan)
    row = np.searchsorted(merges["event"], found["merged"])
    times["pulled"], times["sent"] = (_of_merge(tables, name, row, found["merged"]) for name in ("pull_ns", "send_ns"))
    outcome = np.where(found["merged"] >= 0, 1, 0)
    outcome[(outcome == 0) & (_last(tables, opened, Kind.ROUND_SKIPPED) >= 0)] = 2
    outcome[(outcome == 0) & (_last(tables, opened, Kind.ROUND_ABORTED) >= 0)] = 3
    included = np.r_[merges["included"].sum(1, dtype=np.int64), 0]
    chain = ("opened", "ready", "quorum", "grace", "pulled", "merged", "committed", "sent")
    return {
        **{name: events[name][opened] for name in ("round", "fragment", "epoch")},
        "version": np.where(found["merged"] >= 0, events["version"][found["merged"]], -1),
        "outcome": outcome,
        "included": np.where(found["merged"] >= 0, included[np.minimum(row, len(included) - 1)], 0),
        "opened_ns": events["time_ns"][opened],
        **{
            name: (times[later] - times[earlier]) * NS
            for name, earlier, later in zip(DURATIONS, chain[:-1], chain[1:], strict=True)
        },
    }


def _last(tables: Tables, opened: Array, kind: Kind) -> Array:
    """Last event of a kind of each opened round in its epoch, -1 for none."""
    events = tables["events"]
    at = events_of(tables, kind)
    keys = [events["epoch"][at], events["round"][at], events["fragment"][at]]
    found = last_before(
        keys, at, [events[name][opened] for name in ("epoch", "round", "fragment")], _end(tables, opened)
    )
    return np.where(found >= 0, np.r_[at, -1][found], -1)


def _end(tables: Tables, opened: Array) -> Array:
    return np.full(len(opened), len(tables["events"]["kind"]))


def _of_merge(tables: Tables, name: str, row: Array, merged: Array) -> Array:
    column = np.r_[tables["merges"][name], -1]
    value = column[np.minimum(row, len(column) - 1)].astype(float)
    return np.where((merged >= 0) & (value >= 0), value, np.nan)
