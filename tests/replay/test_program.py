from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.replay.runs import Live, config_of, live, replayed
from workbench.config import VirtualConfig
from workbench.protocol.records import SYNCER, Kind, Record, process_of
from workbench.replay.program import FragmentCaptured, StepEnded, UpdateFolded, read_programs
from workbench.tape import TapeError

L0 = process_of(0)


def record(kind: Kind, seq: int, **columns: object) -> Record:
    return Record(kind, L0, 1, seq, 0, **columns)  # type: ignore[arg-type]


def step(seq: int, n: int) -> Record:
    detail = {"batch": 2, "accumulation": 1}
    return record(Kind.STEP_ENDED, seq, step=n, global_step=n - 1, tokens=32, value=5.0, detail=detail)


def fold(seq: int, n: int, version: int) -> Record:
    detail = {"reference": -1}
    return record(Kind.UPDATE_FOLDED, seq, fragment=0, version=version, base_version=version - 1, step=n,
                  reason="overwrite", detail=detail)  # fmt: skip


def capture(seq: int, n: int, base: int, round_: int = 1) -> Record:
    return record(Kind.FRAGMENT_CAPTURED, seq, fragment=0, round=round_, base_version=base, step=n, reason="f32")


def fault(seq: int, round_: int) -> Record:
    return record(Kind.FAULT_APPLIED, seq, reason="nan", fragment=0, detail={"round": round_, "factor": 1.0, "seed": 0})


def program(*records: Record) -> list[str]:
    """Steps of L0 as short texts."""
    texts = []
    for found in read_programs(records).steps[L0]:
        if isinstance(found, StepEnded):
            texts.append(f"step {found.n}")
        elif isinstance(found, UpdateFolded):
            texts.append(f"fold {found.version}")
        elif isinstance(found, FragmentCaptured):
            texts.append(f"{found.poison.kind if found.poison else ''}copy {found.n} on {found.base_version}")
    return texts


def test_a_copy_recorded_late_stands_where_it_was_published() -> None:
    in_time = program(step(1, 1), fold(2, 1, 1), step(3, 2), capture(4, 2, 1), step(5, 3), fold(6, 3, 2))
    assert in_time == ["step 1", "fold 1", "step 2", "copy 2 on 1", "step 3", "fold 2"]
    late = program(step(1, 1), fold(2, 1, 1), step(3, 2), step(4, 3), fold(5, 3, 2), capture(6, 2, 1))
    assert late == in_time


def test_two_copies_of_one_step_are_told_apart_by_their_base() -> None:
    records = (step(1, 1), fold(2, 1, 1), step(3, 2), fold(4, 2, 2), capture(5, 2, 1), capture(6, 2, 2))
    assert program(*records)[2:] == ["step 2", "copy 2 on 1", "fold 2", "copy 2 on 2"]


def test_a_copy_that_never_was_stays_where_it_is_recorded() -> None:
    assert program(step(1, 1), step(2, 2), capture(3, 7, 1)) == ["step 1", "step 2", "copy 7 on 1"]


def test_a_fault_acts_on_the_next_capture_of_its_round_alone() -> None:
    records = (step(1, 1), fault(2, 5), capture(3, 1, -1, 4), capture(4, 1, -1, 5), capture(5, 1, -1, 5))
    assert program(*records) == ["step 1", "copy 1 on -1", "nancopy 1 on -1", "copy 1 on -1"]


def test_programs_end_before_the_first_record_out_of_order() -> None:
    programs = read_programs([step(1, 1), step(3, 2), step(4, 3)])
    assert len(programs.steps[L0]) == 1
    assert programs.broken is not None
    assert programs.broken[:] == (1, Kind.STEP_ENDED, L0, 3, 2)


def test_contributions_of_different_lengths_are_refused() -> None:
    lists = {name: [0] for name in ("steps_captured", "c_steps", "c_tokens", "weights", "base_versions", "digests")}
    plain = ("outer_digest", "norm", "weights_rule", "outer", "outer_rate", "outer_momentum", "fresh_outer")
    detail = {**dict.fromkeys(plain, 0), **lists, "learners": [0, 1]}
    with pytest.raises(TapeError, match="event 0, merged by syncer, lists contributions of different lengths"):
        read_programs([Record(Kind.MERGED, SYNCER, 1, 1, 0, detail=detail)])


def test_replay_of_captures_that_were_recorded_after_later_steps_is_exact(text_path: Path) -> None:
    config = config_of(text_path, learners=2, rounds=10, fold="delay_corrected", virtual=VirtualConfig(merge_s=0.25))
    run = live(config)
    records, moved = _captures_late(run)
    assert moved > 5
    for order in ("journal", 2):
        assert replayed(run, order, records).verify().final_digest == run.digest


def _captures_late(run: Live) -> tuple[list[Record], int]:
    """The journal with every capture recorded just before the merge that takes it, and how many that moves.

    So does a process that encodes beside its training thread.
    """
    records, moved = run.records, 0
    for merge in [r for r in run.records if r.kind == Kind.MERGED]:
        for learner, n in zip(merge.detail["learners"], merge.detail["steps_captured"], strict=True):
            at = next(
                i for i, r in enumerate(records)
                if (r.kind, r.process, r.round, r.step) == (Kind.FRAGMENT_CAPTURED, process_of(learner), merge.round, n)
            )  # fmt: skip
            target = next(i for i, r in enumerate(records) if r.kind == Kind.MERGED and r.round == merge.round)
            between = records[at + 1 : target]
            moved += any(r.kind == Kind.STEP_ENDED and r.process == process_of(learner) for r in between)
            records = records[:at] + between + [records[at]] + records[target:]
    return _renumbered(records), moved


def _renumbered(records: list[Record]) -> list[Record]:
    counts = dict.fromkeys((r.process for r in records), 0)
    result = []
    for r in records:
        counts[r.process] += 1
        result.append(msgspec.structs.replace(r, seq=counts[r.process]))
    return result
