from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

from tests.analysis.runs import simulated
from tests.analysis.tapes import taped
from workbench.analysis.comparing.divergence import Divergence, first_divergence
from workbench.config import ConfigError
from workbench.protocol.records import FIRST_LEARNER, SYNCER, Kind, Record, label_of
from workbench.replay.columns import COLUMNS_READ

RECORDS = simulated()[:900]


def altered(record: Record, **values: Any) -> Record:
    fields = {name: getattr(record, name) for name in Record.__struct_fields__}
    return Record(**{**fields, **values})


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return taped(tmp_path_factory.mktemp("tapes") / "a", RECORDS)


def against(tape: xr.DataTree, folder: Path, records: Sequence[Record], **header: Any) -> Divergence | None:
    return first_divergence(tape, taped(folder, records, **header))


def test_a_run_is_not_divergent_from_itself(tape: xr.DataTree, tmp_path: Path) -> None:
    assert first_divergence(tape, tape) is None
    assert against(tape, tmp_path / "b", RECORDS) is None
    assert against(tape, tmp_path / "c", RECORDS, run_id="other") is None


def test_the_first_event_that_programs_read_otherwise_is_named(tape: xr.DataTree, tmp_path: Path) -> None:
    steps = [i for i, r in enumerate(RECORDS) if r.kind == Kind.STEP_ENDED]
    late, early = steps[-1], steps[len(steps) // 2]
    changed = list(RECORDS)
    for at in (late, early):
        changed[at] = altered(RECORDS[at], value=7.5)
    changed[early - 1] = altered(RECORDS[early - 1], time_ns=RECORDS[early - 1].time_ns + 1)  # read by no program
    found = against(tape, tmp_path / "b", changed)
    assert found is not None and (found.event, found.other_event) == (early, early)
    assert (found.basis, found.kind, found.column, found.other_value) == ("programs", "step_ended", "value", 7.5)
    assert found.merge == sum(r.kind == Kind.MERGED for r in RECORDS[:early])
    assert f"(event {early})" in found.text() and "0.0 against 7.5" in found.text()


@pytest.mark.parametrize("run_id", ["r", "other"])
def test_its_time_counts_from_the_start_of_rounds(tape: xr.DataTree, tmp_path: Path, run_id: str) -> None:
    began = next(r.time_ns for r in RECORDS if r.kind == Kind.ROUNDS_BEGAN)
    at = [i for i, r in enumerate(RECORDS) if r.kind == Kind.MERGED][2]
    changed = [*RECORDS[:at], altered(RECORDS[at], digest=RECORDS[at].digest + 1), *RECORDS[at + 1 :]]
    found = against(tape, tmp_path / "b", changed, run_id=run_id)
    assert found is not None and began > 0
    seconds = (RECORDS[at].time_ns - began) / 1e9
    assert found.event == at and found.time_s == pytest.approx(seconds)
    assert f"at {seconds:.3f} s, after " in found.text() and found.text().endswith(f"(event {at})")


def test_the_order_between_processes_is_no_divergence(tape: xr.DataTree, tmp_path: Path) -> None:
    changed = list(RECORDS)
    at = next(
        i for i, (a, b) in enumerate(pairwise(RECORDS)) if {a.process, b.process} == {SYNCER, FIRST_LEARNER} and i > 50
    )
    changed[at], changed[at + 1] = changed[at + 1], changed[at]
    assert against(tape, tmp_path / "b", changed) is None


def test_a_run_that_ends_before_diverges_at_its_end(tape: xr.DataTree, tmp_path: Path) -> None:
    found = against(tape, tmp_path / "b", RECORDS[:700])
    assert found is not None and found.other_event is None and found.column == "program ended"
    assert found.event is not None and found.event >= 700 and "second run has no such event" in found.text()
    read = [i for i, r in enumerate(RECORDS) if i >= 700 and r.kind in COLUMNS_READ]
    assert found.event == read[0]


def test_where_the_next_event_is_another_both_are_told(tape: xr.DataTree, tmp_path: Path) -> None:
    at = next(i for i, r in enumerate(RECORDS) if i > 200 and r.kind == Kind.UPDATE_FOLDED)
    learner = label_of(RECORDS[at].process)
    other = altered(RECORDS[at], kind=Kind.SETTING_APPLIED)
    found = against(tape, tmp_path / "b", [*RECORDS[:at], other, *RECORDS[at:]])
    assert found is not None and found.column == "kind"
    assert f": in A, {learner} next folded an update (round " in found.text(("A", "B"))
    assert f"); in B it applied a setting instead (event {at})" in found.text(("A", "B"))
    assert f"in the first run, {learner} next folded" in found.text()
    short = against(tape, tmp_path / "c", RECORDS[:700])
    assert short is not None and "; B has no such event" in short.text(("A", "B"))


def test_a_child_is_compared_with_its_parent_event_by_event(tape: xr.DataTree, tmp_path: Path) -> None:
    merges = [i for i, r in enumerate(RECORDS) if r.kind == Kind.MERGED]
    at = merges[3]
    detail = {**RECORDS[at].detail, "weights": [2.0 for _ in RECORDS[at].detail["learners"]]}
    changed = [*RECORDS[:at], altered(RECORDS[at], detail=detail), *RECORDS[at + 1 :]]
    found = against(tape, tmp_path / "b", changed, run_id="child", parent={"run_id": "r", "event": at, "seed": 0})
    assert found is not None and found.event == at and found.column == "detail.weights" and found.merge == 3
    assert against(tape, tmp_path / "c", changed, run_id="stranger") is None  # its digests are the same


def test_runs_of_their_own_are_compared_merge_by_merge(tape: xr.DataTree, tmp_path: Path) -> None:
    merges = [i for i, r in enumerate(RECORDS) if r.kind == Kind.MERGED]
    at = merges[4]
    changed = [*RECORDS[:at], altered(RECORDS[at], digest=2**63 + 5), *RECORDS[at + 1 :]]
    found = against(tape, tmp_path / "b", [r for r in changed if r.kind != Kind.GRACE_ENDED], run_id="other")
    assert found is not None and found.basis == "merges" and found.merge == 4 and found.event == at
    assert found.column == "digest" and found.to_json()["other_value"] == f"{2**63 + 5:016x}"
    short = against(tape, tmp_path / "c", RECORDS[: merges[2]], run_id="other")
    assert short is not None and (short.merge, short.event, short.other_event) == (2, merges[2], None)


def test_too_few_and_too_many_runs(tape: xr.DataTree) -> None:
    from workbench.analysis.comparing.comparison import compare

    for runs in ([tape], [tape] * 7):
        with pytest.raises(ConfigError, match=f"{len(runs)} runs to compare; allowed: 2 to 6"):
            compare(*runs)
    with pytest.raises(ConfigError, match="'steps' is nothing"):
        compare(tape, tape, axis="steps")
