"""Staleness, goodput, participation and token fates: tapes or tables in, Datasets out (DESIGN section 9).

Three layers: numpy columns (`arrays`, `bound`), labelled Datasets (`labelled`), and the tape's accessor ``.wb``,
which finds the latter by name.  Columns come from records (`from_records`) or from a tape (`from_tape`).
"""

from collections.abc import Callable
from typing import Any

from workbench.analysis.breakdowns import breakdown
from workbench.analysis.courses import goodput_over_time
from workbench.analysis.critical_paths import critical_path
from workbench.analysis.distributions import staleness_by_learner_and_fragment, staleness_over_time, token_fates
from workbench.analysis.efficiencies import efficiency, tokens_to
from workbench.analysis.geometries import geometry
from workbench.analysis.labelled import (
    behind,
    effective_period,
    goodput,
    ledger,
    merge_availability,
    merged_share,
    participation,
    rounds,
    staleness,
    token_fates_by_round,
    tokens_by_reason,
    uptime,
    validation_curve,
)
from workbench.analysis.merge_reasons import why
from workbench.analysis.patterns import find
from workbench.analysis.ranges import within
from workbench.analysis.summary import summary

ACCESSORS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        behind,
        breakdown,
        effective_period,
        efficiency,
        geometry,
        goodput,
        goodput_over_time,
        ledger,
        merge_availability,
        merged_share,
        participation,
        rounds,
        staleness,
        staleness_by_learner_and_fragment,
        staleness_over_time,
        summary,
        token_fates,
        token_fates_by_round,
        tokens_by_reason,
        uptime,
        validation_curve,
    )
}
"""Functions that need a tape, or its tables, and nothing else, by name; ``tape.wb`` offers these and the rest below."""

__all__ = [
    "ACCESSORS",
    "behind",
    "breakdown",
    "critical_path",
    "effective_period",
    "efficiency",
    "find",
    "geometry",
    "goodput",
    "goodput_over_time",
    "ledger",
    "merge_availability",
    "merged_share",
    "participation",
    "rounds",
    "staleness",
    "staleness_by_learner_and_fragment",
    "staleness_over_time",
    "summary",
    "token_fates",
    "token_fates_by_round",
    "tokens_by_reason",
    "tokens_to",
    "uptime",
    "validation_curve",
    "why",
    "within",
]
