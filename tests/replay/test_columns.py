"""Every value that replay reads of a tape matters, and no other does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import xarray as xr

from tests.replay.runs import SECOND, Changes, Live, config_of, live, replayed, tape_of
from tests.replay.tapes import Change, changed
from workbench.config import VirtualConfig
from workbench.protocol.faults import Fault
from workbench.protocol.records import FIRST_LEARNER, LEARNER_PROGRAM, SYNCER, SYNCER_PROGRAM, Kind, Record
from workbench.replay.columns import ALWAYS_READ, COLUMNS_READ
from workbench.replay.exact import replay

ITSELF, LATER = "itself", "later"


class Mutation(NamedTuple):
    """How a column is changed, at which of its events, and where the difference must show first."""

    change: Change
    shows: str = ITSELF
    where: Callable[[Record], bool] = lambda record: True


def more(value: Any) -> Any:
    """Another number or truth value."""
    return not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else value * 1.5


def word(*pairs: str) -> Change:
    """Another word."""
    return dict(zip(pairs, pairs[1:] + pairs[:1], strict=True)).__getitem__


def merged_twice(record: Record) -> bool:
    return record.version > 2


def adopted(reason: str) -> Callable[[Record], bool]:
    return lambda record: record.reason == reason


def taken(record: Record) -> bool:
    """The snapshot that the run goes back to."""
    return record.value == 1.0


MUTATIONS: dict[tuple[Kind, str], Mutation] = {
    (Kind.STATE_ADOPTED, "reason"): Mutation(word("initial", "peer"), ITSELF, adopted("initial")),
    (Kind.STATE_ADOPTED, "digest"): Mutation(more, ITSELF, adopted("peer")),
    (Kind.STATE_ADOPTED, "step"): Mutation(more, ITSELF, adopted("peer")),
    (Kind.STATE_ADOPTED, "peer"): Mutation(more, ITSELF, adopted("peer")),
    (Kind.STATE_ADOPTED, "version"): Mutation(more, ITSELF, adopted("peer")),
    (Kind.STATE_ADOPTED, "value"): Mutation(more, ITSELF, adopted("snapshot")),
    (Kind.SNAPSHOT_RECORDED, "value"): Mutation(more, LATER, taken),
    (Kind.STEP_ENDED, "global_step"): Mutation(more, LATER, lambda r: r.step == 4),
    (Kind.STEP_ENDED, "detail.batch"): Mutation(lambda value: value - 1),
    (Kind.STEP_ENDED, "detail.accumulation"): Mutation(lambda value: value - 1),
    (Kind.UPDATE_FOLDED, "version"): Mutation(lambda value: value - 1, LATER, merged_twice),
    (Kind.UPDATE_FOLDED, "reason"): Mutation(word("blend", "overwrite"), LATER, lambda r: r.reason == "blend"),
    (Kind.UPDATE_FOLDED, "value"): Mutation(more, LATER, lambda r: r.reason == "blend"),
    (Kind.UPDATE_FOLDED, "detail.reference"): Mutation(
        lambda value: -1, LATER, lambda r: r.detail["reference"] >= 0 and r.reason == "delay_corrected"
    ),
    (Kind.FRAGMENT_CAPTURED, "round"): Mutation(more, LATER),
    (Kind.FRAGMENT_CAPTURED, "steps"): Mutation(more, LATER),
    (Kind.FRAGMENT_CAPTURED, "tokens"): Mutation(more, LATER),
    (Kind.FRAGMENT_CAPTURED, "reason"): Mutation(word("f32", "bf16")),
    (Kind.CONTRIBUTION_ACKNOWLEDGED, "version"): Mutation(
        lambda value: value - 1, ITSELF, lambda r: r.version > 1 and r.value == 1
    ),
    (Kind.SETTING_APPLIED, "detail.values.rate_scale"): Mutation(more, LATER),
    (Kind.FAULT_APPLIED, "reason"): Mutation(word("nan", "flip"), LATER, lambda r: r.reason == "nan"),
    (Kind.FAULT_APPLIED, "fragment"): Mutation(more, LATER),
    (Kind.FAULT_APPLIED, "detail.round"): Mutation(more, LATER),
    (Kind.FAULT_APPLIED, "detail.factor"): Mutation(more, LATER, lambda r: r.reason == "scale"),
    (Kind.FAULT_APPLIED, "detail.seed"): Mutation(more, LATER, lambda r: r.reason == "random"),
    (Kind.MERGED, "reason"): Mutation(word("rda", "mean")),
    (Kind.MERGED, "detail.weights_rule"): Mutation(word("tokens2_per_step", "tokens")),
    (Kind.MERGED, "detail.outer"): Mutation(word("nesterov", "sgd"), ITSELF, merged_twice),
    (Kind.MERGED, "detail.outer_momentum"): Mutation(more, ITSELF, merged_twice),
    (Kind.MERGED, "detail.fresh_outer"): Mutation(more, ITSELF, merged_twice),
    **{(kind, "kind"): Mutation(lambda _: Kind.PULL_REFUSED, LATER) for kind in LEARNER_PROGRAM},
    (Kind.FAULT_APPLIED, "kind"): Mutation(lambda _: Kind.PULL_REFUSED, LATER),
    (Kind.MERGED, "kind"): Mutation(lambda _: Kind.MERGE_COMMITTED, LATER),
    (Kind.SETTING_APPLIED, "kind"): Mutation(lambda _: Kind.PULL_REFUSED, LATER, lambda r: r.step == 5),
    (Kind.SNAPSHOT_RECORDED, "kind"): Mutation(lambda _: Kind.PULL_REFUSED, LATER, taken),
    **{(kind, "process"): Mutation(more, LATER) for kind in COLUMNS_READ},
}
"""Columns that need more than `more` at the event itself."""

CASES = [(kind, column) for kind, columns in COLUMNS_READ.items() for column in (*ALWAYS_READ, *columns)]


@pytest.fixture(scope="module")
def run(text_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Live:
    """Few steps, but every rule that a column could matter for."""
    config = config_of(
        text_path, learners=2, rounds=24, period=3, fragments=2, fold="blend", quorum=2,
        virtual=VirtualConfig(merge_s=0.05), recovery="peer",
    )  # fmt: skip
    changes: Changes = [(0.9, {"inner.rate": 5e-3}), (1.3, {"fold": "delay_corrected"})]
    faults = [
        Fault("nan", int(0.95 * SECOND), learner=0, count=1),
        Fault("scale", SECOND, learner=1, factor=0.5, persistent=True),
        Fault("random", int(1.1 * SECOND), learner=0),
        Fault("kill", int(1.6 * SECOND), learner=1, for_ns=SECOND // 10),
    ]
    folder = tmp_path_factory.mktemp("snapshots")
    return live(config, faults, changes, folder, wanted=[2.6], losses=[(2.9, 0.1, True), (4.2, 0.1, False)])


@pytest.fixture(scope="module")
def tape(run: Live, tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return tape_of(run, tmp_path_factory.mktemp("columns") / "run").load()


def program_records(run: Live, kind: Kind) -> list[tuple[int, Record]]:
    """Records of a kind in the middle of the run, in journal order; those that a merge took, of captures."""
    taken = {
        (learner, r.round, step)
        for r in run.records
        if r.kind == Kind.MERGED
        for learner, step in zip(r.detail["learners"], r.detail["steps_captured"], strict=True)
    }
    found = [(event, r) for event, r in enumerate(run.records) if r.kind == kind]
    if kind == Kind.FRAGMENT_CAPTURED:
        found = [(e, r) for e, r in found if (r.process - FIRST_LEARNER, r.round, r.step) in taken]
    return found


def test_the_run_is_bit_exact_before_anything_is_changed(tape: xr.DataTree, run: Live) -> None:
    report = replay(tape).report
    assert report.verify() is report
    assert report.final_digest == run.digest
    assert not report.environment
    assert {Kind(r.kind) for r in run.records} >= set(COLUMNS_READ)


def test_the_columns_are_those_of_the_programs() -> None:
    assert set(COLUMNS_READ) == {*LEARNER_PROGRAM, *SYNCER_PROGRAM}


@pytest.mark.parametrize(("kind", "column"), CASES, ids=[f"{kind.name.lower()}-{column}" for kind, column in CASES])
def test_a_changed_value_is_noticed(tape: xr.DataTree, run: Live, kind: Kind, column: str) -> None:
    mutation = MUTATIONS.get((kind, column), Mutation(more))
    candidates = [(event, r) for event, r in program_records(run, kind) if mutation.where(r)]
    event, _ = candidates[len(candidates) // 3]
    report = replay(changed(tape, event, column, mutation.change))
    difference = report.difference
    assert not report.bit_exact, f"{column} of event {event} may be anything"
    assert difference is not None
    assert difference.event == event if mutation.shows == ITSELF else difference.event >= event, difference
    assert difference.event - event < 80, "a difference that shows so late was found by chance"


@pytest.mark.parametrize("column", ["global_step", "detail.rate"])
def test_another_learning_rate_shows_at_the_learners_next_loss_or_capture(
    tape: xr.DataTree, run: Live, column: str
) -> None:
    kind = Kind.STEP_ENDED if column == "global_step" else Kind.SETTING_APPLIED
    name = column if column == "global_step" else "detail.values.rate_scale"
    event, record = next((e, r) for e, r in program_records(run, kind) if kind != Kind.STEP_ENDED or r.step == 4)
    first = next(
        later
        for later, r in enumerate(run.records)
        if later > event and r.process == record.process and _shows(r, record)
    )
    report = replay(changed(tape, event, name, more))
    assert report.difference is not None
    assert (report.difference.event, report.difference.place) == (first, "learner")


def _shows(later: Record, record: Record) -> bool:
    """Whether a record holds a digest or a loss of parameters after the step that ``record`` changed."""
    made_with = record.step if record.kind == Kind.STEP_ENDED else record.step + 1
    if later.kind == Kind.STEP_ENDED:
        return later.step > made_with
    return later.kind == Kind.FRAGMENT_CAPTURED and later.step >= made_with


@pytest.mark.parametrize(("column", "what"), [("digest", "merged fragment"), ("detail.outer_digest", "outer state")])
def test_a_digest_changed_by_hand_names_exactly_that_merge(
    tape: xr.DataTree, run: Live, column: str, what: str
) -> None:
    merges = program_records(run, Kind.MERGED)
    event, record = merges[len(merges) // 2]
    recorded = record.digest if column == "digest" else record.detail["outer_digest"]
    for order in ("journal", 7):
        report = replay(changed(tape, event, column, lambda value: value ^ 1), order=order)
        difference = report.difference
        assert difference is not None
        assert difference[:6] == (event, "merged", "syncer", record.round, record.fragment, "merge")
        assert (difference.recorded, difference.computed) == (f"{recorded ^ 1:016x}", f"{recorded:016x}")
        assert report.merges_compared == report.merges
        assert f"event {event}: merged of syncer, round {record.round}" in str(report.first_difference)
        assert what in str(report.first_difference)


def test_nothing_else_of_a_record_is_read(run: Live) -> None:
    assert replayed(run, records=[_scrubbed(record) for record in run.records]).bit_exact


def _scrubbed(record: Record) -> Record:
    """A record in which everything that replay does not read is something else."""
    of_both = record.kind in (Kind.SNAPSHOT_RECORDED, Kind.RESTORED)
    of_one = record.kind in COLUMNS_READ and (record.process == SYNCER) == (record.kind == Kind.MERGED)
    belongs = of_both or of_one
    read = COLUMNS_READ[Kind(record.kind)] if belongs else ()
    columns = dict(msgspec.structs.asdict(record))
    for name, value in columns.items():
        if name not in (*ALWAYS_READ, "detail", *read):
            columns[name] = "something else" if isinstance(value, str) else -77 if isinstance(value, int) else None
    keys = {column.split(".")[1] for column in read if column.startswith("detail.")}
    detail = {key: value if key in keys else "something else" for key, value in record.detail.items()}
    if record.kind == Kind.SETTING_APPLIED and belongs:
        detail["values"] = {"rate_scale": record.detail["values"]["rate_scale"]}
    return Record(**{**columns, "detail": detail})
