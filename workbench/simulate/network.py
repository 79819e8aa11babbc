"""The modelled network: connections of two channels each way, FIFO, with delay, bandwidth, loss and cuts."""

from __future__ import annotations

from workbench.simulate import draws
from workbench.simulate.durations import SECOND, StepTimes

TO_SYNCER = 0
TO_LEARNER = 1
_LOSSES = 3


class Connection:
    """One connection of a learner process: per direction and channel, when it is free and what came last."""

    __slots__ = ("free_at", "last_at", "learner", "number", "open", "process_number")

    def __init__(self, number: int, learner: int, process_number: int) -> None:
        self.number = number
        self.learner = learner
        self.process_number = process_number
        self.open = True
        self.free_at = [[0, 0], [0, 0]]
        self.last_at = [[0, 0], [0, 0]]


class Network:
    """Delivery times and losses of messages.

    Attributes
    ----------
    cuts : set of (learner, direction)
        Links on which everything is lost.
    lose_next : dict of (learner, direction) to int
        How many of the next messages are lost.
    """

    def __init__(self, times: StepTimes, loss: float, bandwidth: float, seed: int) -> None:
        self.times = times
        self.loss = loss
        self.bandwidth = bandwidth
        self.seed = seed
        self.connections: dict[int, Connection] = {}
        self.count = 0
        self.opened = 0
        self.cuts: dict[tuple[int, int], int] = {}
        self.lose_next: dict[tuple[int, int], int] = {}
        self.delayed: dict[int, float] = {}

    def open(self, learner: int, process_number: int) -> Connection:
        """A new connection."""
        self.opened += 1
        connection = Connection(self.opened, learner, process_number)
        self.connections[self.opened] = connection
        return connection

    def close(self, number: int) -> None:
        """Nothing is sent on this connection any more; what is under way still arrives."""
        connection = self.connections.get(number)
        if connection is not None:
            connection.open = False

    def cut(self, learner: int, direction: int, on: bool) -> None:
        """Cut one direction of a link, or heal one cut of it (cuts may overlap)."""
        key = (learner, direction)
        self.cuts[key] = max(0, self.cuts.get(key, 0) + (1 if on else -1))

    def is_cut(self, learner: int, direction: int) -> bool:
        """Whether messages in this direction are lost."""
        return self.cuts.get((learner, direction), 0) > 0

    def delivery_at(self, now: int, number: int, direction: int, channel: int, nbytes: int) -> int:
        """When a message sent now arrives [ns]; -1 if it is lost."""
        connection = self.connections.get(number)
        if connection is None or not connection.open or self.is_cut(connection.learner, direction):
            return -1
        self.count += 1
        pending = self.lose_next.get((connection.learner, direction), 0)
        if pending > 0:
            self.lose_next[connection.learner, direction] = pending - 1
            return -1
        if self.loss > 0.0 and draws.uniform(self.seed, _LOSSES, self.count) < self.loss:
            return -1
        start = max(now, connection.free_at[direction][channel])
        if self.bandwidth > 0.0:
            start += int(nbytes / self.bandwidth * SECOND)
            connection.free_at[direction][channel] = start
        delay = int(self.times.delay_ns(self.count) * self.delayed.get(connection.learner, 1.0))
        at = max(start + delay, connection.last_at[direction][channel])
        connection.last_at[direction][channel] = at
        return at
