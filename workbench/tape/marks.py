"""Which part of a counterfactual's tape is its parent's, which was computed anew, and which was simulated."""

from __future__ import annotations

import numpy as np
import xarray as xr

from workbench.protocol.records import Kind

__all__ = ["marks"]

RECORDED, RE_SIMULATED, RECOMPUTED = range(3)
MEANINGS = ("recorded", "re_simulated", "recomputed")

COMPUTED = (
    Kind.STATE_ADOPTED, Kind.STEP_ENDED, Kind.UPDATE_FOLDED, Kind.FRAGMENT_CAPTURED, Kind.SETTING_APPLIED,
    Kind.FRAGMENT_ARRIVED, Kind.FRAGMENT_DROPPED, Kind.MERGED, Kind.EVALUATED,
)  # fmt: skip
"""Kinds of event that hold what arithmetic gave; all others are the schedule's alone."""


def marks(tape: xr.DataTree) -> xr.DataArray:
    """Where each event of a tape comes from.

    Parameters
    ----------
    tape : xarray.DataTree

    Returns
    -------
    xarray.DataArray
        (event,): 0 ``recorded`` (as in the parent, or by the run itself if it has none), 1 ``re_simulated`` (from the
        branch on), 2 ``recomputed`` (the parent's schedule, values of another arithmetic; from the branch on if that
        has one).
    """
    kinds = tape["events"].dataset["kind"].values
    found = np.full(len(kinds), RECORDED, np.int8)
    parent = tape.attrs.get("parent")
    if isinstance(parent, dict) and "shared_events" in parent:
        shared = int(parent["shared_events"])
        if parent.get("recomputed") and parent.get("class") == "arithmetic":
            first = int(parent.get("event") or 0)
            found[first:][np.isin(kinds[first:], COMPUTED)] = RECOMPUTED
            if parent.get("from_round") is not None:
                found[first] = RECOMPUTED  # the change itself
            shared = len(found)
        elif parent.get("recomputed"):
            found[:shared][np.isin(kinds[:shared], COMPUTED)] = RECOMPUTED
        found[shared:] = RE_SIMULATED
    attrs = {
        "units": "1",
        "long_name": "where the event comes from",
        "flag_values": [RECORDED, RE_SIMULATED, RECOMPUTED],
        "flag_meanings": " ".join(MEANINGS),
    }
    return xr.DataArray(found, dims="event", coords={"event": np.arange(len(kinds))}, attrs=attrs, name="mark")
