"""A poisoned learner among four, on real processes: refused, flagged, quarantined, released, and all of it replays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine.real_runs import GUARD_S, of_kind, records_of, tiny, until
from workbench.analysis.arrays.refusals import quarantines, refused
from workbench.analysis.from_tape import tables_of
from workbench.cli.main import main
from workbench.config import ConfigError
from workbench.engine.launch import Run, launch
from workbench.protocol.records import Kind, Record, process_of
from workbench.replay.exact import replay
from workbench.replay.machines import rerun_machines
from workbench.tape import open_tape

BAD = 3
FLIPS = 12


def happens(run: Run, what: str, seen: Callable[[list[Record]], bool]) -> None:
    until(lambda: seen(records_of(run.path)), what)


def refusal_of(guard: str) -> Callable[[list[Record]], bool]:
    return lambda records: any(
        guard in (r.reason, r.detail.get("guard")) for r in of_kind(records, Kind.FRAGMENT_DROPPED)
    )


def merges_of_all(records: list[Record]) -> int:
    return sum(r.detail["learners"] == [0, 1, 2, 3] for r in of_kind(records, Kind.MERGED))


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = tiny(
        learners=4, quorum=3, grace="all", eligibility="paced", lead=4, quarantine_after=3,
        **{"inner.batch": 8, "model.width": 32, "fragments": 2, "period": 8},
    )  # fmt: skip
    with launch(config, tmp_path_factory.mktemp("runs") / "poisoned") as run:
        run.wait(rounds=1, timeout_s=GUARD_S)
        happens(run, "all have been merged ten times", lambda records: merges_of_all(records) >= 10)
        with pytest.raises(ConfigError, match="L3 is not quarantined"):
            run.release(BAD)
        run.poison(BAD, "nan")
        happens(run, "the NaN is refused", refusal_of("nonfinite"))
        run.poison(BAD, "scale", factor=100.0)
        happens(run, "what is 100 times too large is refused", refusal_of("norm"))
        run.poison(BAD, "flip", count=FLIPS)
        happens(run, "the flips are flagged", lambda records: any("flagged" in r.detail for r in records))
        until(lambda: not run.status()["learners"][BAD]["flagged"], "the flips are over")
        run.poison(BAD, "nan", count=3)
        until(lambda: bool(run.status()["learners"][BAD]["quarantined"]), "it is quarantined")
        merges = int(run.status()["merges"])
        run.wait(rounds=merges + 10, timeout_s=GUARD_S)
        assert main(["control", str(run.path), "release", f"L{BAD}"]) == 0
        merged = merges_of_all(records_of(run.path))
        happens(run, "it is merged again", lambda records: merges_of_all(records) > merged)
    return run.path


def test_what_is_refused_is_in_no_merge_and_the_others_are_merged_without_it(poisoned: Path) -> None:
    records = records_of(poisoned)
    dropped = {r.round: r for r in of_kind(records, Kind.FRAGMENT_DROPPED) if r.reason in ("nonfinite", "guard")}
    assert {r.peer for r in dropped.values()} == {process_of(BAD)}
    (guard,) = [r for r in dropped.values() if r.reason == "guard"]
    assert guard.detail["norm"] > 10 * max(guard.detail["others"], guard.detail["own"]) > 0
    merged = {r.round: r for r in of_kind(records, Kind.MERGED)}
    assert all(BAD not in merged[t].detail["learners"] for t in dropped if t in merged)
    assert guard.round in merged
    folded = [r for r in of_kind(records, Kind.UPDATE_FOLDED) if r.process == process_of(BAD) and r.detail.get("anew")]
    assert len(folded) >= 2, "it was healed"


def test_each_merged_digest_is_that_of_what_was_not_refused(poisoned: Path) -> None:
    """Replay merges the contributions that a merge names, which the refused are not among."""
    report = replay(poisoned)
    assert report.bit_exact, report.first_difference
    again = rerun_machines(poisoned)
    assert again.equal, again.first_difference


def test_flips_are_flagged_and_merged(poisoned: Path) -> None:
    records = records_of(poisoned)
    flips = [r.detail["round"] for r in of_kind(records, Kind.FAULT_APPLIED) if r.reason == "flip"]
    flagged = [r for r in of_kind(records, Kind.MERGED) if r.detail.get("flagged")]
    print(f"{len(flagged)} of {len(flips)} flips flagged")
    assert any(BAD in r.detail["flagged"] and BAD in r.detail["learners"] and r.round in flips for r in flagged)


def test_the_quarantine_and_its_end_are_on_the_tape(poisoned: Path) -> None:
    tables = tables_of(open_tape(poisoned))
    first, last = quarantines(tables)
    assert (first["learner"], first["quarantined"], first["who"]) == (BAD, True, "guard")
    assert first["why"] == "3 contributions in a row refused, the last as nonfinite"
    assert (last["learner"], last["quarantined"], last["who"]) == (BAD, False, "cli")
    (row,) = [row for row in refused(tables) if row["reasons"]]
    assert row["learner"] == BAD and row["reasons"] == {"nonfinite": 4, "guard": 1} and row["flagged"] > 0
