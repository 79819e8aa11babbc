"""The wire between learners and the syncer: the syncer's end.

The interface, both ends (the learner's is `workbench.engine.learner_wire.LearnerWire`)::

    wire = SyncerWire(run_id, sizes, folder=path)                    # one machine: sockets and blocks in `folder`
    wire = SyncerWire(run_id, sizes, listen="tcp://127.0.0.1:5555", keys=None | ServerKeys)   # bulk: the next port
    wire.address                              # for learners: str(folder), or tcp://host:port (port 0: chosen)

    while True:
        for connection, message in wire.poll(timeout_ms): ...        # decoded, checked LearnerMessage
        for connection in wire.closed(): ...                         # after the messages: these are gone
        for connection, fragment, version in wire.handed(): ...      # UPDATEs that left this process
        wire.ready()                          # watched file descriptors that became readable in the last poll
    wire.send(connection, CONTROL | BULK, message, payload=None) -> bool    # never blocks; False: gone or full
    wire.payload(handle) -> np.ndarray        # of message.handle: read-only vector of the codec's dtype
    wire.release(handle)                      # once per handle, also of messages that are not used
    wire.peer(connection) -> Peer             # learner, process_number
    wire.watch(fd); wire.unwatch(fd); wire.wake()    # wake() from any thread ends the poll in progress
    wire.refused                              # Counter: reason -> frames dropped for it
    wire.disconnect(connection); wire.close()

    wire = LearnerWire(run_id, sizes, learner, process_number, address, slots=6, keys=None | ClientKeys)
    wire.connect()                            # never waits; a connect in progress is left alone for some seconds
    wire.poll(timeout_ms) -> [(connection, SyncerMessage)]
    wire.opened() -> [connection]; wire.closed() -> [connection]
    wire.send(connection, channel, message, payload=None) -> bool
    wire.refusal                              # "" or why the syncer (or its key check) would not have this process

Order in a learner: poll, then opened(), then the messages, then closed() (-1: a connect that came to nothing).
A poll may return early with nothing.  An end belongs to one thread; only ``wake`` may be called from others.
The payload of a FRAGMENT must not be changed after `send`; that of an UPDATE is copied at once.
A learner's state (STATE_COPY) lies in a file of its own on one machine (`LearnerWire.stage`, from any thread), whose
descriptor goes on to the joiner; across machines it travels in small pieces whenever nothing else waits.  A
PEER_STATE is sent with the handle that its STATE_COPY came with, which must not be released before it is through.
The message's own ``handle`` means nothing to the other end, which puts in its own.  A FRAGMENT whose payload has
another size than its fragment, or is not there, comes with handle -1: give it to the machine as one that does not fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import zmq

from workbench.config import ConfigError
from workbench.engine.blocks import Descriptor
from workbench.engine.connections import Connections
from workbench.engine.door import HANDSHAKE_EVENTS, Handshakes
from workbench.engine.frames import Ask, Chunked, Facts, Frame, Peer, encode, frame
from workbench.engine.peers import LEARNERS_MAX, Link, Probing
from workbench.engine.publishing import Publisher
from workbench.engine.security import Gate, ServerKeys, check_bind, secure_server
from workbench.engine.sockets import SOCKET_NAMES, Monitor, Socket, bind_pair, make_context, make_socket
from workbench.engine.transfers import Staged, Waiting
from workbench.engine.waits import Waits
from workbench.protocol.messages import BULK, CONTROL, LearnerMessage, PeerState, SyncerMessage, Update


class SyncerWire:
    """The syncer's end of the wire; see the top of this module.

    Parameters
    ----------
    run_id : str
        Learners of another run are refused.
    sizes : sequence of int
        Parameters of each fragment.
    folder : Path, optional
        Runtime folder, for learners on this machine.
    listen : str
        ``tcp://HOST:PORT`` instead; port 0 takes a free pair of ports.
    keys : ServerKeys, optional
        Needed beyond loopback.
    learners : int, optional
        Learners there may be; others are refused.

    Attributes
    ----------
    address : str
    across : bool
        Whether it listens on an address.
    refused : Counter
        Frames that were dropped, by reason.

    Raises
    ------
    ConfigError
        If the address cannot be had, or lies beyond loopback without keys.
    """

    def __init__(
        self,
        run_id: str,
        sizes: Sequence[int],
        *,
        folder: Path | None = None,
        listen: str = "",
        keys: ServerKeys | None = None,
        learners: int = LEARNERS_MAX,
    ) -> None:
        if (folder is None) == (not listen):
            raise ConfigError("a wire is for one machine or across machines: give either a folder or an address")
        if listen:
            check_bind(listen, keys)
        self._folder = folder
        self._publisher = Publisher(sizes, folder)
        self._probing = Probing()
        self._waits = Waits()
        self._context = make_context()
        try:
            sockets = self._open_sockets(listen or str(folder), keys)
        except BaseException:
            self._context.destroy(0)
            self._waits.close()
            raise
        self._connections = Connections(sockets, run_id, sizes, folder, self._publisher.blocks)
        self.across = bool(listen)
        self._connections.learners = learners
        self.refused: Counter[str] = self._connections.refused

    def _open_sockets(self, place: str, keys: ServerKeys | None) -> list[Socket]:
        self._gate = Gate(self._context, keys.clients) if keys is not None else None
        if self._gate is not None:
            self._waits.add(self._gate.socket)
        sockets = [make_socket(self._context, zmq.ROUTER, channel) for channel in (CONTROL, BULK)]
        self._monitors = [Monitor(socket, HANDSHAKE_EVENTS) for socket in sockets]
        self._handshakes = [Handshakes() for _ in sockets]
        for socket, monitor in zip(sockets, self._monitors, strict=True):
            if keys is not None:
                secure_server(socket, keys)
            self._waits.add(socket)
            self._waits.add(monitor.socket)
        self.address = bind_pair(sockets, place)
        return sockets

    def let_in(self, learner: int, key: bytes) -> None:
        """Take in one more learner, by its public key where there are keys."""
        self._connections.learners = max(self._connections.learners, learner + 1)
        if self._gate is not None and key:
            self._gate.allow(key)

    def poll(self, timeout_ms: float) -> list[tuple[int, LearnerMessage]]:
        """Messages that came, waiting at most ``timeout_ms`` for something to happen; never raises for what came."""
        connections = self._connections
        connections.pump_all()
        if connections.closed or connections.handed:
            timeout_ms = 0
        self._waits.wait(min(timeout_ms, self._probing.left_ms, connections.until_retry_ms))
        self._watch_the_door()
        for channel in (CONTROL, BULK):
            connections.read(channel)
        if connections.suspect:
            self._probing.begin()
        if self._probing.due():
            connections.ask_all()
        connections.pump_all()
        messages, connections.messages = connections.messages, []
        return messages

    def _watch_the_door(self) -> None:
        if self._gate is not None:
            self._gate.answer()
            if self._gate.refused > self.refused["key"]:
                self.refused["key"] = self._gate.refused
                self._connections.last_refusal = f"a key that is not on the list, from {self._gate.last_address}"
        for monitor, handshakes in zip(self._monitors, self._handshakes, strict=True):
            ended, failed = handshakes.take(monitor.read())
            if ended:
                self._probing.begin()
            if failed:
                self.refused["handshake"] += failed

    def closed(self) -> list[int]:
        """Connections found gone since the last call."""
        closed, self._connections.closed = self._connections.closed, []
        return closed

    def handed(self) -> list[tuple[int, int, int]]:
        """Connection, fragment and version of the UPDATEs that left this process since the last call."""
        handed, self._connections.handed = self._connections.handed, []
        return handed

    def peer(self, connection: int) -> Peer:
        """Who is at the other end; `KeyError` if the connection is gone."""
        return self._connections.numbers[connection].peer

    def payload(self, handle: int) -> np.ndarray:
        """Payload of a message, read-only, of its codec's type; `KeyError` if it was released."""
        return self._connections.payloads.get(handle)

    def release(self, handle: int) -> None:
        """The payload is not needed any more; its array must not be used afterwards."""
        self._connections.payloads.release(handle)

    def ready(self) -> list[int]:
        """Watched file descriptors that were readable at the last poll."""
        return self._waits.ready()

    def send(self, connection: int, channel: int, message: SyncerMessage, payload: np.ndarray | None = None) -> bool:
        """Put a message on a channel, never waiting; False if the peer is gone or takes no more.

        The ``payload`` of an UPDATE, float32 (size,), is copied before this returns, once for each version.
        """
        link = self._connections.numbers.get(connection)
        if link is None or (channel == BULK and link.queue.full):
            return False
        head = frame(Frame.MESSAGE, message)
        if channel == CONTROL:
            return self._connections.give(link, CONTROL, (head,))
        if isinstance(message, PeerState):
            self._pass_on(link, head, message)
        elif isinstance(message, Update):
            if payload is None:
                raise ValueError(f"an update of fragment {message.fragment} without its payload")
            reference, staged = self._publisher.reference(message.fragment, message.version, payload, link.queue)
            done = (message.fragment, message.version)
            link.queue.put(Waiting((head, encode(reference)), reference, staged, done))
        else:
            link.queue.put(Waiting((head,)))
        self._connections.pump(link)
        return link.open

    def _pass_on(self, link: Link, head: bytes, message: PeerState) -> None:
        """A state on its way from one learner to another, under the handle that it came with."""
        descriptor = self._connections.states.files.get(message.handle)
        if descriptor is not None:
            link.queue.put(Waiting((head, encode(descriptor))))
            return
        source = self.payload(message.handle)
        reference = Chunked(link.queue.next_transfer(), source.nbytes)
        link.queue.put_state((frame(Frame.STATE, message), encode(reference)), reference, Staged(source))

    def state_file(self, handle: int) -> Descriptor | None:
        """Where a state lies that came from a learner of this machine, None if it came over the network."""
        return self._connections.states.files.get(handle)

    def disconnect(self, connection: int) -> None:
        """Close a connection from this side; the peer learns it if it can."""
        link = self._connections.numbers.get(connection)
        if link is not None:
            self._connections.drop(link)

    def watch(self, fd: int) -> None:
        """Have `poll` return when ``fd`` is readable."""
        self._waits.watch(fd)

    def unwatch(self, fd: int) -> None:
        """Forget ``fd``; before it is closed."""
        self._waits.unwatch(fd)

    def wake(self) -> None:
        """End the poll in progress, or the next; the one method that other threads may call."""
        self._waits.wake()

    @property
    def last_refusal(self) -> str:
        """What was last said to, or of, somebody who was not let in."""
        return self._connections.last_refusal

    def answer(self, question: Callable[[Ask], Facts | str]) -> None:
        """Have who asks before greeting answered by ``question``: facts of the run, or one line that says why not."""
        self._connections.answer = question

    def allow(self, key: bytes) -> None:
        """Let in one more client, by its public key."""
        if self._gate is None:
            raise ConfigError("this wire has no keys, so there is no list of clients to add to")
        self._gate.allow(key)

    def close(self, linger_ms: int = 500) -> None:
        """Close everything, giving what was sent at most ``linger_ms`` to get through; a second call does nothing."""
        if self._context.closed:
            return
        for monitor in self._monitors:
            monitor.close()
        self._context.destroy(linger_ms)
        self._publisher.close()
        self._waits.close()
        if self._folder is not None:
            for name in SOCKET_NAMES:
                (self._folder / name).unlink(missing_ok=True)
