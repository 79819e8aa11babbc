"""A run of real processes that loses learners, then all of itself, and goes on: states of peers, snapshots, resume."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from tests.engine.real_runs import GUARD_S, Journal, kill_everything, of_kind, records_of, tiny, until
from workbench.analysis.reports import REPORTS
from workbench.cli.pages.incidents import sentences
from workbench.config import ConfigError
from workbench.engine.launch import launch
from workbench.engine.resume import resume
from workbench.protocol.records import Kind, Record, learner_of, process_of
from workbench.replay.exact import replay
from workbench.replay.machines import rerun_machines
from workbench.tape import open_tape
from workbench.tape.going_on import resumable, snapshot_numbers
from workbench.training.snapshot_files import read_manifest


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One compile cache for all processes of this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def adopted(journal: Journal, learner: int, source: str) -> list[Record]:
    """Records of a learner's adoptions from a source."""
    found = of_kind(journal.records(), Kind.STATE_ADOPTED)
    return [r for r in found if r.process == process_of(learner) and r.reason == source]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One run in three sittings: a learner is lost, a snapshot taken, all killed; resumed twice."""
    path = tmp_path_factory.mktemp("runs") / "run"
    facts: dict[str, Any] = {"path": path}
    run = launch(tiny(recovery="peer", period=12, snapshots_kept=0, lead=6, grace="fixed", grace_s=0.1), path)
    journal = Journal(path)
    run.wait(rounds=15, timeout_s=GUARD_S)
    run.kill(1, down_s=0.1)
    until(lambda: bool(adopted(journal, 1, "peer")), "the victim has a peer's state")
    until(lambda: journal.has_merged(1, Kind.LEARNER_JOINED, 2.0), "it is merged again")
    facts["snapshot"] = run.snapshot(who="test")
    for learner in range(3):
        run.kill(learner, down_s=0.1)
    until(lambda: any(adopted(journal, learner, "snapshot") for learner in range(3)), "a snapshot's moments are used")
    until(lambda: all(journal.has_merged(m, Kind.LEARNER_JOINED, 2.0 + (m == 1)) for m in range(3)), "all are merged")
    kill_everything(run)
    facts["lost_at"] = len(journal.records())

    with resume(path) as run:
        with pytest.raises(ConfigError, match="goes on"):
            resume(path)
        until(lambda: merges_since(journal, facts["lost_at"]) > 10, "it merges again")
    assert run.outcome() == (0, "")
    facts["stopped_at"] = len(journal.records())

    with resume(path, snapshot=facts["snapshot"]) as run:
        until(lambda: merges_since(journal, facts["stopped_at"]) > 10, "it merges once more")
        until(lambda: len(of_kind(journal.records(), Kind.RESTORED)) == 4, "all are what they were, the syncer too")
    assert run.outcome() == (0, "")
    return facts


def merges_since(journal: Journal, since: int) -> int:
    """Merges from the record with this index on."""
    return len(of_kind(journal.records()[since:], Kind.MERGED))


@pytest.fixture(scope="module")
def records(told: dict[str, Any]) -> list[Record]:
    return records_of(told["path"])


def test_the_whole_tape_replays_bit_for_bit_and_its_machine_decides_again(told: dict[str, Any]) -> None:
    report = replay(told["path"])
    assert report.bit_exact, report.first_difference
    again = rerun_machines(told["path"])
    assert again.equal, again.first_difference


def test_a_peers_state_is_the_donors_own_to_the_last_bit(records: list[Record]) -> None:
    taken = [r for r in of_kind(records, Kind.STATE_ADOPTED) if r.reason == "peer"]
    assert taken
    for record in taken:
        (left,) = [
            r
            for r in of_kind(records, Kind.STATE_LEFT)
            if r.process == record.peer and r.version == record.version and learner_of(r.peer) >= 0
        ]
        assert left.digest == record.digest


def test_the_donor_trains_on_while_its_state_is_copied(records: list[Record]) -> None:
    copied = of_kind(records, Kind.STATE_COPIED)[0]
    (left,) = [r for r in of_kind(records, Kind.STATE_LEFT) if r.process == copied.process and r.version == copied.seq]
    steps = [r for r in of_kind(records, Kind.STEP_ENDED) if r.process == copied.process]
    usual = sorted(r.detail["end_ns"] - r.detail["start_ns"] for r in steps)[len(steps) // 2]
    next_ = next(r for r in steps if r.step == copied.step + 1)
    pause_ns = next_.detail["start_ns"] - copied.time_ns
    print(
        f"copy {(left.time_ns - copied.time_ns) / 1e6:.1f} ms, pause {pause_ns / 1e6:.2f} ms, step {usual / 1e6:.1f} ms"
    )
    assert pause_ns < 10 * max(usual, 50_000_000)


def test_snapshots_hold_every_learner_and_what_was_in_flight(told: dict[str, Any], records: list[Record]) -> None:
    number = told["snapshot"]
    manifest = read_manifest(told["path"] / "snapshots", number)
    assert set(manifest["learners"]) == {"0", "1", "2"}
    assert {entry["kind"] for entry in manifest["in_flight"]} <= {"fragment", "metadata"}
    (complete,) = [r for r in of_kind(records, Kind.SNAPSHOT_COMPLETED) if r.value == number]
    for learner, part in manifest["learners"].items():
        assert all(base <= version for base, version in zip(part["base"], manifest["versions"], strict=True))
        (own,) = [
            r
            for r in of_kind(records, Kind.SNAPSHOT_RECORDED)
            if r.process == process_of(int(learner)) and r.value == number
        ]
        assert (own.step, own.seq) == (part["step"], part["seq"])
    assert complete.detail["versions"] == manifest["versions"]


def test_a_resume_after_everything_was_killed_loses_no_merge(told: dict[str, Any], records: list[Record]) -> None:
    before, after = records[: told["lost_at"]], records[told["lost_at"] : told["stopped_at"]]
    (started,) = of_kind(after, Kind.SYNCER_STARTED)
    assert started.reason == "resume" and not started.detail.get("cut") and started.epoch == 0
    versions = {p: [r.version for r in of_kind(before + after, Kind.MERGED) if r.fragment == p] for p in range(3)}
    for found in versions.values():
        assert all(later == earlier + 1 for earlier, later in pairwise(found))
    assert started.time_ns > max(r.time_ns for r in before)


def test_a_resume_from_a_snapshot_begins_an_epoch_with_its_state(told: dict[str, Any], records: list[Record]) -> None:
    after = records[told["stopped_at"] :]
    (started,) = of_kind(after, Kind.SYNCER_STARTED)
    assert started.epoch == 1 and started.detail["cut"]["snapshot"] == told["snapshot"]
    (complete,) = [r for r in of_kind(records, Kind.SNAPSHOT_COMPLETED) if r.value == told["snapshot"]]
    restored = [r for r in of_kind(after, Kind.RESTORED) if learner_of(r.process) >= 0]
    assert {learner_of(r.process): r.step for r in restored} == {int(m): n for m, n in complete.detail["parts"].items()}
    first = {r.fragment: r.version for r in reversed(of_kind(after, Kind.MERGED))}
    assert all(version == complete.detail["versions"][p] + 1 for p, version in first.items())


def test_a_snapshot_that_is_not_there_is_refused_in_one_line(told: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"there is no snapshot 99 in .*; there are: "):
        resume(told["path"], snapshot=99)
    assert told["snapshot"] in snapshot_numbers(resumable(told["path"]))


def test_inspect_tells_who_came_back_and_how(told: dict[str, Any]) -> None:
    found = REPORTS["overview"](open_tape(told["path"]))["incidents"]
    first = found["recoveries"][0]
    assert (first["learner"], first["source"]) == (1, "peer") and first["donor"] in ("L0", "L2")
    assert first["bytes"] > 10_000 and first["took_s"] > 0
    assert {row["learner"] for row in found["recoveries"] if row["source"] == "own"} == {0, 1, 2}
    assert found["snapshots"]["complete"] == 1 and found["snapshots"]["newest"] == told["snapshot"]
    assert [(row["epoch"], row["snapshot"]) for row in found["resumes"]] == [(0, None), (1, told["snapshot"])]
    assert found["syncer_restarts"] == 0
    said = [line for kind, line in sentences(found) if kind in ("recovered", "snapshots", "resumed")]
    print(*said, sep="\n")
    assert any(f"the state of {first['donor']}" in line for line in said)
    assert any(f"back to snapshot {told['snapshot']} (epoch 1)" in line for line in said)
