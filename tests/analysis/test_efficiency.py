from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tests.analysis.runs import CONFIG, evaluated, ledger_vector, simulated, with_evals
from tests.analysis.tapes import taped
from workbench.analysis import efficiency, token_fates, tokens_to
from workbench.analysis.arrays.intervals import log_ratio, mean_interval, t_quantile
from workbench.analysis.efficiencies import efficiency_ratio
from workbench.analysis.from_records import tables
from workbench.config import ConfigError
from workbench.protocol.records import Kind, Record


def test_efficiency_against_a_walk_over_the_records() -> None:
    records = with_evals(simulated())
    found = efficiency(tables(records))
    processed, merges, opened, spent = 0, 0, set[int](), {0: (0, 0)}
    for record in records:
        processed += record.tokens if record.kind == Kind.STEP_ENDED else 0
        if record.kind == Kind.ROUND_OPENED:
            opened.add(record.round)
        if record.kind == Kind.MERGED:
            merges += 1
            spent[merges] = processed, len(opened)
    assert found["merges"].values.tolist() == [0, 60] and found["loss"].values.tolist() == [5.5, 2.5]
    assert found["tokens_processed"].values.tolist() == [0, spent[60][0]]
    assert found["rounds"].values.tolist() == [0, spent[60][1]]
    assert found["tokens_merged"].values.tolist() == [0, 6000]
    assert tokens_to(tables(records), 4.0) == pytest.approx(spent[60][0] / 2)
    assert tokens_to(tables(records), 4.0, "merges") == 30 and math.isnan(tokens_to(tables(records), 2.0))


def test_behind_a_loss_that_is_not_finite_there_is_no_line() -> None:
    records = [*simulated()[:-1], evaluated(9, 20, math.nan, 1), evaluated(9, 60, 2.5, 2), simulated()[-1]]
    assert tokens_to(tables(records), 3.0, "merges") == 60


def test_fates_over_time_are_the_ledger_s_and_add_up() -> None:
    found = token_fates(tables(ledger_vector()))
    first, last = (
        {f: t for f, t in zip(found["fate"].values.tolist(), row, strict=True) if t} for row in found["tokens"].values
    )
    assert first == {"merged": 150, "local": 150} and found["processed"].values.tolist() == [300, 600]
    assert last == {"merged": 150, "overwritten": 50, "not_merged": 250, "local": 150}
    assert found["time_s"].values.tolist() == [3, 6]
    whole = token_fates(tables(simulated()))
    assert np.allclose(whole["tokens"].sum("fate"), whole["processed"]) and whole.sizes["merge"] == 60
    assert (np.diff(whole["tokens"].sel(fate="merged")) > 0).all() and np.allclose(whole["share"].sum("fate"), 1)


def test_student_s_quantiles_and_intervals_are_the_textbook_s() -> None:
    assert t_quantile(4, 0.95) == pytest.approx(2.776, abs=1e-3)
    assert t_quantile(10, 0.99) == pytest.approx(3.169, abs=1e-3)
    middle, low, high = mean_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert middle == 3.0 and high - middle == pytest.approx(2.776 * math.sqrt(2.5 / 5), abs=1e-3)
    assert middle - low == pytest.approx(high - middle)
    assert all(map(math.isnan, mean_interval([1.0])[1:])) and all(map(math.isnan, mean_interval([])))


def test_ratio_of_geometric_means_paired_and_not() -> None:
    a, b = np.exp([0.1, 0.3, 0.2]), np.exp([1.0, 1.3, 1.4])
    paired = log_ratio(a, b, paired=True)
    d = np.array([-0.9, -1.0, -1.2])
    half = 4.3027 * d.std(ddof=1) / math.sqrt(3)
    assert math.log(paired.middle) == pytest.approx(d.mean())
    assert math.log(paired.high) == pytest.approx(d.mean() + half, abs=1e-4) and paired.method == "paired t"
    welch = log_ratio(a, b, paired=False)
    errors = [np.log(x).var(ddof=1) / 3 for x in (a, b)]
    degrees = sum(errors) ** 2 / sum(e**2 / 2 for e in errors)
    assert welch.method == "Welch t" and welch.middle == pytest.approx(paired.middle)
    assert math.log(welch.low) == pytest.approx(d.mean() - t_quantile(degrees, 0.95) * math.sqrt(sum(errors)))
    back = log_ratio(b, a, paired=False)
    assert back.high == pytest.approx(1 / welch.low)
    alone = log_ratio(a[:1], b, paired=False)
    assert alone.method == "none" and math.isnan(alone.low) and alone.middle > 0


def with_loss(last: float) -> list[Record]:
    return [evaluated(0.1, 0, 5.5, 1), evaluated(9.0, 60, last, 2)]


def test_ratio_between_runs_over_seeds(tmp_path: Path) -> None:
    sides: dict[str, list[Path]] = {"a": [], "b": []}
    for side, shift in (("a", 1.0), ("b", 0.0)):
        for seed, last in enumerate((2.0, 2.1, 2.3)):
            sides[side].append(tmp_path / f"{side}{seed}")
            taped(sides[side][-1], with_loss(last + shift), CONFIG.set(seed=seed))
    found = efficiency_ratio(sides["a"], list(reversed(sides["b"])), 4.0, "merges")
    wanted = [[60 * 1.5 / (5.5 - last - shift) for last in (2.0, 2.1, 2.3)] for shift in (1.0, 0.0)]
    assert found.a == pytest.approx(wanted[0]) and found.b == pytest.approx(wanted[1])
    assert found.method == "paired t" and found.low < found.ratio < found.high and found.unreached == (0, 0)
    assert found.ratio == pytest.approx(math.exp(np.log(wanted[0]).mean() - np.log(wanted[1]).mean()))
    other = efficiency_ratio(sides["a"][:2], sides["b"], 4.0, "merges")
    assert other.method == "Welch t" and other.to_json()["n_a"] == 2
    none = efficiency_ratio(sides["a"], sides["b"][0], 2.5)
    assert math.isnan(none.ratio) and none.unreached == (3, 0) and none.method == "none"
    assert none.unreached_runs == tuple(map(str, sides["a"])) == tuple(none.to_json()["unreached_runs"])
    assert found.unreached_runs == ()
    with pytest.raises(ConfigError, match="level = 95"):
        efficiency_ratio(sides["a"], sides["b"], 4.0, level=95)
    with pytest.raises(ConfigError, match=r"'tokens'.*tokens_processed"):
        efficiency_ratio(sides["a"], sides["b"], 4.0, "tokens")
    with pytest.raises(ConfigError, match="0 runs against 3"):
        efficiency_ratio([], sides["b"], 4.0)
