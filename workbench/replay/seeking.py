"""``tree.wb.weights``: the global weights as of any merge, recomputed from the tape and kept with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

if TYPE_CHECKING:
    import numpy as np

    from workbench.replay.session import Replayed

__all__ = ["weights"]


def weights(tree: xr.DataTree, merge: int | None = None) -> dict[str, np.ndarray]:
    """Global weights just after a merge, by tensor name (float32); by default those at the end of the tape.

    The first call replays up to there; a later one goes on from there, and goes back without computing anything.

    Parameters
    ----------
    tree : xarray.DataTree
    merge : int, optional
        Row of /merges, from 0; negative counts from the end.

    Raises
    ------
    ReplayDiffers
        The replay came to other weights than the run.
    """
    session: Replayed = tree.wb.kept(_session)
    return session.weights(merge)


def _session(tree: xr.DataTree) -> Replayed:
    from workbench.replay.exact import replay

    return replay(tree)
