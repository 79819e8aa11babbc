"""The thread in which the syncer merges, so that its sockets are served meanwhile."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable

from workbench.algorithms import orders
from workbench.algorithms.syncer_arithmetic import SyncerArithmetic
from workbench.protocol.actions import Merge
from workbench.protocol.events import MergeDone


class MergeWorker:
    """Merges one order after the other; results wait until they are taken.

    Parameters
    ----------
    arithmetic : SyncerArithmetic
        Between an order and its result nobody else may merge.
    seed : int
        Of the run.
    wake : callable
        Called, from the worker's thread, when a result is there.
    """

    def __init__(self, arithmetic: SyncerArithmetic, seed: int, wake: Callable[[], None]) -> None:
        self._arithmetic, self._seed, self._wake = arithmetic, seed, wake
        self._orders: queue.SimpleQueue[tuple[Merge, list[orders.Arrived]] | None] = queue.SimpleQueue()
        self._done: deque[MergeDone | BaseException] = deque()
        self._thread = threading.Thread(target=self._work, name="merge", daemon=True)
        self._thread.start()

    def put(self, order: Merge, arrived: list[orders.Arrived]) -> None:
        """Have an order carried out."""
        self._orders.put((order, arrived))

    def take(self) -> list[MergeDone]:
        """Results that are there; raises what a merge has raised."""
        found = []
        while self._done:
            done = self._done.popleft()
            if isinstance(done, BaseException):
                raise done
            found.append(done)
        return found

    def close(self) -> None:
        """Let the order in progress come to its end, then no more."""
        self._orders.put(None)
        self._thread.join(timeout=5.0)

    def _work(self) -> None:
        while (item := self._orders.get()) is not None:
            order, arrived = item
            try:
                made = orders.merge(
                    self._arithmetic,
                    order.fragment,
                    order.version,
                    order.learners,
                    arrived,
                    order.weights,
                    order.base_versions,
                    orders.settings_of_order(order.settings, self._seed),
                    order.fresh_outer,
                )
                self._done.append(MergeDone(order.round, order.fragment, *made))
            except BaseException as error:
                self._done.append(error)
            self._wake()
