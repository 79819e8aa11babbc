"""The same numbers as labelled Datasets, from a tape or from tables; ``tree.wb`` calls these."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from workbench.analysis import bound as bound_arrays
from workbench.analysis.arrays import participation as participation_arrays
from workbench.analysis.arrays import rounds as rounds_arrays
from workbench.analysis.arrays import staleness as staleness_arrays
from workbench.analysis.arrays import time_shares, token_fates
from workbench.analysis.arrays import validation as validation_arrays
from workbench.analysis.arrays.tables import NS, Array
from workbench.analysis.from_tape import config_of, sizes_of, tables_of
from workbench.analysis.labels import Source, attrs, dataset
from workbench.config import RunConfig


def goodput(source: Source) -> xr.Dataset:
    """Goodput and badput by cause.

    Returns
    -------
    xarray.Dataset
        ``allocated_s``, ``useful_s`` (learner) [s], ``badput_s`` (learner, cause) [s], ``goodput`` and
        ``badput`` (cause), which add up to 1.
    """
    shares = time_shares.time_shares(tables_of(source))
    return xr.Dataset(
        {
            "allocated_s": ("learner", shares.allocated_ns * NS, attrs(("s", "allocated time"))),
            "useful_s": ("learner", shares.useful_ns * NS, attrs(("s", "time in completed steps"))),
            "badput_s": (("learner", "cause"), shares.badput_ns * NS, attrs(("s", "allocated time lost, by cause"))),
            "goodput": ((), shares.goodput, attrs(("1", "useful over allocated time"))),
            "badput": ("cause", list(shares.badput.values()), attrs(("1", "share of allocated time lost, by cause"))),
        },
        coords={"learner": np.arange(len(shares.useful_ns)), "cause": list(time_shares.CAUSES)},
    )


def uptime(source: Source) -> xr.DataArray:
    """Share of the time in which some learner makes progress."""
    return xr.DataArray(time_shares.uptime(tables_of(source)), name="uptime", attrs=attrs(("1", "system uptime")))


def merge_availability(source: Source, config: RunConfig | None = None) -> xr.Dataset:
    """Merge availability, and the gaps longer than the shortest bound possible.

    Returns
    -------
    xarray.Dataset
        ``merge_availability`` and, by gap, ``start_s``, ``gap_s``, ``bound_s`` and ``excess_s`` [s].
    """
    found = bound_arrays.gaps(tables_of(source), config or config_of(source))
    columns = {
        "start_s": found.start_ns * NS,
        "gap_s": (found.end_ns - found.start_ns) * NS,
        "bound_s": found.bound_s,
        "excess_s": found.excess_s,
    }
    names = {
        "start_s": ("s", "K clean learners had reached the round"),
        "gap_s": ("s", "until the next merge"),
        "bound_s": ("s", "bound B on that time"),
        "excess_s": ("s", "time beyond the bound"),
    }
    result = dataset("gap", columns, names)
    availability = ((), found.merge_availability, attrs(("1", "1 - time beyond the bound / time of the run")))
    return result.assign(merge_availability=availability)


def participation(source: Source) -> xr.Dataset:
    """Participation by merge and learner, and the counts beside it.

    Returns
    -------
    xarray.Dataset
        ``included``, ``expected`` (merge, learner); ``participation``, ``per_learner`` (learner); ``alive``,
        ``reachable`` and ``contributed`` (merge), the numbers of learners.
    """
    tables = tables_of(source)
    found = participation_arrays.participation(tables)
    both = ("merge", "learner")
    return xr.Dataset(
        {
            "included": (both, found.included, attrs(("1", "contribution is in the merge"))),
            "expected": (both, found.expected, attrs(("1", "healed, connected and under no fault"))),
            "participation": ((), found.share, attrs(("1", "included of the expected"))),
            "per_learner": ("learner", found.per_learner, attrs(("1", "included of the expected"))),
            "alive": ("merge", found.alive.sum(1), attrs(("1", "learners whose process lives"))),
            "reachable": ("merge", found.reachable.sum(1), attrs(("1", "learners that are connected"))),
            "contributed": ("merge", found.included.sum(1), attrs(("1", "learners in the merge"))),
        },
        coords={
            "learner": np.arange(found.included.shape[1]),
            **{name: ("merge", tables["merges"][name]) for name in ("round", "fragment", "version")},
        },
    )


def staleness(source: Source) -> xr.Dataset:
    """Staleness of every contribution: versions, steps, rounds, seconds and lag; NaN where it has none."""
    names = {
        "versions": ("1", "version merged into - 1 - base version"),
        "steps": ("1", "own steps in the contribution"),
        "rounds": ("1", "round - round of its base"),
        "seconds": ("s", "capture - fold of its base"),
        "lag": ("s", "merge - capture"),
    }
    found = staleness_arrays.staleness(tables_of(source))
    keys = ("round", "fragment", "learner", "merge", "fate")
    return dataset("contribution", found, names).set_coords(keys)


def behind(source: Source, at: Array | None = None) -> xr.Dataset:
    """How far each learner is behind after the given events (all merges by default), in versions."""
    tables = tables_of(source)
    at, found = staleness_arrays.behind(tables, sizes_of(source), at)
    names = attrs(("1", "mean over fragments, by size, of version - base"))
    return xr.Dataset(
        {"behind": (("event", "learner"), found, names)},
        coords={
            "event": at,
            "learner": np.arange(found.shape[1]),
            "time_s": ("event", tables["events"]["time_ns"][at] * NS),
        },
    )


def effective_period(source: Source, period: int | None = None) -> xr.Dataset:
    """Steps between two folds of one fragment; ``unusual`` marks those below 0.5 x or above 1.5 x H."""
    period = config_of(source).period if period is None else period
    return dataset("fold", staleness_arrays.effective_period(tables_of(source), period), {})


def rounds(source: Source) -> xr.Dataset:
    """One row per round with the time that each of its states took."""
    outcomes = np.array(rounds_arrays.OUTCOMES)
    names = {name: ("s", f"time of the round in {name[:-2]}") for name in rounds_arrays.DURATIONS}
    found = rounds_arrays.rounds(tables_of(source))
    return dataset("row", {**found, "outcome": outcomes[found["outcome"]]}, names | {"opened_ns": ("ns", "opened")})


def token_fates_by_round(source: Source) -> xr.Dataset:
    """Run totals of the token ledger just after every merge."""
    found = token_fates.token_fates(tables_of(source), sizes_of(source))
    return dataset("merge", found, {}).set_coords(["round", "event"])


def tokens_by_reason(source: Source) -> xr.DataArray:
    """Tokens at the end of the tape by fate and reason."""
    found = token_fates.ledger_of(tables_of(source), sizes_of(source)).by_reason()
    pairs = [(fate, reason, tokens) for fate, reasons in found.items() for reason, tokens in reasons.items()]
    return xr.DataArray(
        np.array([tokens for *_, tokens in pairs], float),
        dims="reason",
        coords={
            "reason": ("reason", np.array([reason for _, reason, _ in pairs], object)),
            "fate": ("reason", np.array([fate for fate, *_ in pairs], object)),
        },
        name="tokens",
        attrs=attrs(("1", "tokens, weighted by fragment size")),
    )


def merged_share(source: Source) -> float:
    """Share of the processed tokens that entered a merge."""
    return token_fates.merged_share(token_fates.ledger_of(tables_of(source), sizes_of(source)))


def validation_curve(source: Source) -> xr.Dataset:
    """Validation loss against merges, tokens merged and processed, and time."""
    names = {
        "loss": ("nat", "validation loss"),
        "merges": ("1", "merges in the evaluated weights"),
        "tokens": ("1", "tokens merged"),
        "tokens_processed": ("1", "tokens processed before the newest of the merges"),
        "time_s": ("s", "end of the evaluation"),
    }
    return dataset("eval", validation_arrays.validation_curve(tables_of(source)), names)


def ledger(source: Source) -> dict[str, Any]:
    """Run totals of the token ledger at the end of the tape, after a check of every book.

    Raises
    ------
    workbench.tape.ledger.LedgerError
        When a book does not balance.
    """
    found = token_fates.ledger_of(tables_of(source), sizes_of(source))
    found.check()
    return found.totals()
