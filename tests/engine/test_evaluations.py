"""The evaluator beside a run that is faster: it skips, says what it evaluated, and ends with the last merge."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.engine.real_runs import GUARD_S, of_kind, records_of, tiny, until
from workbench.analysis.reports import REPORTS
from workbench.analysis.summary import summary
from workbench.engine.evaluations import Evaluations
from workbench.engine.launch import launch
from workbench.protocol.records import Kind
from workbench.tape import open_tape

EVERY = 5


class Fleet(SimpleNamespace):
    """What `Evaluations` needs of a fleet; keeps what is sent."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.to_syncer: list[Any] = []
        self.recorded: list[dict[str, Any]] = []
        link = SimpleNamespace(send=self.asked.append)
        super().__init__(
            evaluator=SimpleNamespace(alive=True, state="running", link=link, got_somewhere=lambda: None),
            reports=SimpleNamespace(evaluator=lambda kind, **columns: self.recorded.append(columns)),
            ending=SimpleNamespace(look=lambda: None),
        )

    def tell_syncer(self, message: dict[str, Any]) -> bool:
        self.to_syncer.append(message)
        return True


def asked(merges: int) -> dict[str, Any]:
    return {"evaluate": merges, "versions": [merges], "tokens": merges}


def evaluated(merges: int) -> dict[str, Any]:
    return {"evaluated": merges, "versions": [merges], "tokens": merges, "loss": 1.0, "seconds": 9.0}


def test_what_falls_due_meanwhile_is_one_more_of_what_is_there_then() -> None:
    fleet = Fleet()
    evaluations = Evaluations(fleet)  # type: ignore[arg-type]
    evaluations.asked(asked(0))
    evaluations.heard({"up": True})
    for merges in (5, 10, 15):
        evaluations.asked(asked(merges))
    assert fleet.asked == [asked(0)]
    evaluations.heard(evaluated(0))
    assert fleet.to_syncer == [{"evaluate_now": True}], "three that were due are one"
    evaluations.asked(asked(17))
    evaluations.heard(evaluated(17))
    assert fleet.to_syncer == [{"evaluate_now": True}] and not evaluations.pending
    assert [row["steps"] for row in fleet.recorded] == [0, 17]


@pytest.mark.parametrize(
    ("alive", "state", "pending"), [(True, "running", True), (False, "waiting", False), (False, "starting", True)]
)
def test_nobody_waits_for_an_evaluator_that_does_not_come_back(alive: bool, state: str, pending: bool) -> None:
    fleet = Fleet()
    evaluations = Evaluations(fleet)  # type: ignore[arg-type]
    evaluations.asked(asked(0))
    fleet.evaluator.alive, fleet.evaluator.state = alive, state
    assert evaluations.pending is pending


class Slow(NamedTuple):
    """A run, and what was printed while its settings changed."""

    path: Path
    said: list[str]


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Slow:
    """A run whose evaluations take longer than many merges; settings changed on the way, then stopped."""
    path = tmp_path_factory.mktemp("runs") / "slow"
    config = tiny(2, eval_every=EVERY, eval_batches=4000)
    with launch(config, path) as run:
        until(lambda: run.status()["val_loss"] is not None, "the first evaluation is there")
        run.wait(rounds=run.status()["merges"] + 4 * EVERY, timeout_s=GUARD_S)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            assert run.set(grace_s=0.1) == 1
            assert run.set(who="night shift", quorum=2) == 2
        run.stop()
    return Slow(path, said.getvalue().splitlines())


def test_a_slow_evaluator_skips_and_the_last_evaluation_is_of_the_last_merge(slow: Slow) -> None:
    records = records_of(slow.path)
    evals = of_kind(records, Kind.EVALUATED)
    merges = [record.steps for record in evals]
    total = len(of_kind(records, Kind.MERGED))
    print("evaluations after", merges, "of", total, "merges, each", [f"{r.detail['seconds']:.1f} s" for r in evals])
    assert merges[0] == 0 and merges[-1] == total, "round 0 first, the last merge last, also after a stop"
    assert merges == sorted(set(merges))
    assert len(merges) < 2 + total // EVERY, "some were skipped"
    assert [sum(record.detail["versions"]) for record in evals] == merges, "each names the versions that it is of"
    tape = open_tape(slow.path)
    assert np.asarray(tape["evals"].dataset["versions"]).sum(1).tolist() == merges
    found = summary(tape)
    assert (found["val_loss_first"], found["val_loss_last"]) == (evals[0].value, evals[-1].value)
    assert REPORTS["validation"](tape)["curve"]["merges"] == merges


def test_changes_say_who_asked_and_what_has_no_effect(slow: Slow) -> None:
    changed = of_kind(records_of(slow.path), Kind.SETTING_CHANGED)
    assert [(r.detail["who"], r.detail["values"]) for r in changed] == [
        ("python", {"grace_s": 0.1}),
        ("night shift", {"quorum": 2}),
    ]
    assert slow.said == ["workbench: grace_s has no effect with grace = adaptive"]
