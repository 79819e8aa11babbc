from __future__ import annotations

import pytest

from tests.analysis.runs import CONFIG, FAULTS, SECOND, began, ended, joined, simulated, step, with_evals
from workbench.analysis import ACCESSORS, summary
from workbench.analysis.from_records import tables
from workbench.analysis.reports import REPORTS, ROWS
from workbench.analysis.reports.facts import facts
from workbench.protocol.faults import Fault
from workbench.protocol.records import Kind


def test_the_reports_say_what_the_summary_says() -> None:
    found = tables(with_evals(simulated()))
    whole, short = REPORTS["overview"](found, CONFIG), summary(found, CONFIG)
    assert {f"tokens_{fate}": tokens for fate, tokens in whole["ledger"]["fates"].items()} == pytest.approx({
        name: value for name, value in short.items() if name.startswith("tokens_") and name != "tokens_processed"
    })  # fmt: skip
    assert whole["ledger"]["processed"] == short["tokens_processed"]
    for name, part in {
        "goodput": "goodput", "uptime": "goodput", "participation": "participation", "merge_availability": "rounds",
    }.items():  # fmt: skip
        assert whole[part][name] == pytest.approx(short[name])
    assert (whole["validation"]["first"], whole["validation"]["last"]) == (5.5, 2.5)
    assert [row["learner"] for row in whole["learners"]] == [0, 1, 2]
    assert sum(row["steps"] for row in whole["learners"]) == sum(r.kind == Kind.STEP_ENDED for r in simulated())
    assert [row["processes"] for row in whole["learners"]] == [1, 2, 1]
    assert whole["run"]["state"] == "finished" and whole["run"]["merges"] == CONFIG.rounds


def test_goodput_and_badput_of_each_learner_add_up_to_one() -> None:
    found = REPORTS["goodput"](tables(simulated()), CONFIG)
    for row in found["by_learner"]:
        assert row["goodput"] + sum(row["badput"].values()) == pytest.approx(1.0)
        assert row["useful_s"] + sum(row["badput_s"].values()) == pytest.approx(row["allocated_s"])
    assert found["goodput"] + sum(found["badput"].values()) == pytest.approx(1.0)
    assert found["useful_s"] + sum(found["badput_s"].values()) == pytest.approx(found["allocated_s"])


def test_rounds_are_counted_by_outcome_and_by_learners() -> None:
    found = REPORTS["rounds"](tables(simulated((*FAULTS, Fault("kill_syncer", 9 * SECOND, for_ns=SECOND)))), CONFIG)
    assert sum(found["outcomes"].values()) == found["opened"]
    assert sum(row["merges"] for row in found["contributors"]) == found["outcomes"]["merged"] == CONFIG.rounds
    assert sum(row["share"] for row in found["contributors"]) == pytest.approx(1.0)
    assert found["between_merges_s"]["count"] == CONFIG.rounds - 1
    longest = found["longest_between"][0]
    assert longest["for_s"] == found["between_merges_s"]["max"] and 8 < longest["start_s"] < 10
    assert found["durations_s"]["total"]["median"] >= found["durations_s"]["grace"]["median"]


def test_staleness_of_a_slow_learner_is_warned_of() -> None:
    config = CONFIG.set({"grace": "none", "virtual.slow": (1.0, 1.0, 3.0)})
    found = REPORTS["staleness"](tables(simulated((), config)), config)
    usual, _, slow = found["effective_period"]
    assert not usual["unusual"] and usual["median"] == config.period
    assert slow["unusual"] and slow["median"] < config.period / 2 and slow["below"] > 0.9 * slow["count"]
    assert found["all"]["versions"]["max"] == 0
    assert sum(row["versions"]["count"] for row in found["by_learner"]) == found["contributions"]
    assert sum(row["versions"]["count"] for row in found["by_fragment"]) == found["contributions"]
    assert found["behind"][0]["median"] < 1


def test_a_ledger_that_does_not_balance_is_told_with_its_numbers() -> None:
    records = simulated()
    whole = REPORTS["ledger"](tables(records), CONFIG)
    assert whole["balanced"] and whole["fault"] == "" and abs(whole["difference"]) < 1e-6
    lacking = [r for i, r in enumerate(records) if not (r.kind == Kind.STEP_ENDED and 400 < i < 500)]
    found = REPORTS["ledger"](tables(lacking), CONFIG)
    assert not found["balanced"] and "fragment" in found["fault"]


@pytest.mark.parametrize(
    ("records", "written", "state"),
    [
        ([began(0), joined(0), step(0, 0, 1)], True, "running"),
        ([began(0), joined(0), step(0, 0, 1)], False, "cut_off"),
        ([began(0), joined(0), ended(3)], False, "finished"),
    ],
)
def test_how_a_run_ended(records: list, written: bool, state: str) -> None:
    assert facts(tables(records), CONFIG, written=written)["state"] == state


def test_what_differs_from_the_preset_is_named() -> None:
    found = facts(tables([]), CONFIG)
    assert found["changed"]["period"] == [12, 6]
    assert "merge" not in found["changed"]


@pytest.mark.parametrize("name", REPORTS)
def test_every_report_tells_of_an_empty_tape(name: str) -> None:
    assert REPORTS[name](tables([]), CONFIG)


def test_every_table_has_rows_behind_it() -> None:
    assert set(ROWS) == set(REPORTS) - {"overview"}
    assert set(ROWS.values()) <= set(ACCESSORS)
