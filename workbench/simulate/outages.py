"""The loss of a whole virtual run, and its resume (PROTOCOL section 13)."""

from __future__ import annotations

from heapq import heapify
from typing import TYPE_CHECKING

from workbench.protocol import quorum, restart
from workbench.protocol.plans import Rest
from workbench.protocol.settings import settings_book_of
from workbench.simulate.lives import start_learner, start_syncer
from workbench.simulate.mailing import release_what_died
from workbench.simulate.processes import SyncerProcess

if TYPE_CHECKING:
    from workbench.simulate.world import World


def lose_everything(world: World) -> None:
    """Every process is killed, supervisor and evaluator too; what is under way is lost, faults to come stay."""
    world.lost = True
    for learner, process in world.learners.items():
        if process.alive:
            process.alive = False
            process.token += 1
            world.arithmetic.drop(learner)
    if world.syncer.alive:
        release_what_died(world, world.syncer)
    world.syncer.alive = False
    for connection in world.network.connections.values():
        connection.open = False
    world.heap = [
        event for event in world.heap if event[2] in (*world.striker.outlasting, world.ask, *world.outlasting)
    ]
    heapify(world.heap)
    world.inputs = []


def resume_run(world: World, snapshot: int | None = None, rest: Rest | None = None) -> None:
    """Go on from the journal and the slots, or go back to a snapshot (-1: the newest); all processes start anew.

    Of the plan of faults goes on what is left, the ``rest``; in the world that was lost it is still there.

    Raises
    ------
    LookupError
        There is no such snapshot.
    """
    cut = None
    if snapshot is not None:
        cut = restart.cut_of(world.records, snapshot)
        if cut is None:
            raise LookupError(f"there is no snapshot {snapshot} to go back to")
    found = restart.restore(world.fixed, settings_book_of(world.config), world.records, cut)
    if cut is None:
        world.arithmetic.recover(found.state.versions)
    else:
        world.arithmetic.go_back(cut["snapshot"])
    world.finished = world.failed = ""
    world.lost = False
    for foreign in (world.supervisor, world.evaluations.process):
        foreign.begin_again(found.state.known_seq.get(foreign.process, 0), found.state.epoch, found.state.clock)
    world.evaluations.begin_again(cut)
    world.syncer = SyncerProcess(found.state, world.syncer.life + 1)
    start_syncer(world, "resume", tuple(found.uncommitted), cut, tuple(found.aborted))
    if rest is not None:
        world.striker.go_on(rest)
    parts = cut["parts"] if cut is not None else {}
    for learner, member in found.state.members.items():
        if learner in found.state.removed:
            continue
        number = max(member.process_number, member.ended, _number_of(world, learner)) + 1
        start_learner(world, learner, number, cut["snapshot"] if cut is not None and str(learner) in parts else None)
    for learner in quorum.expected(found.state):
        if learner not in found.state.members and learner not in world.striker.held:
            start_learner(world, learner, _number_of(world, learner) + 1)


def _number_of(world: World, learner: int) -> int:
    process = world.learners.get(learner)
    return process.number if process is not None else 0
