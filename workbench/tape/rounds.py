"""/contributions and /merges: what arrived at the syncer, and what became of it.

A contribution's row is written whole when its FRAGMENT is seen (fate ``open``) and its fate is filled
in, in the same transaction as the event that decides it.  A row stays ``open`` if no record decides.
"""

from __future__ import annotations

from typing import Any

from workbench.protocol.records import Kind, Record, learner_of
from workbench.tape.arrays import Table
from workbench.tape.columns import Batch
from workbench.tape.details import fits, split
from workbench.tape.journal import PROCESSES_MAX
from workbench.tape.schema import ABORTED, DROPPED, FORGOTTEN, MERGED, OPEN, SKIPPED

Rest = tuple[dict[str, Any], list[str]]
"""Detail left over, and keys that the tables hold but the detail does not."""

ARRIVAL_COLUMNS = {"bytes": "bytes", "captured_ns": "captured_ns"}
MERGE_COLUMNS = {
    "norm": "norm",
    "outer_digest": "outer_digest",
    "first_ready_ns": "first_ready_ns",
    "quorum_ns": "quorum_ns",
    "grace_ns": "grace_ns",
    "pull_ns": "pull_ns",
    "merge_ns": "merge_ns",
}
LIST_COLUMNS = {
    "steps_captured": "step",
    "c_steps": "c_steps",
    "c_tokens": "c_tokens",
    "weights": "weight",
    "base_versions": "base_version",
    "norms": "norm",
    "cosines": "cosine",
    "digests": "decoded_digest",
}
"""Detail keys of a kind and the columns that hold them (lists: one entry per contribution)."""

_ENDED = {Kind.ROUND_SKIPPED: SKIPPED, Kind.ROUND_ABORTED: ABORTED, Kind.ROUND_RESTARTED: FORGOTTEN}


class RoundRows:
    """Makes and completes the rows of /contributions and /merges.

    Parameters
    ----------
    contributions, merges : Table
        Their tables; rows of earlier commits are taken up from them.
    """

    def __init__(self, contributions: Table, merges: Table) -> None:
        self.contributions, self.merges = contributions, merges
        self._open: dict[tuple[int, int], dict[int, int]] = {}
        self._newest: dict[int, int] = {}
        self._incarnations: dict[int, int] = {}
        c = contributions
        fates = c.values("fate")
        for row in (fates == OPEN).nonzero()[0].tolist():
            self._opened(row, int(c.get(row, "round")), int(c.get(row, "fragment")), int(c.get(row, "learner")))
        for row, fragment in enumerate(merges.values("fragment").tolist()):
            self._newest[fragment] = row

    def joined(self, learner: int, incarnation: int) -> None:
        """Take note of a learner's incarnation."""
        self._incarnations[learner] = incarnation

    def add(self, batch: Batch, index: int) -> Rest:
        """Enter one record of a kind that concerns rounds."""
        record = batch.records[index]
        event = batch.first + index
        if record.kind == Kind.FRAGMENT_ARRIVED:
            return self._arrived(record, event, int(batch.columns["reason"][index]))
        if record.kind == Kind.FRAGMENT_DROPPED:
            return self._dropped(record, event, int(batch.columns["reason"][index]))
        if record.kind == Kind.MERGED:
            return self._merged(record, event)
        if record.kind in _ENDED:
            self._ended(record, event, int(batch.columns["reason"][index]))
        elif record.kind == Kind.MERGE_COMMITTED:
            self._stamp(record, "commit_ns")
        elif record.kind == Kind.UPDATE_SENT:
            self._stamp(record, "send_ns")
        return record.detail, []

    def _opened(self, row: int, round_: int, fragment: int, learner: int) -> None:
        self._open.setdefault((round_, fragment), {})[learner] = row

    def _row_of(self, record: Record, event: int) -> tuple[int, dict[str, Any]]:
        columns, rest = split(self.contributions, record.detail, ARRIVAL_COLUMNS)
        learner = learner_of(record.peer)
        row = self.contributions.append_row(
            event=event, round=record.round, fragment=record.fragment, learner=learner,
            incarnation=self._incarnations.get(learner, -1), base_version=record.base_version, step=record.step,
            c_steps=record.steps, c_tokens=record.tokens, arrival_ns=record.time_ns, digest=record.digest, fate=OPEN,
            epoch=record.epoch, **columns,
        )  # fmt: skip
        return row, rest

    def _arrived(self, record: Record, event: int, codec: int) -> Rest:
        row, rest = self._row_of(record, event)
        self.contributions.put(row, "codec", codec)
        self._opened(row, record.round, record.fragment, learner_of(record.peer))
        return rest, []

    def _dropped(self, record: Record, event: int, reason: int) -> Rest:
        c, learner = self.contributions, learner_of(record.peer)
        rows = self._open.get((record.round, record.fragment), {})
        row = rows.get(learner, -1)
        same = row >= 0 and c.get(row, "step") == record.step and c.get(row, "digest") == record.digest
        if not same or record.reason == "duplicate":
            row, rest = self._row_of(record, event)
            absent: list[str] = []
        else:
            del rows[learner]
            known = {key: name for key, name in ARRIVAL_COLUMNS.items() if not c.unset(row, name)}
            rest = {k: v for k, v in record.detail.items() if k not in known or not _equal(c.get(row, known[k]), v)}
            absent = [key for key in known if key not in record.detail]
        self._settle(row, DROPPED, event, reason)
        return rest, absent

    def _settle(self, row: int, fate: int, event: int, reason: int) -> None:
        self.contributions.put(row, "fate", fate)
        self.contributions.put(row, "fate_event", event)
        self.contributions.put(row, "reason", reason)

    def _merged(self, record: Record, event: int) -> Rest:
        columns, rest = split(self.merges, record.detail, MERGE_COLUMNS)
        merge = self.merges.append_row(
            event=event, round=record.round, fragment=record.fragment, version=record.version,
            base_version=record.base_version, setting=record.setting, tokens=record.tokens, digest=record.digest,
            epoch=record.epoch, **columns,
        )  # fmt: skip
        self._newest[record.fragment] = merge
        learners = _learner_list(record.detail.get("learners"))
        if not learners:
            return rest, []
        rows = [self._contribution_of(record, event, merge, learner) for learner in learners]
        exact = learners == sorted(learners)
        if exact:
            del rest["learners"]
        absent = [key for key in LIST_COLUMNS if key not in record.detail]
        for key, name in LIST_COLUMNS.items():
            if self._fill_list(rows, name, record.detail.get(key)) and exact:
                del rest[key]
        return rest, absent if exact else []

    def _contribution_of(self, record: Record, event: int, merge: int, learner: int) -> int:
        row = self._open.get((record.round, record.fragment), {}).pop(learner, -1)
        if row < 0:
            row = self.contributions.append_row(
                event=event, round=record.round, fragment=record.fragment, learner=learner, epoch=record.epoch,
                incarnation=self._incarnations.get(learner, -1),
            )  # fmt: skip
        self._settle(row, MERGED, event, 0)
        self.contributions.put(row, "merge", merge)
        self.merges.widen(max(self.merges.width, learner + 1))
        included = self.merges.columns["included"]
        included.rows(merge, merge + 1)[0, learner] = 1
        return row

    def _fill_list(self, rows: list[int], name: str, values: Any) -> bool:
        """Put a list into the cells of ``rows`` that are free; whether the cells now give it back."""
        if not isinstance(values, list | tuple) or len(values) != len(rows):
            return False
        column = self.contributions.columns[name]
        cells, variable, exact = column.rows(0, self.contributions.rows), column.variable, True
        for row, value in zip(rows, values, strict=True):
            stored = cells[row].item()
            if not fits(variable, value):
                exact = False
            elif stored == variable.fill or stored != stored:
                self.contributions.put(row, name, value)
            elif stored != value:
                exact = False
        return exact

    def _ended(self, record: Record, event: int, reason: int) -> None:
        for row in self._open.pop((record.round, record.fragment), {}).values():
            self._settle(row, _ENDED[Kind(record.kind)], event, reason)

    def _stamp(self, record: Record, name: str) -> None:
        row = self._newest.get(record.fragment, -1)
        if row >= 0 and self.merges.get(row, "version") == record.version and self.merges.unset(row, name):
            self.merges.put(row, name, record.time_ns)


def _equal(stored: Any, value: Any) -> bool:
    return bool(stored.item() == value)


def _learner_list(value: Any) -> list[int]:
    """The learners of a merge; empty if they are not told, or not as distinct ids."""
    if not isinstance(value, list | tuple) or len(set(map(str, value))) != len(value):
        return []
    return list(value) if all(isinstance(m, int) and 0 <= m < PROCESSES_MAX for m in value) else []
