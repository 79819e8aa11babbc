"""What lanes show of a run that goes on: steps as boxes, faults as bands, merges as marks; of the last seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from workbench.pages.open_spans import OpenSpans, Span
from workbench.pages.tails import Tail
from workbench.pages.work import WINDOW_S, Shares, Work
from workbench.protocol.records import FIRST_LEARNER, SYNCER, Kind, Record
from workbench.views.palette import BLUE, GREEN, PURPLE, YELLOW

__all__ = ["WINDOW_S", "Span", "Spans"]

KEPT = 3000
GAP_NS = 25_000_000
"""Steps with less than that between them are one box: the eye sees no gap of a four-hundredth of the lane."""
LONGEST_NS = 400_000_000
"""So long a box becomes at most before it is shown."""


class _Box:
    """Steps without a visible gap between them [ns]."""

    def __init__(self, start: int) -> None:
        self.start = self.end = start
        self.steps = self.injected = self.waited = 0

    def add(self, end: int, injected: int, waited: int) -> None:
        """One more step."""
        self.end, self.steps = end, self.steps + 1
        self.injected, self.waited = self.injected + injected, self.waited + waited


class Spans:
    """Attributes
    ----------
    tail : Tail of Span
        What is new and over, for each tab.
    """

    def __init__(self) -> None:
        self.tail: Tail[Span] = Tail(KEPT)
        self._lasting, self._work = OpenSpans(self.tail), Work()
        self._open: dict[int, _Box] = {}
        self._ended_ns: dict[int, int] = {}
        self._merged: deque[tuple[float, tuple[int, ...]]] = deque(maxlen=500)

    def note(self, record: Record) -> None:
        """Take a record."""
        at_s = record.time_ns / 1e9
        self._work.note(record)
        self._lasting.note(record)
        if record.kind == Kind.STEP_ENDED:
            self._step(record)
        elif record.kind == Kind.LEARNER_JOINED:
            self._work.joined(record.peer - FIRST_LEARNER, at_s)
        elif record.kind == Kind.MERGED:
            self._merged.append((at_s, tuple(map(int, record.detail["learners"]))))
            what = f"merge, fragment {record.fragment}, round {record.round}"
            self.tail.add([Span(SYNCER, at_s, at_s + 0.02, what, GREEN, 0.7)])
        elif record.kind == Kind.FRAGMENT_DROPPED:
            self.tail.add([Span(record.peer, at_s, at_s + 0.04, f"not merged: {record.reason}", PURPLE, 0.95)])

    def _step(self, record: Record) -> None:
        process, detail = record.process, record.detail
        start, end = int(detail["start_ns"]), int(detail["end_ns"])
        injected, waited = (max(0, int(detail.get(name, 0))) for name in ("injected_ns", "waited_ns"))
        before = max(0, start - self._ended_ns.get(process, start))  # what fits there was waited before the step
        waited, self._ended_ns[process] = max(0, waited - before), end
        useful = max(0, end - start - injected - waited)
        self._work.step(process - FIRST_LEARNER, start / 1e9, end / 1e9, useful / 1e9, record.tokens)
        box = self._open.get(process)
        if box is None or start - box.end > GAP_NS or end - box.start > LONGEST_NS:
            if box is not None:
                self._show(process, box)
            box = self._open[process] = _Box(start)
        box.add(end, injected, waited)

    def _show(self, process: int, box: _Box) -> None:
        """What was waited stands before what was trained, what was injected behind it, as in a replay."""
        what, length = "step" if box.steps == 1 else f"{box.steps} steps", box.end - box.start
        trained = min(box.waited, length), max(min(box.waited, length), length - box.injected)
        low, high = ((box.start + one) / 1e9 for one in trained)
        parts = [Span(process, low, high, what, BLUE, 0.6)] if high > low else []
        if box.waited:
            parts += [Span(process, box.start / 1e9, low, f"waited, before {what}", YELLOW, 0.6)]
        if box.injected:
            parts += [Span(process, high, box.end / 1e9, f"injected into {what}", PURPLE, 0.6)]
        self.tail.add(parts)

    def flush(self, now_s: float) -> None:
        """Show boxes that nothing was added to for a while."""
        for process, box in list(self._open.items()):
            if now_s - box.end / 1e9 > LONGEST_NS / 1e9:
                self._show(process, box)
                del self._open[process]

    def look(self, learners: Sequence[dict[str, Any]], now_s: float) -> None:
        """Take what a status says of what lasts."""
        self._lasting.look(learners, now_s)

    def lasting(self, now_s: float, unheard: dict[int, float]) -> list[Span]:
        """What lasts now, within the window."""
        return self._lasting.at(now_s, now_s - WINDOW_S, unheard)

    def shares(self, now_s: float, began_s: float | None, learners: Sequence[dict[str, Any]]) -> Shares:
        """Goodput and tokens per second of the window."""
        return self._work.shares(now_s, began_s, learners)

    def contributed(self, now_s: float) -> set[int]:
        """Learners in a merge of the last `WINDOW_S` seconds."""
        return {m for at_s, learners in self._merged if at_s > now_s - WINDOW_S for m in learners}
