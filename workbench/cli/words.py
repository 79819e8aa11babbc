"""Numbers with their units, and what the tape's words mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MEANINGS = {
    "not_ready": "its global step was below the round when the round was pulled",
    "not_fresh": "nothing was heard of its steps between the first ready learner and the end of grace",
    "base_behind": "it rested on an older version of the fragment",
    "no_steps": "it had made no step since it folded the fragment",
    "pull_limit": "its FRAGMENT was not there at the pull limit",
    "late": "its FRAGMENT came after the round was closed",
    "gone": "it was lost while it was pulled",
    "stale": "its FRAGMENT rested on an older version",
    "nonfinite": "its FRAGMENT held a NaN or an infinity",
    "guard": "a guard refused its FRAGMENT",
    "shape": "its FRAGMENT had another size or type",
    "quarantined": "it was quarantined",
    "records": "its records up to the FRAGMENT were not complete",
    "incarnation": "it came from an earlier incarnation",
    "rejoined": "it was declared lost and came back in the meantime",
    "base_differs": "it had folded another version when it was asked",
    "update_unfolded": "an UPDATE of the fragment lay unfolded when it was asked",
    "unanswered": "it was pulled and nothing came",
    "unknown": "no record tells why",
    "round_skipped": "the round was skipped",
    "down": "its process was dead",
    "fault": "an injected fault acted on it during the round",
    "disconnected": "it was not connected",
    "healing": "it was new and had not folded everything yet",
    "death": "its process ended",
    "removed": "it was removed",
    "backlog": "more than H steps behind the learners: passed over, whole periods",
    "weights_zero": "all weights were 0",
}
"""What a reason of the tape says of a learner, a contribution or a round."""

CAUSES = {
    "down": "dead or stopped",
    "starting": "start, compile, connect",
    "recovering": "state transfer",
    "waiting": "lead, full queues",
    "overhead": "between steps",
    "injected": "injected slow-downs",
    "lost": "cut off or rolled back",
}
"""Badput by cause."""

STATES = {
    "open": "opened → first ready",
    "ready": "first ready → quorum",
    "grace": "quorum → end of grace",
    "pull": "pulled → all here",
    "merge": "arithmetic",
    "commit": "commit",
    "send": "committed → UPDATE sent",
    "total": "first ready → UPDATE sent",
}
"""Durations of a round."""


def percent(share: float | None) -> str:
    """Return a share as percent; what is not quite all or nothing never looks so.

    Examples
    --------
    >>> percent(0.9269), percent(1.0), percent(0.99999), percent(0.0003), percent(None)
    ('92.7 %', '100 %', '>99.9 %', '<0.1 %', 'none')
    """
    if share is None:
        return "none"
    if share in (0.0, 1.0):
        return f"{share * 100:.0f} %"
    if 0.9995 <= share < 1.0:
        return ">99.9 %"
    if 0.0 < share < 0.0005:
        return "<0.1 %"
    return f"{share * 100:.1f} %"


def seconds(value: float | None) -> str:
    """Return a time with the unit that suits it.

    Examples
    --------
    >>> seconds(0.0), seconds(0.003), seconds(1.05), seconds(89.76), seconds(7265.0), seconds(-0.5)
    ('0 s', '3 ms', '1.05 s', '89.8 s', '2 h 1 min', '-500 ms')
    """
    if value is None:
        return "none"
    if value < 0:
        return f"-{seconds(-value)}"
    if value >= 3600:
        return f"{int(value // 3600)} h {int(value % 3600 // 60)} min"
    if value >= 600:
        return f"{int(value // 60)} min {int(value % 60)} s"
    unit, scale = ("s", 1.0) if value >= 1 or value == 0 else ("ms", 1e3) if value >= 1e-3 else ("µs", 1e6)
    return f"{value * scale:.3g} {unit}"


def count(number: float | None) -> str:
    """Return a count, thousands apart; a part of a token is not shown."""
    return "none" if number is None else f"{number:,.0f}"


def compact(number: float) -> str:
    """Return a count in few characters, for narrow columns: 941,344 and 6.60 M."""
    return count(number) if number < 999_999.5 else f"{number / 1e6:.2f} M"


def plain(value: float | None, digits: int = 3) -> str:
    """Return a number with so many significant digits."""
    if value is None:
        return "none"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.{digits}g}"


def milliseconds(value: float | None) -> str:
    """Return a time as a bare number of milliseconds."""
    return "none" if value is None else plain(value * 1000)


def tenths(value: float | None) -> str:
    """Return a number with one digit behind the point."""
    return "none" if value is None else f"{value:.1f}"


def three(spread: Mapping[str, Any], show: Any = plain, between: str = " / ") -> str:
    """Return median, 95th percentile and maximum of a spread."""
    if not spread["count"]:
        return "none"
    return between.join(show(spread[name]) for name in ("median", "p95", "max"))


def moment(value: float | None) -> str:
    """Return a time counted from the start of rounds, for a column of such times.

    Examples
    --------
    >>> moment(1.05), moment(-6.2)
    ('1.05 s', '6.2 s before')
    """
    return f"{seconds(-value)} before" if value is not None and value < 0 else seconds(value)


def at(value: float) -> str:
    """Return a time counted from the start of rounds, for a sentence.

    Examples
    --------
    >>> at(1.05), at(-6.2)
    ('at 1.05 s', '6.2 s before rounds began')
    """
    return f"{moment(value)} rounds began" if value < 0 else f"at {seconds(value)}"


def word(reason: str) -> str:
    """Return a reason of the tape as words."""
    return reason.replace("_", " ")


def listed(counts: Mapping[str, int]) -> str:
    """Return reasons with their counts, the most frequent first."""
    return ", ".join(f"{word(reason)} {number:,}" for reason, number in counts.items())


def label(learner: int | None) -> str:
    """Return a learner's label, the syncer's for None."""
    return "syncer" if learner is None else f"L{learner}"


def labels(learners: Sequence[int]) -> str:
    """Return the labels of several learners."""
    return ", ".join(label(learner) for learner in learners)


def plural(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
