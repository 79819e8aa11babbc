"""Columns of a tape as the records that the token ledger reads: what moves tokens, with the fields that count."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np

from workbench.protocol.records import Record
from workbench.tape.ledger_moves import MOVES
from workbench.tape.schema import MERGED

Array = np.ndarray[Any, Any]
_FIELDS = (
    "kind", "process", "peer", "fragment", "round", "version", "base_version", "step", "tokens", "value", "reason",
)  # fmt: skip
_LISTS = {"learners": "learner", "steps_captured": "step", "c_tokens": "c_tokens"}


def moving_records(
    column: Callable[[str], Array],
    details: Mapping[int, dict[str, Any]],
    contributions: Mapping[str, Array],
    merges: Array,
    folds: Mapping[str, Array],
    kinds: Collection[int] = MOVES,
) -> Iterator[tuple[int, Record]]:
    """Events that move tokens, in journal order, with the records that the ledger reads of them.

    Parameters
    ----------
    column : callable
        From a name to that column of /events; ``reason`` as words.
    details : mapping of event to dict
        Of GRACE_ENDED, STATE_ADOPTED and SYNCER_STARTED.
    contributions : mapping
        Columns of /contributions.
    merges : ndarray (merge,)
        Events of the merges.
    folds : mapping
        ``event`` and ``reference`` of /folds.
    kinds : collection of int
        Of these only.
    """
    wanted = np.flatnonzero(np.isin(column("kind"), list(kinds)))
    folded = zip(folds["event"].tolist(), folds["reference"].tolist(), strict=True)
    known: dict[int, dict[str, Any]] = {
        **details,
        **_merge_details(contributions, merges),
        **{event: {"reference": reference} for event, reference in folded},
    }
    columns = [column(name)[wanted].tolist() for name in _FIELDS]
    nothing: dict[str, Any] = {}
    for event, kind, process, *rest in zip(wanted.tolist(), *columns, strict=True):
        peer, fragment, round_, version, base, step, tokens, value, reason = rest
        yield event, Record(
            kind, process, 0, 0, 0, peer=peer, fragment=fragment, round=round_, version=version, base_version=base,
            step=step, tokens=tokens, value=value, reason=reason, detail=known.get(event, nothing),
        )  # fmt: skip


def _merge_details(contributions: Mapping[str, Array], merges: Array) -> dict[int, dict[str, Any]]:
    rows = np.flatnonzero((contributions["fate"] == MERGED) & (contributions["merge"] >= 0))
    rows = rows[np.lexsort((contributions["learner"][rows], contributions["merge"][rows]))]
    cuts = np.searchsorted(contributions["merge"][rows], np.arange(len(merges) + 1)).tolist()
    columns = {key: contributions[name][rows].tolist() for key, name in _LISTS.items()}
    return {
        event: {key: values[start:stop] for key, values in columns.items()}
        for event, start, stop in zip(merges.tolist(), cuts[:-1], cuts[1:], strict=True)
    }
