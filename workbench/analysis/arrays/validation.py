"""How the validation loss fell, and what it took to reach a loss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from workbench.analysis.arrays.tables import Array, Tables, since_began


def processed_at_merges(tables: Tables) -> Array:
    """Tokens in the steps recorded before each merge, all learners together, (merge,)."""
    steps = tables["steps"]
    order = np.argsort(steps["event"], kind="stable")
    so_far = np.r_[0, np.cumsum(steps["tokens"][order])]
    return so_far[np.searchsorted(steps["event"][order], tables["merges"]["event"])]


def validation_curve(tables: Tables) -> dict[str, Array]:
    """Validation loss against merges, tokens and time, in order of evaluation.

    Returns
    -------
    dict of str to ndarray (eval,)
        ``loss`` [nat], ``merges``, ``tokens`` (merged), ``tokens_processed`` (recorded before the newest merge in the
        evaluated weights) and ``time_s``, from the start of rounds to the end of the evaluation [s].
    """
    evals = tables["evals"]
    processed = np.r_[0, processed_at_merges(tables)]
    newest = np.clip(evals["merges"], 0, len(processed) - 1)
    columns = {name: evals[name] for name in ("loss", "merges", "tokens")}
    return {**columns, "tokens_processed": processed[newest], "time_s": since_began(tables, evals["time_ns"])}


def first_reach(loss: Array, spent: Array, target: float) -> float:
    """What was spent when a loss was reached for the first time, on straight lines between evaluations.

    Behind an evaluation that gave no finite loss there is no line: what was spent at the next one counts.

    Returns
    -------
    float
        NaN if it was not reached.

    Examples
    --------
    >>> first_reach(np.array([4.0, 2.0]), np.array([0, 100]), 3.0)
    50.0
    """
    at = np.flatnonzero(np.asarray(loss, float) <= target)
    if not len(at):
        return math.nan
    last = int(at[0])
    first = max(last - 1, 0)
    if first == last or not math.isfinite(loss[first]):
        return float(spent[last])
    part = (loss[first] - target) / (loss[first] - loss[last])
    return float(spent[first] + part * (spent[last] - spent[first]))


REACHED = ("merges", "tokens", "tokens_processed", "time_s")


def reached(curve: Mapping[str, Array], losses: Sequence[float]) -> list[dict[str, float | None]]:
    """What it took to reach each loss for the first time, on straight lines between evaluations.

    Parameters
    ----------
    curve : mapping
        From `validation_curve`.
    losses : sequence of float
        Losses to reach [nat].

    Returns
    -------
    list of dict
        ``loss`` and `REACHED`, which are None for a loss that was not reached.

    Examples
    --------
    >>> curve = {"loss": np.array([4.0, 2.0]), **{name: np.array([0, 100]) for name in REACHED}}
    >>> [row["tokens"] for row in reached(curve, [5.0, 3.0, 1.0])]
    [0.0, 50.0, None]
    """
    return [
        {"loss": float(target), **{name: _or_none(first_reach(curve["loss"], curve[name], target)) for name in REACHED}}
        for target in losses
    ]


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
