"""Figure 2 of arXiv 2604.21428, worked: M = 2, P = H = 3, tau = 2; the second learner stalls for 3 steps."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from itertools import pairwise

from tests.simulate.worlds import MS, config_of, finished, of_kind, world_of
from workbench.protocol.faults import Fault
from workbench.protocol.records import Kind, Record, label_of, process_of
from workbench.simulate.world import World

L1 = process_of(1)

TELL: dict[Kind, Callable[[Record], str]] = {
    Kind.SYNCER_STARTED: lambda r: "starts",
    Kind.PROCESS_STARTED: lambda r: f"starts {label_of(r.peer)}",
    Kind.PROCESS_ENDED: lambda r: f"sees {label_of(r.peer)} exit",
    Kind.FAULT_INJECTED: lambda r: f"stalls {label_of(r.peer)} for {r.value:g} s",
    Kind.FAULT_ENDED: lambda r: f"lets {label_of(r.peer)} go on",
    Kind.LEARNER_JOINED: lambda r: f"{label_of(r.peer)} joins",
    Kind.LEARNER_HEALED: lambda r: f"{label_of(r.peer)} is healed",
    Kind.LEARNER_LOST: lambda r: f"{label_of(r.peer)} leaves",
    Kind.ROUNDS_BEGAN: lambda r: "rounds begin",
    Kind.RUN_ENDED: lambda r: "ends",
    Kind.ROUND_OPENED: lambda r: f"opens {r.round}:p{r.fragment}",
    Kind.ROUND_READY: lambda r: f"{r.round} ready",
    Kind.QUORUM_REACHED: lambda r: f"{r.round} quorum",
    Kind.GRACE_ENDED: lambda r: f"{r.round} grace ends",
    Kind.PULL_SENT: lambda r: f"{r.round} pulls {label_of(r.peer)}",
    Kind.FRAGMENT_ARRIVED: lambda r: f"{r.round} has {label_of(r.peer)}",
    Kind.MERGED: lambda r: (
        f"{r.round} merges p{r.fragment}v{r.version} of " + "+".join(map(_label, r.detail["learners"]))
    ),
    Kind.MERGE_COMMITTED: lambda r: f"{r.round} commits",
    Kind.UPDATE_SENT: lambda r: f"p{r.fragment}v{r.version} to {label_of(r.peer)}",
    Kind.STATE_ADOPTED: lambda r: f"adopts {r.reason}",
    Kind.STEP_ENDED: lambda r: f"ends step {r.step}",
    Kind.UPDATE_FOLDED: lambda r: f"folds p{r.fragment}v{r.version}",
    Kind.FRAGMENT_CAPTURED: lambda r: f"captures p{r.fragment} for {r.round}",
    Kind.CONTRIBUTION_ACKNOWLEDGED: lambda r: f"own p{r.fragment} of step {r.step} is {'in' if r.value else 'out'}",
}

TRACE = """
   0.0 syncer     starts
   0.0 supervisor starts L0, starts L1
  99.5 syncer     L0 joins, p0v0 to L0, L1 joins, p0v0 to L1, rounds begin, opens 1:p1, opens 2:p2, p1v0 to L0, p1v0
                  to L1, p2v0 to L0, p2v0 to L1
 100.0 L0         adopts initial
 100.0 L1         adopts initial
 200.0 L0         ends step 1, folds p0v0, folds p1v0, folds p2v0
 200.0 L1         ends step 1, folds p0v0, folds p1v0, folds p2v0
 300.0 L0         ends step 2
 300.0 L1         ends step 2
 300.5 syncer     L0 is healed, 1 ready, 1 quorum, 1 grace ends, 1 pulls L0, 2 ready, 2 quorum, 2 grace ends, 2
                  pulls L0, L1 is healed
 301.0 L0         captures p1 for 1, captures p2 for 2
 301.5 syncer     1 has L0, 2 has L0
 303.5 syncer     1 merges p1v1 of L0, 2 merges p2v1 of L0
 303.6 syncer     1 commits, p1v1 to L0, p1v1 to L1, opens 3:p0, 2 commits, opens 4:p1, p2v1 to L0, p2v1 to L1
 400.0 L0         ends step 3, own p1 of step 2 is in, own p2 of step 2 is in, folds p1v1, folds p2v1
 400.0 L1         ends step 3, folds p1v1, folds p2v1
 400.5 syncer     3 ready, 3 quorum, 3 grace ends, 3 pulls L0, 3 pulls L1
 401.0 L0         captures p0 for 3
 401.0 L1         captures p0 for 3
 401.5 syncer     3 has L0, 3 has L1
 403.5 syncer     3 merges p0v1 of L0+L1
 403.6 syncer     3 commits, p0v1 to L0, p0v1 to L1, opens 5:p2
 450.0 supervisor stalls L1 for 0.3 s
 500.0 L0         ends step 4, own p0 of step 3 is in, folds p0v1
 500.5 syncer     4 ready, 4 quorum, 4 grace ends, 4 pulls L0
 501.0 L0         captures p1 for 4
 501.5 syncer     4 has L0
 503.5 syncer     4 merges p1v2 of L0
 503.6 syncer     4 commits, p1v2 to L0, p1v2 to L1, opens 6:p0
 600.0 L0         ends step 5, own p1 of step 4 is in, folds p1v2
 600.5 syncer     5 ready, 5 quorum, 5 grace ends, 5 pulls L0
 601.0 L0         captures p2 for 5
 601.5 syncer     5 has L0
 603.5 syncer     5 merges p2v2 of L0
 603.6 syncer     5 commits, p2v2 to L0, p2v2 to L1, opens 7:p1
 700.0 L0         ends step 6, own p2 of step 5 is in, folds p2v2
 700.5 syncer     6 ready, 6 quorum, 6 grace ends, 6 pulls L0
 701.0 L0         captures p0 for 6
 701.5 syncer     6 has L0
 703.5 syncer     6 merges p0v2 of L0
 703.6 syncer     6 commits, p0v2 to L0, p0v2 to L1, opens 8:p2
 750.0 supervisor lets L1 go on
 800.0 L0         ends step 7, own p0 of step 6 is in, folds p0v2
 800.0 L1         ends step 4, own p0 of step 3 is in, folds p1v2, folds p2v2, folds p0v2
 800.5 syncer     7 ready, 7 quorum, 7 grace ends, 7 pulls L0
 801.0 L0         captures p1 for 7
 801.5 syncer     7 has L0
 803.5 syncer     7 merges p1v3 of L0
 803.6 syncer     7 commits, p1v3 to L0, p1v3 to L1, opens 9:p0
 900.0 L0         ends step 8, own p1 of step 7 is in, folds p1v3
 900.0 L1         ends step 5, folds p1v3
 900.5 syncer     8 ready, 8 quorum, 8 grace ends, 8 pulls L0
 901.0 L0         captures p2 for 8
 901.5 syncer     8 has L0
 903.5 syncer     8 merges p2v3 of L0
 903.6 syncer     8 commits, p2v3 to L0, p2v3 to L1
1000.0 L0         ends step 9, own p2 of step 8 is in, folds p2v3
1000.0 L1         ends step 6, folds p2v3
1000.5 syncer     9 ready, 9 quorum, 9 grace ends, 9 pulls L0, 9 pulls L1
1001.0 L0         captures p0 for 9
1001.0 L1         captures p0 for 9
1001.5 syncer     9 has L0, 9 has L1
1003.5 syncer     9 merges p0v3 of L0+L1
1003.6 syncer     9 commits, p0v3 to L0, p0v3 to L1
1100.0 L0         ends step 10
1100.0 L1         ends step 7
1100.5 syncer     L0 leaves, L1 leaves, ends
"""


def _label(learner: int) -> str:
    return label_of(process_of(learner))


def figure_2() -> World:
    """Steps of 100 ms, messages of 0.5 ms, merges of 2 ms; L1 is stopped in the middle of its fourth step."""
    virtual = {"step_s": 0.1, "step_model": "fixed", "delay_s": 0.0005, "start_s": 0.098, "merge_s": 0.002}
    config = config_of(virtual, learners=2, rounds=9, period=3, fragments=3, overlap=2)
    return finished(world_of(config, [Fault("stall", 450 * MS, learner=1, for_ns=300 * MS)]))


def trace(world: World) -> str:
    """Every record, in order of time: a line for what one process did at one moment, wrapped."""
    moments: dict[tuple[int, int], list[str]] = {}
    for record in sorted(world.records, key=lambda r: (r.time_ns, r.process, r.seq)):
        moments.setdefault((record.time_ns, record.process), []).append(TELL[Kind(record.kind)](record))
    lines = [f"{at / MS:6.1f} {label_of(who):10} {', '.join(what)}" for (at, who), what in moments.items()]
    return "\n".join(textwrap.fill(line, 116, subsequent_indent=" " * 18) for line in lines)


def test_the_whole_trace() -> None:
    assert trace(figure_2()).splitlines() == TRACE.strip("\n").splitlines()


def test_the_syncer_merges_once_per_step_whatever_the_second_learner_does() -> None:
    merged = of_kind(figure_2(), Kind.MERGED)
    assert [r.round for r in merged] == list(range(1, 10))
    assert {b.time_ns - a.time_ns for a, b in pairwise(merged[1:])} == {100 * MS}


def test_all_updates_missed_are_folded_before_the_next_step() -> None:
    world = figure_2()
    mine = [r for r in world.records if r.process == L1]
    fourth, fifth = (next(r for r in mine if r.kind == Kind.STEP_ENDED and r.step == n) for n in (4, 5))
    assert fourth.time_ns - fourth.detail["start_ns"] == 400 * MS  # a step and a stall of three
    folds = [r for r in mine if r.kind == Kind.UPDATE_FOLDED and fourth.seq < r.seq < fifth.seq and r.step == 4]
    missed = {r.fragment: r.version for r in of_kind(world, Kind.MERGE_COMMITTED) if r.time_ns < fourth.time_ns}
    assert {r.fragment: r.version for r in folds} == missed == {0: 2, 1: 2, 2: 2}
    assert {r.time_ns for r in folds} == {fourth.time_ns} == {fifth.detail["start_ns"]}
    assert fifth.global_step == 6  # the newest round among them is its global step now
