"""A replay as an object: weights as of any merge, cuts, and several processes with the bits of one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from tests.replay.runs import FAULTS, Live, config_of, live, tape_of
from tests.replay.tapes import changed
from workbench.algorithms.digest import digest
from workbench.cli.main import main
from workbench.protocol.records import Kind
from workbench.replay.exact import ReplayDiffers, Replayed, replay
from workbench.replay.parallel import ParallelReplay, WorkerLost
from workbench.tape import TapeError


@pytest.fixture(scope="module")
def run(text_path: Path) -> Live:
    return live(config_of(text_path, seed=3), FAULTS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("session") / "run"


@pytest.fixture(scope="module")
def tape(run: Live, folder: Path) -> xr.DataTree:
    return tape_of(run, folder).load()


def merges(tape: xr.DataTree) -> Iterator[tuple[int, int, int]]:
    """(merge, fragment, digest) of every merge."""
    table = tape["merges"].dataset
    yield from zip(range(table.sizes["merge"]), table["fragment"].values.tolist(), table["digest"].values.tolist(),
                   strict=True)  # fmt: skip


def test_weights_as_of_every_merge_have_the_digests_of_the_tape(tape: xr.DataTree) -> None:
    computed: list[int] = []
    session = replay(tape, progress=lambda done, _: computed.append(done))
    recorded = list(merges(tape))
    for merge, p, there in [recorded[5], recorded[2], recorded[17], *reversed(recorded[:17])]:
        before = len(computed)
        assert digest(session.flat_weights(merge)[p]) == there
        assert len(computed) == max(before, merge + 1), "what was passed is not computed again"
    assert digest(np.concatenate(session.flat_weights(-1))) == session.verify().final_digest
    assert computed == list(range(1, len(recorded) + 1))
    names = session.weights(0)
    assert {name: values.shape for name, values in names.items()} == {
        name: values.shape for name, values in session.report.weights().items()
    }
    with pytest.raises(TapeError, match=r"there is no merge 24; the tape holds merges 0 to 23"):
        session.weights(24)


def test_weights_that_are_not_kept_any_more_are_computed_again(tape: xr.DataTree) -> None:
    computed: list[int] = []
    session = replay(tape, progress=lambda done, _: computed.append(done), kept_bytes=20_000)
    recorded = list(merges(tape))
    for merge in (12, 2, 9):
        _, p, there = recorded[merge]
        assert digest(session.flat_weights(merge)[p]) == there
    assert computed[:13] == list(range(1, 14))
    assert computed[13:16] == [1, 2, 3]


def test_the_tape_hands_out_weights_and_keeps_the_replay(tape: xr.DataTree) -> None:
    first = tape.wb.weights(8)
    again = tape.wb.weights(8)
    assert all(np.shares_memory(first[name], again[name]) for name in first)
    other = tape.wb.weights(7)
    assert any((first[name] != other[name]).any() for name in first)


def test_up_to_a_merge_only_what_led_to_it_is_computed(tape: xr.DataTree, run: Live) -> None:
    for merge, p, there in list(merges(tape))[6:9]:
        report = replay(tape, upto=merge).verify()
        assert digest(report.final[p]) == there
        assert report.merges == report.merges_compared == merge + 1
        past = tape.wb.past(int(tape["merges"].dataset["event"].values[merge]))
        stepped = tape.wb.events(Kind.STEP_ENDED)["event"].values
        assert report.steps == past.mask()[stepped].sum() < len(stepped)
    assert replay(tape, upto=-1).final_digest == run.digest


@pytest.mark.parametrize("share", [0.0, 0.13, 0.37, 0.61, 0.99])
def test_a_replay_ends_at_any_consistent_cut(tape: xr.DataTree, share: float) -> None:
    cut = tape.wb.cut(time_ns=int(share * int(tape["events"].dataset["time_ns"].values.max())))
    report = replay(tape, upto=cut).report
    merged = tape.wb.events(Kind.MERGED)["event"].values
    assert report.bit_exact or (report.bit_exact is None and not report.steps)
    assert report.merges_compared == cut.mask()[merged].sum()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_replay_begins_at_any_consistent_cut(tape: xr.DataTree, run: Live, workers: int) -> None:
    merged, stepped = (tape.wb.events(kind)["event"].values for kind in (Kind.MERGED, Kind.STEP_ENDED))
    for share in (0.0, 0.37, 0.99):
        cut = tape.wb.cut(time_ns=int(share * int(tape["events"].dataset["time_ns"].values.max())))
        report = replay(tape, since=cut, workers=workers).report
        assert report.merges_compared == (~cut.mask()[merged]).sum()
        assert report.steps == (~cut.mask()[stepped]).sum()
        assert report.bit_exact and report.final_digest == run.digest
    piece = replay(tape, since=5, upto=9, workers=workers).report
    assert piece.bit_exact and 0 < piece.merges_compared <= 4
    nothing = replay(tape, since=9, upto=5, workers=workers).report
    assert nothing.bit_exact is None and nothing.merges_compared == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_what_differs_before_its_beginning_is_passed_over(tape: xr.DataTree, workers: int) -> None:
    row = tape.wb.events(Kind.MERGED)["event"].values[4]
    damaged = changed(tape, row, "digest", lambda digest: digest ^ 1)
    assert replay(damaged, workers=workers).difference.merge == 4
    assert not replay(damaged, since=3, workers=workers).bit_exact
    behind = replay(damaged, since=4, workers=workers).report
    assert behind.bit_exact and behind.merges_compared > 0


def test_the_command_compares_what_lies_behind_a_merge(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(folder), "--from", "7", "--weights-only"]) == 0
    assert "merges compared, behind merge 7" in capsys.readouterr().out
    assert main(["replay", str(folder), "--from", "99"]) == 2
    assert "there is no merge 99" in capsys.readouterr().err


def test_the_command_writes_the_weights_after_a_merge(folder: Path, tape: xr.DataTree, tmp_path: Path) -> None:
    target = tmp_path / "weights.npz"
    assert main(["replay", str(folder), "--upto", "7", "--out", str(target)]) == 0
    there = tape.wb.weights(7)
    with np.load(target, allow_pickle=False) as stored:
        assert {name: stored[name].tobytes() for name in stored} == {n: v.tobytes() for n, v in there.items()}
    assert main(["replay", str(folder), "--upto", "99"]) == 2


def _merged_row(column: str) -> Callable[[xr.DataTree, int], tuple[int, str]]:
    return lambda tape, merge: (int(tape["merges"].dataset["event"].values[merge]), column)


def _capture_in(tape: xr.DataTree, merge: int) -> tuple[int, str]:
    """The capture whose contribution is in a merge."""
    rows = tape["contributions"].dataset
    arrival = int(rows["event"].values[np.flatnonzero(rows["merge"].values == merge)[0]])
    return int(tape["events"].dataset["cause"].values[arrival]), "digest"


KINDS = {
    "theta": (_merged_row("digest"), "merge", "digest of the merged fragment"),
    "outer": (_merged_row("detail.outer_digest"), "merge", "digest of the outer state"),
    "wire": (_merged_row("detail.digests"), "wire", "digest of the contribution of L"),
    "learner": (_capture_in, "learner", "digest of the payload"),
}
"""Digest to (where it stands, place of the difference, what is said)."""


@pytest.mark.parametrize("name", KINDS)
def test_a_digest_of_each_kind_names_its_merge_and_place(tape: xr.DataTree, name: str) -> None:
    merge = 11
    where, place, what = KINDS[name]
    event, column = where(tape, merge)
    report = replay(changed(tape, event, column, lambda value: value ^ 1)).report
    difference = report.difference
    row = tape["merges"].dataset.isel(merge=merge)
    assert difference is not None
    assert (difference.event, difference.place) == (event, place)
    assert (difference.round, difference.fragment) == (int(row["round"]), int(row["fragment"]))
    assert difference.what.startswith(what)
    assert report.merges_compared == report.merges


def test_weights_of_a_replay_that_diverged_are_not_handed_out(tape: xr.DataTree) -> None:
    event = int(tape.wb.events(Kind.STEP_ENDED)["event"].values[4])
    session = replay(changed(tape, event, "value", lambda loss: loss * 1.5))
    with pytest.raises(ReplayDiffers, match=f"other weights than the run: event {event}: step_ended"):
        session.weights(10)


@pytest.fixture(scope="module")
def two(tape: xr.DataTree) -> Iterator[Replayed]:
    """Executed by two workers, as far as its tests have asked."""
    session = replay(tape, workers=2)
    yield session
    session.close()


def test_two_workers_give_the_same_weights_on_the_way_and_in_the_end(two: Replayed, tape: xr.DataTree) -> None:
    for merge, p, there in [list(merges(tape))[at] for at in (4, 1, 15)]:
        assert digest(two.flat_weights(merge)[p]) == there
    one = replay(tape).report
    both = two.verify()
    assert both.final_digest == one.final_digest
    assert (both.steps, both.captures, both.merges_compared) == (one.steps, one.captures, one.merges_compared)


@pytest.mark.parametrize("what", ["learner", "version"])
def test_two_workers_find_what_one_finds(tape: xr.DataTree, what: str) -> None:
    if what == "version":
        folds = tape.wb.events(Kind.UPDATE_FOLDED)
        event, column = int(folds["event"].values[-3]), "version"
        other = changed(tape, event, column, lambda value: value + 50)
    else:
        event, column = KINDS[what][0](tape, 9)
        other = changed(tape, event, column, lambda value: value ^ 1)
    one, both = replay(other).report, replay(other, workers=2).report
    assert one.difference is not None
    assert both.difference == one.difference
    assert (both.bit_exact, both.match, both.largest) == (one.bit_exact, one.match, one.largest)


def test_states_that_learners_take_from_each_other_go_between_processes(tape: xr.DataTree, run: Live) -> None:
    taken = [r for r in run.records if r.kind == Kind.STATE_ADOPTED and r.reason == "peer"]
    assert taken, "the faults of this run kill a learner"
    session = replay(tape, workers=3)
    assert isinstance(session._execution, ParallelReplay)
    assert session.verify().final_digest == run.digest
    event = next(i for i, r in enumerate(run.records) if r.kind == Kind.STATE_ADOPTED and r.reason == "peer")
    other = changed(tape, event, "digest", lambda value: value ^ 1)
    one, many = replay(other).report, replay(other, workers=3).report
    assert one.difference is not None and one.difference.event == event
    assert many.difference == one.difference


def test_a_worker_that_dies_is_one_line(tape: xr.DataTree) -> None:
    session = replay(tape, workers=2)
    execution: Any = session._execution
    assert isinstance(execution, ParallelReplay)
    os.kill(execution._workers[1].process.pid, signal.SIGKILL)
    with pytest.raises(WorkerLost, match=r"a worker of the replay is gone: exit code -9; .*without --workers"):
        session.verify()
    assert all(worker.process.poll() is not None for worker in execution._workers)
