"""What exact replay reads of a tape, as data, and how it is read off a record.

Nothing else of a tape can change what a replay computes, and each value named here does: a test changes one
after the other and sees the replay notice.
"""

from __future__ import annotations

from typing import Any

from workbench.protocol.records import Kind, Record, label_of
from workbench.tape import TapeError

ALWAYS_READ = ("kind", "process", "seq")
"""Columns that are read of every record: whose program it belongs to, and where in it."""

COLUMNS_READ: dict[Kind, tuple[str, ...]] = {
    Kind.STATE_ADOPTED: ("reason", "digest", "step", "peer", "version", "value"),
    Kind.STEP_ENDED: ("step", "global_step", "tokens", "value", "detail.batch", "detail.accumulation"),
    Kind.UPDATE_FOLDED: ("fragment", "version", "base_version", "step", "reason", "value", "detail.reference"),
    Kind.FRAGMENT_CAPTURED: ("fragment", "round", "base_version", "step", "steps", "tokens", "reason", "digest"),
    Kind.CONTRIBUTION_ACKNOWLEDGED: ("fragment", "round", "step", "version", "value"),
    Kind.SETTING_APPLIED: ("detail.values.rate_scale",),
    Kind.FAULT_APPLIED: ("reason", "fragment", "detail.round", "detail.factor", "detail.seed"),
    Kind.STATE_COPIED: (),
    Kind.SNAPSHOT_RECORDED: ("value",),
    Kind.RESTORED: ("value", "digest"),
    Kind.MERGED: (
        "round",
        "fragment",
        "version",
        "reason",
        "digest",
        "detail.outer_digest",
        "detail.norm",
        "detail.weights_rule",
        "detail.outer",
        "detail.outer_rate",
        "detail.outer_momentum",
        "detail.fresh_outer",
        "detail.learners",
        "detail.steps_captured",
        "detail.c_steps",
        "detail.c_tokens",
        "detail.weights",
        "detail.base_versions",
        "detail.digests",
    ),
}
"""Columns of each kind, ``detail.key`` for what only that kind has; in the order of the step's fields."""


def values_read(record: Record, event: int) -> list[Any]:
    """Values of the columns that are read of a record.

    Raises
    ------
    TapeError
        When one of them is missing: the tape is older than this code, or damaged.
    """
    return [_value(record, column, event) for column in COLUMNS_READ[Kind(record.kind)]]


def _value(record: Record, column: str, event: int) -> Any:
    name, *keys = column.split(".")
    value = getattr(record, name)
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            raise TapeError(
                f"event {event}, {Kind(record.kind).name.lower()} of {label_of(record.process)}, lacks {column}, "
                "which replay needs; expected a tape of this version; train the run again, or replay with the "
                "version that made it"
            )
        value = value[key]
    return value
