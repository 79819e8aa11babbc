"""Two runs at once on one machine: what strikes one does not touch the other, and both replay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.real_runs import GUARD_S, lives, of_kind, records_of, tiny, until
from workbench.engine import control
from workbench.engine.launch import launch
from workbench.protocol.records import Kind, learner_of
from workbench.replay.exact import replay
from workbench.tape.errors import TapeError
from workbench.tape.journal import JournalWriter


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs that went on at the same time; of the first a learner and the syncer were killed."""
    folder = tmp_path_factory.mktemp("runs")
    with launch(tiny(2, seed=1), folder / "struck") as struck, launch(tiny(2, seed=2), folder / "calm") as calm:
        struck.wait(rounds=5, timeout_s=GUARD_S)
        calm.wait(rounds=5, timeout_s=GUARD_S)
        assert control.address_of(struck.path).runtime != control.address_of(calm.path).runtime
        calm_pids = set(calm.status()["processes"])
        assert not calm_pids & set(struck.status()["processes"])
        struck.kill(1, down_s=0.1)
        struck.kill("syncer", down_s=0.1)
        struck.wait(rounds=struck.status()["merges"] + 10, timeout_s=GUARD_S)
        struck.stop()
        assert calm_pids <= set(calm.status()["processes"]), "the end of one run ended no process of the other"
        calm.wait(rounds=calm.status()["merges"] + 10, timeout_s=GUARD_S)
    until(lambda: not any(lives(pid) for pid in calm_pids), "all processes are gone")
    return struck.path, calm.path


def test_what_strikes_one_run_leaves_the_other_alone(pair: tuple[Path, Path]) -> None:
    records = records_of(pair[1])
    assert of_kind(records, Kind.FAULT_INJECTED) == []
    assert len(of_kind(records, Kind.SYNCER_STARTED)) == 1
    assert {r.reason for r in of_kind(records, Kind.LEARNER_LOST)} <= {"ended"}
    joins = [learner_of(r.peer) for r in of_kind(records, Kind.LEARNER_JOINED)]
    assert sorted(joins) == [0, 1]


def test_both_replay_bit_for_bit(pair: tuple[Path, Path]) -> None:
    for path in pair:
        report = replay(path)
        assert report.bit_exact, report.first_difference


def test_a_second_syncer_on_a_run_folder_is_refused_with_the_holders_pid(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with launch(tiny(1), path) as run:
        run.wait(rounds=1, timeout_s=GUARD_S)
        syncer = run.status()["syncer"]["pid"]
        with pytest.raises(TapeError, match=f"process {syncer}"):
            JournalWriter(path / "journal")  # what every syncer opens first
        run.wait(rounds=run.status()["merges"] + 5, timeout_s=GUARD_S)
