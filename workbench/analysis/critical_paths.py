"""What a merge waited for: from the opening of its round to its first UPDATE, stage by stage."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from workbench.analysis.merge_round import NS, MergeRound, merge_round
from workbench.protocol.records import FIRST_LEARNER, SYNCER, Kind, label_of, process_of

ANSWERS = (Kind.FRAGMENT_ARRIVED, Kind.FRAGMENT_DROPPED, Kind.REFUSAL_ARRIVED)
NOT_YET = ("not_fresh", "not_ready")


class Stage(NamedTuple):
    """One stage on the way to a merge.

    Attributes
    ----------
    name : str
        ``opened``, ``first_ready``, ``quorum``, ``grace``, ``pulled``, ``last_fragment``, ``closed``, ``merged``,
        ``committed`` or ``sent``: what had happened at its end.
    event : int
        Event at its end, -1 where none is recorded (``closed``).
    time_s : float
        Its end on the syncer's clock [s].
    seconds : float
        Since the end of the stage before.
    waited_for : tuple of str
        Labels of the processes that it waited for, the syncer itself where it computed; empty where nobody was.
    because : int
        Event of that process which ended the wait, -1 if none did.
    """

    name: str
    event: int
    time_s: float
    seconds: float
    waited_for: tuple[str, ...]
    because: int


class CriticalPath(NamedTuple):
    """The stages of a merge, in order; their seconds add up to the time from the opening to the last of them."""

    merge: int
    round: int
    fragment: int
    stages: tuple[Stage, ...]

    @property
    def longest(self) -> Stage:
        """The stage that took longest."""
        return max(self.stages, key=lambda stage: stage.seconds)

    @property
    def seconds(self) -> float:
        """From the opening of the round to the first UPDATE [s]."""
        return sum(stage.seconds for stage in self.stages)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {**self._asdict(), "stages": [stage._asdict() for stage in self.stages], "seconds": self.seconds}

    def __str__(self) -> str:
        head = f"merge {self.merge} (round {self.round}, fragment {self.fragment})"
        lines = [f"{head}: {1e3 * self.seconds:.2f} ms from the opening of its round, in these stages"]
        for stage in (s for s in self.stages if s.name != "opened"):
            waited = f", waited for {', '.join(stage.waited_for)}" if stage.waited_for else ""
            lines.append(f"{1e3 * stage.seconds:10.2f} ms  until {stage.name.replace('_', ' ')}{waited}")
        return "\n".join(lines)


def critical_path(tape: xr.DataTree, merge: int) -> CriticalPath:
    """Who was waited for on the way to a merge, and how long.

    Where a round went back for want of a quorum, its last quorum, grace and pulls are told; the time before them counts
    as waiting for that quorum.

    Parameters
    ----------
    tape : xarray.DataTree
    merge : int
        Row of /merges, from 0; negative counts from the end.

    Raises
    ------
    TapeError
        When there is no such merge.
    """
    found = merge_round(tape, merge)
    stages: list[Stage] = []
    for name, event, time_ns, waited_for, because in _ends(found):
        time_s = time_ns * NS
        seconds = max(0.0, time_s - stages[-1].time_s) if stages else 0.0
        at_s = max(time_s, stages[-1].time_s) if stages else time_s
        stages.append(Stage(name, event, at_s, seconds, waited_for, because))
    return CriticalPath(found.merge, found.round, found.fragment, tuple(stages))


End = tuple[str, int, int, tuple[str, ...], int]
"""(name, event, time [ns], waited for, because)."""


def _ends(r: MergeRound) -> list[End]:
    """Ends of the stages that are recorded."""
    opened, ready = r.last(Kind.ROUND_OPENED, Kind.ROUND_RESTARTED), r.last(Kind.ROUND_READY)
    quorum, grace = r.last(Kind.QUORUM_REACHED), r.last(Kind.GRACE_ENDED)
    pulls = r.of(Kind.PULL_SENT)
    pulls = pulls[(pulls > grace) & (pulls < r.event)]
    ends: list[End] = [("opened", opened, r.time_ns(opened), (), -1)] if opened >= 0 else []
    if ready >= 0:
        by = int(r.own["peer"][ready])
        ends.append(("first_ready", ready, r.time_ns(ready), (label_of(by),), _last_heard(r, ready, by)))
    if quorum >= 0:
        ends.append(("quorum", quorum, r.time_ns(quorum), *_brought(r, quorum)))
    if grace >= 0:
        ends.append(("grace", grace, r.time_ns(grace), *_grace(r, quorum, grace)))
    if len(pulls):
        ends.append(("pulled", int(pulls[0]), r.time_ns(int(pulls[0])), (), -1))
    ends += _fragments(r, grace)
    ends.append(("merged", r.event, r.time_ns(r.event), (label_of(SYNCER),), -1))
    for name, kind in (("committed", Kind.MERGE_COMMITTED), ("sent", Kind.UPDATE_SENT)):
        later = [e for e in r.of(kind).tolist() if e > r.event and r.own["version"][e] == r.version]
        if later:
            ends.append((name, later[0], r.time_ns(later[0]), (label_of(SYNCER),), -1))
    return ends


def _last_heard(r: MergeRound, event: int, process: int) -> int:
    """The last event of a process that the syncer had heard of at an event."""
    index = r.own.index
    return index.last(process, int(index.past(event)[process]))


def _brought(r: MergeRound, event: int) -> tuple[tuple[str, ...], int]:
    """Of which process a message brought a transition about: the newest that it had heard of in the same input."""
    own, index = r.own, r.own.index
    rows, place = index.rows[SYNCER], int(index.rank[event])
    earlier = int(np.searchsorted(own["time_ns"][rows[:place]], r.time_ns(event)))
    before = index.clock_of(int(rows[earlier - 1])) if earlier else np.zeros(index.width, np.int64)
    risen = np.flatnonzero(index.clock_of(event) > before)
    newest = max((_last_heard(r, event, int(q)) for q in risen if q >= FIRST_LEARNER), default=-1)
    return ((label_of(int(index.process[newest])),), newest) if newest >= 0 else ((), -1)


def _grace(r: MergeRound, quorum: int, grace: int) -> tuple[tuple[str, ...], int]:
    """Who came within the window last; if it ran out, for whom it was kept open in vain."""
    if r.reason(grace) != "over":
        return _brought(r, grace) if r.time_ns(grace) > r.time_ns(quorum) >= 0 else ((), -1)
    left: dict[Any, str] = r.detail(grace).get("left_out", {})
    waited = sorted(int(learner) for learner, why in left.items() if why in NOT_YET)
    return tuple(label_of(process_of(learner)) for learner in waited), -1


def _fragments(r: MergeRound, grace: int) -> list[End]:
    """The last fragment that came, and, where the round waited longer, for whom."""
    answers = r.of(*ANSWERS)
    answers = answers[answers < r.event]
    arrived = answers[r.own["kind"][answers] == Kind.FRAGMENT_ARRIVED]
    ends: list[End] = []
    if len(arrived):
        last = int(arrived[-1])
        ends.append(("last_fragment", last, r.time_ns(last), (label_of(int(r.own["peer"][last])),),
                     int(r.own["cause"][last])))  # fmt: skip
    if r.closed_ns >= 0 and (not ends or r.closed_ns > ends[-1][2]):
        pulled = r.of(Kind.PULL_SENT)
        asked = {int(r.own["peer"][e]) for e in pulled[(pulled > grace) & (pulled < r.event)].tolist()}
        here = {int(r.own["peer"][e]) for e in answers[answers > grace].tolist()}
        waited = tuple(label_of(q) for q in sorted(asked - here))
        late = answers[r.own["kind"][answers] != Kind.FRAGMENT_ARRIVED]
        by_answer = tuple(label_of(int(r.own["peer"][e])) for e in late[-1:].tolist())
        ends.append(("closed", -1, r.closed_ns, waited or by_answer, -1))
    return ends
