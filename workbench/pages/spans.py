"""What lanes show of a run that goes on: steps as boxes, faults as bands, merges as marks; of the last seconds."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any, NamedTuple

from workbench.analysis.arrays.presence import acted
from workbench.pages.tails import Tail
from workbench.protocol.records import FIRST_LEARNER, SYNCER, Kind, Record
from workbench.views.palette import BLUE, GREEN, PURPLE, VERMILLION

KEPT = 3000
GAP_NS = 25_000_000
"""Steps with less than that between them are one box: the eye sees no gap of a four-hundredth of the lane."""
LONGEST_NS = 400_000_000
"""So long a box becomes at most before it is shown."""
LEAST_S = 0.04
"""What can just be seen."""
WINDOW_S = 10.0


class Span(NamedTuple):
    """Attributes
    ----------
    process : int
        Whose lane.
    start_s, end_s : float
        Since the run began [s].
    what : str
        For those who hover.
    colour : str
    height : float
        Of a lane's.
    name : str
        Written into it.
    """

    process: int
    start_s: float
    end_s: float
    what: str
    colour: str
    height: float
    name: str = ""


class Spans:
    """Attributes
    ----------
    tail : Tail of Span
        What is new, for each tab.
    """

    def __init__(self) -> None:
        self.tail: Tail[Span] = Tail(KEPT)
        self._open: dict[int, list[int]] = {}
        self._useful: dict[int, deque[tuple[float, float]]] = defaultdict(lambda: deque(maxlen=2000))
        self._began_s = float("inf")
        self._joined_s: dict[int, float] = {}
        self._merged: deque[tuple[float, tuple[int, ...]]] = deque(maxlen=500)

    def note(self, record: Record) -> None:
        """Take a record."""
        self._began_s = min(self._began_s, record.time_ns / 1e9)
        if record.kind == Kind.STEP_ENDED:
            self._step(record.process, record.detail)
        elif record.kind == Kind.LEARNER_JOINED:
            self._joined_s.setdefault(record.peer, record.time_ns / 1e9)
        elif record.kind == Kind.MERGED:
            at_s = record.time_ns / 1e9
            self._merged.append((at_s, tuple(map(int, record.detail["learners"]))))
            what = f"merge, fragment {record.fragment}, round {record.round}"
            self.tail.add([Span(SYNCER, at_s, at_s + 0.02, what, GREEN, 0.7)])
        elif record.kind == Kind.FAULT_ENDED:
            end_s = record.time_ns / 1e9
            began_s = min(record.detail.get("began_ns", record.time_ns) / 1e9, end_s - LEAST_S)
            if record.detail.get("why") != "over":  # how long such a fault lasts nobody knew before
                self.tail.add([Span(record.peer, began_s, end_s, f"fault: {record.reason}", VERMILLION, 0.95)])
        elif record.kind == Kind.FAULT_INJECTED and acted(record.detail):
            at_s = record.time_ns / 1e9
            end_s = at_s + max(record.value, LEAST_S)
            self.tail.add([Span(record.peer, at_s, end_s, f"fault: {record.reason}", VERMILLION, 0.95, record.reason)])
        elif record.kind == Kind.FRAGMENT_DROPPED:
            at_s = record.time_ns / 1e9
            self.tail.add([Span(record.peer, at_s, at_s + 0.04, f"not merged: {record.reason}", PURPLE, 0.95)])

    def _step(self, process: int, detail: dict[str, Any]) -> None:
        start, end = int(detail["start_ns"]), int(detail["end_ns"])
        idle = int(detail.get("injected_ns", 0)) + int(detail.get("waited_ns", 0))
        self._useful[process].append((end / 1e9, max(0, end - start - idle) / 1e9))
        box = self._open.get(process)
        if box is not None and start - box[1] <= GAP_NS and end - box[0] <= LONGEST_NS:
            box[1], box[2] = end, box[2] + 1
            return
        if box is not None:
            self._show(process, box)
        self._open[process] = [start, end, 1]

    def _show(self, process: int, box: list[int]) -> None:
        what = "step" if box[2] == 1 else f"{box[2]} steps"
        self.tail.add([Span(process, box[0] / 1e9, box[1] / 1e9, what, BLUE, 0.6)])

    def flush(self, now_s: float) -> None:
        """Show boxes that nothing was added to for a while."""
        for process, box in list(self._open.items()):
            if now_s - box[1] / 1e9 > LONGEST_NS / 1e9:
                self._show(process, box)
                del self._open[process]

    def goodput(self, now_s: float, learners: list[int]) -> float | None:
        """Useful time over allocated time of some learners in the last `WINDOW_S` seconds; None if there are none."""
        since = max(self._began_s, now_s - WINDOW_S)
        allocated = useful = 0.0
        for process in (FIRST_LEARNER + m for m in learners):
            allocated += max(0.0, now_s - max(since, self._joined_s.get(process, 0.0)))
            useful += sum(took for end_s, took in self._useful[process] if since < end_s <= now_s)
        return min(1.0, useful / allocated) if allocated > 0 else None

    def contributed(self, now_s: float) -> set[int]:
        """Learners in a merge of the last `WINDOW_S` seconds."""
        return {m for at_s, learners in self._merged if at_s > now_s - WINDOW_S for m in learners}
