"""What the time of each round was spent on (PROTOCOL section 2)."""

from __future__ import annotations

import numpy as np

from workbench.analysis.arrays.rounds import rounds
from workbench.analysis.arrays.tables import Array, Tables

STATES = ("quorum", "grace", "pull", "merge", "commit", "send")
"""From the first ready learner to the K-th; the grace window; until the contributions are here; the arithmetic; until
the merge is committed; until the first UPDATE is handed to the transport."""
_COLUMNS = ("ready_s", "grace_s", "pull_s", "merge_s", "commit_s", "send_s")


def breakdown(tables: Tables) -> dict[str, Array]:
    """Split the time of each opened round into `STATES`.

    Returns
    -------
    dict of str to ndarray (round,)
        ``round``, ``fragment``, ``version``, ``epoch``, ``outcome`` (index into `OUTCOMES` of the rounds),
        ``included`` (learners), ``opened_ns``; ``open_s``, until the first learner was ready [s]; ``state_s``
        (round, state) [s], NaN where a state was not reached, and ``total_s``, their sum [s].
    """
    found = rounds(tables)
    kept = ("round", "fragment", "version", "epoch", "outcome", "included", "opened_ns", "open_s")
    state_s = np.stack([found[name] for name in _COLUMNS], 1) if len(found["round"]) else np.empty((0, len(STATES)))
    return {**{name: found[name] for name in kept}, "state_s": state_s, "total_s": state_s.sum(1)}


def shares(state_s: Array) -> Array:
    """Share of each state in the time of all rounds that reached their end, (state,); NaN without any."""
    whole = state_s[~np.isnan(state_s).any(1)]
    with np.errstate(invalid="ignore"):
        return np.asarray(whole.sum(0) / whole.sum())
