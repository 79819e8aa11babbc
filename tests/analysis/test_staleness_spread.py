from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from tests.analysis.runs import simulated
from workbench.analysis import staleness_by_learner_and_fragment, staleness_over_time
from workbench.analysis.arrays.spread import spread
from workbench.analysis.arrays.staleness import staleness
from workbench.analysis.arrays.tables import run_span
from workbench.analysis.from_records import tables
from workbench.tape.schema import MERGED


def test_spread_by_learner_and_fragment_against_one_pair_at_a_time() -> None:
    made = tables(simulated())
    rows, found = staleness(made), staleness_by_learner_and_fragment(made)
    merged = rows["fate"] == MERGED
    assert dict(found.sizes) == {"statistic": 3, "measure": 5, "learner": 3, "fragment": 3}
    for measure in found["measure"].values:
        for learner in range(3):
            for fragment in range(3):
                mine = merged & (rows["learner"] == learner) & (rows["fragment"] == fragment)
                wanted = spread(rows[measure][mine])
                cell = found.sel(learner=learner, fragment=fragment)
                assert told_of(cell, measure) == pytest.approx(wanted)
    units = {measure: found[measure].attrs["units"] for measure in found["measure"].values}
    assert units == {"versions": "1", "steps": "1", "rounds": "1", "seconds": "s", "lag": "s"}
    assert int(found["count"].sel(measure="steps").sum()) == merged.sum()


def told_of(cell: xr.Dataset, measure: str) -> dict[str, float]:
    """Count and statistics of a measure at one place."""
    statistics = {str(name): cell[measure].sel(statistic=name).item() for name in cell["statistic"].values}
    return {"count": cell["count"].sel(measure=measure).item(), **statistics}


def test_spread_over_time_against_one_part_at_a_time() -> None:
    made = tables(simulated())
    rows, found = staleness(made), staleness_over_time(made, bins=7)
    began, closed = run_span(made)
    merged_ns = made["events"]["time_ns"][made["merges"]["event"][rows["merge"]]]
    part = np.minimum((merged_ns - began) * 7 // (closed - began), 6)
    for at in range(7):
        mine = (rows["fate"] == MERGED) & (part == at)
        for measure in ("versions", "steps", "lag"):
            wanted = spread(rows[measure][mine])
            assert told_of(found.isel(bin=at), measure) == pytest.approx(wanted)
    assert found["start_s"].values[0] == 0 and found["end_s"].values[-1] == pytest.approx((closed - began) * 1e-9)
    assert int(found["count"].sel(measure="steps").sum()) == (rows["fate"] == MERGED).sum()


def test_a_run_without_merges_has_empty_spreads() -> None:
    found = staleness_over_time(tables([]), bins=3)
    assert int(found["count"].sum()) == 0 and np.isnan(found["lag"]).all()
    assert staleness_by_learner_and_fragment(tables([])).sizes["learner"] == 0
