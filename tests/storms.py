"""What a storm has to show, from its records alone: the same for virtual time and for real processes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from workbench.analysis.arrays.participation import participation
from workbench.analysis.bound import gaps
from workbench.config import RunConfig
from workbench.protocol.records import SYNCER, Kind, Record, learner_of
from workbench.tape.ledger import Ledger

STORM = Path(__file__).parent.parent / "data" / "storm.toml"
SECOND = 10**9
LONG = ("stall", "cut")
OUTAGE_SLACK_S = 2.0


def of_kind(records: list[Record], *kinds: Kind) -> list[Record]:
    return [r for r in records if r.kind in kinds]


def acted(records: list[Record]) -> list[Record]:
    """Faults whose target was there."""
    return [r for r in of_kind(records, Kind.FAULT_INJECTED) if r.detail["effect"]]


def struck(records: list[Record], long_s: float) -> Counter[str]:
    """Faults that acted, by kind; stalls and cuts of so many seconds only."""
    return Counter(r.reason for r in acted(records) if r.reason not in LONG or r.value >= long_s)


def two_down(records: list[Record]) -> int:
    """How often a learner died while another one was dead."""
    down: set[int] = set()
    times = 0
    for record in of_kind(records, Kind.PROCESS_ENDED, Kind.LEARNER_JOINED):
        if learner_of(record.peer) < 0:
            continue
        if record.kind == Kind.PROCESS_ENDED:
            times += bool(down - {record.peer})
            down.add(record.peer)
        else:
            down.discard(record.peer)
    return times


def ledger_of(records: list[Record], config: RunConfig) -> Ledger:
    """Books of a run, balanced at every event."""
    ledger = Ledger(config.learners, config.fragments, [1] * config.fragments)
    for record in records:
        ledger.apply(record)
        ledger.check_last()
    return ledger


def excesses(records: list[Record], tables: Any, config: RunConfig) -> list[tuple[float, float, float]]:
    """Gaps between merges beyond B (start, gap, B) [s], those apart that the syncer's own outage explains."""
    found = gaps(tables, config)
    ups = [r.time_ns for r in of_kind(records, Kind.SYNCER_STARTED)]
    outages = [
        (r.time_ns, next((up for up in ups if up > r.time_ns), r.time_ns) + int(OUTAGE_SLACK_S * SECOND))
        for r in of_kind(records, Kind.PROCESS_ENDED)
        if r.peer == SYNCER and r.reason == "SIGKILL"
    ]
    return [
        (start / SECOND, (end - start) / SECOND, bound)
        for start, end, bound, excess in zip(
            found.start_ns.tolist(), found.end_ns.tolist(), found.bound_s.tolist(), found.excess_s.tolist(), strict=True
        )
        if excess > 0 and not any(start < back and end > out for out, back in outages)
    ]


def recoveries(records: list[Record]) -> list[tuple[Record, Record]]:
    """States that were adopted from peers, each with the donor's record of what it gave."""
    left = {(r.process, r.version): r for r in of_kind(records, Kind.STATE_LEFT)}
    adopted = [r for r in of_kind(records, Kind.STATE_ADOPTED) if r.reason == "peer"]
    return [(r, left[r.peer, r.version]) for r in adopted]


def after_kills(records: list[Record]) -> dict[str, float]:
    """Medians over kills [s]: the others' next merge; from then the victim trains, and is merged, again."""
    times: dict[str, list[float]] = {"others merge": [], "victim trains": [], "victim is merged": []}
    for kill in acted(records):
        if kill.reason not in ("kill", "exit"):
            continue
        later = [r for r in records if r.time_ns > kill.time_ns]
        merges = of_kind(later, Kind.MERGED)
        joined = next((r.time_ns for r in of_kind(later, Kind.LEARNER_JOINED) if r.peer == kill.peer), None)
        steps = [r for r in of_kind(later, Kind.STEP_ENDED) if r.process == kill.peer and joined and r.time_ns > joined]
        again = [r for r in merges if joined and r.time_ns > joined and learner_of(kill.peer) in r.detail["learners"]]
        for name, seen in (("others merge", merges), ("victim trains", steps), ("victim is merged", again)):
            if seen:
                times[name].append((seen[0].time_ns - kill.time_ns) / SECOND)
    return {name: median(found) for name, found in times.items() if found}


def shares(tables: Any) -> tuple[float, list[float]]:
    """Participation of the run, and of each learner."""
    found = participation(tables)
    return float(found.share), np.asarray(found.per_learner).tolist()


class Losses(NamedTuple):
    """Validation losses of runs at one number of merged tokens: without faults, and in the storm."""

    tokens: float
    calm: list[float]
    storm: list[float]

    @property
    def difference(self) -> float:
        """Between the two means."""
        return abs(float(np.mean(self.storm) - np.mean(self.calm)))

    @property
    def spread(self) -> float:
        """Of the runs without faults."""
        return max(self.calm) - min(self.calm)

    def __str__(self) -> str:
        return f"at {self.tokens:,.0f} merged tokens: without faults {self.calm}, in the storm {self.storm}"


def losses_at_equal_tokens(calm: list[list[Record]], storm: list[list[Record]]) -> Losses:
    """Each run's validation loss where the shortest of them was evaluated last."""
    courses = [[of_kind(records, Kind.EVALUATED) for records in runs] for runs in (calm, storm)]
    tokens = min(float(course[-1].tokens) for runs in courses for course in runs)
    without, within = (
        [float(np.interp(tokens, [r.tokens for r in course], [r.value for r in course])) for course in runs]
        for runs in courses
    )
    return Losses(tokens, without, within)
