"""Lives of processes in virtual time: how they start, stop, go on and end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.protocol import copies, restart
from workbench.protocol import events as ev
from workbench.protocol.records import SYNCER, Kind, process_of
from workbench.protocol.settings import learner_settings_of, settings_book_of
from workbench.simulate.doing import step_ended
from workbench.simulate.mailing import release_what_died
from workbench.simulate.processes import LearnerProcess, SyncerProcess, VirtualProcess

if TYPE_CHECKING:
    from workbench.simulate.world import World


def start_learner(world: World, learner: int, number: int, snapshot: int | None = None) -> None:
    """A learner process starts, with what a snapshot has of it; its machine is there after the start-up time."""
    process = LearnerProcess(learner, number, world.fixed, learner_settings_of(world.config))
    if snapshot is not None:
        copies.restore(process.machine.state, world.arithmetic.facts(snapshot, learner), snapshot)
    world.learners[learner] = process
    world.supervise(Kind.PROCESS_STARTED, peer=process_of(learner), value=float(number), detail=dict(world.identity))
    world.at(world.now + world.times.start_ns(learner, number), wake_up_learner, (world, process))


def wake_up_learner(world: World, process: LearnerProcess) -> None:
    """The machine of a learner's process begins."""
    if process.alive:
        process.started = True
        world.do_all(process, process.machine.start(world.now))
        world.schedule_wake(process)


def is_wanted(world: World, learner: int) -> bool:
    """Whether a process of a learner may be started: it was not removed."""
    return learner not in world.syncer.machine.state.removed


def end_removed(world: World, learner: int) -> None:
    """A removed learner that has not heard of it, or cannot leave, is killed."""
    process = world.learners.get(learner)
    if process is not None and process.alive:
        kill_learner(world, learner)


def kill_learner(world: World, learner: int, how: str = "SIGKILL") -> None:
    """No further action; the supervisor sees it, and the socket closes."""
    process = world.learners[learner]
    process.alive = False
    process.token += 1
    process.queue.clear()
    world.arithmetic.drop(learner)
    number = process.machine.state.connection
    world.network.close(number)
    gone = world.times.gone_ns(learner, process.number, world.network.count)
    world.at(world.now + gone, _tell_syncer, (world, number))
    seen = world.times.ended_ns(learner, process.number)
    if seen:
        world.at(world.now + seen, note_end, (world, learner, process.number, how))
    else:
        note_end(world, learner, process.number, how)


def note_end(world: World, learner: int, number: int, how: str) -> None:
    """The supervisor sees that a learner's process has ended."""
    world.supervise(Kind.PROCESS_ENDED, peer=process_of(learner), value=float(number), reason=how)


def start_syncer(
    world: World,
    reason: str,
    uncommitted: tuple[tuple[int, int, int], ...],
    cut: dict[str, Any] | None = None,
    aborted: tuple[tuple[int, int], ...] = (),
) -> None:
    """The syncer's machine begins; it is told what others have recorded meanwhile."""
    process = world.syncer
    process.started = True
    world.do_all(process, process.machine.start(world.now, reason, uncommitted, cut, aborted))
    world.schedule_wake(process)
    for foreign in (world.supervisor, world.evaluations.process):
        world.report(foreign)
    world.evaluations.when_due()


def restart_syncer(world: World) -> None:
    """A new syncer process reads the journal and the slots."""
    found = restart.restore(world.fixed, settings_book_of(world.config), world.records)
    world.arithmetic.recover(found.state.versions)
    world.syncer = SyncerProcess(found.state, world.syncer.life + 1)
    start_syncer(world, "restart", tuple(found.uncommitted))


def kill_syncer(world: World) -> None:
    """SIGKILL: what is not in the journal never happened; every connection closes."""
    world.syncer.alive = False
    release_what_died(world, world.syncer)
    world.syncer.queue.clear()
    world.supervise(Kind.PROCESS_ENDED, peer=SYNCER, value=float(world.syncer.life), reason="SIGKILL")
    for connection in list(world.network.connections.values()):
        if connection.open:
            connection.open = False
            at = world.now + world.delay_ns()
            world.at(at, _tell_learner, (world, connection.learner, connection.number))


def stop(world: World, process: VirtualProcess) -> None:
    """SIGSTOP: inputs wait, the step in progress stands still."""
    process.stops += 1
    if process.stops == 1 and isinstance(process, LearnerProcess) and process.step is not None:
        process.step_left = process.step_end - world.now
        process.token += 1


def resume(world: World, process: VirtualProcess) -> None:
    """SIGCONT: the step goes on, inputs that waited are taken in order."""
    process.stops -= 1
    if process.stops or not process.alive:
        return
    if isinstance(process, LearnerProcess) and process.step is not None:
        process.step_end = world.now + process.step_left
        world.at(process.step_end, step_ended, (world, process, process.token))
    waiting = process.queue
    if not waiting and process.started:
        waiting.append(ev.Woken())
    while waiting and process.alive and not process.stops:
        world.take(process, waiting.popleft())


def _tell_syncer(world: World, number: int) -> None:
    world.give(world.syncer, ev.Disconnected(number))


def _tell_learner(world: World, learner: int, number: int) -> None:
    world.give(world.learners[learner], ev.Disconnected(number))
