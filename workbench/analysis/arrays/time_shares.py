"""Goodput, badput by cause and uptime (DESIGN section 9).

Steps are timed on the learner's clock, membership on the syncer's and the supervisor's; all count from the
start of the run.  Waiting stands in a step's ``waited_ns`` whether it lies inside the step or before it: what
fits into the gap before the step is taken from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from workbench.analysis.arrays import spans
from workbench.analysis.arrays.presence import FOREVER, STOPS, Life, Presence, faults, presences
from workbench.analysis.arrays.tables import Array, Tables, events_of, run_span
from workbench.protocol.records import Kind, process_of

CAUSES = ("down", "starting", "recovering", "waiting", "overhead", "injected", "lost")
"""Badput: dead or stopped; process and compilation; state transfer; lead and full queues; between steps;
slow-downs of injected faults; steps cut off by a death or rolled back."""


@dataclass(frozen=True)
class TimeShares:
    """Where allocated time went.

    Attributes
    ----------
    allocated_ns : ndarray (learner,)
        From the first WELCOME, not before the start of rounds, to the close or the planned removal.
    useful_ns : ndarray (learner,)
        Sum over completed steps, not rolled back, of end - start - injected - waited.
    badput_ns : ndarray (learner, cause)
        The rest, by `CAUSES`; with ``useful_ns`` it adds up to ``allocated_ns``.
    """

    allocated_ns: Array
    useful_ns: Array
    badput_ns: Array

    @property
    def goodput(self) -> float:
        """Sum of useful over sum of allocated time, NaN without any."""
        total = self.allocated_ns.sum()
        return float(self.useful_ns.sum() / total) if total else float("nan")

    @property
    def badput(self) -> dict[str, float]:
        """Shares of allocated time by cause; with goodput they add up to 1."""
        total = self.allocated_ns.sum()
        shares = self.badput_ns.sum(0) / total if total else np.full(len(CAUSES), np.nan)
        return dict(zip(CAUSES, shares.tolist(), strict=True))


def rolled_back_steps(tables: Tables) -> Array:
    """Whether each row of ``steps`` was rolled back: a later epoch made the same own step, or an earlier one."""
    steps = tables["steps"]
    result = np.zeros(len(steps["n"]), bool)
    for epoch in np.unique(steps["epoch"])[1:].tolist():
        later = steps["epoch"] == epoch
        first = np.full(int(steps["process"].max()) + 1, FOREVER)
        np.minimum.at(first, steps["process"][later], steps["n"][later])
        result |= (steps["epoch"] < epoch) & (steps["n"] >= first[steps["process"]])
    return result


def time_shares(tables: Tables) -> TimeShares:
    """Goodput and badput of every learner."""
    return shares_within(tables, [(0, FOREVER)])[0]


def shares_within(tables: Tables, windows: Sequence[tuple[int, int]]) -> list[TimeShares]:
    """Goodput and badput of every learner within each of some windows of time [ns]."""
    began, _ = run_span(tables)
    steps, gone_back, injected = tables["steps"], rolled_back_steps(tables), faults(tables)
    adopted = events_of(tables, Kind.STATE_ADOPTED)
    rows: list[list[tuple[float, list[float]]]] = [[] for _ in windows]
    for learner, presence in enumerate(presences(tables)):
        low, high = _allocated(presence, began)
        order = np.flatnonzero(steps["learner"] == learner)
        order = order[np.argsort(steps["start_ns"][order], kind="stable")]
        mine = {name: steps[name][order] for name in ("event", "start_ns", "end_ns", "injected_ns", "waited_ns")}
        mine |= _one_after_the_other(mine) | {"gone_back": gone_back[order]}
        adoptions = adopted[tables["events"]["process"][adopted] == process_of(learner)]
        stopped = injected.spans(process_of(learner), STOPS)
        gaps = _gap_causes(tables, presence, mine, adoptions, stopped)
        for row, (since, until) in zip(rows, windows, strict=True):
            window = min(max(low, since), high), max(min(high, until), low)
            row.append(_of_learner(window, _near(mine, window), gaps, stopped))
    return [_shares(row) for row in rows]


def _shares(rows: list[tuple[float, list[float]]]) -> TimeShares:
    useful = np.array([row[0] for row in rows], float)
    badput = np.array([row[1] for row in rows], float).reshape(len(rows), len(CAUSES))
    return TimeShares(useful + badput.sum(1), useful, badput)


def _allocated(presence: Presence, began: int) -> tuple[int, int]:
    first = presence.first_joined_ns
    end = presence.removed_ns if presence.removed_ns >= 0 else presence.close_ns
    return (max(first, began), end) if first >= 0 and max(first, began) < end else (end, end)


def _one_after_the_other(steps: dict[str, Array]) -> dict[str, Array]:
    """When each step begins, not before the one before it has ended, and when that was [ns]; the first: at 0."""
    ended = np.maximum.accumulate(steps["end_ns"]) if len(steps["end_ns"]) else steps["end_ns"]
    previous = np.r_[np.zeros(1, np.int64), ended[:-1]][: len(ended)]
    return {"begin_ns": np.maximum(steps["start_ns"], previous), "previous_ns": previous, "ended_ns": ended}


def _near(steps: dict[str, Array], window: tuple[int, int]) -> dict[str, Array]:
    """Steps that meet a window, and the one after it, which may have waited within."""
    first = int(np.searchsorted(steps["ended_ns"], window[0], "right"))
    last = int(np.searchsorted(steps["begin_ns"], window[1], "left")) + 1
    return {name: column[first:last] for name, column in steps.items()}


def _of_learner(
    window: tuple[int, int], steps: dict[str, Array], gaps: dict[str, Array], stopped: Array
) -> tuple[float, list[float]]:
    """Useful time and badput of one learner, which add up to the length of the window."""
    start, gone_back = steps["begin_ns"], steps["gone_back"]
    low, high = np.clip(start, *window), np.clip(steps["end_ns"], *window)
    inside = np.maximum(high - low, 0).astype(float)
    share = inside / np.maximum(steps["end_ns"] - start, 1)
    before = np.minimum(np.maximum(steps["waited_ns"], 0), start - steps["previous_ns"])
    injected = np.minimum(np.maximum(steps["injected_ns"], 0) * share, inside)
    waited = np.minimum((np.maximum(steps["waited_ns"], 0) - before) * share, inside - injected)
    frozen = np.clip(spans.covered(stopped, low, high) - injected, 0, inside - injected - waited)
    net = inside - injected - waited - frozen
    parts = dict.fromkeys(CAUSES, 0.0)
    parts |= {"injected": injected.sum(), "waiting": waited.sum(), "down": frozen.sum(), "lost": net[gone_back].sum()}
    rest = spans.subtract(spans.union([window]), spans.union(np.stack([low, high], 1)))
    gaps = gaps | {"waiting": spans.union(np.stack([start - before, start], 1))}
    for cause in ("down", "starting", "recovering", "waiting", "lost"):
        found = spans.intersect(rest, gaps[cause])
        parts[cause] += spans.length(found)
        rest = spans.subtract(rest, found)
    parts["overhead"] += spans.length(rest)
    return float(net[~gone_back].sum()), [float(parts[cause]) for cause in CAUSES]


def _gap_causes(
    tables: Tables, presence: Presence, steps: dict[str, Array], adoptions: Array, stopped: Array
) -> dict[str, Array]:
    """Spans outside steps by cause; where they overlap, the first of down, starting, recovering, lost counts."""
    everything = spans.union([(0, FOREVER)])
    starting: list[tuple[int, int]] = []
    recovering: list[tuple[int, int]] = []
    lost: list[tuple[int, int]] = []
    for life, following in zip_longest(presence.lives, presence.lives[1:]):
        first, last = _steps_of(life, following, steps["event"])
        end = life.ended_ns if life.ended_ns >= 0 else presence.close_ns
        ready = int(steps["start_ns"][first]) if first < last else end
        joined = life.joined_ns if life.joined_ns >= 0 else end
        before_step = int(steps["event"][first]) if first < last else FOREVER
        since = life.joined_event if life.joined_event >= 0 else FOREVER
        mine = adoptions[(adoptions >= since) & (adoptions < before_step)]
        state = min(int(tables["events"]["time_ns"][mine[-1]]), ready) if len(mine) else joined
        recovering.append((joined, state))
        starting += [(life.started_ns, joined), (max(joined, state), ready)]
        if life.died and first < last:
            lost.append((int(steps["end_ns"][last - 1]), end))
    down = spans.union(np.concatenate([spans.subtract(everything, presence.alive), stopped]))
    return {
        "down": down,
        "starting": spans.union(starting),
        "recovering": spans.union(recovering),
        "lost": spans.union(lost),
    }


def _steps_of(life: Life, following: Life | None, step_events: Array) -> tuple[int, int]:
    """Range of the steps that stand behind the life's WELCOME and before the next life's in the journal."""
    if life.joined_event < 0:
        return 0, 0
    until = following.joined_event if following is not None and following.joined_event >= 0 else FOREVER
    first, last = np.searchsorted(step_events, [life.joined_event, until])
    return int(first), int(last)


def uptime(tables: Tables) -> float:
    """Share of the time from the start of rounds to the close in which some learner is inside a completed step
    or within two of its median steps after one.
    """
    began, closed = run_span(tables)
    steps = tables["steps"]
    if closed <= began:
        return float("nan")
    reached = []
    for learner in np.unique(steps["learner"]).tolist():
        mine = steps["learner"] == learner
        start, end = steps["start_ns"][mine], steps["end_ns"][mine]
        after = int(2 * np.median(end - start))
        reached.append(np.stack([start, end + after], 1))
    progress = spans.union(np.concatenate(reached)) if reached else spans.EMPTY
    return spans.length(spans.clip(progress, began, closed)) / (closed - began)
