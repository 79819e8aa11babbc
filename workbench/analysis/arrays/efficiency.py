"""Sample efficiency: the validation loss against what was spent on it."""

from __future__ import annotations

import numpy as np

from workbench.analysis.arrays.tables import Array, Tables, events_of
from workbench.analysis.arrays.validation import validation_curve
from workbench.protocol.records import Kind

AXES = ("tokens_processed", "tokens_merged", "time_s", "merges", "rounds")
"""What a loss may be set against."""


def efficiency(tables: Tables) -> dict[str, Array]:
    """Validation loss against each of `AXES`, in order of evaluation.

    Returns
    -------
    dict of str to ndarray (eval,)
        ``loss`` [nat], ``tokens_processed`` (in steps recorded before the newest merge of the evaluated weights),
        ``tokens_merged``, ``time_s`` (from the start of rounds to the end of the evaluation), ``merges`` in the
        weights, ``rounds`` opened until the newest of them.
    """
    curve = validation_curve(tables)
    opened = events_of(tables, Kind.ROUND_OPENED)
    _, first = np.unique(tables["events"]["round"][opened], return_index=True)
    before = np.searchsorted(np.sort(opened[first]), tables["merges"]["event"])
    newest = np.clip(curve["merges"], 0, len(before))
    return {
        "loss": curve["loss"],
        "tokens_processed": curve["tokens_processed"],
        "tokens_merged": curve["tokens"],
        "time_s": curve["time_s"],
        "merges": curve["merges"],
        "rounds": np.r_[0, before][newest],
    }
