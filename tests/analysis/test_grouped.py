from __future__ import annotations

import numpy as np

from workbench.analysis.arrays.grouped import grouped_spread
from workbench.analysis.arrays.spread import spread


def test_groups_are_described_as_columns_are() -> None:
    rng = np.random.default_rng(3)
    values = np.round(rng.exponential(size=2000), 2)
    values[rng.random(2000) < 0.1] = np.nan
    group = rng.integers(-1, 40, 2000) ** 2 % 37 - 1
    found = grouped_spread(values, group, 40)
    for number in range(40):
        wanted = spread(values[group == number])
        got = {name: column[number] for name, column in found.items()}
        if not wanted["count"]:
            assert got["count"] == 0 and all(np.isnan(got[name]) for name in ("median", "p95", "max"))
        else:
            assert got == wanted, number


def test_the_95th_percentile_is_exact_at_every_number_of_values() -> None:
    for count in range(1, 200):
        values = np.arange(count, dtype=float)
        found = grouped_spread(values, np.zeros(count, int), 1)
        assert (values <= found["p95"][0]).sum() * 100 >= 95 * count
        assert (values < found["p95"][0]).sum() * 100 < 95 * count


def test_nothing_has_no_spread() -> None:
    found = grouped_spread(np.empty(0), np.empty(0, int), 2)
    assert found["count"].tolist() == [0, 0] and np.isnan(found["max"]).all()
