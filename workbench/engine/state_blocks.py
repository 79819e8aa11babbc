"""States of learners on one machine: each lies in a mapped file of its own, and only its descriptor travels.

Whoever is to read it maps the file by path: the syncer looks at none of its bytes, a joiner reads the donor's file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import numpy as np

from workbench.engine.blocks import BlockError, BlockReader, BlockWriter, Descriptor
from workbench.engine.frames import Chunked, Frame, FrameError, encode, message_frame
from workbench.engine.receiving import Payloads
from workbench.engine.transfers import Queue, Staged, Waiting
from workbench.protocol.messages import Heartbeat, StateCopy

FILES_MAX = 64
"""States of one connection that may lie there at once."""
MARK = ".s"


def is_state_file(name: str, of: str) -> bool:
    """Whether a name is that of a state of the connection whose block file is called ``of``."""
    head, mark, number = name.rpartition(MARK)
    return head == of and bool(mark) and number.isascii() and number.isdigit() and len(number) < 10


class StateBlocks:
    """The states that one connection of a learner has given away; any thread may put another.

    Parameters
    ----------
    path : Path or None
        The connection's block file, beside which they lie; None across machines.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._writers: dict[str, BlockWriter] = {}
        self._serial = 0
        self._closed = False

    def put(self, data: np.ndarray) -> Descriptor | None:
        """Lay bytes (nbytes,) into a file; None if there is no room, or nobody who could read it."""
        with self._lock:
            if self._path is None or self._closed or len(self._writers) >= FILES_MAX:
                return None
            self._serial += 1
            path = self._path.with_name(f"{self._path.name}{MARK}{self._serial}")
        try:
            writer = BlockWriter(path, 1, data.nbytes)
        except OSError:
            return None
        descriptor = writer.write(data, 0)
        self._keep(path.name, writer)
        return descriptor

    def _keep(self, name: str, writer: BlockWriter) -> None:
        with self._lock:
            if not self._closed:
                self._writers[name] = writer
                return
        writer.close()

    def free(self, name: str) -> None:
        """Nobody needs the file any more."""
        with self._lock:
            writer = self._writers.pop(name, None)
        if writer is not None:
            writer.close()

    def close(self) -> None:
        """Remove all files; who has one mapped keeps it."""
        with self._lock:
            self._closed = True
            writers, self._writers = self._writers, {}
        for writer in writers.values():
            writer.close()


class OthersStates:
    """States that the learners of this machine have laid down, as the syncer holds them: by handle.

    Parameters
    ----------
    payloads : Payloads

    Attributes
    ----------
    files : dict of int to Descriptor
    """

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads
        self.files: dict[int, Descriptor] = {}

    def keep(self, descriptor: Descriptor, blocks: Path | None, free: Callable[[], None]) -> int:
        """Handle of a state of the connection with this block file; ``free`` is called when nobody needs it."""

        def let_go() -> None:
            del self.files[handle]
            free()

        view = state_view(None if blocks is None else blocks.parent, descriptor, blocks.name if blocks else "")
        handle = self._payloads.keep(view, let_go)
        self.files[handle] = descriptor
        return handle

    @staticmethod
    def remove(blocks: Path) -> None:
        """Remove what a connection that has ended left; who has it mapped keeps it."""
        for state in blocks.parent.glob(f"{blocks.name}{MARK}*"):
            state.unlink(missing_ok=True)


def put_state(queue: Queue, message: StateCopy, payload: np.ndarray | Descriptor | None) -> None:
    """Let a state go out: as a descriptor on one machine, in pieces across machines, its records ahead of them."""
    if isinstance(payload, Descriptor):
        queue.put(Waiting((message_frame(message), encode(payload))))
    elif payload is not None:
        m, reference = message, Chunked(queue.next_transfer(), payload.nbytes)
        queue.put(Waiting((message_frame(Heartbeat(m.learner, m.incarnation, m.clock, m.records)),)))
        message = msgspec.structs.replace(m, records=[])
        queue.put_state((message_frame(message, Frame.STATE), encode(reference)), reference, Staged(payload))


def state_view(folder: Path | None, descriptor: Descriptor, of: str | None = None) -> np.ndarray:
    """Bytes (nbytes,) of a state in place, read-only.

    Parameters
    ----------
    folder : Path or None
        Of the run's blocks; None across machines.
    descriptor : Descriptor
    of : str, optional
        Name of the block file of the connection that it must belong to.

    Raises
    ------
    FrameError
        ``reference`` for a name that is none of a state, ``late`` if the file is not there any more, or another.
    """
    name = descriptor.file
    head = name.rpartition(MARK)[0]
    of_a_learner = head.startswith("l-") and "/" not in name
    if folder is None or not (of_a_learner and is_state_file(name, head if of is None else of)):
        raise FrameError("reference")
    with suppress(OSError, BlockError):
        view = BlockReader(folder / name, descriptor.nbytes, 1).view(descriptor)
        if view is not None:
            return view
    raise FrameError("late")
