"""How staleness is distributed, and how the fates of tokens went over time, as labelled Datasets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from workbench.analysis.arrays import staleness_spread
from workbench.analysis.arrays import token_fates as fates_arrays
from workbench.analysis.arrays.tables import Array, fragment_count, learner_count, since_began
from workbench.analysis.from_tape import sizes_of, tables_of
from workbench.analysis.labels import Source, attrs

UNITS = {"versions": "1", "steps": "1", "rounds": "1", "seconds": "s", "lag": "s"}
"""Units of the measures of staleness."""
STATISTICS = ("median", "p95", "max")


def staleness_by_learner_and_fragment(source: Source) -> xr.Dataset:
    """Staleness of merged contributions for every learner and fragment.

    Returns
    -------
    xarray.Dataset
        Of each measure, ``versions``, ``steps``, ``rounds`` [1], ``seconds`` and ``lag`` [s], the ``median``, ``p95``
        and ``max`` (statistic, learner, fragment); ``count`` (measure, learner, fragment) of values.
    """
    tables = tables_of(source)
    dims = ("measure", "learner", "fragment")
    coords = {"learner": np.arange(learner_count(tables)), "fragment": np.arange(fragment_count(tables))}
    return _spreads(staleness_spread.by_learner_and_fragment(tables), dims, coords)


def staleness_over_time(source: Source, bins: int = 20) -> xr.Dataset:
    """Staleness of merged contributions in parts of equal length of the run.

    Returns
    -------
    xarray.Dataset
        The same by (statistic, bin); ``start_s`` and ``end_s`` (bin), from the start of rounds.
    """
    tables = tables_of(source)
    edges, found = staleness_spread.over_time(tables, bins)
    edges_s = since_began(tables, edges)
    coords = {
        "start_s": ("bin", edges_s[:-1], attrs(("s", "begin of the part"))),
        "end_s": ("bin", edges_s[1:], attrs(("s", "end of the part"))),
    }
    return _spreads(found, ("measure", "bin"), coords)


def _spreads(found: Mapping[str, Array], dims: tuple[str, ...], coords: Mapping[str, Any]) -> xr.Dataset:
    data: dict[str, Any] = {
        measure: (
            ("statistic", *dims[1:]),
            np.stack([found[name][number] for name in STATISTICS]),
            attrs((UNITS[measure], f"staleness in {measure}" if measure != "lag" else "lag from capture to merge")),
        )
        for number, measure in enumerate(staleness_spread.MEASURES)
    }
    data["count"] = (dims, found["count"], attrs(("1", "merged contributions with a value")))
    measures = list(staleness_spread.MEASURES)
    return xr.Dataset(data, coords={"measure": measures, "statistic": list(STATISTICS), **coords})


def token_fates(source: Source) -> xr.Dataset:
    """Where the tokens had gone just after every merge: the token ledger over time (DESIGN section 3).

    Returns
    -------
    xarray.Dataset
        ``tokens`` (merge, fate), which add up to ``processed`` (merge); ``share`` (merge, fate) of it; ``time_s``
        (merge), from the start of rounds.
    """
    tables = tables_of(source)
    found = fates_arrays.token_fates(tables, sizes_of(source))
    names = [name for name in found if name.startswith("tokens_") and name != "tokens_processed"]
    tokens = np.stack([found[name] for name in names], 1).astype(float)
    processed = found["tokens_processed"].astype(float)
    with np.errstate(invalid="ignore"):
        share = tokens / np.where(processed > 0, processed, np.nan)[:, None]
    both = ("merge", "fate")
    return xr.Dataset(
        {
            "tokens": (both, tokens, attrs(("1", "tokens, weighted by fragment size"))),
            "share": (both, share, attrs(("1", "share of the tokens processed"))),
            "processed": ("merge", processed, attrs(("1", "tokens processed"))),
        },
        coords={
            "fate": [name.removeprefix("tokens_") for name in names],
            "round": ("merge", found["round"]),
            "event": ("merge", found["event"]),
            "time_s": (
                "merge",
                since_began(tables, tables["events"]["time_ns"][found["event"]]),
                attrs(("s", "from the start of rounds")),
            ),
        },
    )
