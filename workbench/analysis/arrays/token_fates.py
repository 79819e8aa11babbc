"""Where the tokens went: the ledger run over tables, and its course over the merges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from workbench.analysis.arrays.tables import Array, Tables, details_of, events_of, fragment_count, learner_count
from workbench.protocol.records import Kind, Record
from workbench.tape.ledger import Ledger
from workbench.tape.ledger_book import CLOSED_FATES, LOCAL
from workbench.tape.ledger_moves import MOVES
from workbench.tape.schema import MERGED

_FIELDS = (
    "kind",
    "process",
    "peer",
    "fragment",
    "round",
    "version",
    "base_version",
    "step",
    "tokens",
    "value",
    "reason",
)
_LISTS = {"learners": "learner", "steps_captured": "step", "c_tokens": "c_tokens"}


def ledger_records(tables: Tables) -> Iterator[Record]:
    """Records that move tokens, in journal order, with the fields that the ledger reads."""
    events = tables["events"]
    wanted = events_of(tables, *(Kind(kind) for kind in MOVES))
    details: dict[int, dict[str, Any]] = {
        **details_of(tables, Kind.GRACE_ENDED, Kind.STATE_ADOPTED, Kind.SYNCER_STARTED),
        **_merge_details(tables),
        **{
            event: {"reference": reference}
            for event, reference in zip(
                tables["folds"]["event"].tolist(), tables["folds"]["reference"].tolist(), strict=True
            )
        },
    }
    columns = [events[name][wanted].tolist() for name in _FIELDS]
    nothing: dict[str, Any] = {}
    for event, kind, process, *rest in zip(wanted.tolist(), *columns, strict=True):
        peer, fragment, round_, version, base, step, tokens, value, reason = rest
        yield Record(
            kind, process, 0, 0, 0, peer=peer, fragment=fragment, round=round_, version=version, base_version=base,
            step=step, tokens=tokens, value=value, reason=reason, detail=details.get(event, nothing),
        )  # fmt: skip


def _merge_details(tables: Tables) -> dict[int, dict[str, Any]]:
    contributions, merges = tables["contributions"], tables["merges"]["event"]
    rows = np.flatnonzero((contributions["fate"] == MERGED) & (contributions["merge"] >= 0))
    rows = rows[np.lexsort((contributions["learner"][rows], contributions["merge"][rows]))]
    cuts = np.searchsorted(contributions["merge"][rows], np.arange(len(merges) + 1)).tolist()
    columns = {key: contributions[name][rows].tolist() for key, name in _LISTS.items()}
    return {
        event: {key: values[start:stop] for key, values in columns.items()}
        for event, start, stop in zip(merges.tolist(), cuts[:-1], cuts[1:], strict=True)
    }


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
