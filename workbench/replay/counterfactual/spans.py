"""When the faults of a tape acted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from workbench.protocol.records import Kind, Record, learner_of

SECOND = 10**9
Spans = dict[int, list[tuple[int, int]]]
"""By learner: from and to [ns]."""


def spans_of(records: list[Record], kinds: tuple[str, ...]) -> Spans:
    """When faults of these kinds acted, by learner; those of the syncer under -1."""
    found: Spans = defaultdict(list)
    ended = {r.detail["fault"]: r.time_ns for r in reversed(records) if r.kind == Kind.FAULT_ENDED}
    for r in records:
        if r.kind == Kind.FAULT_INJECTED and r.reason in kinds and r.detail.get("effect"):
            until = max(r.detail.get("until_ns", r.time_ns), r.time_ns + round(r.value * SECOND))
            learner = max(-1, learner_of(r.peer))
            found[learner].append((r.time_ns, ended.get(r.detail.get("fault"), until)))
    return found


def overlap(spans: list[tuple[int, int]], start: int, stop: int) -> int:
    """How much of the time from ``start`` to ``stop`` lies in spans, which may overlap."""
    return sum(max(0, b - a) for a, b in _joined(spans, start, stop))


def _joined(spans: list[tuple[int, int]], start: int, stop: int) -> Iterator[tuple[int, int]]:
    at = start
    for a, b in sorted(spans):
        a, b = max(a, at), min(b, stop)
        if b > a:
            yield a, b
            at = b
