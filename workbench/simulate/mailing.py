"""Messages of a virtual run: onto the network, off it again, and what becomes of payloads that are lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.protocol import actions as act
from workbench.protocol import events as ev
from workbench.protocol.acting import TO_LEARNER, TO_SYNCER
from workbench.protocol.messages import Fragment, PeerState, StateCopy, Update
from workbench.simulate.processes import LearnerProcess, SyncerProcess

if TYPE_CHECKING:
    from workbench.simulate.world import World

CONTROL_BYTES = 256


def send_up(world: World, action: act.Send) -> None:
    """A learner's message to the syncer."""
    message: Any = action.message
    nbytes = message.nbytes if isinstance(message, Fragment | StateCopy) else CONTROL_BYTES
    at = world.network.delivery_at(world.now, action.connection, TO_SYNCER, action.channel, nbytes, message)
    if at >= 0:
        world.at(at, arrive_up, (world, action.connection, message))
    elif isinstance(message, Fragment | StateCopy):
        world.arithmetic.release(message.handle)


def send_down(world: World, process: SyncerProcess, action: act.Send) -> None:
    """A syncer's message to a learner; of an UPDATE the transport says when it has taken it."""
    message: Any = action.message
    nbytes = CONTROL_BYTES
    is_update = type(message) is Update
    if is_update:
        message.handle, nbytes = world.arithmetic.update(message.fragment, message.version)
    elif type(message) is PeerState:
        message.handle, nbytes = world.arithmetic.share(message.handle), message.nbytes
    at = world.network.delivery_at(world.now, action.connection, TO_LEARNER, action.channel, nbytes, message)
    if at >= 0:
        world.at(at, arrive_down, (world, action.connection, message))
    elif isinstance(message, Update | PeerState):
        world.arithmetic.release(message.handle)
    if is_update:
        event = ev.Handed(action.connection, message.fragment, message.version)
        connection = world.network.connections.get(action.connection)
        free = connection.free_at[TO_LEARNER][action.channel] if connection is not None else 0
        taken = world.times.handed_ns(connection.learner, message.fragment, message.version) if connection else 0
        world.at(max(world.now, free) + taken, world.give, (process, event))


def arrive_up(world: World, connection: int, message: Any) -> None:
    """A learner's message is there; a contribution is looked at first."""
    if type(message) is StateCopy and not world.syncer.alive:
        world.arithmetic.release(message.handle)
    elif type(message) is not Fragment:
        world.give(world.syncer, ev.Received(connection, message))
    elif world.syncer.alive:
        finite, fits, norm = world.arithmetic.looks(message.handle)
        world.give(world.syncer, ev.Received(connection, message, finite, fits, norm))
    else:
        world.arithmetic.release(message.handle)


def arrive_down(world: World, connection: int, message: Any) -> None:
    """A syncer's message is there, if the process that it was sent to still lives."""
    link = world.network.connections[connection]
    process = world.learners[link.learner]
    if process.number == link.process_number and process.alive:
        world.give(process, ev.Received(connection, message))
    elif isinstance(message, Update | PeerState):
        world.arithmetic.release(message.handle)


def connect(world: World, process: LearnerProcess) -> None:
    """Another connection, if the syncer is there and the link is not cut."""
    world.network.close(process.machine.state.connection)
    reachable = world.syncer.alive and world.syncer.started
    if reachable and not world.network.acting.is_cut(process.learner):
        number = world.network.open(process.learner, process.number).number
        world.at(world.now + 2 * world.delay_ns(), _connected, (world, process, number))


def _connected(world: World, process: LearnerProcess, number: int) -> None:
    if world.network.connections[number].open:
        world.give(process, ev.Connected(number))


def release_what_died(world: World, process: SyncerProcess) -> None:
    """Payloads that a killed syncer held, in its rounds or still at its door."""
    for round_ in process.machine.state.rounds.values():
        for contribution in round_.here.values():
            world.arithmetic.release(contribution.handle)
    state = process.machine.state
    kept = [transfer.handle for transfer in state.transfers.values()]
    for handle in (*kept, *(state.snapshot.handles if state.snapshot is not None else ())):
        world.arithmetic.release(handle)
    for waiting in process.queue:
        if isinstance(waiting, ev.Received) and isinstance(waiting.message, Fragment | StateCopy):
            world.arithmetic.release(waiting.message.handle)
