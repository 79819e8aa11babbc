"""The thread that lays a learner's state into bytes, so that neither training nor the network waits for it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from workbench.algorithms.fragments import Fragmentation
from workbench.engine.blocks import Descriptor
from workbench.training.held_state import Held, state_digest


class Laid(NamedTuple):
    """A state that lies in a mapped file, or in memory."""

    number: int
    digest: int
    nbytes: int
    payload: Descriptor | np.ndarray


class StateCopier:
    """One state after the other; the thread begins with the first.

    Parameters
    ----------
    fragmentation : Fragmentation
    stage : callable
        Puts bytes where their reader finds them (`LearnerWire.stage`).
    done : callable
        Takes what was laid; called from the thread.
    failed : callable
        Takes what went wrong.
    """

    def __init__(
        self,
        fragmentation: Fragmentation,
        stage: Callable[[np.ndarray], Descriptor | np.ndarray],
        done: Callable[[Laid], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._fragmentation, self._stage, self._done, self._failed = fragmentation, stage, done, failed
        self._orders: queue.SimpleQueue[tuple[int, Held]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def put(self, number: int, held: Held) -> None:
        """Have a state laid; what is held is not copied before."""
        self._orders.put((number, held))
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="states", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        try:
            while True:
                number, held = self._orders.get()
                data = held.arrays(self._fragmentation).to_bytes()
                del held
                laid = Laid(number, state_digest(data), data.nbytes, self._stage(data))
                del data
                self._done(laid)
        except BaseException as error:
            self._failed(error)
