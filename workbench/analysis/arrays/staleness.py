"""How old contributions are when they are merged, and how far learners are behind (DESIGN section 9)."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.analysis.arrays.lookup import last_before
from workbench.analysis.arrays.tables import NS, Array, Tables, events_of, learner_count, weights_of
from workbench.protocol.records import FIRST_LEARNER, Kind, process_of
from workbench.tape.schema import MERGED

START = -1
"""Base version of a process that holds nothing from the syncer."""


def staleness(tables: Tables) -> dict[str, Array]:
    """Staleness of every contribution, NaN where it has none.

    Returns
    -------
    dict of str to ndarray (contribution,)
        ``versions`` (version merged into - 1 - base version, merged ones with a known base), ``steps`` (c_steps),
        ``rounds`` (t - round of the base, NaN for version 0), ``seconds`` (capture - fold of the base, both on the
        learner's clock), ``lag`` (merge - capture [s], across clocks, merged ones only), and the keys ``round``,
        ``fragment``, ``learner``, ``merge``, ``fate``.
    """
    contributions, merges, events = tables["contributions"], tables["merges"], tables["events"]
    base, merge = contributions["base_version"], contributions["merge"]
    merged = (contributions["fate"] == MERGED) & (merge >= 0)
    row = np.where(merged, merge, 0)
    captured = np.where(contributions["captured_ns"] >= 0, contributions["captured_ns"].astype(float), np.nan)
    nothing = np.full(len(merge), np.nan)
    version = merges["version"][row] if len(merges["version"]) else nothing
    merged_ns = events["time_ns"][merges["event"][row]] if len(merges["version"]) else nothing
    origin = last_before(
        [merges["fragment"], merges["version"]],
        merges["event"],
        [contributions["fragment"], base],
        contributions["event"],
    )
    base_round = merges["round"][origin] if len(merges["round"]) else nothing
    return {
        "versions": np.where(merged & (base >= 0), version - 1.0 - base, np.nan),
        "steps": contributions["c_steps"].astype(float),
        "rounds": np.where(origin >= 0, contributions["round"] - base_round, np.nan),
        "seconds": (captured - _folded_ns(tables, captured)) * NS,
        "lag": np.where(merged, (merged_ns - captured) * NS, np.nan),
        **{name: contributions[name] for name in ("round", "fragment", "learner", "merge", "fate")},
    }


def _folded_ns(tables: Tables, captured: Array) -> Array:
    """When each contribution's base was folded, on the learner's clock; a refold after the capture is not it."""
    contributions, events = tables["contributions"], tables["events"]
    folds = events_of(tables, Kind.UPDATE_FOLDED)
    if not len(folds):
        return np.full(len(captured), np.nan)
    keys = [events["process"][folds], events["fragment"][folds], events["version"][folds]]
    wanted = [contributions["learner"] + FIRST_LEARNER, contributions["fragment"], contributions["base_version"]]
    at = last_before(keys, folds, wanted, contributions["event"])
    after = (at >= 0) & (events["time_ns"][folds[at]] > captured)
    if after.any():
        at[after] = last_before(keys, folds, [key[after] for key in wanted], folds[at[after]])
    return np.where(at >= 0, events["time_ns"][folds[at]].astype(float), np.nan)


def behind(tables: Tables, sizes: Any = None, at: Array | None = None) -> tuple[Array, Array]:
    """How far each learner is behind: mean over fragments, by size, of version[p] - base[p].

    A new process holds nothing: its bases are -1.

    Parameters
    ----------
    sizes : sequence of int, optional
        Elements of each fragment; equal by default.
    at : ndarray (event,), optional
        Events to look at; all merges by default.

    Returns
    -------
    at : ndarray (event,)
    behind : ndarray (event, learner)
        In versions, just after the event.
    """
    events, weights = tables["events"], weights_of(tables, sizes)
    merged = events_of(tables, Kind.MERGED)
    at = merged if at is None else at
    fragment = events["fragment"][merged]
    previous = last_before([fragment], merged, [fragment], merged)
    gained = events["version"][merged] - np.where(previous >= 0, events["version"][merged][previous], 0)
    version = _running(merged, gained * weights[fragment], at)
    found = np.empty((len(at), learner_count(tables)))
    for learner in range(found.shape[1]):
        found[:, learner] = version - _base(tables, weights, learner, at)
    return at, found


def _running(moments: Array, changes: Array, at: Array) -> Array:
    """Sum of the changes up to and including each event."""
    return np.r_[0.0, np.cumsum(changes)][np.searchsorted(moments, at, "right")]


def _base(tables: Tables, weights: Array, learner: int, at: Array) -> Array:
    """Mean base version of a learner, by size, just after each event."""
    events = tables["events"]
    folds = events_of(tables, Kind.UPDATE_FOLDED)
    folds = folds[events["process"][folds] == process_of(learner)]
    joins = events_of(tables, Kind.LEARNER_JOINED)
    joins = joins[(events["peer"][joins] == process_of(learner)) & (events["reason"][joins] == "process")]
    gained = (events["version"][folds] - events["base_version"][folds]) * weights[events["fragment"][folds]]
    so_far = _running(folds, gained, at)
    since = np.r_[0.0, _running(folds, gained, joins)][np.searchsorted(joins, at, "right")]
    return START + so_far - since


def effective_period(tables: Tables, period: int) -> dict[str, Array]:
    """Steps between two folds of one fragment by one process; a first fold after a start is no period.

    Returns
    -------
    dict of str to ndarray (fold,)
        ``event``, ``learner``, ``fragment``, ``steps``, and ``unusual``: below 0.5 x or above 1.5 x H.
    """
    events = tables["events"]
    folds = events_of(tables, Kind.UPDATE_FOLDED)
    keys = [events["process"][folds], events["fragment"][folds]]
    previous = last_before(keys, folds, keys, folds)
    counts = (previous >= 0) & (events["base_version"][folds] >= 0)
    folds, previous = folds[counts], folds[previous[counts]]
    steps = events["step"][folds] - events["step"][previous]
    return {
        "event": folds,
        "learner": events["process"][folds] - FIRST_LEARNER,
        "fragment": events["fragment"][folds],
        "steps": steps,
        "unusual": (steps < 0.5 * period) | (steps > 1.5 * period),
    }
