"""The connections of a syncer: opened by greetings, read, written, and dropped."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from workbench.engine.blocks import Descriptor
from workbench.engine.checks import check_learner_message
from workbench.engine.frames import (
    WIRE_VERSION,
    Ask,
    Buffer,
    Facts,
    Frame,
    FrameError,
    Free,
    Hello,
    Opened,
    Refusal,
    body_of,
    decode_learner_message,
    frame,
    kind_of,
    sizes_digest,
)
from workbench.engine.peers import LEARNERS_MAX, Doorstep, Link
from workbench.engine.receiving import Payloads, Receiver, as_elements
from workbench.engine.sockets import Part, Socket, block_name, nowhere, receive, transmit
from workbench.engine.state_blocks import OthersStates
from workbench.engine.transfers import Full, Pool, Queue, Unreachable, Waiting
from workbench.protocol.messages import BULK, CONTROL, LearnerMessage, StateCopy

FRAMES_A_POLL = 512
RETRY_MS = (2.0, 50.0)
"""A full channel is tried again after the first, at last after the second."""
CONNECTIONS_MAX = 8192
ASK_BYTES_MAX = 1 << 16
LAST_WORDS_S = 0.2
"""For so long control is still listened to when bulk is closed."""


class Connections:
    """What a syncer's two sockets carry.

    Parameters
    ----------
    sockets : (Socket, Socket)
        Control and bulk.
    run_id : str
    sizes : sequence of int
    folder : Path or None
        Where learners' blocks are, None across machines.
    blocks : str
        Name of the syncer's own blocks before the dot.

    Attributes
    ----------
    numbers : dict of int to Link
    messages, closed, handed : list
        What came, which connections ended, which updates left; the owner empties them.
    refused : Counter
    payloads : Payloads
    states : OthersStates
    answer : callable, optional
        Facts for who asks before greeting, or a line that says why not.
    learners : int
        Learners there may be.
    suspect : bool
        Somebody could not be reached: `ask_all` finds out who.
    last_refusal : str
        What was last said to somebody who was not let in.
    """

    def __init__(
        self, sockets: Sequence[Socket], run_id: str, sizes: Sequence[int], folder: Path | None, blocks: str
    ) -> None:
        self._sockets = sockets
        self._run_id = run_id
        self._sizes = list(sizes)
        self._sizes_digest = sizes_digest(sizes)
        self._folder = folder
        self._blocks = blocks
        self._links: dict[bytes, Link] = {}
        self._last_number = 0
        self._doorstep = Doorstep()
        self._pool = Pool()
        self._retry_ms = RETRY_MS[0]
        self.numbers: dict[int, Link] = {}
        self.messages: list[tuple[int, LearnerMessage]] = []
        self.closed: list[int] = []
        self.handed: list[tuple[int, int, int]] = []
        self.refused: Counter[str] = Counter()
        self.payloads = Payloads()
        self.states = OthersStates(self.payloads)
        self.answer: Callable[[Ask], Facts | str] | None = None
        self.learners = LEARNERS_MAX
        self.last_refusal = ""
        self.suspect = False

    def read(self, channel: int) -> None:
        """Take what a channel has brought; whatever it is, nothing is raised."""
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
        elif kind is Frame.ASK and link is None and self.answer is not None:
            self._asked(part, channel)
        elif link is None:
            raise FrameError("stranger")
        elif kind is Frame.GOODBYE:
            self.drop(link)
        else:
            message = link.receiver.take(kind, part, channel)
            self.refused.update(link.receiver.counted)
            link.receiver.counted.clear()
            if message is not None:
                self.messages.append((link.number, message))

    def _asked(self, part: Part, channel: int) -> None:
        if len(part.head) > ASK_BYTES_MAX:
            raise FrameError("huge")
        assert self.answer is not None
        answer = self.answer(body_of(Frame.ASK, part.head))
        if isinstance(answer, str):
            self._refuse(part.identity, channel, answer)
            raise FrameError("differs")
        with suppress(Full, Unreachable):
            transmit(self._sockets[channel], (part.identity, frame(Frame.FACTS, answer)))

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
        if not 0 <= hello.learner < self.learners or not 0 <= hello.process_number < 1 << 53:
            return "learner", f"no such learner: {hello.learner}, process {hello.process_number}"
        if hello.mapped != (self._folder is not None):
            return "hello", "blocks can be mapped on one machine only, and there they must be"
        if len(self._links) >= CONNECTIONS_MAX:
            return "many", f"{CONNECTIONS_MAX} connections are open"
        return None

    def _open(self, identity: bytes, hello: Hello) -> None:
        self._last_number += 1
        blocks = self._folder / block_name(identity) if self._folder is not None else None
        link = Link(self._last_number, identity, hello, Queue(2 * len(self._sizes) + 8), blocks)
        link.receiver = Receiver(
            decode_learner_message,
            partial(check_learner_message, peer=link.peer, sizes=self._sizes),
            self._sizes,
            partial(self._mapped, link),
            self.payloads,
            self._pool,
        )
        self._links[identity] = self.numbers[link.number] = link
        opened = frame(Frame.OPENED, Opened(link.number, self._blocks))
        for channel in (CONTROL, BULK):
            self.give(link, channel, (opened,))

    def _refuse(self, identity: bytes, channel: int, reason: str) -> None:
        self.last_refusal = reason
        with suppress(Full, Unreachable):
            transmit(self._sockets[channel], (identity, frame(Frame.REFUSAL, Refusal(reason))))

    def _mapped(self, link: Link, message: Any, descriptor: Descriptor) -> int:
        if isinstance(message, StateCopy):
            return self.states.keep(descriptor, link.blocks, partial(self._free, link, descriptor, descriptor.file))
        view = link.reader(descriptor, 4 * max(self._sizes)).view(descriptor)
        if view is None:
            self._free(link, descriptor)
            raise FrameError("late")
        if view.nbytes % 4 and view.nbytes % 2:
            self._free(link, descriptor)
            raise FrameError("size")
        return self.payloads.keep(as_elements(message, view), partial(self._free, link, descriptor))

    def _free(self, link: Link, descriptor: Descriptor, file: str = "") -> None:
        """Tell the owner of a block that its slot may be written again."""
        if link.open:
            link.queue.put(Waiting((frame(Frame.FREE, Free(descriptor.slot, descriptor.generation, file)),)))
            self.pump(link)

    def give(self, link: Link, channel: int, parts: Sequence[Any], zero_copy: bool = False) -> bool:
        """Hand a frame to the transport; False if it takes none now, or never will: then the peer is suspect."""
        try:
            transmit(self._sockets[channel], (link.identity, *parts), zero_copy)
        except Full:
            return False
        except Unreachable:
            self.suspect = True
            return False
        return True

    def pump(self, link: Link) -> None:
        """Hand over what waits for a learner, as far as its channel takes it."""

        def send(parts: tuple[Any, ...], zero_copy: bool) -> Any:
            return transmit(self._sockets[BULK], (link.identity, *parts), zero_copy)

        try:
            through = link.queue.pump(send)
        except Unreachable:
            self.suspect = True
            link.queue.clear()
            return
        self.handed += [(link.number, fragment, version) for fragment, version in through]

    def pump_all(self) -> None:
        """Hand over what waits for anybody."""
        waiting = [link for link in self._links.values() if len(link.queue)]
        before = [link.queue.progress for link in waiting]
        for link in waiting:
            self.pump(link)
        stuck = bool(waiting) and before == [link.queue.progress for link in waiting]
        self._retry_ms = min(2 * self._retry_ms, RETRY_MS[1]) if stuck else RETRY_MS[0]

    @property
    def until_retry_ms(self) -> float:
        """Until a full channel is worth another try; infinite if none is."""
        return self._retry_ms if any(len(link.queue) for link in self._links.values()) else math.inf

    def ask_all(self) -> None:
        """Ask every peer whether it is there; who is not is dropped, its last words read before."""
        self.suspect = False
        gone = [link for link in self._links.values() if not self._is_there(link)]
        if gone:
            for channel in (CONTROL, BULK):
                self.read(channel)
        for link in gone:
            self.drop(link)

    def _is_there(self, link: Link) -> bool:
        """False once control is closed, or bulk has been for `LAST_WORDS_S`: they close one after the other."""
        there = [self._reaches(link, channel) for channel in (CONTROL, BULK)]
        if all(there):
            return True
        now = time.monotonic()
        link.half_since = link.half_since or now
        return there[CONTROL] and now - link.half_since < LAST_WORDS_S

    def _reaches(self, link: Link, channel: int) -> bool:
        try:
            with suppress(Full):
                transmit(self._sockets[channel], (link.identity, frame(Frame.PING)))
        except Unreachable:
            return False
        return True

    def drop(self, link: Link) -> None:
        """End a connection; the peer learns it if it can."""
        if not link.open:
            return
        link.open = False
        del self._links[link.identity], self.numbers[link.number]
        link.queue.clear()
        link.receiver.abandon()
        if link.blocks is not None:
            link.blocks.unlink(missing_ok=True)
            OthersStates.remove(link.blocks)
        self.closed.append(link.number)
        for socket in self._sockets:
            with suppress(Full, Unreachable):
                transmit(socket, (link.identity, frame(Frame.GOODBYE)))
