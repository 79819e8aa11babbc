"""Marks of a tape: all recorded, unless its header says that it is a counterfactual."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from workbench.protocol.records import Kind
from workbench.tape.marks import marks

KINDS = [Kind.ROUND_OPENED, Kind.STEP_ENDED, Kind.MERGED, Kind.STEP_ENDED, Kind.MERGED]


def tape(parent: Any) -> xr.DataTree:
    """As much of a tape as marks need."""
    events = xr.Dataset({"kind": ("event", np.array(KINDS, np.int16))})
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"parent": parent}), "/events": events})


def test_a_run_of_its_own_is_recorded() -> None:
    assert marks(tape(None)).values.tolist() == [0] * 5


def test_what_lies_before_the_branch_is_the_parents_what_lies_behind_it_is_simulated() -> None:
    found = marks(tape({"shared_events": 3, "recomputed": False}))
    assert found.values.tolist() == [0, 0, 0, 1, 1]
    assert found.attrs["flag_meanings"] == "recorded re_simulated recomputed"


def test_values_of_another_arithmetic_are_recomputed_decisions_are_not() -> None:
    assert marks(tape({"shared_events": 3, "recomputed": True})).values.tolist() == [0, 2, 2, 1, 1]
