from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.analysis.runs import CONFIG, began, ended, evaluated, joined, merged, rec, step
from tests.analysis.tapes import taped
from tests.tape.foreign.dialects import EVENTS_MAP, events, write
from workbench.analysis.arrays.intervals import t_quantile
from workbench.analysis.comparing.curves import common_points
from workbench.analysis.comparing.settings import differing, groups_of, settings_of
from workbench.config import RunConfig
from workbench.protocol.records import Kind, Record
from workbench.tape.foreign.importing import import_logs
from workbench.tape.foreign.mapping import map_of


def records(last: float, digest: int = 0) -> list[Record]:
    """Two merges and three evaluations."""
    one, two = merged(0, 1.5, 1, (0,)), merged(6, 2.5, 2, (0,))
    fields = {name: getattr(two, name) for name in Record.__struct_fields__}
    two = Record(**{**fields, "digest": digest})
    return [
        joined(0), began(), evaluated(0.1, 0, 6.0, 1), step(0, 0, 1), one, evaluated(1.8, 1, 4.0, 2), step(0, 1, 2, 2),
        two, evaluated(3.0, 2, last, 3), ended(4.0),
    ]  # fmt: skip


def run(folder: Path, last: float, config: RunConfig = CONFIG, digest: int = 0, **header: object) -> Path:
    taped(folder, records(last, digest), config, **{"run_id": folder.name, **header})
    return folder


def test_two_runs_side_by_side(tmp_path: Path) -> None:
    a = run(tmp_path / "a", 2.0)
    b = run(tmp_path / "b", 3.0, CONFIG.set(quorum=2, merge="mean"), digest=5)
    found = wb.compare(a, b, axis="merges", reach=[3.0, 1.0])
    assert found.settings == {"quorum": [1, 2], "merge": ["rda", "mean"]}
    assert found.first_divergence is not None and found.first_divergence.merge == 1
    assert found.differences["val_loss_last"] == [0.0, 1.0] and found.figures[1]["val_loss_last"] == 3.0
    assert found.curves["merges"].values.tolist() == [0, 1, 2]
    assert found.curves["difference"].values.tolist() == [[0, 0, 0], [0, 0, 1]]
    assert found.reached[0]["merges"] == [1.5, 2.0] and found.reached[1]["time_s"] == [None, None]
    assert found.to_json()["first_divergence"]["runs"] == [0, 1] and found.labels == [str(a), str(b)]
    assert "2 settings differ; at 2.500 s, after 1 merge: the syncer merged" in repr(found)


def test_the_same_run_twice_has_no_divergence(tmp_path: Path) -> None:
    a = run(tmp_path / "a", 2.0)
    found = wb.compare(a, wb.open_tape(a))
    assert found.to_json()["first_divergence"] is None and found.settings == {} and found.copies == [1]
    assert "no divergence" in repr(found)


def test_runs_that_differ_in_their_seed_get_intervals_in_pairs(tmp_path: Path) -> None:
    losses = {"a": (2.0, 2.2), "b": (2.5, 2.9)}
    paths = [
        run(
            tmp_path / f"{side}{seed}",
            last,
            CONFIG.set(seed=seed, quorum=1 + (side == "b")),
            digest=7 * seed + ord(side),
        )
        for side in losses
        for seed, last in enumerate(losses[side])
    ]
    found = wb.compare(*paths)
    one, other = found.groups
    assert (one["runs"], other["runs"], one["n"]) == ([0, 1], [2, 3], 2) and found.copies == []
    loss = one["figures"]["val_loss_last"]
    half = t_quantile(1, 0.95) * np.std(losses["a"], ddof=1) / np.sqrt(2)
    assert loss["mean"] == pytest.approx(2.1) and loss["high"] - loss["mean"] == pytest.approx(half)
    difference = other["figures"]["val_loss_last"]["difference"]
    d = np.subtract(losses["b"], losses["a"])
    assert other["method"] == "paired t" and difference["mean"] == pytest.approx(d.mean())
    assert difference["mean"] - difference["low"] == pytest.approx(t_quantile(1, 0.95) * d.std(ddof=1) / np.sqrt(2))
    assert found.settings.keys() == {"seed", "quorum"} and loss["low"] < 2.1


def test_runs_of_the_same_seed_are_no_replicates(tmp_path: Path) -> None:
    seeds = {"a": 7, "b": 7, "c": 8, "d": 8}
    paths = [
        run(tmp_path / name, 2.0 + at / 10, CONFIG.set(seed=seed), digest=at + 1)
        for at, (name, seed) in enumerate(seeds.items())
    ]
    two = wb.compare(*paths[:2])
    assert [(row["runs"], row["n"]) for row in two.groups] == [([0], 1), ([1], 1)]
    assert two.repeats == [1] and two.copies == [] and two.groups[1]["figures"]["val_loss_last"]["low"] is None
    four = wb.compare(*paths, paths[0])
    assert [row["runs"] for row in four.groups] == [[0, 2], [1], [3]]
    assert four.repeats == [1, 3] and four.copies == [4] and four.to_json()["repeats"] == [1, 3]
    assert four.groups[0]["figures"]["val_loss_last"]["mean"] == pytest.approx(2.1)


def test_a_setting_that_was_changed_on_the_way_has_all_that_was_in_force(tmp_path: Path) -> None:
    def changed(name: str, *changes: Record) -> Path:
        made = records(2.0)
        rounds = [rec(Kind.ROUND_OPENED, 1.0, round=4), rec(Kind.ROUND_OPENED, 2.0, round=6)]
        taped(tmp_path / name, [*made[:4], rounds[0], *changes, rounds[1], *made[4:]], run_id=name)
        return tmp_path / name

    values = {"quorum": 3, "inner.rate": 0.5, "merge": "mean"}
    change = rec(Kind.SETTING_CHANGED, 1.2, setting=1, detail={"values": values, "who": "me"})
    found = wb.compare(changed("a"), changed("b", change))
    assert found.settings == {
        "quorum": [1, "1, 3 from round 6"],
        "merge": ["rda", "rda, mean from round 6"],
        "inner.rate": [CONFIG.inner.rate, f"{CONFIG.inner.rate}, 0.5 from round 6"],
    }


def test_a_counterfactual_names_its_parent_and_brings_its_children(tmp_path: Path) -> None:
    a = run(tmp_path / "a", 2.0)
    lineage = {"run_id": "a", "event": 6, "class": "schedule", "changes": {"quorum": 2}, "without": []}
    children = [
        run(tmp_path / f"c{s}", 2.5 + s, CONFIG.set(quorum=2), digest=s + 1, parent={**lineage, "seed": s})
        for s in (0, 1)
    ]
    found = wb.compare(a, SimpleNamespace(runs=children))
    assert [r["parent"] for r in found.runs] == [None, str(a), str(a)] and found.runs[1]["branch_event"] == 6
    assert [d and d.basis for d in found.divergences] == [None, "programs", "programs"]
    assert found.groups[1]["runs"] == [1, 2] and found.groups[1]["n"] == 2
    assert found.settings["what-if seed"] == [None, 0, 1] and found.settings["quorum"] == [1, 2, 2]
    assert "what-if changes" not in found.settings
    assert "what-if seed" not in wb.compare(a, children[0]).settings


def test_only_keys_that_differ_are_settings(tmp_path: Path) -> None:
    assert differing([{"a": 1, "b": 2}, {"a": 1, "c": 2}]) == {"b": [2, None], "c": [None, 2]}
    assert groups_of([{"a": 1, "seed": 1}, {"a": 2}, {"a": 1, "seed": 2, "preset": "x"}]) == [[0, 2], [1]]
    tape = taped(tmp_path / "a", [], clock="imported")
    tape.attrs["config"] = ""
    assert settings_of(tape) is None


def test_points_between_the_ends_of_all_runs() -> None:
    assert common_points([np.array([0, 10, 20]), np.array([5, 12, 30])]).tolist() == [5, 10, 12, 20]
    assert common_points([np.array([0, 1]), np.array([2, 3])]).tolist() == []
    assert common_points([np.array([0, 1]), np.empty(0)]).tolist() == []


def imported(folder: Path, lines: list[dict[str, Any]]) -> Path:
    folder.mkdir()
    return import_logs([write(folder / "log.jsonl", lines)], map_of(EVENTS_MAP), folder / "run").path


def test_an_import_has_unknown_settings_and_no_first_divergence(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", 2.0), run(tmp_path / "b", 3.0, CONFIG.set(quorum=2), digest=5)
    theirs = imported(tmp_path / "theirs", events())
    found = wb.compare(a, theirs)
    assert (found.settings, found.unknown, found.first_divergence) == ({}, [1], None)
    told = found.to_json()
    assert told["first_divergence"] is None and "second run is an import" in told["first_divergence_reason"]
    assert "hold no digests of what was merged" in repr(found) and told["settings_unknown"] == [1]
    assert wb.compare(theirs, a).why_none.startswith("the first run is an import")
    three = wb.compare(a, theirs, b)
    assert three.settings == {"quorum": [1, None, 2]} and three.why_none == ""
    assert three.first_divergence is not None and three.to_json()["first_divergence"]["runs"] == [0, 2]
    assert [row["runs"] for row in three.groups] == [[0], [1], [2]]


def test_two_imports(tmp_path: Path) -> None:
    one, other = imported(tmp_path / "one", events()), imported(tmp_path / "other", events()[:-4])
    found = wb.compare(one, other)
    assert (found.settings, found.unknown, [row["n"] for row in found.groups]) == ({}, [0, 1], [1, 1])
    assert found.why_none.startswith("both runs are imports")
    again = wb.compare(one, wb.open_tape(one))
    assert again.first_divergence is None and again.why_none == "", "one log is one run"
