from __future__ import annotations

import time

import numpy as np
import pytest

from tests.analysis.runs import CONFIG, simulated
from workbench.analysis.arrays.staleness import behind, effective_period, staleness
from workbench.analysis.from_records import tables
from workbench.protocol.records import FIRST_LEARNER, SYNCER, Kind, Record, learner_of, process_of
from workbench.tape.schema import CONTRIBUTIONS, MERGED, MERGES


def rec(kind: Kind, time_ns: int, process: int = SYNCER, **columns: object) -> Record:
    return Record(kind, process, 0, 0, time_ns, **columns)  # type: ignore[arg-type]


def folded(version: int, time_ns: int, base: int, step: int = 0) -> Record:
    return rec(Kind.UPDATE_FOLDED, time_ns, process_of(0), fragment=0, version=version, base_version=base, step=step)


def arrived(round_: int, base: int, captured: int, time_ns: int) -> Record:
    return rec(
        Kind.FRAGMENT_ARRIVED, time_ns, peer=process_of(0), fragment=0, round=round_, base_version=base, step=3,
        steps=2, tokens=9, detail={"captured_ns": captured},
    )  # fmt: skip


def merged(round_: int, version: int, time_ns: int, base: int) -> Record:
    detail = {"learners": [0], "steps_captured": [3], "c_steps": [2], "c_tokens": [9], "base_versions": [base]}
    return rec(Kind.MERGED, time_ns, fragment=0, round=round_, version=version, base_version=version - 1, detail=detail)


def test_staleness_of_a_contribution_by_hand() -> None:
    found = staleness(tables([
        folded(0, 1_000, -1), arrived(4, 0, 3_000, 3_500), merged(4, 1, 4_000, 0),
        folded(1, 5_000, 0), rec(Kind.MERGED, 5_500, fragment=0, round=10, version=2),
        arrived(16, 1, 7_000, 7_500), folded(1, 7_200, 1), merged(16, 3, 9_000, 1),
        arrived(22, 3, 9_500, 9_600),
        rec(Kind.FRAGMENT_DROPPED, 9_700, peer=process_of(0), fragment=0, round=22, step=3, reason="late"),
    ]))  # fmt: skip
    assert found["versions"].tolist() == pytest.approx([0, 1, np.nan], nan_ok=True)
    assert found["rounds"].tolist() == pytest.approx([np.nan, 12, 6], nan_ok=True)
    assert found["seconds"].tolist() == pytest.approx(
        [2e-6, 2e-6, np.nan], nan_ok=True
    )  # a later refold is not its base
    assert found["lag"].tolist() == pytest.approx([1e-6, 2e-6, np.nan], nan_ok=True)
    assert found["steps"].tolist() == [2, 2, 2]


def test_a_run_in_virtual_time_against_a_walk_over_its_records() -> None:
    records = simulated()
    found = staleness(tables(records))
    bases: dict[tuple[int, int], tuple[int, int]] = {}
    rounds: dict[tuple[int, int], int] = {}
    came: dict[tuple[int, int], tuple[int, int]] = {}
    expected = []
    for record in records:
        if record.kind == Kind.UPDATE_FOLDED:
            bases[record.process, record.fragment] = record.version, record.time_ns
        elif record.kind == Kind.FRAGMENT_CAPTURED:
            came[record.process, record.round] = bases[record.process, record.fragment]
        elif record.kind == Kind.MERGED:
            rounds[record.fragment, record.version] = record.round
            for m, base in zip(record.detail["learners"], record.detail["base_versions"], strict=True):
                version, folded_ns = came[process_of(m), record.round]
                assert version == base
                row = (found["round"] == record.round) & (found["learner"] == m) & (found["fate"] == MERGED)
                at = int(np.flatnonzero(row)[0])
                origin = rounds.get((record.fragment, base))
                since = record.round - origin if origin is not None else np.nan
                expected.append([record.version - 1 - base, since, folded_ns, at, record.time_ns])
    assert len(expected) > 100
    contributions = tables(records)["contributions"]
    for versions, since, folded_ns, at, merged_ns in expected:
        captured = int(contributions["captured_ns"][at])
        got = [found[name][at] for name in ("versions", "rounds", "seconds", "lag")]
        wanted = [versions, since, (captured - folded_ns) * 1e-9, (merged_ns - captured) * 1e-9]
        assert got == pytest.approx(wanted, nan_ok=True)
    steady = found["rounds"][found["fate"] == MERGED]
    assert np.nanmedian(steady) == CONFIG.period and (found["versions"][found["fate"] == MERGED] == 0).all()


def test_behind_against_a_walk_over_the_records() -> None:
    records, sizes = simulated(), [1, 2, 5]
    at, found = behind(tables(records), sizes)
    version = [0] * 3
    base = [[-1] * 3 for _ in range(3)]
    row = 0
    for record in records:
        if record.kind == Kind.UPDATE_FOLDED:
            base[learner_of(record.process)][record.fragment] = record.version
        elif record.kind == Kind.LEARNER_JOINED and record.reason == "process":
            base[learner_of(record.peer)] = [-1] * 3
        elif record.kind == Kind.MERGED:
            version[record.fragment] = record.version
            wanted = [sum(s * (v - b) for s, v, b in zip(sizes, version, held, strict=True)) / 8 for held in base]
            assert found[row].tolist() == pytest.approx(wanted)
            row += 1
    assert row == len(at)


def test_effective_period_and_its_warning() -> None:
    folds = [folded(v, v, v - 1, step) for v, step in ((0, 2), (1, 8), (2, 11), (3, 23), (4, 28))]
    found = effective_period(tables([*folds, folded(5, 9, -1, 30), folded(6, 10, 5, 36)]), 8)
    assert found["steps"].tolist() == [6, 3, 12, 5, 6] and found["unusual"].tolist() == [
        False,
        True,
        False,
        False,
        False,
    ]
    assert effective_period(tables(folds), 6)["unusual"].tolist() == [False, False, True, False]
    usual = effective_period(tables(simulated()), CONFIG.period)
    assert np.median(usual["steps"]) == CONFIG.period


def test_many_contributions_take_less_than_a_second() -> None:
    count, rng = 200_000, np.random.default_rng(0)
    contributions = {v.name: np.full(count, v.fill, v.numpy) for v in CONTRIBUTIONS.variables if v.dtype != "string"}
    contributions |= {
        "event": np.arange(count) * 2 + 1, "fragment": rng.integers(0, 24, count),
        "learner": rng.integers(0, 16, count),
        "base_version": rng.integers(0, 5000, count), "merge": rng.integers(0, count // 8, count),
        "fate": np.full(count, MERGED), "captured_ns": np.arange(count) * 2000,
    }  # fmt: skip
    merges = {v.name: np.full(count // 8, v.fill, v.numpy) for v in MERGES.variables if v.name != "included"}
    merges |= {"event": np.arange(count // 8) * 16, "fragment": rng.integers(0, 24, count // 8)}
    merges["version"] = np.arange(count // 8) // 24
    events = {
        "kind": np.where(np.arange(2 * count) % 2 == 0, Kind.UPDATE_FOLDED, Kind.FRAGMENT_ARRIVED),
        "process": FIRST_LEARNER + rng.integers(0, 16, 2 * count), "fragment": rng.integers(0, 24, 2 * count),
        "version": rng.integers(0, 5000, 2 * count), "time_ns": np.arange(2 * count) * 1000,
    }  # fmt: skip
    began = time.process_time()
    found = staleness({"contributions": contributions, "merges": merges, "events": events})
    assert len(found["seconds"]) == count and np.isfinite(found["seconds"]).any()
    assert time.process_time() - began < 1.0
