"""What the virtual-time driver does for each action of a machine, and what it tells the machine afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.protocol import actions as act
from workbench.protocol import events as ev
from workbench.protocol.records import Kind, process_of
from workbench.simulate import mailing
from workbench.simulate.arithmetic import CaptureNumbers
from workbench.simulate.processes import LearnerProcess, SyncerProcess

if TYPE_CHECKING:
    from workbench.simulate.world import World


def do_for_syncer(world: World, process: SyncerProcess, action: Any) -> None:
    """One action of the syncer; the input that led to it is journalled before anything leaves."""
    kind = type(action)
    if kind is act.Append:
        world.journal_records(action.records)
    elif kind is act.Send:
        world.journal_inputs()
        mailing.send_down(world, process, action)
    elif kind is act.Merge:
        took = world.times.merge_ns(action.fragment, action.round)
        world.at(world.now + took, merged, (world, process, action))
    elif kind is act.Commit:
        took = world.times.commit_ns(action.fragment, action.round)
        world.at(world.now + took, committed, (world, process, action))
    elif kind is act.Release:
        world.arithmetic.release(action.handle)
    elif kind is act.TakeSnapshot:
        world.arithmetic.take_snapshot(action.snapshot, action.versions)
    elif kind is act.KeepPart:
        world.arithmetic.keep_part(action.snapshot, action.learner, action.handle)
    elif kind is act.WriteSnapshot:
        world.at(world.now + world.times.write_ns(action.snapshot), written, (world, process, action))
    elif kind is act.DropSnapshot:
        world.arithmetic.drop_snapshot(action.snapshot)
    elif kind is act.Finish:
        world.finished = action.reason
    elif kind is act.Fail:
        world.failed = action.reason


def merged(world: World, process: SyncerProcess, order: act.Merge) -> None:
    """The merge is computed when it is through, so that a killed syncer has not made it."""
    if process.alive:
        numbers = world.arithmetic.merge(order)
        world.give(process, ev.MergeDone(order.round, order.fragment, *numbers))


def committed(world: World, process: SyncerProcess, order: act.Commit) -> None:
    """The merged version is the current one."""
    if process.alive:
        world.arithmetic.commit(order.fragment, order.version)
        world.give(process, ev.CommitDone(order.round, order.fragment, order.version))
        world.evaluations.when_due()


def written(world: World, process: SyncerProcess, order: act.WriteSnapshot) -> None:
    """A snapshot lies on disk when it is through, so that a killed syncer has none."""
    if process.alive:
        digest, reason = world.arithmetic.write_snapshot(order)
        world.give(process, ev.SnapshotWritten(order.snapshot, digest, reason))


def do_for_learner(world: World, process: LearnerProcess, action: Any) -> None:
    """One action of a learner."""
    kind, learner = type(action), process.learner
    if kind is act.Send:
        mailing.send_up(world, action)
    elif kind is act.StartStep:
        _begin_step(world, process, action)
    elif kind is act.Publish:
        world.arithmetic.publish(learner, action.fragment)
    elif kind is act.Capture:
        _capture(world, process, action)
    elif kind is act.Fold:
        world.arithmetic.fold(learner, action)
    elif kind is act.ForgetCapture:
        world.arithmetic.forget(learner, action.fragment, action.step)
    elif kind is act.Release:
        world.arithmetic.release(action.handle)
    elif kind is act.Adopt:
        _adopt(world, process, action)
    elif kind is act.CopyState:
        made = world.arithmetic.copy_state(learner, action)
        took = world.times.copy_ns(learner, abs(action.number), action.snapshot)
        world.at(world.now + took, copied, (world, process, action.number, made))
    elif kind is act.Connect:
        mailing.connect(world, process)
    elif kind is act.Leave:
        process.alive = False
        world.arithmetic.drop(learner)
        world.supervise(Kind.PROCESS_ENDED, peer=process_of(learner), value=float(process.number), reason="exit 0")


def _adopt(world: World, process: LearnerProcess, order: act.Adopt) -> None:
    took = world.times.adopt_ns(process.learner, process.number, order.source)
    if took:
        world.at(world.now + took, adopted, (world, process, order))
    else:
        adopted(world, process, order)


def adopted(world: World, process: LearnerProcess, order: act.Adopt) -> None:
    """A learner holds the state that it was told to adopt, if its process still lives."""
    if not process.alive:
        return
    if order.source == "initial":
        world.give(process, ev.Adopted(world.arithmetic.adopt(process.learner, order.source)))
    else:
        world.give(process, ev.Adopted(*world.arithmetic.adopt_state(process.learner, order)))


def copied(world: World, process: LearnerProcess, number: int, made: CaptureNumbers) -> None:
    """The copy of a state is encoded; its process may be gone."""
    if process.alive:
        world.give(process, ev.StateCopied(number, made.digest, made.nbytes, made.handle))
    else:
        world.arithmetic.release(made.handle)


def _begin_step(world: World, process: LearnerProcess, order: act.StartStep) -> None:
    while (found := process.poisons.on_weights()) is not None:
        fragment, poison, event = found
        world.give(process, event)
        world.arithmetic.poison(process.learner, fragment, poison)
    whole = world.times.step_ns(process.learner, order.step)
    slow = world.network.acting.slow_factor(process.learner)
    process.injected_ns = int(whole * (slow - 1.0)) if slow > 1.0 else 0
    process.step = order
    process.step_start = world.now + world.times.pause_ns(process.learner, order.step)
    process.step_end = world.now + whole + process.injected_ns
    process.token += 1
    world.at(process.step_end, step_ended, (world, process, process.token))


def step_ended(world: World, process: LearnerProcess, token: int) -> None:
    """An inner step is through, unless its process was killed or stopped meanwhile."""
    if token != process.token or not process.alive or process.step is None:
        return
    numbers = world.arithmetic.step(process.learner, process.step)
    process.step = None
    world.give(process, ev.StepEnded(*numbers, process.step_start, process.injected_ns))


def _capture(world: World, process: LearnerProcess, order: act.Capture) -> None:
    found = process.poisons.on_capture(order.fragment, order.round)
    poison = None
    if found is not None:
        poison, event = found
        world.give(process, event)
        world.striker.look_for_used_up(process.poisons)
    made = world.arithmetic.capture(process.learner, order.fragment, order.step, order.codec, poison)
    world.give(process, ev.Captured(order.round, order.fragment, made.digest, made.nbytes, made.handle))
