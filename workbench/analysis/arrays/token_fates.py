"""Where the tokens went: the ledger run over tables, and its course over the merges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from workbench.analysis.arrays.tables import Array, Tables, details_of, fragment_count, learner_count
from workbench.protocol.records import Kind, Record
from workbench.tape.ledger import Ledger
from workbench.tape.ledger_book import CLOSED_FATES, LOCAL
from workbench.tape.ledger_rows import moving_records


def ledger_records(tables: Tables) -> Iterator[Record]:
    """Records that move tokens, in journal order, with the fields that the ledger reads."""
    details = details_of(tables, Kind.GRACE_ENDED, Kind.STATE_ADOPTED, Kind.SYNCER_STARTED)
    events, merges = tables["events"], tables["merges"]["event"]
    moving = moving_records(events.__getitem__, details, tables["contributions"], merges, tables["folds"])
    return (record for _, record in moving)


def ledger_of(tables: Tables, sizes: Sequence[int] | None = None) -> Ledger:
    """Ledger at the end of the tables; fragments weigh the same where their sizes are not given."""
    ledger = _empty(tables, sizes)
    for record in ledger_records(tables):
        ledger.apply(record)
    return ledger


def _empty(tables: Tables, sizes: Sequence[int] | None) -> Ledger:
    weights = list(sizes) if sizes is not None else [1] * max(1, fragment_count(tables))
    return Ledger(learner_count(tables), len(weights), weights)


def token_fates(tables: Tables, sizes: Sequence[int] | None = None) -> dict[str, Array]:
    """Run totals just after every merge.

    Returns
    -------
    dict of str to ndarray (merge,)
        ``round``, ``event`` and the ledger's ``tokens_*``.
    """
    ledger, totals = _empty(tables, sizes), []
    for record in ledger_records(tables):
        ledger.apply(record)
        if record.kind == Kind.MERGED:
            totals.append(ledger.totals())
    names = ledger.totals()
    return {
        "round": tables["merges"]["round"],
        "event": tables["merges"]["event"],
        **{name: np.array([total[name] for total in totals]) for name in names},
    }


def merged_share(ledger: Ledger) -> float:
    """tokens_merged / tokens_processed; NaN before the first step."""
    totals = ledger.totals()
    return totals["tokens_merged"] / totals["tokens_processed"] if totals["tokens_processed"] else float("nan")


def fates_by_learner(ledger: Ledger, sizes: Sequence[int]) -> dict[str, Array]:
    """Tokens of each learner by fate, its fragments weighted by their share of the model.

    Parameters
    ----------
    ledger : Ledger
    sizes : sequence of int
        Elements of each fragment, as the ledger was given them.

    Returns
    -------
    dict of str to ndarray (learner,)
        ``processed`` and every fate; the fates add up to it, and over the learners to the ledger's totals.
    """
    rows = [[ledger.books(learner, p) for p in range(len(sizes))] for learner in range(ledger.learners)]
    processed = np.array([ledger.processed(learner) for learner in range(ledger.learners)], float)
    share = np.asarray(sizes, float) / sum(sizes)
    return {"processed": processed} | {
        fate: np.array([sum(book[fate] * part for book, part in zip(row, share, strict=True)) for row in rows])
        for fate in (*CLOSED_FATES, LOCAL)
    }
