from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import xarray as xr

from tests.replay.runs import FAULTS, Live, config_of, live, replayed, tape_of
from tests.replay.tapes import changed, with_attribute
from workbench.algorithms.digest import digest
from workbench.cli.main import main
from workbench.config import ConfigError
from workbench.protocol.faults import FaultPlan
from workbench.protocol.records import Kind
from workbench.replay.exact import ReplayDiffers, replay
from workbench.simulate.training_run import TrainedRun, train_virtual
from workbench.tape import TapeError, open_tape
from workbench.training.flat import fragmentation_of


@pytest.fixture(scope="module")
def trained(text_path: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainedRun:
    config = config_of(text_path, eval_every=6)
    return train_virtual(config, tmp_path_factory.mktemp("trained") / "run", FaultPlan(FAULTS))


@pytest.fixture(scope="module")
def tape(trained: TrainedRun) -> xr.DataTree:
    return open_tape(trained.path).load()


@pytest.fixture(scope="module")
def run(text_path: Path) -> Live:
    return live(config_of(text_path, seed=3), FAULTS)


def test_the_command_writes_the_weights_that_the_run_ended_with(
    trained: TrainedRun, text_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "weights.npz"
    assert main(["replay", str(trained.path), "--out", str(target), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["bit_exact"], report["match"], report["first_difference"]) == (True, "bit", None)
    assert report["merges"] == report["merges_compared"] == trained.merges
    assert report["final_digest"] == f"{trained.digest:016x}"
    fragmentation = fragmentation_of(config_of(text_path))
    with np.load(target, allow_pickle=False) as stored:
        names = [name for p in range(fragmentation.fragments) for name in fragmentation.layout(p).names]
        assert sorted(stored) == sorted(names)
        assert digest(np.concatenate([stored[name].reshape(-1) for name in names])) == trained.digest
        assert {name: stored[name].shape for name in names} == {t.name: t.shape for t in fragmentation.tensors}


def test_progress_counts_merges(tape: xr.DataTree, trained: TrainedRun) -> None:
    seen: list[tuple[int, int]] = []
    replay(tape, progress=lambda done, total: seen.append((done, total))).verify()
    assert seen == [(done, trained.merges) for done in range(1, trained.merges + 1)]


def test_a_journal_cut_anywhere_replays_as_far_as_it_goes(run: Live) -> None:
    whole = replayed(run)
    for share in (0.31, 0.77):
        records = run.records[: int(share * len(run.records))]
        report = replayed(run, records=records)
        assert report.bit_exact, report.first_difference
        assert report.merges_compared == sum(r.kind == Kind.MERGED for r in records)
        assert (report.final_digest == whole.final_digest) == (report.merges == whole.merges)


def test_a_journal_without_a_merge_or_without_a_step_is_not_certified(run: Live) -> None:
    first = next(i for i, r in enumerate(run.records) if r.kind == Kind.MERGED)
    report = replayed(run, records=run.records[:first]).verify()
    assert (report.bit_exact, report.merges, report.merges_compared) == (True, 0, 0)
    assert report.steps > 0
    assert report.verdict == f"bit for bit the same in {report.steps} inner steps; nothing was merged"
    nothing = replayed(run, records=[])
    assert (nothing.bit_exact, nothing.to_json()["bit_exact"], nothing.steps) == (None, None, 0)
    assert nothing.verdict == "nothing to compare: the tape holds no inner step; nothing was merged"
    with pytest.raises(ReplayDiffers, match="nothing to compare"):
        nothing.verify()


def test_a_report_shows_itself_in_one_line(run: Live) -> None:
    report = replayed(run)
    shown = repr(report)
    assert shown.startswith("<ReplayReport: ") and f"{report.merges} of {report.merges} merges" in shown
    assert "\n" not in shown and "array" not in shown and len(shown) < 300


@pytest.mark.parametrize("stamp", [lambda seq: 7, lambda seq: 10**9 - seq])
def test_order_comes_from_versions_and_not_from_clocks(run: Live, stamp: Callable[[int], int]) -> None:
    """REPORTED D7: all stamps equal; all stamps running backwards."""
    records = [msgspec.structs.replace(record, time_ns=stamp(i)) for i, record in enumerate(run.records)]
    for order in ("journal", 3):
        report = replayed(run, order, records).verify()
        assert report.final_digest == run.digest and report.merges_compared == report.merges > 0


def test_another_environment_is_named_and_never_claimed_to_be_exact_in_silence(
    tape: xr.DataTree, trained: TrainedRun
) -> None:
    there = {**tape.attrs["fingerprint"], "numpy": "0.1", "nproc": "64"}
    report = replay(with_attribute(tape, "fingerprint", there))
    assert report.bit_exact
    assert len(report.environment) == 2
    assert "numpy 0.1 there" in report.verdict
    assert f"threads: nproc 64 there, {os.environ['PJRT_NPROC']} here" in report.verdict
    assert "every value is the same all the same" in report.verdict


@pytest.mark.parametrize(("factor", "match"), [(1 + 1e-9, "1e-6"), (1.01, "diverged")])
def test_a_small_difference_elsewhere_is_put_into_its_class(
    tape: xr.DataTree, factor: float, match: str, run: Live
) -> None:
    event = int(np.flatnonzero(tape["events"].dataset["kind"].values == Kind.STEP_ENDED)[20])
    other = with_attribute(tape, "fingerprint", {**tape.attrs["fingerprint"], "jaxlib": "0.1"})
    report = replay(changed(other, event, "value", lambda loss: loss * factor))
    assert (report.bit_exact, report.match) == (False, match)
    assert report.largest == pytest.approx(abs(factor - 1), rel=0.02)
    assert report.verdict.startswith("environment differs: jaxlib 0.1 there")
    with pytest.raises(ReplayDiffers, match=f"event {event}: step_ended"):
        report.verify()


def test_a_difference_is_exit_code_1(
    tape: xr.DataTree, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    event = int(np.flatnonzero(tape["events"].dataset["kind"].values == Kind.MERGED)[5])
    other = changed(tape, event, "digest", lambda value: value ^ 2)
    monkeypatch.setattr("workbench.tape.open_tape", lambda run: other)
    assert main(["replay", "run"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "not the same, in the same environment" in out
    assert f"event {event}: merged of syncer" in out


def test_other_initial_weights_are_the_first_difference(tape: xr.DataTree) -> None:
    report = replay(with_attribute(tape, "initial_digest", "0" * 16))
    assert report.difference is not None
    assert (report.difference.place, report.difference.event) == ("start", -1)
    assert "before any event: digest of the initial weights" in str(report.first_difference)


def test_other_data_is_one_line_and_exit_code_2(
    tmp_path: Path, text_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "text"
    folder.mkdir()
    for name in "abc":
        (folder / name).write_bytes(text_path.read_bytes()[:5000])
    config = config_of(folder, rounds=3, eval_every=0)
    run = tape_of(live(config), tmp_path / "run")
    assert replay(run).bit_exact
    (folder / "b").write_bytes(b"x" + (folder / "b").read_bytes()[1:])
    (folder / "d").write_bytes(b"more")
    with pytest.raises(ConfigError, match=r"the data is not that of the run: 1 of 3 files differ .* 1 are new \(b, d"):
        replay(run)
    assert main(["replay", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("order", "error"), [("backwards", "'backwards' is unknown; allowed: 'journal'"), (True, "True is unknown")]
)
def test_an_unknown_order_is_refused(tape: xr.DataTree, order: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        replay(tape, order=order)


def test_a_tape_without_what_replay_needs_is_refused(tape: xr.DataTree, run: Live) -> None:
    with pytest.raises(TapeError, match="holds no configuration"):
        replay(with_attribute(tape, "config", ""))
    records = run.records
    at = next(event for event, r in enumerate(records) if r.kind == Kind.MERGED)
    old = {key: value for key, value in records[at].detail.items() if key != "weights_rule"}
    records[at] = msgspec.structs.replace(records[at], detail=old)
    with pytest.raises(TapeError, match=rf"event {at}, merged of syncer, lacks detail\.weights_rule"):
        replayed(run, records=records)
