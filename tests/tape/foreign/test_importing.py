from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import workbench as wb
from tests.tape.foreign.dialects import EVENTS_MAP, RANKS_MAP, commit, events, ranks, step, write
from workbench.protocol.records import FIRST_LEARNER, SYNCER, Kind, Record, process_of
from workbench.tape import TapeError
from workbench.tape.foreign import history, reading
from workbench.tape.foreign.importing import Imported, import_logs
from workbench.tape.foreign.mapping import map_of
from workbench.tape.ledger import Ledger


def imported(folder: Path, lines: list[dict[str, Any]]) -> tuple[Imported, xr.DataTree]:
    found = import_logs([write(folder / "log.jsonl", lines)], map_of(EVENTS_MAP), folder / "run")
    return found, wb.open_tape(found.path)


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return imported(tmp_path_factory.mktemp("events"), events())[1]


@pytest.fixture(scope="module")
def of_ranks(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    folder = tmp_path_factory.mktemp("ranks")
    files = [write(folder / f"{name}.log", lines) for name, lines in ranks().items()]
    (folder / "map.toml").write_text(RANKS_MAP)
    return wb.open_tape(import_logs(files[::-1], folder / "map.toml", folder / "run").path)


def steps_of(tape: xr.DataTree, learner: int) -> list[int]:
    events = tape.wb.events("step_ended")
    return [int(e) for e in events["event"][events["process"] == process_of(learner)]]


def merges_of(tape: xr.DataTree) -> list[int]:
    return [int(e) for e in tape["merges"].dataset["event"]]


def test_a_tape_of_events_holds_steps_syncs_and_lives(tape: xr.DataTree) -> None:
    about = tape.attrs["imported"]
    assert about["replicas"] == ["a", "b", "c"] and (about["steps"], about["syncs"]) == (18, 3)
    assert about["skipped_lines"] == 2 and about["placed_by_time"] == 4  # hello, a sync that was not committed
    merges = tape["merges"].dataset
    assert merges["round"].values.tolist() == [10, 20, 30] and merges["version"].values.tolist() == [1, 2, 3]
    assert merges["included"].values[:, :3].tolist() == [[1, 1, 1], [1, 1, 0], [1, 0, 1]]
    rows = tape["contributions"].dataset
    found = {
        (r, m): (n, c, v)
        for r, m, n, c, v in zip(
            *(rows[k].values.tolist() for k in ("round", "learner", "step", "c_steps", "base_version")), strict=True
        )
    }
    assert found == {
        (10, 0): (1, 2, 0), (10, 1): (1, 2, 0), (10, 2): (1, 2, 0), (20, 0): (3, 2, 1), (20, 1): (3, 2, 1),
        (30, 0): (5, 2, 2), (30, 2): (2, 2, -1),  # what c started again from is not in the log
    }  # fmt: skip
    lives = tape["incarnations"].dataset
    of_c = lives.isel(incarnation=np.flatnonzero(lives["process"].values == process_of(2)))
    assert of_c["number"].values.tolist() == [1, 2] and of_c["why_ended"].values.tolist() == ["exit", ""]
    first = tape["steps"].dataset
    assert (int(first["start_ns"][0]), int(first["end_ns"][0])) == (0, 500_000_000)  # time counts from the first step


def test_the_books_of_an_imported_run_balance(tape: xr.DataTree) -> None:
    ledger = Ledger(3, 1, [1])
    for record in tape.wb.records():
        ledger.apply(record)
        ledger.check_last()
    ledger.check()
    totals = ledger.totals()
    assert totals["tokens_processed"] == 1800 and totals["tokens_merged"] == 1400 and totals["tokens_local"] == 400
    assert totals == tape.wb.ledger()


def test_clocks_claim_exactly_what_the_log_proves(tape: xr.DataTree) -> None:
    assert tape.wb.clocks == "derived" and tape.attrs["clocks"] == "derived"
    first, second, third = merges_of(tape)
    a, b, c = (steps_of(tape, m) for m in range(3))
    before = tape.wb.before
    assert all(before(e, first) for e in (*a[:2], *b[:2], *c[:2])) and not any(
        before(e, first) for e in (a[2], b[2], c[2])
    )
    assert before(first, a[2]) and before(first, b[2])
    assert before(first, second) and before(second, third)
    # c knows nothing of the second sync before it takes part in the third
    assert not before(second, c[2]) and not before(c[2], second) and before(c[3], third) and before(third, c[4])
    assert not before(b[4], third) and not before(third, b[5]) and not before(third, b[4])
    for own in (a, b, c):
        assert all(before(x, y) for x, y in pairwise(own))
    assert not before(a[0], b[0]) and not before(b[0], a[0]) and not before(a[3], b[2])
    assert before(a[1], b[2]) and tape.wb.path(c[0], b[2]).events[0] == c[0]


def brute_force(tape: xr.DataTree) -> dict[int, set[int]]:
    """The past of every step and merge, from program order and membership alone."""
    records = tape.wb.records()
    past: dict[int, set[int]] = {}
    last: dict[int, int] = {}
    for event, record in enumerate(records):
        if record.kind not in (Kind.STEP_ENDED, Kind.MERGED):
            continue
        sources = [last[p] for p in [record.process] if p in last]
        if record.kind == Kind.MERGED:
            sources += [last[process_of(m)] for m in record.detail["learners"]]
        past[event] = set().union(*({s, *past[s]} for s in sources))
        last[record.process] = event
        if record.kind == Kind.MERGED:
            for m in record.detail["learners"]:
                last[process_of(m)] = event
    return past


def test_pasts_are_those_of_a_walk_over_orders_and_memberships(tape: xr.DataTree, of_ranks: xr.DataTree) -> None:
    for tree in (tape, of_ranks):
        kinds = tree["events"].dataset["kind"].values
        for event, wanted in brute_force(tree).items():
            found = tree.wb.past(event).events()
            assert set(found[np.isin(kinds[found], (Kind.STEP_ENDED, Kind.MERGED))].tolist()) == wanted


def test_clocks_an_hour_apart_order_nothing(of_ranks: xr.DataTree) -> None:
    assert of_ranks.attrs["imported"]["replicas"] == ["rank0", "rank1", "rank2"]
    assert of_ranks.attrs["imported"]["placed_by_time"] == 0 and of_ranks.attrs["imported"]["syncs"] == 3
    own, merges = [steps_of(of_ranks, m) for m in range(3)], merges_of(of_ranks)
    for at, merge in enumerate(merges):
        for steps in own:
            assert all(of_ranks.wb.before(e, merge) for e in steps[: 2 * at + 2])
            assert all(of_ranks.wb.before(merge, e) for e in steps[2 * at + 2 :])
    assert of_ranks["contributions"].dataset["c_steps"].values.tolist() == [2] * 9
    assert of_ranks["contributions"].dataset["base_version"].values.tolist() == [0] * 3 + [1] * 3 + [2] * 3
    assert of_ranks["merges"].dataset["round"].values.tolist() == [0, 1, 2]
    assert of_ranks.attrs["imported"]["first_time"] == "2026-01-31T12:00:00+00:00"


def test_what_suffices_is_told_and_the_rest_refused_with_the_reason(tape: xr.DataTree, of_ranks: xr.DataTree) -> None:
    part = tape.wb.participation()
    assert part["included"].values.tolist() == [[True, True, True], [True, True, False], [True, False, True]]
    assert part["expected"].values.tolist() == [[True] * 3, [True, True, False], [True] * 3]  # c was dead at the second
    goodput = tape.wb.goodput()
    assert goodput["useful_s"].values.tolist() == pytest.approx([3.5, 3.0, 2.5])
    assert tape.wb.staleness()["versions"].values.tolist() == pytest.approx([0] * 6 + [np.nan], nan_ok=True)
    with pytest.raises(TapeError, match="cannot tell breakdown: a log of syncs has no openings"):
        tape.wb.breakdown()
    with pytest.raises(TapeError, match="cannot tell goodput: no line says how long its step took"):
        of_ranks.wb.goodput()
    with pytest.raises(TapeError, match="cannot tell ledger: no line says how many tokens"):
        of_ranks.wb.ledger()
    assert "goodput" not in tape.wb.untold and "uptime" in of_ranks.wb.untold
    with pytest.raises(TapeError, match="its tape holds no arithmetic"):
        wb.replay(tape)
    found = wb.compare(tape, of_ranks)
    assert found.figures[1]["goodput"] is None and found.figures[0]["tokens_processed"] == 1800
    assert found.figures[1]["tokens_processed"] is None and found.figures[0]["merges"] == 3


def test_a_run_of_the_workbench_tells_everything(tmp_path: Path) -> None:
    from tests.analysis.runs import rec
    from tests.analysis.tapes import taped

    tape = taped(tmp_path / "run", [rec(Kind.RUN_ENDED)])
    assert tape.wb.clocks == "recorded" and tape.wb.untold == {}


def test_participants_that_are_not_listed_are_those_that_report(tmp_path: Path) -> None:
    lines = [
        {"t": n, "id": r, "n": n, "s": n // 2} if n % 2 else {"t": n, "id": r, "n": n}
        for n in range(4)
        for r in (7, 12)
    ]
    log_map = map_of('time = "t"\nreplica = "id"\nstep = "n"\nsync = "s"')
    found = import_logs([write(tmp_path / "log", lines)], log_map, tmp_path / "run")
    assert found.replicas == ("7", "12") and found.syncs == 2
    assert wb.open_tape(found.path)["merges"].dataset["included"].values[:, :2].tolist() == [[1, 1], [1, 1]]


def test_a_sync_at_once_with_its_step_and_a_sync_before_any_step(tmp_path: Path) -> None:
    lines = [commit(0.5, "a", 0, "ab"), step(1, "a", 0), step(1, "b", 0), commit(2, "a", 1, "a")]
    found, tape = imported(tmp_path, lines)
    assert (found.steps, found.syncs) == (2, 2)
    assert tape["contributions"].dataset["c_steps"].values.tolist() == [0, 0, 1]
    ledger = Ledger(2, 1, [1])
    for record in tape.wb.records():
        ledger.apply(record)
        ledger.check_last()


def test_a_late_stamp_of_another_machine_does_not_break_the_order(tmp_path: Path) -> None:
    """b's clock is ten seconds ahead, and it reports its syncs itself."""
    lines = [
        step(1, "a", 0),
        step(11, "b", 0),
        commit(1.5, "a", 0, "ab"),
        commit(11.5, "b", 0, "ab"),
        step(2, "a", 1),
        step(12, "b", 1),
    ]
    _, tape = imported(tmp_path, lines)
    (merge,) = merges_of(tape)
    a, b = steps_of(tape, 0), steps_of(tape, 1)
    assert tape.wb.before(b[0], merge) and tape.wb.before(merge, b[1]) and tape.wb.before(merge, a[1])
    assert tape.attrs["imported"]["placed_by_time"] == 0


def test_what_a_crash_cut_off_at_the_end_is_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", events())
    path.write_bytes(path.read_bytes() + b'{"t": 8.0, "event": "st')
    found = import_logs([path], map_of(EVENTS_MAP), tmp_path / "run")
    assert found.torn == 1 and found.steps == 18 and found.lines == len(events()) + 1


BAD = [
    (b"{not json}\n", "line 2: no JSON", "a JSON object on one line"),
    (b"[1, 2]\n", "line 2: a JSON list", "a JSON object"),
    (b'{"t": "\xff"}\n', "line 2: no UTF-8", "a JSON object"),
    (b"[" * 100_000 + b"\n", "line 2: tables nested too deep|line 2: no JSON", "a JSON object"),
    (json.dumps(step(1, "a", 5) | {"t": "noon"}).encode(), "line 2: t is 'noon'", "a time in s"),
    (json.dumps(step(1, "a", 5) | {"t": 1e300}).encode(), r"line 2: t is 1e\+300", "a time in s"),
    (json.dumps(step(1, "a", 5) | {"t": None}).encode(), "line 2: t is missing", "a time in s"),
    (json.dumps(step(1, "a", -1)).encode(), "line 2: n is -1", "the number of a step, whole, from 0"),
    (json.dumps(step(1, "a", 5) | {"n": True}).encode(), "line 2: n is True", "the number of a step"),
    (json.dumps(step(1, "a", 5) | {"n": 1.5}).encode(), "line 2: n is 1.5", "whole"),
    (json.dumps(step(1, "a", 5) | {"n": 10**30}).encode(), "line 2: n is 1000", "whole, from 0 to"),
    (json.dumps(step(1, "a", 5) | {"who": ["a"]}).encode(), r"line 2: who is \['a'\]", "the name or number"),
    (json.dumps(step(1, "a", 5) | {"who": "x" * 300}).encode(), "line 2: who is 'xxx", "the name or number"),
    (json.dumps(step(1, "a", 5, took=-2.0)).encode(), "line 2: took is -2.0", "a length of time, from 0"),
    (json.dumps(step(1, "a", 5) | {"tokens": "many"}).encode(), "line 2: tokens is 'many'", "a number of tokens"),
    (json.dumps(commit(1, "a", 1, [])).encode(), r"line 2: members is \[\]", "a list of replicas"),
    (json.dumps(commit(1, "a", 1, "aa")).encode(), r"line 2: members is \['a', 'a'\]", "each replica once"),
    (json.dumps(commit(1, "a", 1, "ad")).encode(), "line 2: sync 1 names d", r"lines of their own \(a\)"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "found", "expected"), BAD)
def test_bad_lines_are_named_with_what_was_expected(tmp_path: Path, line: bytes, found: str, expected: str) -> None:
    path = write(tmp_path / "log.jsonl", [step(1, "a", 0)])
    path.write_bytes(path.read_bytes() + line.rstrip(b"\n") + b"\n")
    with pytest.raises(TapeError, match=rf"log\.jsonl, ({found}).*expected .*{expected}") as caught:
        import_logs([path], map_of(EVENTS_MAP), tmp_path / "run")
    assert len(str(caught.value)) < 600 and "\n" not in str(caught.value) and not (tmp_path / "run").exists()


def test_lines_that_contradict_each_other_are_both_named(tmp_path: Path) -> None:
    base = [step(1, "a", 0), step(1, "b", 0), commit(2, "a", 4, "ab")]
    for line, said in (
        (commit(3, "b", 4, "b"), "line 4: sync 4 with b; expected the participants of .*line 3: a, b"),
        (commit(3, "a", 3, "ab"), "line 4: a reports sync 3 behind sync 4 .*line 3.*numbers that rise"),
    ):
        with pytest.raises(TapeError, match=said):
            import_logs([write(tmp_path / "log", [*base, line])], map_of(EVENTS_MAP), tmp_path / "run")


def test_sizes_are_limited_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, log_map = write(tmp_path / "log", events()), map_of(EVENTS_MAP)
    for module, name, value, said in (
        (reading, "FILE_BYTES_MAX", 100, "bytes; allowed: up to 100"),
        (reading, "LINE_BYTES_MAX", 50, "line 2: more than 50 bytes; expected shorter lines"),
        (reading, "FILES_MAX", 0, "1 logs; allowed: up to 0"),
        (history, "CELLS_MAX", 20, "too much for the clocks of one tape"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            with pytest.raises(TapeError, match=said):
                import_logs([path], log_map, tmp_path / "run")
    for other, said in ((tmp_path / "none", "there is no such file"), (tmp_path, "it is no regular file")):
        with pytest.raises(TapeError, match=said):
            import_logs([other], log_map, tmp_path / "run")
    with pytest.raises(TapeError, match="no line reports a step or a sync"):
        import_logs([write(tmp_path / "empty", [{"t": 1}])], log_map, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_records_of_a_process_are_numbered_and_clocked(tape: xr.DataTree) -> None:
    records: list[Record] = tape.wb.records()
    seqs: dict[int, int] = {}
    for record in records:
        seqs[record.process] = seqs.get(record.process, 0) + 1
        assert record.seq == seqs[record.process] == record.clock[record.process]
        if record.kind == Kind.UPDATE_FOLDED:
            assert record.cause is not None and record.cause[0] == SYNCER and record.process >= FIRST_LEARNER
