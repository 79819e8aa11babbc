"""The numbers of a run in one dictionary: the JSON of ``workbench train`` (DESIGN section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.analysis.arrays.participation import participation
from workbench.analysis.arrays.tables import NS, events_of, run_span
from workbench.analysis.arrays.time_shares import time_shares, uptime
from workbench.analysis.arrays.token_fates import ledger_of
from workbench.analysis.bound import gaps
from workbench.analysis.from_tape import config_of, sizes_of, tables_of
from workbench.analysis.labelled import Source
from workbench.config import RunConfig
from workbench.protocol.records import Kind


def summary(source: Source, config: RunConfig | None = None, sizes: Sequence[int] | None = None) -> dict[str, Any]:
    """Summarise a run.

    Parameters
    ----------
    source : tables or tape
        From `workbench.analysis.from_records.tables`, or an open tape.
    config : RunConfig, optional
        What the run began with; a tape's own by default.
    sizes : sequence of int, optional
        Elements of each fragment; a tape's own by default, else equal.

    Returns
    -------
    dict
        ``rounds`` (opened or passed over), ``merges``, ``tokens_*``, ``val_loss_first`` (of the untrained model),
        ``val_loss_last``, ``goodput``, ``uptime``, ``merge_availability``, ``participation``; ``time_s`` from the start
        of rounds to the close of the run [s]; None where there is nothing to tell.
    """
    tables = tables_of(source)
    config = config or config_of(source)
    losses = tables["evals"]["loss"][np.argsort(tables["evals"]["merges"], kind="stable")].tolist()
    first = losses[0] if losses and tables["evals"]["merges"].min() == 0 else None
    began, closed = run_span(tables)
    numbers = {
        "goodput": time_shares(tables).goodput,
        "uptime": uptime(tables),
        "merge_availability": gaps(tables, config).merge_availability,
        "participation": participation(tables).share,
    }
    return {
        "rounds": len(np.unique(tables["events"]["round"][events_of(tables, Kind.ROUND_OPENED)])),
        "merges": len(tables["merges"]["event"]),
        **ledger_of(tables, sizes if sizes is not None else sizes_of(source)).totals(),
        "val_loss_first": first,
        "val_loss_last": losses[-1] if losses else None,
        **{name: None if np.isnan(value) else value for name, value in numbers.items()},
        "time_s": (closed - began) * NS,
    }
