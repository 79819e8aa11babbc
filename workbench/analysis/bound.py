"""How long a merge may be waited for, and how much of the run was beyond that (PROTOCOL section 15).

A merge comes within B of the moment at which K clean learners have g >= t - 1, t the oldest round in flight:

    B = (ceil(H / P) + tau + 2) x s_K + grace cap + pull limit + 0.5 s

with s_K the slowest of the K fastest clean learners' longest step in their last 50, from a fault on with the
values before it; there is no B for grace ``all``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.analysis.arrays import spans
from workbench.analysis.arrays.presence import faults, presences
from workbench.analysis.arrays.self_stops import self_stops
from workbench.analysis.arrays.tables import NS, Array, Tables, details_of, events_of, learner_count, run_span
from workbench.config import RunConfig
from workbench.protocol.records import FIRST_LEARNER, Kind, process_of

RECENT_STEPS = 50
SLACK_S = 0.5
EMA = 0.125


def bound_s(
    longest_s: Sequence[float],
    *,
    quorum: int,
    period: int,
    fragments: int,
    overlap: int,
    grace_cap_s: float,
    pull_limit_s: float,
) -> float:
    """B [s]; infinite where the grace has no cap or fewer than ``quorum`` learners are clean.

    Parameters
    ----------
    longest_s : sequence of float
        Longest recent step of each clean learner [s], with the values before a fault.
    quorum, period, fragments, overlap : int
        K, H, P, tau.
    grace_cap_s, pull_limit_s : float
        Longest grace window and pull limit [s].

    Examples
    --------
    >>> bound_s([0.2, 0.1, 9.0], quorum=2, period=12, fragments=6, overlap=2, grace_cap_s=0.3, pull_limit_s=0.25)
    2.25
    """
    if len(longest_s) < quorum:
        return math.inf
    slowest = sorted(longest_s)[quorum - 1]
    return (math.ceil(period / fragments) + overlap + 2) * slowest + grace_cap_s + pull_limit_s + SLACK_S


def shortest_bound_s(config: RunConfig) -> float:
    """Return what no B is below [s], however short the steps are."""
    return SLACK_S + config.pull_limit_min_s


def grace_cap_s(config: RunConfig, step_s: float) -> float:
    """Longest grace window [s] that the policy allows; infinite for ``all``."""
    caps = {"none": 0.0, "fixed": config.grace_s, "adaptive": config.grace_cap_steps * step_s, "all": math.inf}
    return caps[config.grace]


@dataclass(frozen=True)
class Gaps:
    """Stretches of time in which a merge was due, each up to the merge that ended it.

    Attributes
    ----------
    start_ns, end_ns : ndarray (gap,)
    stopped_ns : ndarray (gap,)
        How long the syncer itself stood still meanwhile, as its machine saw; beside the gap, not counted in it.
    bound_s : ndarray (gap,)
        B as of its start; infinite where there is none.
    span_ns : int
        From the start of rounds to the close.
    """

    start_ns: Array
    end_ns: Array
    stopped_ns: Array
    bound_s: Array
    span_ns: int

    @property
    def excess_s(self) -> Array:
        """(gap - B)+ of each gap [s]."""
        return np.maximum((self.end_ns - self.start_ns - self.stopped_ns) * NS - self.bound_s, 0.0)

    @property
    def merge_availability(self) -> float:
        """1 - sum of the excess over the span; NaN for an empty span."""
        return 1.0 - float(self.excess_s.sum()) / (self.span_ns * NS) if self.span_ns > 0 else float("nan")


def gaps(tables: Tables, config: RunConfig) -> Gaps:
    """Gaps longer than the shortest B possible, with their B.

    A learner counts as clean while it is connected, healed, not quarantined and (without a lead) its last step
    is younger than max(3 x its median step, 1 s); whether its base fits is not looked at.
    """
    began, closed = run_span(tables)
    merged = tables["events"]["time_ns"][events_of(tables, Kind.MERGED)]
    edges = np.unique(np.clip(np.r_[began, merged, closed], began, closed))
    long = np.flatnonzero(np.diff(edges) * NS > shortest_bound_s(config))
    fleet = _Fleet(tables, config)
    found = [(*stretch, fleet.bound(stretch[0])) for i in long for stretch in fleet.due(edges[i], edges[i + 1])]
    start, end = (np.array([gap[i] for gap in found], np.int64) for i in (0, 1))
    stopped = spans.covered(self_stops(tables), start, end)
    return Gaps(start, end, stopped, np.array([gap[2] for gap in found], float), closed - began)


def bounds_s(tables: Tables, config: RunConfig, times_ns: Sequence[int]) -> list[float]:
    """B [s] at some times of a run; where a fault begins, from what was before it."""
    fleet = _Fleet(tables, config)
    return [fleet.bound(time) for time in times_ns]


class _Fleet:
    """What the gaps of one run are judged by."""

    def __init__(self, tables: Tables, config: RunConfig) -> None:
        self.config = config
        self.steps = _step_times(tables)
        self.progress = _progress(tables)
        self.clean = _clean(tables, config, self.steps)
        self.oldest = _oldest_round(tables)
        self.policy = _policies(tables, config)
        self.pulls = _pull_averages(tables)
        self.fault_spans = faults(tables).spans()

    def due(self, start: int, end: int) -> Array:
        """Stretches of [start, end) in which K clean learners have g >= t - 1."""
        times, rounds = self.oldest
        policy_times = np.array([time for time, _ in self.policy], np.int64)
        inner = np.concatenate([times, policy_times])
        cuts = np.unique(np.r_[start, inner[(inner > start) & (inner < end)], end])
        pieces = [spans.EMPTY]
        for low, high in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            at = int(np.searchsorted(times, low, "right")) - 1
            if at >= 0 and rounds[at] >= 0:
                pieces.append(self._due_for(int(rounds[at]), low, high))
        return spans.union(np.concatenate(pieces))

    def _due_for(self, round_: int, start: int, end: int) -> Array:
        ready = []
        for clean, (times, reached) in zip(self.clean, self.progress, strict=True):
            at = int(np.searchsorted(reached, round_ - 1))
            since = 0 if round_ <= 1 else int(times[at]) if at < len(times) else end
            ready.append(spans.clip(clean, max(start, since), end) if since < end else spans.EMPTY)
        return spans.at_least(ready, self._config_at(start).quorum)

    def _config_at(self, time_ns: int) -> RunConfig:
        return [config for time, config in self.policy if time <= time_ns or time == self.policy[0][0]][-1]

    def bound(self, time_ns: int) -> float:
        """B at a time; from a fault on with the values before it."""
        config = self._config_at(time_ns)
        longest, typical = [], []
        for clean, (ended, took) in zip(self.clean, self.steps, strict=True):
            if not spans.inside(clean, time_ns):
                continue
            before = self._before_faults(time_ns, ended)
            until = int(np.searchsorted(ended, before, "right"))
            recent = took[max(0, until - RECENT_STEPS) : until]
            if len(recent):
                longest.append(float(recent.max()))
                typical.append(float(np.median(recent)))
        if len(longest) < config.quorum:
            return math.inf
        return bound_s(
            longest,
            quorum=config.quorum,
            period=config.period,
            fragments=config.fragments,
            overlap=config.overlap,
            grace_cap_s=grace_cap_s(config, float(np.median(typical))),
            pull_limit_s=self._pull_limit_s(time_ns, config),
        )

    def _before_faults(self, time_ns: int, ended: Array) -> int:
        """Start of the faults that act at a time, unless no step ended before them."""
        at = int(np.searchsorted(self.fault_spans[:, 0], time_ns, "right")) - 1
        if at >= 0 and time_ns < self.fault_spans[at, 1] and len(ended) and ended[0] <= self.fault_spans[at, 0]:
            return int(self.fault_spans[at, 0])
        return time_ns

    def _pull_limit_s(self, time_ns: int, config: RunConfig) -> float:
        """max(4 x the largest moving average of a learner's pulls, least), never above the heartbeat limit."""
        averages = [
            float(average[at - 1])
            for times, average in self.pulls
            if (at := int(np.searchsorted(times, time_ns, "right"))) > 0
        ]
        return min(max(4 * max(averages, default=0.0), config.pull_limit_min_s), config.heartbeat_limit_s)


def _step_times(tables: Tables) -> list[tuple[Array, Array]]:
    """End [ns] and duration [s] of each learner's steps, by end."""
    steps = tables["steps"]
    result = []
    for learner in range(learner_count(tables)):
        mine = np.flatnonzero(steps["learner"] == learner)
        mine = mine[np.argsort(steps["end_ns"][mine], kind="stable")]
        result.append((steps["end_ns"][mine], (steps["end_ns"] - steps["start_ns"])[mine] * NS))
    return result


def _progress(tables: Tables) -> list[tuple[Array, Array]]:
    """Times and the largest g so far of each learner; g is one more after the step than in its schedule."""
    events = tables["events"]
    every = events_of(tables, Kind.STEP_ENDED, Kind.UPDATE_FOLDED)
    result = []
    for learner in range(learner_count(tables)):
        moved = every[events["process"][every] == process_of(learner)]
        after = events["global_step"][moved] + (events["kind"][moved] == Kind.STEP_ENDED)
        result.append((events["time_ns"][moved], np.maximum.accumulate(after) if len(after) else after))
    return result


def _clean(tables: Tables, config: RunConfig, steps: list[tuple[Array, Array]]) -> list[Array]:
    _, closed = run_span(tables)
    out = _quarantines(tables, closed)
    result = []
    for learner, presence in enumerate(presences(tables)):
        clean = spans.subtract(presence.expected, out.get(learner, spans.EMPTY))
        ended, took = steps[learner]
        if config.lead is None and len(ended):
            fresh = int(max(3 * float(np.median(took)), 1.0) / NS)
            clean = spans.intersect(clean, spans.union(np.stack([ended, ended + fresh], 1)))
        result.append(clean)
    return result


def _quarantines(tables: Tables, closed: int) -> dict[int, Array]:
    events = tables["events"]
    since: dict[int, int] = {}
    found: dict[int, list[tuple[int, int]]] = {}
    for event, detail in details_of(tables, Kind.SETTING_CHANGED).items():
        values = detail.get("values", {})
        if "quarantined" in values:
            learner, time_ns = int(events["peer"][event]) - FIRST_LEARNER, int(events["time_ns"][event])
            if values["quarantined"]:
                since.setdefault(learner, time_ns)
            elif learner in since:
                found.setdefault(learner, []).append((since.pop(learner), time_ns))
    for learner, time_ns in since.items():
        found.setdefault(learner, []).append((time_ns, closed))
    return {learner: spans.union(given) for learner, given in found.items()}


def _oldest_round(tables: Tables) -> tuple[Array, Array]:
    """Times, and the oldest round in flight from then on (-1 for none)."""
    events = tables["events"]
    wanted = events_of(
        tables, Kind.ROUND_OPENED, Kind.ROUND_RESTARTED, Kind.MERGE_COMMITTED, Kind.ROUND_SKIPPED, Kind.ROUND_ABORTED
    )
    rows = zip(*(events[name][wanted].tolist() for name in ("kind", "round", "time_ns")), strict=True)
    flying: set[int] = set()
    oldest = []
    for kind, round_, _ in rows:
        if kind in (Kind.ROUND_OPENED, Kind.ROUND_RESTARTED):
            flying.add(round_)
        else:
            flying.discard(round_)
        oldest.append(min(flying, default=-1))
    return events["time_ns"][wanted], np.array(oldest, np.int64)


def _policies(tables: Tables, config: RunConfig) -> list[tuple[int, RunConfig]]:
    """The configuration from each accepted change on."""
    keys = ("quorum", "grace", "grace_s", "grace_gamma", "grace_cap_steps", "pull_limit_min_s")
    result = [(run_span(tables)[0], config)]
    for event, detail in details_of(tables, Kind.SETTING_CHANGED).items():
        changed = {key: value for key, value in detail.get("values", {}).items() if key in keys}
        if changed:
            config = config.set(changed)
            result.append((int(tables["events"]["time_ns"][event]), config))
    return result


def _pull_averages(tables: Tables) -> list[tuple[Array, Array]]:
    """Times of answers, and the moving average of pull times [s] after each, of every learner."""
    events = tables["events"]
    sent: dict[tuple[int, int], int] = {}
    samples: list[list[tuple[int, float]]] = [[] for _ in range(learner_count(tables))]
    wanted = events_of(tables, Kind.PULL_SENT, Kind.FRAGMENT_ARRIVED, Kind.FRAGMENT_DROPPED, Kind.REFUSAL_ARRIVED)
    for kind, round_, peer, time_ns in zip(
        *(events[name][wanted].tolist() for name in ("kind", "round", "peer", "time_ns")), strict=True
    ):
        if kind == Kind.PULL_SENT:
            sent[round_, peer] = time_ns
        elif (round_, peer) in sent:
            mine = samples[peer - FIRST_LEARNER]
            took = (time_ns - sent[round_, peer]) * NS
            mine.append((time_ns, mine[-1][1] + EMA * (took - mine[-1][1]) if mine else took))
    return [(np.array([t for t, _ in mine], np.int64), np.array([v for _, v in mine])) for mine in samples]
