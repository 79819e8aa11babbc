"""What learners did in the last seconds, counted when it was done, however much later it was reported."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from workbench.protocol.records import FIRST_LEARNER, Record

WINDOW_S = 10.0
BIN_S = 0.1
UNHEARD_S = 2.0
"""A learner of which nothing was heard for longer is left out of the window, and that is said."""

Status = dict[str, Any]


class Shares(NamedTuple):
    """Attributes
    ----------
    goodput : float or None
        Useful over allocated time in the window; None if nobody had any.
    tokens_per_s : float or None
        Summed over the learners [1/s].
    unheard : dict of int to float
        Learners that are left out, and for how long nothing was heard of each [s].
    """

    goodput: float | None
    tokens_per_s: float | None
    unheard: dict[int, float]


class Work:
    """Useful time and tokens of the last `WINDOW_S` seconds, in bins of `BIN_S`, by learner.

    What a learner did is known up to its newest record; of the time behind that nothing can be said yet, unless the
    run knows that it makes no step: its process is gone or stopped, or the syncer hears it and it has stalled.
    """

    def __init__(self) -> None:
        self._bins: dict[int, dict[int, list[float]]] = defaultdict(dict)
        self._heard_s: dict[int, float] = {}
        self._joined_s: dict[int, float] = {}
        self._began_s = float("inf")

    def note(self, record: Record) -> None:
        """Take a record of any process."""
        if self._began_s == float("inf"):
            self._began_s = record.time_ns / 1e9
        learner = record.process - FIRST_LEARNER
        if learner >= 0:
            self._heard_s[learner] = max(self._heard_s.get(learner, 0.0), record.time_ns / 1e9)

    def joined(self, learner: int, time_s: float) -> None:
        """A learner has come; the first time counts."""
        self._joined_s.setdefault(learner, time_s)

    def step(self, learner: int, start_s: float, end_s: float, useful_s: float, tokens: int) -> None:
        """A step was made."""
        bins, length_s = self._bins[learner], max(end_s - start_s, 1e-9)
        first = max(_bin(start_s), _bin(end_s) - _bin(2 * WINDOW_S))
        for number in range(first, _bin(end_s) + 1):
            inside = max(0.0, min(end_s, (number + 1) * BIN_S) - max(start_s, number * BIN_S)) / length_s
            held = bins.setdefault(number, [0.0, 0.0])
            held[0] += useful_s * inside
            held[1] += tokens * inside
        while (oldest := next(iter(bins))) < _bin(end_s) - _bin(2 * WINDOW_S):
            del bins[oldest]

    def shares(self, now_s: float, began_s: float | None, learners: Sequence[Status]) -> Shares:
        """The window that ends now, of the learners of a status; ``began_s``: when rounds began, None before."""
        since = max(now_s - WINDOW_S, self._began_s, now_s if began_s is None else began_s)
        allocated = useful = rate = 0.0
        unheard: dict[int, float] = {}
        for one in learners:
            learner = one["learner"]
            if not (one.get("stepped") or one.get("connected")):
                continue
            until = min(now_s, self._heard_s.get(learner, self._began_s)) if _only_reports_tell(one) else now_s
            low = max(since, self._joined_s.get(learner, 0.0))
            if now_s - until > UNHEARD_S:
                if _runs(one):
                    unheard[learner] = now_s - until
                continue
            if until > low:
                done, tokens = self._between(learner, low, until)
                allocated, useful, rate = allocated + until - low, useful + done, rate + tokens / (until - low)
        return Shares(min(1.0, useful / allocated) if allocated else None, rate if allocated else None, unheard)

    def _between(self, learner: int, low: float, high: float) -> tuple[float, float]:
        useful = tokens = 0.0
        bins, first, last = self._bins.get(learner, {}), _bin(low), _bin(high)
        for number in range(first, last + 1):
            held = bins.get(number)
            if held is not None:
                part = 1.0 if first < number < last else _part(number, low, high)
                useful, tokens = useful + held[0] * part, tokens + held[1] * part
        return useful, tokens


def _part(number: int, low: float, high: float) -> float:
    """Share of a bin, of which nothing is known behind ``high``, that lies within."""
    begin, end = number * BIN_S, min((number + 1) * BIN_S, high)
    return max(0.0, end - max(begin, low)) / max(end - begin, 1e-9)


def unheard_words(unheard: dict[int, float]) -> str:
    """Who is left out of a number, and why.

    Examples
    --------
    >>> unheard_words({1: 6.2}), unheard_words({1: 6.2, 2: 3.0}), unheard_words({})
    ('without L1: nothing heard for 6 s', 'without L1, L2: nothing heard for 6 s', '')
    """
    if not unheard:
        return ""
    who = ", ".join(f"L{m}" for m in unheard) if len(unheard) < 4 else f"{len(unheard)} learners"
    return f"without {who}: nothing heard for {max(unheard.values()):.0f} s"


def _bin(time_s: float) -> int:
    return int(time_s / BIN_S)


def _runs(one: Status) -> bool:
    return one["state"] in ("running", "silent")


def _only_reports_tell(one: Status) -> bool:
    """Whether only its reports tell what a learner did: the run knows of those that are gone, stopped or stalled."""
    left = one["state"] in ("left", "ended", "removed")
    return left or (_runs(one) and not (one.get("connected") and (one.get("stalled") or not one.get("healed"))))
