"""What nobody would do to a run on purpose: two at once, at the wrong moment, with the wrong file."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.engine.real_runs import GUARD_S, Journal, kill_everything, lives, of_kind, records_of, tiny, until
from workbench.config import ConfigError
from workbench.engine import control
from workbench.engine.launch import Run, attach, launch
from workbench.engine.resume import resume
from workbench.protocol.records import EVALUATOR, Kind
from workbench.replay.exact import replay
from workbench.replay.machines import rerun_machines
from workbench.tape import open_tape
from workbench.tape.going_on import resumable, snapshot_numbers
from workbench.training.snapshot_files import read_manifest, read_part

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One compile cache for all processes of this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def further(run: Run, merges: int) -> None:
    """Wait for so many further merges."""
    journal = Journal(run.path)
    before = len(of_kind(journal.records(), Kind.MERGED))
    until(lambda: len(of_kind(journal.records(), Kind.MERGED)) >= before + merges, f"{merges} further merges")


def check_closed(run: Path) -> None:
    """The tape is closed, and holds what the journal holds."""
    tape = open_tape(run)
    assert tape.wb.closed and tape["events"].sizes["event"] == len(records_of(run))


def check(run: Path) -> None:
    """The tape is whole, and replays."""
    check_closed(run)
    report = replay(run)
    assert report.bit_exact, report.first_difference
    again = rerun_machines(run)
    assert again.equal, again.first_difference


def named(run: Run, name: str) -> int:
    """Pid of a process of a run that the status does not name."""
    supervisor = control.address_of(run.path).pid
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            comm, _, fields = stat.read_text().partition("(")[2].rpartition(")")
            nursery = Path(f"/proc/{fields.split()[1]}/stat").read_text().rpartition(")")[2].split()[1]
        except (OSError, IndexError):
            continue
        if comm == name and str(supervisor) in (fields.split()[1], nursery):
            return int(stat.parent.name)
    return 0


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """A run with snapshots of which everything was killed, afresh for each who asks."""
    places = iter(range(99))

    def make() -> Path:
        path = tmp_path_factory.mktemp("lost") / f"run-{next(places)}"
        run = launch(tiny(2, period=12, lead=6, snapshot_every=8, snapshots_kept=0), path)
        run.wait(rounds=5, timeout_s=GUARD_S)
        journal = Journal(path)
        until(lambda: len(of_kind(journal.records(), Kind.SNAPSHOT_COMPLETED)) >= 2, "two snapshots lie on disk")
        kill_everything(run)
        return path

    return make


def test_of_two_resumes_at_once_one_goes_on_and_the_other_says_so(lost: Callable[[], Path]) -> None:
    path = lost()
    words = [sys.executable, "-m", "workbench", "resume", str(path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    both = [subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, env=environment) for _ in range(2)]
    until(lambda: any(one.poll() is not None for one in both), "one of the two is turned away")
    loser, winner = both if both[0].poll() is not None else both[::-1]
    said = loser.communicate()[1]
    assert loser.returncode == 2 and said.count("\n") == 1, said
    until(lambda: (path / "control.json").exists(), "the other listens")
    run = attach(path)
    further(run, 5)
    run.stop()
    said = winner.communicate(timeout=GUARD_S)[1]
    assert winner.returncode == 0, said
    check_closed(path)


def test_a_resume_right_behind_the_death_of_the_supervisor_waits_for_the_rest(tmp_path: Path) -> None:
    run = launch(tiny(2, period=12, lead=6), tmp_path / "run")
    run.wait(rounds=10, timeout_s=GUARD_S)
    assert run._supervisor is not None
    run._supervisor.send_signal(signal.SIGKILL)
    run.stop()
    with resume(tmp_path / "run") as again:
        further(again, 5)
    check(tmp_path / "run")


def test_a_journal_that_was_cut_goes_on_from_a_snapshot_and_its_tape_is_laid_anew(lost: Callable[[], Path]) -> None:
    path = lost()
    until(lambda: open_tape(path).attrs["journal_offset"] == resumable(path).offset, "the tape reaches to its end")
    first = next(r for r in of_kind(records_of(path), Kind.SNAPSHOT_COMPLETED) if r.value == 1.0)
    size = (path / "journal").stat().st_size
    least = journal_length(path, first.seq)
    cut = random.Random(7).randrange(least + (size - least) // 3, least + (size - least) // 2)
    os.truncate(path / "journal", cut)
    known = len(records_of(path))
    with resume(path) as run:
        further(run, 10)
    assert (path / "tape.ahead-1").is_dir()
    assert len(records_of(path)) > known
    check(path)


def journal_length(path: Path, seq: int) -> int:
    """Length of the journal up to a record of the syncer, found by halving."""
    data, low = (path / "journal").read_bytes(), 0
    high = len(data)
    copy = path.parent / "halved"
    copy.mkdir()
    while high - low > 1:
        middle = (low + high) // 2
        (copy / "journal").write_bytes(data[:middle])
        try:
            known = {r.seq for r in records_of(copy) if r.process == 0}
        except ValueError:
            known = set()
        low, high = (low, middle) if seq in known else (middle, high)
    return high


def test_a_configuration_that_was_edited_is_put_back_and_said(
    lost: Callable[[], Path], capfd: pytest.CaptureFixture[str]
) -> None:
    path = lost()
    recorded = (path / "config.toml").read_text()
    (path / "config.toml").write_text(recorded.replace("learners = 2", "learners = 3"))
    with resume(path) as run:
        assert "learners is 3, on the tape 2; the configuration on the tape counts" in capfd.readouterr().err
        further(run, 3)
        assert len(run.status()["learners"]) == 2
    assert (path / "config.toml").read_text() == recorded
    check_closed(path)


@pytest.fixture(scope="module")
def ill_treated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One run to which most of it happens."""
    path = tmp_path_factory.mktemp("ill") / "run"
    facts: dict[str, Any] = {"path": path}
    config = tiny(2, period=12, lead=6, eval_every=4, snapshots_kept=0, grace="fixed", grace_s=0.1)
    with launch(config, path) as run:
        run.wait(rounds=10, timeout_s=GUARD_S)
        facts["first"] = run.snapshot()
        keeper = named(run, "wb-keeper")
        room = resource.prlimit(keeper, resource.RLIMIT_FSIZE)
        resource.prlimit(keeper, resource.RLIMIT_FSIZE, (4096, room[1]))
        with pytest.raises(ConfigError) as raised:
            run.snapshot()
        facts["full"] = str(raised.value)
        resource.prlimit(keeper, resource.RLIMIT_FSIZE, room)
        facts["second"] = run.snapshot()
        for name in ("wb-keeper", "wb-recorder", "wb-evaluator"):
            pid = named(run, name)
            assert pid, f"there is a {name}"
            os.kill(pid, signal.SIGKILL)
            until(lambda pid=pid: not lives(pid), f"{name} is gone")  # type: ignore[misc]
        facts["third"] = run.snapshot()
        until(lambda: named(run, "wb-recorder") > 0, "another recorder")
        with ThreadPoolExecutor(2) as both:
            facts["added"] = [one.result() for one in [both.submit(run.add), both.submit(run.add)]]
        evaluations = len(of_kind(records_of(path), Kind.EVALUATED))
        for number in range(4):
            run.kill(number % 2, down_s=0.1)
            facts.setdefault("stormy", []).append(outcome_of(run))
        until(lambda: len(of_kind(records_of(path), Kind.EVALUATED)) > evaluations, "another evaluation")
        for learner in (1, 2, 3):
            run.remove(learner)
        with pytest.raises(ConfigError) as raised:
            run.remove(0)
        facts["last"] = str(raised.value)
        further(run, 3)
    facts["records"] = records_of(path)
    return facts


def outcome_of(run: Run) -> int | str:
    """Number of a snapshot, or why there is none."""
    try:
        return run.snapshot()
    except ConfigError as error:
        return str(error)


def test_a_snapshot_without_room_is_given_up_with_the_reason_and_the_next_succeeds(ill_treated: dict[str, Any]) -> None:
    assert "could not be written" in ill_treated["full"] and "\n" not in ill_treated["full"]
    folder = ill_treated["path"] / "snapshots"
    for name in ("first", "second", "third"):
        number = ill_treated[name]
        for part in read_manifest(folder, number)["digests"]:
            read_part(folder, number, part)
    assert not list(folder.glob(".draft-*"))


def test_snapshots_in_a_storm_are_whole_or_given_up_in_a_line(ill_treated: dict[str, Any]) -> None:
    print(*ill_treated["stormy"], sep="\n")
    there = snapshot_numbers(resumable(ill_treated["path"]))
    for fate in ill_treated["stormy"]:
        assert fate in there if isinstance(fate, int) else "given up" in fate and "\n" not in fate


def test_two_who_add_at_once_add_two(ill_treated: dict[str, Any]) -> None:
    assert sorted(ill_treated["added"]) == [[2], [3]]


def test_the_last_learner_stays(ill_treated: dict[str, Any]) -> None:
    assert ill_treated["last"] == "without L0 0 learners are left for quorum = 1; add one first"


def test_whoever_was_killed_beside_the_protocol_leaves_no_trace_in_the_run(ill_treated: dict[str, Any]) -> None:
    ends = of_kind(ill_treated["records"], Kind.PROCESS_ENDED)
    assert next(r.reason for r in ends if r.peer == EVALUATOR) == "SIGKILL"
    check(ill_treated["path"])


def test_who_stands_in_a_folder_that_is_gone_is_answered_in_a_line(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    words = [
        "sh",
        "-c",
        'rmdir "$PWD" && exec "$@"',
        "sh",
        sys.executable,
        "-m",
        "workbench",
        "control",
        "run",
        "status",
    ]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=GUARD_S, check=False, cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "workbench: the folder that this was typed in is gone; go to one that is there (cd)\n"
