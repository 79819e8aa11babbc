from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import workbench as wb
from tests.analysis.runs import EVERY_FAULT, simulated, with_evals
from tests.analysis.tapes import taped
from workbench.analysis.exporting.perfetto import trace
from workbench.analysis.exporting.trace_events import CONTRIBUTIONS, FOLDS, MERGES, ROUNDS, STEPS, known, pid
from workbench.protocol.records import SYNCER, Kind, process_of
from workbench.tape.schema import MERGED

Event = dict[str, Any]
PHASES = {
    "M": {"name", "args"}, "X": {"name", "ts", "dur"}, "i": {"name", "ts", "s"},
    "b": {"name", "ts", "id", "cat"}, "e": {"name", "ts", "id", "cat"},
    "s": {"name", "ts", "id", "cat"}, "f": {"name", "ts", "id", "cat", "bp"},
}  # fmt: skip
"""Fields that the format asks for, by phase."""


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return taped(tmp_path_factory.mktemp("tapes") / "run", with_evals(simulated(EVERY_FAULT)))


@pytest.fixture(scope="module")
def events(tape: xr.DataTree, tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    path = wb.export(tape, "perfetto", tmp_path_factory.mktemp("out") / "trace.json")
    read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    assert read == json.loads(json.dumps(trace(tape))) and read["displayTimeUnit"] == "ms"
    found: list[Event] = read["traceEvents"]
    return found


def slices(events: list[Event], process: int, track: int) -> list[Event]:
    return [e for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) == (pid(process), track)]


def test_every_event_has_the_fields_of_its_phase(events: list[Event]) -> None:
    for event in events:
        assert PHASES[event["ph"]] <= event.keys() and isinstance(event["pid"], int) and isinstance(event["tid"], int)
        if event["ph"] != "M":
            assert event["ts"] >= 0 and event.get("dur", 0) >= 0
    named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    used = {(e["pid"], e["tid"]) for e in events if e["ph"] == "X" and e["pid"] not in (2, 3)}
    assert used <= named
    labels = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert labels[pid(SYNCER)] == "syncer" and labels[pid(process_of(2))] == "L2" and 0 not in labels


def test_slices_of_a_track_are_disjoint_or_nested(events: list[Event]) -> None:
    tracks: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            start = round(e["ts"] * 1000)
            tracks[e["pid"], e["tid"]].append((start, start + round(e["dur"] * 1000)))
    assert len(tracks) > 10
    for spans in tracks.values():
        open_until: list[int] = []
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_until and open_until[-1] <= start:
                open_until.pop()
            assert not open_until or end <= open_until[-1]
            open_until.append(end)


def test_free_slices_begin_and_end(events: list[Event]) -> None:
    ends = {(e["pid"], e["cat"], e["id"]): e["ts"] for e in events if e["ph"] == "e"}
    begins = [e for e in events if e["ph"] == "b"]
    assert len(begins) == len(ends)
    assert all(e["ts"] <= ends[e["pid"], e["cat"], e["id"]] for e in begins)
    kinds = Counter(e["name"] for e in begins)
    assert kinds["life"] >= 5 and kinds["fault: kill"] == kinds["fault: cut"] == kinds["fault: kill_syncer"] == 1


def test_arrows_lead_from_each_merged_contribution_to_its_merge_and_on_to_the_folds(
    tape: xr.DataTree, events: list[Event]
) -> None:
    ends = {phase: {(e["cat"], e["id"]): e for e in events if e["ph"] == phase} for phase in "sf"}
    assert ends["s"].keys() == ends["f"].keys() and len(ends["s"]) == sum(e["ph"] == "s" for e in events)
    kinds = Counter(kind for kind, _ in ends["s"])
    rows = tape["contributions"].dataset
    folds = [r for r in simulated(EVERY_FAULT) if r.kind == Kind.UPDATE_FOLDED and r.version > 0]
    assert kinds == {"contribution": int((rows["fate"] == MERGED).sum()), "update": len(folds)}
    for (kind, _), source in ends["s"].items():
        target = ends["f"][kind, source["id"]]
        assert source["ts"] <= target["ts"] and target["bp"] == "e"
    spans = {
        (e["pid"], e["tid"]): sorted((s["ts"], s["ts"] + s["dur"]) for s in slices(events, e["pid"] - 1, e["tid"]))
        for phase in "sf"
        for e in ends[phase].values()
    }
    for phase in "sf":
        for e in ends[phase].values():
            assert any(a - 1e-6 <= e["ts"] <= b + 1e-6 for a, b in spans[e["pid"], e["tid"]])
    assert {key[1] for key in spans} == {CONTRIBUTIONS, FOLDS, MERGES}


def test_steps_rounds_and_merges_are_the_tape_s(tape: xr.DataTree, events: list[Event]) -> None:
    steps = tape["steps"].dataset
    for learner in range(3):
        mine = slices(events, process_of(learner), STEPS)
        n = steps["n"].values[steps["learner"].values == learner].tolist()
        assert [e["args"]["n"] for e in mine] == n and mine[0]["args"]["g"] >= 0
    first = slices(events, process_of(0), STEPS)[0]
    at = int((steps["learner"].values == 0).argmax())
    assert round(first["ts"] * 1000) == int(steps["start_ns"][at]) and "loss" in first["args"]
    rounds = [e for p in range(3) for e in slices(events, SYNCER, ROUNDS + p)]
    outcomes = Counter(e["args"]["outcome"] for e in rounds if e["name"].startswith("round"))
    assert outcomes["merged"] == 60
    assert {e["name"] for e in rounds if not e["name"].startswith("round")} >= {"open", "pull", "grace"}
    merges = slices(events, SYNCER, MERGES)
    assert len(merges) == 60 and sum(e["args"]["contributions"] for e in merges) == int(
        tape["merges"].dataset["included"].sum()
    )
    assert sum(e["ph"] == "X" and e["name"].startswith("evaluation after") for e in events) == 2


def test_a_compressed_trace_is_the_same(tape: xr.DataTree, events: list[Event], tmp_path: Path) -> None:
    path = wb.export(tape, "perfetto", tmp_path / "trace.json.gz")
    assert json.loads(gzip.decompress(path.read_bytes()))["traceEvents"] == events
    assert path.read_bytes()[:2] == b"\x1f\x8b"


def test_an_empty_tape_gives_an_empty_trace(tmp_path: Path) -> None:
    path = wb.export(taped(tmp_path / "run", []), "perfetto", tmp_path / "trace.json")
    assert json.loads(path.read_text())["traceEvents"] == []


def test_arguments_without_a_value_are_left_out() -> None:
    assert known({"a": -1, "b": "", "c": float("nan"), "d": 0, "e": -0.5}) == {"d": 0, "e": -0.5}
