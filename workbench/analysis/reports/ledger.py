"""Where the tokens went, by fate, reason and learner, and whether every book balances."""

from __future__ import annotations

import math
from typing import Any

from workbench.analysis.arrays.tables import fragment_count
from workbench.analysis.arrays.token_fates import fates_by_learner, ledger_of
from workbench.analysis.from_tape import sizes_of, tables_of
from workbench.analysis.labelled import Source
from workbench.config import RunConfig
from workbench.tape.ledger import Ledger, LedgerError


def report(source: Source, config: RunConfig | None = None) -> dict[str, Any]:
    """Report the token ledger at the end of the tape.

    Returns
    -------
    dict
        ``balanced``, ``fault`` (what does not balance, empty if nothing), ``books`` (learners x fragments),
        ``processed``, ``fates`` (tokens by fate), ``shares`` (of processed), ``difference`` (processed less the sum
        of the fates), ``reasons`` (rows of ``fate``, ``reason``, ``tokens``, ``share``, the most tokens first) and
        ``by_learner`` (``learner``, ``processed``, ``fates``, ``merged_share``).
    """
    tables = tables_of(source)
    sizes = sizes_of(source) or [1] * max(1, fragment_count(tables))
    ledger = ledger_of(tables, sizes)
    totals = {name.removeprefix("tokens_"): value for name, value in ledger.totals().items()}
    processed = totals.pop("processed")
    fault, difference = _fault(ledger), processed - math.fsum(totals.values())
    if not fault and abs(difference) > 1e-9 * max(processed, 1.0):
        fault = f"{processed:,.1f} tokens processed, but the fates add up to {math.fsum(totals.values()):,.1f}"
    return {
        "balanced": not fault,
        "fault": fault,
        "books": ledger.learners * len(sizes),
        "learners": ledger.learners,
        "fragments": len(sizes),
        "processed": processed,
        "fates": totals,
        "shares": {fate: tokens / processed if processed else None for fate, tokens in totals.items()},
        "difference": difference,
        "reasons": _reasons(ledger, processed),
        "by_learner": by_learner(ledger, sizes),
    }


def _reasons(ledger: Ledger, processed: float) -> list[dict[str, Any]]:
    rows = [
        {"fate": fate, "reason": reason, "tokens": tokens, "share": tokens / processed if processed else None}
        for fate, reasons in ledger.by_reason().items()
        for reason, tokens in reasons.items()
        if reason
    ]
    return sorted(rows, key=lambda row: -row["tokens"])


def _fault(ledger: Ledger) -> str:
    try:
        ledger.check()
    except LedgerError as error:
        return str(error)
    return ""


def by_learner(ledger: Ledger, sizes: list[int]) -> list[dict[str, Any]]:
    """Tokens of each learner: ``learner``, ``processed``, ``fates``, ``merged_share``."""
    found = fates_by_learner(ledger, sizes)
    processed = found.pop("processed").tolist()
    return [
        {
            "learner": learner,
            "processed": total,
            "fates": {fate: float(tokens[learner]) for fate, tokens in found.items()},
            "merged_share": float(found["merged"][learner]) / total if total else None,
        }
        for learner, total in enumerate(processed)
    ]
