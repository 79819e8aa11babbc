from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import workbench as wb
from tests.analysis.runs import rec
from tests.analysis.tapes import taped
from tests.replay.runs import FAULTS, Live, config_of, live, tape_of
from workbench.algorithms.merging import cosines
from workbench.analysis import geometry
from workbench.analysis.from_records import tables
from workbench.analysis.recomputed_geometry import gram
from workbench.protocol.records import Kind, Record
from workbench.replay.report import ReplayDiffers


def merged(version: int, learners: list[int], norms: list[float], cosine: list[float], norm: float) -> Record:
    detail = {
        "learners": learners,
        "norms": norms,
        "cosines": cosine,
        "weights": [1.0, 3.0][: len(norms)],
        "norm": norm,
    }
    return rec(Kind.MERGED, version, fragment=0, round=version, version=version, detail=detail)


def test_norms_and_cosines_by_hand() -> None:
    """Two orthogonal ones of weight 1 and 3, then one alone."""
    found = geometry(tables([merged(1, [0, 2], [4.0, 2.0], [0.0, 0.0], 1.25), merged(2, [1], [3.0], [0.0], 3.0)]))
    assert found["norm"].values == pytest.approx(np.array([[4, np.nan, 2], [np.nan, 3, np.nan]]), nan_ok=True)
    assert found["weight"].values == pytest.approx(np.array([[0.25, np.nan, 0.75], [np.nan, 1, np.nan]]), nan_ok=True)
    assert found["norm_ratio"].values.tolist() == [0.5, 1.0] and found["m"].values.tolist() == [2, 1]
    assert found["mean_cosine"].values.tolist() == pytest.approx([0.0, np.nan], nan_ok=True)
    assert np.isnan(found["cosine"].values[1]).all() and found.attrs["source"] == "recorded on the tape"
    assert found["contributors"].values.tolist() == [1, 2]
    assert found["norm_ratio_of"].values.tolist() == [1.0, 0.5]
    assert found["mean_cosine_merges"].values.tolist() == [0, 1]


def test_no_merges_no_geometry() -> None:
    assert geometry(tables([])).sizes["merge"] == 0


def test_inner_products_are_those_of_whole_vectors() -> None:
    rng = np.random.default_rng(0)
    anchors, values = (rng.standard_normal((3, 70_000)).astype(np.float32) for _ in range(2))
    v = anchors.astype(float) - values
    assert gram(anchors, values) == pytest.approx(v @ v.T)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Live, xr.DataTree]:
    folder = tmp_path_factory.mktemp("geometry")
    (folder / "text.bin").write_bytes(np.arange(20_000, dtype=np.int64).astype(np.uint8).tobytes())
    made = live(config_of(folder / "text.bin", rounds=16, merge="mean", outer_momentum=0.0, anchor="base"), FAULTS[2:5])
    return made, tape_of(made, folder / "run")


def test_pairs_by_exact_replay_give_what_the_tape_recorded(run: tuple[Live, xr.DataTree]) -> None:
    tape = run[1]
    found, recorded = wb.geometry(tape), geometry(tape)
    assert found.attrs["source"] == "recomputed by exact replay" and found.sizes["merge"] == 16
    assert found["norm"].values == pytest.approx(recorded["norm"].values, rel=1e-5, nan_ok=True)
    weights = tape.wb.merge_learner()["weight"].values
    several = 0
    for row in range(16):
        who = np.flatnonzero(~np.isnan(recorded["norm"].values[row]))
        several += len(who) > 1
        lengths, w = found["norm"].values[row, who], weights[row, who]
        inner = found["pair_cosine"].values[row][np.ix_(who, who)] * np.outer(lengths, lengths)
        share = w / w.sum()
        to_others = cosines(w.tolist(), np.diag(inner).tolist(), (inner @ share).tolist(), float(share @ inner @ share))
        if len(who) > 1:
            assert to_others == pytest.approx(recorded["cosine"].values[row, who].tolist(), abs=2e-3)
        mean = np.sqrt(share @ inner @ share)
        assert mean == pytest.approx(float(found["merged_norm"][row]), rel=1e-3)  # merge = mean: Delta is the mean
        assert float(found["mean_norm_ratio"][row]) == pytest.approx(mean / (share @ lengths))
        assert found["cosine_to_mean"].values[row, who] == pytest.approx((inner @ share) / lengths / mean)
    assert several > 8
    pairs = found["pair_cosine"].values
    assert np.array_equal(pairs, pairs.transpose(0, 2, 1), equal_nan=True)
    m = int(found["m"].values.max())
    of_m = found["mean_cosine"].values[found["m"].values == m]
    assert float(found["mean_cosine_of"].sel(contributors=m)) == pytest.approx(of_m.mean())


def test_other_weights_than_the_tape_s_are_refused(run: tuple[Live, xr.DataTree], tmp_path: Path) -> None:
    made = run[0]
    records = made.records
    at = next(i for i, r in enumerate(records) if r.kind == Kind.STEP_ENDED)
    changed = [*records[:at], _with(records[at], value=records[at].value + 1.0), *records[at + 1 :]]
    tape = tape_of(made._replace(log=[([], changed)]), tmp_path / "changed")
    with pytest.raises(ReplayDiffers, match="other weights than the run"):
        wb.geometry(tape)


def test_a_tape_of_something_else_has_no_pairs(tmp_path: Path) -> None:
    tape = taped(tmp_path / "run", [rec(Kind.RUN_ENDED)], config_of(tmp_path))
    tape.attrs["config"] = ""
    with pytest.raises(wb.TapeError, match="no configuration"):
        wb.geometry(tape)


def _with(record: Record, **values: object) -> Record:
    fields = {name: getattr(record, name) for name in Record.__struct_fields__}
    return Record(**{**fields, **values})
