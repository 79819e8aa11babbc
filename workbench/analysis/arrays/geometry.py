"""Norms of contributions and merged updates, and cosines between outer gradients, over the merges."""

from __future__ import annotations

import numpy as np

from workbench.analysis.arrays.tables import Array, Tables, learner_count
from workbench.tape.schema import MERGED


def geometry(tables: Tables) -> dict[str, Array]:
    """Norms and cosines as the tape has them.

    Returns
    -------
    dict of str to ndarray
        ``round``, ``fragment``, ``version``, ``event``, ``contributors`` and ``merged_norm`` (merge,): ||Delta||;
        ``norm`` (merge, learner): ||v_m||; ``cosine`` (merge, learner): of v_m to the weighted sum of the others'
        v; ``weight`` (merge, learner), its share of the weights; ``norm_ratio`` (merge,): ||Delta|| over the weighted
        mean of ||v_m|| (1 for radial-directional averaging, about 1/sqrt(M) for a mean of M orthogonal ones);
        ``mean_cosine`` (merge,): mean of ``cosine``, NaN with fewer than two contributors.
    """
    merges, rows = tables["merges"], tables["contributions"]
    inside = np.flatnonzero((rows["fate"] == MERGED) & (rows["merge"] >= 0))
    merge, learner = rows["merge"][inside], rows["learner"][inside]
    shape = (len(merges["event"]), max(learner_count(tables), int(learner.max(initial=-1)) + 1))

    def dense(values: Array) -> Array:
        found = np.full(shape, np.nan)
        found[merge, learner] = values
        return found

    count = np.bincount(merge, minlength=shape[0])
    weight = rows["weight"][inside]
    share = weight / np.maximum(np.bincount(merge, weights=weight, minlength=shape[0]), np.finfo(float).tiny)[merge]
    mean_norm = np.bincount(merge, weights=share * rows["norm"][inside], minlength=shape[0])
    several = np.where((count > 1)[merge], rows["cosine"][inside], np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = merges["norm"] / np.where(count > 0, mean_norm, np.nan)
        cosine = np.where(count > 1, np.bincount(merge, weights=rows["cosine"][inside], minlength=shape[0]), np.nan)
        cosine = cosine / count
    return {
        **{name: merges[name] for name in ("round", "fragment", "version", "event")},
        "contributors": count,
        "merged_norm": merges["norm"],
        "norm": dense(rows["norm"][inside]),
        "cosine": dense(several),
        "weight": dense(share),
        "norm_ratio": ratio,
        "mean_cosine": cosine,
    }


def by_contributors(contributors: Array, values: Array) -> tuple[Array, Array, Array]:
    """Mean of a value over the merges with the same number of contributors: how it goes with M.

    Returns
    -------
    contributors, merges, mean : ndarray (count,)
        Ascending numbers that occur, merges with a value, and their mean.
    """
    known = ~np.isnan(values)
    numbers, where = np.unique(contributors[known], return_inverse=True)
    merges = np.bincount(where, minlength=len(numbers))
    return numbers, merges, np.bincount(where, weights=values[known], minlength=len(numbers)) / np.maximum(merges, 1)
