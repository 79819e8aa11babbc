"""Tables from a list of records, without a store: simulations are analysed by the same code as tapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from workbench.analysis.arrays.tables import Array, Tables
from workbench.protocol.records import FIRST_LEARNER, Kind, Record, learner_of
from workbench.tape.schema import ABORTED, CONTRIBUTIONS, DROPPED, EVENTS, FORGOTTEN, MERGED, MERGES, OPEN, SKIPPED

_ENDED = {Kind.ROUND_SKIPPED: SKIPPED, Kind.ROUND_ABORTED: ABORTED, Kind.ROUND_RESTARTED: FORGOTTEN}
_STEP_DETAILS = ("batch", "accumulation", "start_ns", "end_ns", "injected_ns", "waited_ns")
_MERGE_DETAILS = ("first_ready_ns", "quorum_ns", "grace_ns", "pull_ns", "merge_ns", "norm", "outer_digest")
_IN_COLUMNS = (
    Kind.STEP_ENDED, Kind.UPDATE_FOLDED, Kind.FRAGMENT_ARRIVED, Kind.FRAGMENT_DROPPED, Kind.MERGED, Kind.EVALUATED,
)  # fmt: skip
_UNSORTED = ("cause", "reason", "clock")


def tables(records: Sequence[Record]) -> Tables:
    """Lay records, in journal order, into the tables of a tape.

    Returns
    -------
    dict of str to dict of str to ndarray
        ``events``, ``steps``, ``folds``, ``contributions``, ``merges``, ``evals`` and ``details``.
    """
    contributions, merges = _rounds(records)
    return {
        "events": _events(records),
        "steps": _steps(records),
        "folds": _folds(records),
        "contributions": contributions,
        "merges": merges,
        "evals": _evals(records),
        "details": _details(records),
    }


def _array(values: Sequence[Any], dtype: Any) -> Array:
    return np.array(values, dtype) if len(values) else np.empty(0, dtype)


def _objects(values: Sequence[Any]) -> Array:
    result = np.empty(len(values), object)
    result[:] = values
    return result


def _events(records: Sequence[Record]) -> dict[str, Array]:
    names = [variable.name for variable in EVENTS.variables if variable.name not in _UNSORTED]
    if not records:
        empty = {name: np.empty(0, EVENTS.variable(name).numpy) for name in names}
        return {**empty, "reason": np.empty(0, object)}
    by_field = dict(
        zip(Record.__struct_fields__, zip(*map(msgspec.structs.astuple, records), strict=True), strict=True)
    )
    columns = {name: np.array(by_field[name], EVENTS.variable(name).numpy) for name in names}
    return {**columns, "reason": _objects(by_field["reason"])}


def _steps(records: Sequence[Record]) -> dict[str, Array]:
    made = [(i, r) for i, r in enumerate(records) if r.kind == Kind.STEP_ENDED]
    columns = {
        "event": _array([i for i, _ in made], np.int64),
        "process": _array([r.process for _, r in made], np.int64),
        "incarnation": _array([r.incarnation for _, r in made], np.int64),
        "n": _array([r.step for _, r in made], np.int64),
        "g": _array([r.global_step for _, r in made], np.int64),
        "tokens": _array([r.tokens for _, r in made], np.int64),
        "loss": _array([r.value for _, r in made], np.float64),
        "epoch": _array([r.epoch for _, r in made], np.int64),
    }
    columns["learner"] = columns["process"] - FIRST_LEARNER
    return columns | {name: _array([r.detail.get(name, -1) for _, r in made], np.int64) for name in _STEP_DETAILS}


def _folds(records: Sequence[Record]) -> dict[str, Array]:
    made = [(i, r) for i, r in enumerate(records) if r.kind == Kind.UPDATE_FOLDED]
    columns = {"event": _array([i for i, _ in made], np.int64)}
    for name, fill in (("reference", -2), ("included", -1), ("anew", -1)):
        columns[name] = _array([r.detail.get(name, fill) for _, r in made], np.int64)
    return columns


def _evals(records: Sequence[Record]) -> dict[str, Array]:
    made = [(i, r) for i, r in enumerate(records) if r.kind == Kind.EVALUATED]
    return {
        "event": _array([i for i, _ in made], np.int64),
        "time_ns": _array([r.time_ns for _, r in made], np.int64),
        "merges": _array([r.steps for _, r in made], np.int64),
        "tokens": _array([r.tokens for _, r in made], np.int64),
        "loss": _array([r.value for _, r in made], np.float64),
        "seconds": _array([r.detail.get("seconds", np.nan) for _, r in made], np.float64),
    }


def _details(records: Sequence[Record]) -> dict[str, Array]:
    left = [(i, r.detail) for i, r in enumerate(records) if r.detail and r.kind not in _IN_COLUMNS]
    return {"event": _array([i for i, _ in left], np.int64), "detail": _objects([detail for _, detail in left])}


Row = dict[str, Any]


class _Rounds:
    """Rows of contributions and merges while records are read."""

    def __init__(self) -> None:
        self.contributions: list[Row] = []
        self.merges: list[Row] = []
        self.included: list[list[int]] = []
        self.incarnation: dict[int, int] = {}
        self.open: dict[tuple[int, int], dict[int, Row]] = {}
        self.newest: dict[int, Row] = {}

    def came(self, event: int, record: Record) -> None:
        """Add a FRAGMENT that arrived or was dropped."""
        learner, rows = learner_of(record.peer), self.open.setdefault((record.round, record.fragment), {})
        dropped = record.kind == Kind.FRAGMENT_DROPPED
        row = rows.get(learner) if dropped and record.reason != "duplicate" else None
        if row is None or row["step"] != record.step:
            row = {
                "event": event, "round": record.round, "fragment": record.fragment, "learner": learner,
                "incarnation": self.incarnation.get(learner, -1), "base_version": record.base_version,
                "step": record.step, "c_steps": record.steps, "c_tokens": record.tokens, "arrival_ns": record.time_ns,
                "digest": record.digest, "fate": OPEN, "epoch": record.epoch, "reason": "",
                "captured_ns": record.detail.get("captured_ns", -1), "bytes": record.detail.get("bytes", -1),
            }  # fmt: skip
            self.contributions.append(row)
        if dropped:
            row.update(fate=DROPPED, reason=record.reason, fate_event=event)
            if rows.get(learner) is row:
                del rows[learner]
        else:
            rows[learner] = row

    def merged(self, event: int, record: Record) -> None:
        """Add a merge, and settle its contributions."""
        detail, index = record.detail, len(self.merges)
        row = {name: detail[name] for name in _MERGE_DETAILS if name in detail}
        for name in ("round", "fragment", "version", "base_version", "setting", "tokens", "digest", "epoch"):
            row[name] = getattr(record, name)
        row["event"] = event
        self.merges.append(row)
        self.newest[record.fragment] = row
        self.included.append(list(detail.get("learners", ())))
        rows = self.open.get((record.round, record.fragment), {})
        for at, learner in enumerate(self.included[-1]):
            found = rows.pop(learner, None)
            if found is None:
                found = {"event": event, "round": record.round, "fragment": record.fragment, "learner": learner}
                found |= {"epoch": record.epoch, "reason": "", "incarnation": self.incarnation.get(learner, -1)}
                self.contributions.append(found)
            found.update(fate=MERGED, merge=index, fate_event=event)
            for key, name in _LISTS.items():
                if at < len(detail.get(key, ())):
                    found[name] = detail[key][at]

    def ended(self, event: int, record: Record) -> None:
        """Settle what lies in a round that ends without a merge."""
        for row in self.open.pop((record.round, record.fragment), {}).values():
            row.update(fate=_ENDED[Kind(record.kind)], reason=record.reason, fate_event=event)

    def stamp(self, record: Record, name: str) -> None:
        """Note when a merge was committed, or first sent."""
        row = self.newest.get(record.fragment)
        if row is not None and row["version"] == record.version:
            row.setdefault(name, record.time_ns)


_LISTS = {
    "steps_captured": "step", "c_steps": "c_steps", "c_tokens": "c_tokens", "weights": "weight",
    "base_versions": "base_version", "norms": "norm", "cosines": "cosine", "digests": "decoded_digest",
}  # fmt: skip


def _rounds(records: Sequence[Record]) -> tuple[dict[str, Array], dict[str, Array]]:
    rows = _Rounds()
    for event, record in enumerate(records):
        kind = record.kind
        if kind in (Kind.FRAGMENT_ARRIVED, Kind.FRAGMENT_DROPPED):
            rows.came(event, record)
        elif kind == Kind.MERGED:
            rows.merged(event, record)
        elif kind == Kind.MERGE_COMMITTED:
            rows.stamp(record, "commit_ns")
        elif kind == Kind.UPDATE_SENT:
            rows.stamp(record, "send_ns")
        elif kind == Kind.LEARNER_JOINED:
            rows.incarnation[learner_of(record.peer)] = record.version
        elif kind in _ENDED:
            rows.ended(event, record)
    contributions = _columns(rows.contributions, CONTRIBUTIONS, ("codec", "reason"))
    contributions["reason"] = _objects([row["reason"] for row in rows.contributions])
    merges = _columns(rows.merges, MERGES, ("included",))
    learners = max((learner for row in rows.included for learner in row), default=-1) + 1
    merges["included"] = np.zeros((len(rows.included), learners), np.int8)
    for row, included in enumerate(rows.included):
        merges["included"][row, included] = 1
    return contributions, merges


def _columns(rows: list[Row], group: Any, without: Sequence[str]) -> dict[str, Array]:
    kept = [variable for variable in group.variables if variable.name not in without]
    return {v.name: _array([row.get(v.name, v.fill) for row in rows], v.numpy) for v in kept}
