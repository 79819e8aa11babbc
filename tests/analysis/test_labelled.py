from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

from tests.analysis.runs import CONFIG, EVERY_FAULT, simulated, with_evals
from tests.analysis.tapes import taped
from workbench.analysis import ACCESSORS, summary
from workbench.analysis.from_records import tables
from workbench.analysis.from_tape import GROUPS, sizes_of, tables_of
from workbench.protocol.records import Record


def records() -> list[Record]:
    return with_evals(simulated(EVERY_FAULT))


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return taped(tmp_path_factory.mktemp("tapes") / "run", records())


def test_tables_from_records_are_those_of_the_tape(tape: xr.DataTree) -> None:
    made, stored = tables(records()), tables_of(tape)
    for group in GROUPS:
        if group == "details":
            continue
        for name, column in made[group].items():
            there = stored[group][name]
            if there.ndim == 2:
                there = there[:, : column.shape[1]]
            assert np.array_equal(column, there, equal_nan=column.dtype.kind == "f"), (group, name)


def test_every_accessor_gives_the_same_from_tape_and_tables(tape: xr.DataTree) -> None:
    made = tables(records())
    given: dict[str, dict[str, Any]] = {
        "merge_availability": {"config": CONFIG}, "summary": {"config": CONFIG, "sizes": [2, 4, 6]},
        "effective_period": {"period": CONFIG.period},
    }  # fmt: skip
    assert sizes_of(tape) == [2, 4, 6]
    for name, function in ACCESSORS.items():
        found, wanted = getattr(tape.wb, name)(), function(made, **given.get(name, {}))
        if name in ("behind", "ledger", "merged_share", "token_fates", "token_fates_by_round", "tokens_by_reason"):
            assert type(found) is type(wanted)  # tables alone do not know the sizes
        elif isinstance(wanted, xr.Dataset | xr.DataArray):
            xr.testing.assert_equal(found, wanted)
        else:
            assert found == wanted


def test_datasets_carry_units_and_names(tape: xr.DataTree) -> None:
    for name in ACCESSORS:
        found = getattr(tape.wb, name)()
        for variable in found.data_vars.values() if isinstance(found, xr.Dataset) else ():
            assert variable.attrs["units"] and variable.attrs["long_name"], (name, variable.name)
    goodput = tape.wb.goodput()
    assert float(goodput["goodput"] + goodput["badput"].sum()) == pytest.approx(1.0)
    assert set(goodput["badput_s"].dims) == {"learner", "cause"}


def test_summary_has_the_keys_of_train(tape: xr.DataTree) -> None:
    found = summary(tape)
    assert list(found) == [
        "rounds", "merges", "tokens_processed", "tokens_merged", "tokens_overwritten", "tokens_not_merged",
        "tokens_blended", "tokens_lost", "tokens_rolled_back", "tokens_local", "val_loss_first", "val_loss_last",
        "goodput", "uptime", "merge_availability", "participation", "time_s",
    ]  # fmt: skip
    assert found["merges"] == CONFIG.rounds and found["rounds"] >= CONFIG.rounds
    parts = sum(v for k, v in found.items() if k.startswith("tokens_") and k != "tokens_processed")
    assert parts == pytest.approx(found["tokens_processed"])
    assert 0.5 < found["goodput"] < 1 and found["uptime"] > 0.9 and 0.5 < found["participation"] <= 1
    assert found["val_loss_first"] == 5.5 and found["val_loss_last"] == 2.5


def test_summary_of_nothing_is_none() -> None:
    found = summary(tables([]))
    assert found["goodput"] is None and found["participation"] is None and found["val_loss_last"] is None
    assert found["merges"] == 0 and found["tokens_processed"] == 0


def test_a_tape_without_a_manifest_has_no_sizes() -> None:
    tree = xr.DataTree()
    assert sizes_of(tree) is None
    tree.attrs["manifest"] = [{"shape": [2], "fragment": 1}]
    assert sizes_of(tree) is None  # fragment 0 is empty


def test_what_a_tape_is_asked_wrongly_is_one_line_that_says_what_it_takes(tape: xr.DataTree) -> None:
    with pytest.raises(TypeError, match=r"^tape\.wb\.behind\(500\): .*; it takes \(at=None\)$"):
        tape.wb.behind(500)
    with pytest.raises(TypeError, match=r"^tape\.wb\.within\(3\): .*'end_s'; it takes \(start_s, end_s\)$"):
        tape.wb.within(3)
    with pytest.raises(TypeError, match=r"it takes \(bins=60\)$"):
        tape.wb.goodput_over_time(parts=3)
    names = dir(tape.wb)
    assert {"why", "at", "events", "staleness", "closed"} <= set(names) and all(hasattr(tape.wb, one) for one in names)
    assert not {"records", "inputs", "kept", "words", "arrows"} & set(names)
