from __future__ import annotations

import numpy as np

from tests.analysis.runs import CONFIG, evaluated, merged, simulated, step, with_evals
from workbench.analysis.arrays.validation import REACHED, processed_at_merges, reached, validation_curve
from workbench.analysis.from_records import tables
from workbench.analysis.reports import validation
from workbench.protocol.records import Kind


def test_tokens_are_those_before_the_newest_merge_in_the_weights() -> None:
    records = [
        evaluated(0, 0, 5.0), step(0, 0, 1), step(1, 0, 1), merged(1, 1.1, 1, (0, 1)), step(0, 1, 2, 2),
        merged(2, 2.1, 1, (0,), fragment=1), step(1, 1, 3, 2), evaluated(3, 1, 4.0), evaluated(4, 2, 3.0),
    ]  # fmt: skip
    found = tables(records)
    assert processed_at_merges(found).tolist() == [20, 30]
    curve = validation_curve(found)
    assert {name: values.tolist() for name, values in curve.items()} == {
        "loss": [5.0, 4.0, 3.0], "merges": [0, 1, 2], "tokens": [0, 100, 200], "tokens_processed": [0, 20, 30],
        "time_s": [0.0, 3.0, 4.0],
    }  # fmt: skip


def test_a_loss_is_reached_the_first_time_that_it_is_passed() -> None:
    curve = {"loss": np.array([5.0, 3.0, 4.0, 2.0]), **{name: np.array([0, 100, 200, 300]) for name in REACHED}}
    rows = reached(curve, [5.0, 4.0, 3.0, 2.5, 1.9])
    assert [row["merges"] for row in rows] == [0.0, 50.0, 100.0, 275.0, None]
    assert reached({"loss": np.array([]), **{name: np.array([]) for name in REACHED}}, [1.0])[0]["time_s"] is None


def test_the_report_asks_for_round_losses_that_were_passed() -> None:
    found = validation.report(tables(with_evals(simulated())))
    assert [row["loss"] for row in found["reached"]] == [5.0, 4.0, 3.5, 3.0, 2.75, 2.5]
    assert (found["first"], found["last"], found["best"], found["evaluations"]) == (5.5, 2.5, 2.5, 2)
    assert found["reached"][-1]["merges"] == CONFIG.rounds
    assert [row["loss"] for row in validation.report(tables(simulated()), losses=[1.0])["reached"]] == [1.0]
    processed = sum(r.tokens for r in simulated() if r.kind == Kind.STEP_ENDED)
    assert 0 < found["curve"]["tokens_processed"][-1] <= processed


def test_a_run_without_evaluations_has_no_losses() -> None:
    found = validation.report(tables([]))
    assert (found["first"], found["last"], found["best"], found["reached"]) == (None, None, None, [])
