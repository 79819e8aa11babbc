"""The wire between learners and the syncer: the syncer's end.

The interface, both ends (the learner's is `workbench.engine.learner_wire.LearnerWire`)::

    wire = SyncerWire(run_id, sizes, folder=path)                    # one machine: sockets and blocks in `folder`
    wire = SyncerWire(run_id, sizes, listen="tcp://127.0.0.1:5555", keys=None | ServerKeys)   # bulk: the next port
    wire.address                              # what learners are given: str(folder), or tcp://host:port (port 0: chosen)

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
    wire.poll(timeout_ms) -> [(connection, SyncerMessage)];  wire.opened() -> [connection];  wire.closed() -> [connection]
    wire.send(connection, channel, message, payload=None) -> bool
    wire.refusal                              # "" or why the syncer (or its key check) would not have this process

Order in a learner: poll, then opened(), then the messages, then closed() (-1: a connect that came to nothing).
A poll may return early with nothing.  An end belongs to one thread; only ``wake`` may be called from others.
The payload of a FRAGMENT must not be changed after `send`; that of an UPDATE is copied at once.
The message's own ``handle`` means nothing to the other end, which puts in its own.  A FRAGMENT whose payload has
another size than its fragment, or is not there, comes with handle -1: give it to the machine as one that does not fit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import zmq

from workbench.config import ConfigError
from workbench.engine.blocks import Descriptor
from workbench.engine.checks import check_learner_message
from workbench.engine.frames import (
    WIRE_VERSION,
    Buffer,
    Frame,
    FrameError,
    Free,
    Hello,
    Opened,
    Refusal,
    body_of,
    decode_learner_message,
    encode,
    frame,
    kind_of,
    sizes_digest,
)
from workbench.engine.peers import LEARNERS_MAX, Doorstep, Link, Peer, Probing
from workbench.engine.publishing import Publisher
from workbench.engine.receiving import Payloads, Receiver, as_elements
from workbench.engine.security import Gate, ServerKeys, check_bind, secure_server
from workbench.engine.sockets import (
    SOCKET_NAMES,
    Monitor,
    Part,
    bind_pair,
    block_name,
    make_context,
    make_socket,
    nowhere,
    receive,
    transmit,
)
from workbench.engine.transfers import Full, Pool, Queue, Unreachable, Waiting
from workbench.engine.waits import Waits
from workbench.protocol.messages import BULK, CONTROL, LearnerMessage, SyncerMessage, Update

FRAMES_A_POLL = 512
RETRY_MS = (2.0, 50.0)
"""A full channel is tried again after the first, at last after the second."""
CONNECTIONS_MAX = 8192


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

    Attributes
    ----------
    address : str
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
    ) -> None:
        if (folder is None) == (not listen):
            raise ConfigError("a wire is for one machine or across machines: give either a folder or an address")
        if listen:
            check_bind(listen, keys)
        self._run_id = run_id
        self._sizes = list(sizes)
        self._sizes_digest = sizes_digest(sizes)
        self._folder = folder
        self.refused: Counter[str] = Counter()
        self._payloads = Payloads()
        self._pool = Pool()
        self._publisher = Publisher(self._sizes, folder)
        self._links: dict[bytes, Link] = {}
        self._numbers: dict[int, Link] = {}
        self._last_number = 0
        self._doorstep = Doorstep()
        self._probing = Probing()
        self._retry_ms = RETRY_MS[0]
        self._messages: list[tuple[int, LearnerMessage]] = []
        self._closed: list[int] = []
        self._handed: list[tuple[int, int, int]] = []
        self._waits = Waits()
        self._context = make_context()
        try:
            self._open_sockets(listen or str(folder), keys)
        except BaseException:
            self._context.destroy(0)
            self._waits.close()
            raise

    def _open_sockets(self, place: str, keys: ServerKeys | None) -> None:
        self._gate = Gate(self._context, keys.clients) if keys is not None else None
        if self._gate is not None:
            self._waits.add(self._gate.socket)
        self._sockets = [make_socket(self._context, zmq.ROUTER, channel) for channel in (CONTROL, BULK)]
        self._monitors = [Monitor(socket, zmq.EVENT_DISCONNECTED) for socket in self._sockets]
        for socket, monitor in zip(self._sockets, self._monitors, strict=True):
            if keys is not None:
                secure_server(socket, keys)
            self._waits.add(socket)
            self._waits.add(monitor.socket)
        self.address = bind_pair(self._sockets, place)

    # ---- what came -------------------------------------------------------------------------------------------------

    def poll(self, timeout_ms: float) -> list[tuple[int, LearnerMessage]]:
        """Messages that came, waiting at most ``timeout_ms`` for something to happen; never raises for what came."""
        self._messages = []
        self._pump_all()
        if self._closed or self._handed:
            timeout_ms = 0
        self._waits.wait(min(timeout_ms, self._probing.left_ms, self._until_retry_ms))
        if self._gate is not None:
            self._gate.answer()
        for monitor in self._monitors:
            if monitor.events():
                self._probing.begin()
        for channel in (CONTROL, BULK):
            self._read(channel)
        if self._probing.due():
            self._ask_all()
        self._pump_all()
        return self._messages

    def closed(self) -> list[int]:
        """Connections found gone since the last call."""
        closed, self._closed = self._closed, []
        return closed

    def handed(self) -> list[tuple[int, int, int]]:
        """Connection, fragment and version of the UPDATEs that left this process since the last call."""
        handed, self._handed = self._handed, []
        return handed

    def peer(self, connection: int) -> Peer:
        """Who is at the other end; `KeyError` if the connection is gone."""
        return self._numbers[connection].peer

    def payload(self, handle: int) -> np.ndarray:
        """Payload of a message, read-only, of its codec's type; `KeyError` if it was released."""
        return self._payloads.get(handle)

    def release(self, handle: int) -> None:
        """The payload is not needed any more; its array must not be used afterwards."""
        self._payloads.release(handle)

    def ready(self) -> list[int]:
        """Watched file descriptors that were readable at the last poll."""
        return self._waits.ready()

    # ---- what goes out ---------------------------------------------------------------------------------------------

    def send(self, connection: int, channel: int, message: SyncerMessage, payload: np.ndarray | None = None) -> bool:
        """Put a message on a channel, never waiting; False if the peer is gone or takes no more.

        The ``payload`` of an UPDATE, float32 (size,), is copied before this returns, once for each version.
        """
        link = self._numbers.get(connection)
        if link is None or (channel == BULK and link.queue.full):
            return False
        head = frame(Frame.MESSAGE, message)
        if channel == CONTROL:
            return self._give(link, CONTROL, (head,))
        if isinstance(message, Update):
            if payload is None:
                raise ValueError(f"an update of fragment {message.fragment} without its payload")
            reference, staged = self._publisher.reference(message.fragment, message.version, payload, link.queue)
            done = (message.fragment, message.version)
            link.queue.put(Waiting((head, encode(reference)), reference, staged, done))
        else:
            link.queue.put(Waiting((head,)))
        self._pump(link)
        return link.open

    def disconnect(self, connection: int) -> None:
        """Close a connection from this side; the peer learns it if it can."""
        link = self._numbers.get(connection)
        if link is not None:
            self._drop(link)

    def watch(self, fd: int) -> None:
        """Have `poll` return when ``fd`` is readable."""
        self._waits.watch(fd)

    def unwatch(self, fd: int) -> None:
        """Forget ``fd``; before it is closed."""
        self._waits.unwatch(fd)

    def wake(self) -> None:
        """End the poll in progress, or the next; the one method that other threads may call."""
        self._waits.wake()

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

    # ---- frames ----------------------------------------------------------------------------------------------------

    def _read(self, channel: int) -> None:
        socket = self._sockets[channel]
        for _ in range(FRAMES_A_POLL):
            part = receive(socket, self._place if channel == BULK else nowhere)
            if part is None:
                return
            try:
                self._dispatch(part, channel)
            except FrameError as error:
                self.refused[str(error)] += 1

    def _place(self, identity: bytes, head: Buffer) -> memoryview | None:
        link = self._links.get(identity)
        return None if link is None else link.receiver.place(head)

    def _dispatch(self, part: Part, channel: int) -> None:
        link = self._links.get(part.identity)
        try:
            kind = kind_of(part.head)
        except FrameError as error:
            if link is None and str(error) == "version":
                self._refuse(part.identity, channel, f"the syncer speaks version {WIRE_VERSION} of the wire")
            raise
        if kind is Frame.HELLO and link is None:
            self._greet(part, channel)
        elif link is None:
            raise FrameError("stranger")
        elif kind is Frame.GOODBYE:
            self._drop(link)
        else:
            message = link.receiver.take(kind, part, channel)
            self.refused.update(link.receiver.counted)
            link.receiver.counted.clear()
            if message is not None:
                self._messages.append((link.number, message))

    def _greet(self, part: Part, channel: int) -> None:
        hello: Hello = body_of(Frame.HELLO, part.head)
        objection = self._objection(hello)
        if objection:
            self._refuse(part.identity, channel, objection[1])
            raise FrameError(objection[0])
        if self._doorstep.greet(part.identity, hello, channel):
            self._open(part.identity, hello)

    def _objection(self, hello: Hello) -> tuple[str, str] | None:
        """Word and sentence for what is wrong with a HELLO."""
        if hello.run_id != self._run_id:
            return "run", f"this is the syncer of run {self._run_id}, not of {hello.run_id[:100]}"
        if hello.sizes != self._sizes_digest:
            return "manifest", "the fragments have other sizes here: start the learner with the run's own config"
        if not 0 <= hello.learner < LEARNERS_MAX or not 0 <= hello.process_number < 1 << 53:
            return "learner", f"no such learner: {hello.learner}, process {hello.process_number}"
        if hello.mapped != (self._folder is not None):
            return "hello", "blocks can be mapped on one machine only, and there they must be"
        if len(self._links) >= CONNECTIONS_MAX:
            return "many", f"{CONNECTIONS_MAX} connections are open"
        return None

    def _open(self, identity: bytes, hello: Hello) -> None:
        self._last_number += 1
        blocks = self._folder / block_name(identity) if self._folder is not None else None
        link = Link(self._last_number, identity, hello, Queue(2 * len(self._sizes) + 64), blocks)
        link.receiver = Receiver(
            decode_learner_message,
            partial(
                check_learner_message, learner=hello.learner, process_number=hello.process_number, sizes=self._sizes
            ),
            self._sizes,
            partial(self._mapped, link),
            self._payloads,
            self._pool,
        )
        self._links[identity] = self._numbers[link.number] = link
        opened = frame(Frame.OPENED, Opened(link.number, self._publisher.blocks))
        for channel in (CONTROL, BULK):
            self._give(link, channel, (opened,))

    def _refuse(self, identity: bytes, channel: int, reason: str) -> None:
        with suppress(Full, Unreachable):
            transmit(self._sockets[channel], (identity, frame(Frame.REFUSAL, Refusal(reason))))

    def _mapped(self, link: Link, message: Any, descriptor: Descriptor) -> int:
        view = link.reader(descriptor, 4 * max(self._sizes)).view(descriptor)
        if view is None:
            self._free(link, descriptor)
            raise FrameError("late")
        if view.nbytes % 4 and view.nbytes % 2:
            self._free(link, descriptor)
            raise FrameError("size")
        return self._payloads.keep(as_elements(message, view), partial(self._free, link, descriptor))

    def _free(self, link: Link, descriptor: Descriptor) -> None:
        """Tell the owner of a block that its slot may be written again."""
        if link.open:
            link.queue.put(Waiting((frame(Frame.FREE, Free(descriptor.slot, descriptor.generation)),)))
            self._pump(link)

    # ---- connections -----------------------------------------------------------------------------------------------

    def _give(self, link: Link, channel: int, parts: Sequence[Any], zero_copy: bool = False) -> bool:
        """Hand a frame to the transport; False if it takes none now, and the connection is closed if it never will."""
        try:
            transmit(self._sockets[channel], (link.identity, *parts), zero_copy)
        except Full:
            return False
        except Unreachable:
            self._drop(link)
            return False
        return True

    def _pump(self, link: Link) -> None:
        def send(parts: tuple[Any, ...], zero_copy: bool) -> Any:
            return transmit(self._sockets[BULK], (link.identity, *parts), zero_copy)

        try:
            through = link.queue.pump(send)
        except Unreachable:
            self._drop(link)
            return
        self._handed += [(link.number, fragment, version) for fragment, version in through]

    def _pump_all(self) -> None:
        waiting = [link for link in self._links.values() if len(link.queue)]
        before = [link.queue.progress for link in waiting]
        for link in waiting:
            self._pump(link)
        stuck = bool(waiting) and before == [link.queue.progress for link in waiting]
        self._retry_ms = min(2 * self._retry_ms, RETRY_MS[1]) if stuck else RETRY_MS[0]

    @property
    def _until_retry_ms(self) -> float:
        return self._retry_ms if any(len(link.queue) for link in self._links.values()) else math.inf

    def _ask_all(self) -> None:
        ping = frame(Frame.PING)
        for link in list(self._links.values()):
            if self._give(link, CONTROL, (ping,)) or link.open:
                self._give(link, BULK, (ping,))

    def _drop(self, link: Link) -> None:
        if not link.open:
            return
        link.open = False
        del self._links[link.identity], self._numbers[link.number]
        link.queue.clear()
        link.receiver.abandon()
        if link.blocks is not None:
            link.blocks.unlink(missing_ok=True)
        self._closed.append(link.number)
        for socket in self._sockets:
            with suppress(Full, Unreachable):
                transmit(socket, (link.identity, frame(Frame.GOODBYE)))
