"""One book of the token ledger: where the tokens of one (learner, fragment) are.

Tokens are places on the learner's own axis: the first token that it ever processed is 0.  An *interval* is
the range between two resets of the fragment's counters; the last one is open and reaches up to the
learner's total, so that a step touches no book at all.  Merged contributions are ranges inside intervals.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

MERGED = "merged"
OVERWRITTEN = "overwritten"
NOT_MERGED = "not_merged"
BLENDED = "blended"
LOST = "lost"
ROLLED_BACK = "rolled_back"
LOCAL = "local"
CLOSED_FATES = (MERGED, OVERWRITTEN, NOT_MERGED, BLENDED, LOST, ROLLED_BACK)
"""Fates that an event gives; tokens without one are local."""

NOT_READY = "not_ready"


@dataclass
class RunTotals:
    """Tokens of the whole run, each times the size of its fragment (whole numbers).

    Attributes
    ----------
    fates : dict of str to int
        Size-weighted tokens by fate, local left out.
    keys : dict of (fate, key) to int
        The same by round (merged), reason (not merged, lost) or alpha (blended).
    processed : int
        Tokens of all recorded steps, unweighted.
    """

    fates: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLOSED_FATES, 0))
    keys: dict[tuple[str, Hashable], int] = field(default_factory=dict)
    processed: int = 0


@dataclass(slots=True)
class Part:
    """A merged range of tokens [lo, hi) and the merge that took it (-1: rolled back)."""

    lo: int
    hi: int
    round: int
    version: int


@dataclass(slots=True)
class Interval:
    """A closed interval: its range, the fate of what no merge took, and when it was closed.

    Attributes
    ----------
    start, end : int
        Range of tokens.
    closed_at : int
        The learner's total at that time; above ``end`` only where a delay-corrected fold carries a tail on.
    fate, key : str, hashable
        Of the tokens outside ``parts``.
    parts : list of Part
        Disjoint merged ranges.
    """

    start: int
    end: int
    closed_at: int
    fate: str
    key: Hashable
    parts: list[Part]

    @property
    def rest(self) -> int:
        """Tokens that no merge took."""
        return self.end - self.start - sum(part.hi - part.lo for part in self.parts)


class Book:
    """Fates of the tokens of one learner in one fragment.

    Parameters
    ----------
    size : int
        Elements of the fragment, its weight in ``run``.
    run : RunTotals
        Moved along with the book.
    """

    __slots__ = ("fates", "folded", "history", "parts", "reason", "reason_rank", "reason_round", "run", "size", "start")

    def __init__(self, size: int, run: RunTotals) -> None:
        self.size = size
        self.run = run
        self.start = 0
        self.parts: list[Part] = []
        self.history: list[Interval] = []
        self.fates = dict.fromkeys(CLOSED_FATES, 0)
        self.folded = False
        self._forget_reason()

    def _forget_reason(self) -> None:
        self.reason, self.reason_round, self.reason_rank = NOT_READY, -1, 0

    def _add(self, fate: str, key: Hashable, tokens: int) -> None:
        if tokens:
            self.fates[fate] += tokens
            weighted = tokens * self.size
            self.run.fates[fate] += weighted
            self.run.keys[fate, key] = self.run.keys.get((fate, key), 0) + weighted

    def local(self, total: int) -> int:
        """Tokens of the open interval that no merge took, for a learner that processed ``total``."""
        return total - self.start - sum(part.hi - part.lo for part in self.parts)

    def start_of(self, end: int) -> int:
        """Start of the interval that holds the token just before ``end``."""
        if end <= self.start:
            for interval in reversed(self.history):
                if interval.start < end <= interval.end:
                    return interval.start
        return self.start

    def note(self, reason: str, round_: int, rank: int, captured_at: int | None = None) -> None:
        """Remember why an interval is not merged; a later round, or a closer reason of the same, replaces it.

        With ``captured_at`` (the learner's total at the capture) the reason belongs to the interval of that
        capture, which may be closed by now: it is then renamed.
        """
        if captured_at is not None and captured_at <= self.start:
            for interval in reversed(self.history):
                if interval.start < captured_at <= interval.end:
                    self._rename(interval, NOT_MERGED, reason)
                    return
                if interval.end < captured_at:
                    return
        elif round_ > self.reason_round or (round_ == self.reason_round and rank >= self.reason_rank):
            self.reason, self.reason_round, self.reason_rank = reason, round_, rank

    def _rename(self, interval: Interval, fate: str, key: Hashable) -> None:
        """Give the rest of a not merged interval another fate or reason; any other fate stays."""
        if interval.fate == NOT_MERGED:
            self._add(interval.fate, interval.key, -interval.rest)
            interval.fate, interval.key = fate, key
            self._add(fate, key, interval.rest)

    def merge(self, lo: int, hi: int, round_: int, version: int) -> int:
        """Move the tokens [lo, hi) to merged from wherever they are; returns how many were not merged before."""
        moved = 0
        if hi > self.start:
            moved = _take(self.parts, max(lo, self.start), hi, round_, version)
        for interval in reversed(self.history):
            if interval.end <= lo:
                break
            taken = _take(interval.parts, max(lo, interval.start), min(hi, interval.end), round_, version)
            self._add(interval.fate, interval.key, -taken)
            if taken:
                self._rename(interval, OVERWRITTEN, "")
            moved += taken
        self._add(MERGED, round_, moved)
        return moved

    def close(self, end: int, total: int, fate: str, key: Hashable = "") -> None:
        """End the open interval at ``end``: what no merge took gets the fate; what lies behind opens the next."""
        inside = [Part(part.lo, min(part.hi, end), part.round, part.version) for part in self.parts if part.lo < end]
        self.parts = [
            Part(max(part.lo, end), part.hi, part.round, part.version) for part in self.parts if part.hi > end
        ]
        if end > self.start:
            interval = Interval(self.start, end, total, fate, key, inside)
            self.history.append(interval)
            self._add(fate, key, interval.rest)
        self.start = end
        self._forget_reason()

    def replace(self, end: int, total: int) -> None:
        """Close at ``end`` as a fold with alpha = 0 does: overwritten if a capture was merged, else not merged."""
        if any(part.lo < end for part in self.parts):
            self.close(end, total, OVERWRITTEN)
        else:
            self.close(end, total, NOT_MERGED, self.reason)

    def roll_back(self, cut: int, total: int, version: int, open_tokens: int | None = None) -> None:
        """Take back what happened behind the cut of a resume (the learner's total goes from ``total`` to ``cut``).

        Tokens behind the cut are rolled back.  Intervals that were closed behind it are open again, without
        the merges behind ``version``; a merge behind it of an interval closed before rolls its tokens back.
        ``open_tokens`` is how long the open interval was: what was closed at the cut itself may lie behind it.
        """
        undone = self.parts
        for part in self.parts:
            self._add(MERGED, part.round, part.lo - part.hi)
        self.start = min(self.start, cut)
        start = cut + 1 if open_tokens is None else cut - open_tokens
        while self.history and (self.history[-1].closed_at > cut or self.history[-1].end > start):
            interval = self.history.pop()
            self._add(interval.fate, interval.key, -interval.rest)
            for part in interval.parts:
                self._add(MERGED if part.round >= 0 else ROLLED_BACK, part.round, part.lo - part.hi)
            undone = interval.parts + undone
            self.start = min(self.start, interval.start)
        self.parts = [part for part in undone if part.hi <= cut and 0 <= part.version <= version]
        for part in self.parts:
            self._add(MERGED, part.round, part.hi - part.lo)
        for interval in self.history:
            for part in interval.parts:
                if part.version > version:
                    self._add(MERGED, part.round, part.lo - part.hi)
                    self._add(ROLLED_BACK, -1, part.hi - part.lo)
                    part.round = part.version = -1
        self._add(ROLLED_BACK, -1, total - cut)
        self._forget_reason()

    def fault(self, total: int, rolled_back: int) -> str:
        """Say what is wrong with the book, empty if it balances."""
        merged = sum(part.hi - part.lo for part in self.parts)
        local = total - self.start - merged
        given = sum(self.fates.values())
        if given != self.start + merged + rolled_back:
            return (
                f"{given} tokens have a fate, but the closed intervals hold {self.start + rolled_back} and the open "
                f"one {merged} merged: {self.fates}"
            )
        if local < 0 or min(self.fates.values()) < 0:
            return f"a count is negative: {self.fates | {LOCAL: local}}"
        return ""


def _take(parts: list[Part], lo: int, hi: int, round_: int, version: int) -> int:
    """Add to ``parts`` what of [lo, hi) is not in them yet; returns its length."""
    taken = 0
    for part in sorted(parts, key=lambda part: part.lo):
        if part.hi <= lo or part.lo >= hi:
            continue
        if part.lo > lo:
            parts.append(Part(lo, part.lo, round_, version))
            taken += part.lo - lo
        lo = max(lo, part.hi)
    if lo < hi:
        parts.append(Part(lo, hi, round_, version))
        taken += hi - lo
    return taken
