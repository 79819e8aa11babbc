"""The syncer's machine, run again on what it was told, makes its journal once more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.replay.runs import FAULTS, SECOND, Live, config_of, live, tape_of
from tests.replay.tapes import with_attribute
from workbench.algorithms.schedule import offsets
from workbench.protocol import restart
from workbench.protocol.actions import Append
from workbench.protocol.events import Woken
from workbench.protocol.records import SYNCER, Kind, Record
from workbench.protocol.settings import fixed_settings_of, settings_book_of
from workbench.protocol.syncer import SyncerMachine
from workbench.replay.machines import Rerun, rerun_machines
from workbench.tape import Input, TapeError

OTHER: dict[str, Any] = {"reason": "mean", "clock": (1,), "cause": (1, 1), "detail": {}}


@pytest.fixture(scope="module")
def run(text_path: Path) -> Live:
    return live(config_of(text_path, seed=5, quorum=2), FAULTS, [(0.9, {"quorum": 1}), (1.1, {"rounds": 3})])


def rerun(run: Live, records: list[Record] | None = None, inputs: list[Input] | None = None, **more: Any) -> Any:
    return Rerun(run.config, records or run.records, **more).run(run.inputs if inputs is None else inputs)


def test_the_machine_makes_the_same_journal_again_from_the_tape(run: Live, tmp_path: Path) -> None:
    tape = tape_of(run, tmp_path / "run")
    report = rerun_machines(tape)
    assert report.equal, report.first_difference
    assert (report.records, report.compared, report.inputs, report.lives) == (
        len(run.records), len(run.records), len(run.inputs), 2,
    )  # fmt: skip
    assert rerun_machines(tmp_path / "run") == report
    kinds = {Kind(record.kind) for record in run.records}
    assert kinds >= {Kind.ROUND_RESTARTED, Kind.SELF_STOPPED, Kind.LEARNER_LOST, Kind.SETTING_CHANGED}
    assert kinds >= {Kind.SETTING_REFUSED, Kind.FRAGMENT_DROPPED}
    with pytest.raises(TapeError, match="holds no configuration"):
        rerun_machines(with_attribute(tape, "config", ""))


@pytest.mark.parametrize("column", [name for name in Record.__struct_fields__ if name not in ("kind", "process")])
def test_every_column_of_a_syncers_record_is_compared(run: Live, column: str) -> None:
    at = next(i for i, r in enumerate(run.records) if r.kind == Kind.MERGED and i > len(run.records) // 2)
    records = run.records
    other = OTHER[column] if column in OTHER else getattr(records[at], column) + 1
    records[at] = msgspec.structs.replace(records[at], **{column: other})
    report = rerun(run, records)
    assert not report.equal
    assert report.compared == at
    assert report.first_difference.startswith(f"event {at}: merged of syncer, round ")
    assert f": {column} is " in report.first_difference


def test_a_lost_input_is_noticed(run: Live) -> None:
    middle = len(run.inputs) // 2
    left_out = (run.inputs[:at] + run.inputs[at + 1 :] for at in range(middle, middle + 40, 8))
    assert any(not rerun(run, inputs=inputs).equal for inputs in left_out), "five inputs may be left out"


def test_records_beyond_the_tape_count_only_if_it_is_closed(run: Live) -> None:
    cut = len(run.records) // 2
    assert rerun(run, run.records[:cut], closed=False).equal
    report = rerun(run, run.records[:cut])
    assert not report.equal
    assert "after the last event of the tape" in report.first_difference


def test_inputs_that_end_early_are_noticed(run: Live) -> None:
    report = rerun(run, inputs=run.inputs[:-20])
    assert not report.equal
    assert "the machine makes no further record" in report.first_difference


def killed_in_mid_input(run: Live) -> tuple[list[Record], list[Input], int]:
    """The same run, its syncer killed between two writes of one input, and started again; records of its first life."""
    at = next(i for i, (inputs, records) in enumerate(run.log) if i > len(run.log) // 3 and records and not inputs)
    records = [record for _, written in run.log[:at] for record in written]
    inputs = [item for written, _ in run.log[:at] for item in written]
    fixed = fixed_settings_of(run.config, offsets(run.config.fragments, run.config.period))
    found = restart.restore(fixed, settings_book_of(run.config), records)
    machine = SyncerMachine(found.state)
    now, first = records[-1].time_ns + SECOND, len(records)
    done = machine.start(now, "restart", found.uncommitted)
    for _ in range(3):
        now += SECOND
        inputs.append(Input(SYNCER, machine.state.incarnation, now, msgspec.msgpack.encode(Woken())))
        done = [*done, *machine.handle(now, Woken())]
    appended = [record for action in done if isinstance(action, Append) for record in action.records]
    return [*records, *msgspec.convert(msgspec.to_builtins(appended), list[Record])], inputs, first


def test_a_life_that_ended_between_two_writes_of_one_input_is_whole(run: Live) -> None:
    run = run._replace(log=[(i, r) for i, r in run.log if not any(x.kind == Kind.SYNCER_STARTED for x in r[1:])])
    starts = [i for i, (_, records) in enumerate(run.log) if any(r.kind == Kind.SYNCER_STARTED for r in records)]
    run = run._replace(log=run.log[: starts[1]])
    records, inputs, first = killed_in_mid_input(run)
    report = rerun(run, records, inputs, closed=False)
    assert report.equal, report.first_difference
    assert report.lives == 2 and report.compared == len(records)
    last = max(i for i, item in enumerate(inputs) if item.incarnation == 1)
    more = [*inputs[: last + 1], inputs[last], *inputs[last + 1 :]]
    report = rerun(run, records, more, closed=False)
    assert not report.equal and "which the tape lacks" in report.first_difference
    shorter = records[: first - 1] + records[first:]
    assert not rerun(run, shorter, inputs, closed=False).equal, "a restart from other records is another one"


def test_inputs_of_another_version_are_refused(run: Live) -> None:
    odd = Input(SYNCER, 1, 0, msgspec.msgpack.encode({"type": "unheard_of"}))
    with pytest.raises(TapeError, match="input 0 of syncer is none of this version"):
        rerun(run, inputs=[odd])


def test_a_tape_without_a_record_has_nothing_to_differ(run: Live, tmp_path: Path) -> None:
    tape = tape_of(run._replace(log=[]), tmp_path / "run")
    report = rerun_machines(tape)
    assert (report.equal, report.inputs, report.records, report.compared) == (True, 0, 0, 0)
