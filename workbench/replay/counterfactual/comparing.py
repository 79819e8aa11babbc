"""Which columns of a record belong to the schedule: there a difference is a branch, elsewhere it is a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.protocol.records import Kind, Record

VALUES: dict[Kind, frozenset[str]] = {
    Kind.STATE_ADOPTED: frozenset({"digest", "tokens"}),
    Kind.RESTORED: frozenset({"digest"}),
    Kind.STATE_LEFT: frozenset({"digest"}),
    Kind.STATE_SENT: frozenset({"digest"}),
    Kind.SNAPSHOT_COMPLETED: frozenset({"digest", "detail"}),
    Kind.STEP_ENDED: frozenset({"value"}),
    Kind.UPDATE_FOLDED: frozenset({"steps", "tokens", "value", "reason"}),
    Kind.FRAGMENT_CAPTURED: frozenset({"steps", "tokens", "digest"}),
    Kind.SETTING_APPLIED: frozenset({"detail"}),
    Kind.FRAGMENT_ARRIVED: frozenset({"steps", "tokens", "digest"}),
    Kind.FRAGMENT_DROPPED: frozenset({"steps", "tokens", "digest", "detail"}),
    Kind.MERGED: frozenset({"steps", "tokens", "digest", "reason", "detail"}),
    Kind.EVALUATED: frozenset({"value", "tokens"}),
}
"""Columns in which a change of arithmetic shows while the schedule is kept; of every other kind: none."""

REBUILT = ("kind", "fragment", "round", "version", "base_version", "step", "global_step", "steps", "tokens", "reason")
"""Columns in which a record that a learner's machine makes again is compared."""

_NONE: frozenset[str] = frozenset()


def differs(recorded: Record, made: Record) -> str:
    """The first column of the schedule in which two records differ, empty if there is none."""
    if recorded.kind != made.kind:
        return "kind"
    values = VALUES.get(Kind(recorded.kind), _NONE)
    for column in Record.__struct_fields__:
        if column not in values and not same(getattr(recorded, column), getattr(made, column)):
            return column
    return ""


def same(a: Any, b: Any) -> bool:
    """Equality of what records hold, in which NaN equals itself and a list the tuple of the same."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b or (a != a and b != b))


def unlike_rebuilt(recorded: Sequence[Record], made: Sequence[Record]) -> int:
    """How many records that a learner's machine made again are not those of the tape."""
    pairs = zip(recorded, made, strict=False)
    return sum(any(not same(getattr(a, column), getattr(b, column)) for column in REBUILT) for a, b in pairs)
