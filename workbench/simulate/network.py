"""The modelled network: connections of two channels each way, FIFO, with delay, bandwidth, loss and cuts."""

from __future__ import annotations

from typing import Any

from workbench.algorithms import draws
from workbench.protocol.acting import ActingFaults
from workbench.protocol.messages import BULK
from workbench.simulate.durations import SECOND, Durations

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
    acting : ActingFaults
        Faults of links, and slow-downs of their learners.
    """

    def __init__(self, times: Durations, loss: float, bandwidth: float, seed: int) -> None:
        self.times = times
        self.loss = loss
        self.bandwidth = bandwidth
        self.seed = seed
        self.connections: dict[int, Connection] = {}
        self.count = 0
        self.opened = 0
        self.acting = ActingFaults()

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

    def delivery_at(self, now: int, number: int, direction: int, channel: int, nbytes: int, message: Any = None) -> int:
        """When a message sent now arrives [ns]; -1 if it is lost."""
        connection = self.connections.get(number)
        if connection is None or not connection.open:
            return -1
        learner = connection.learner
        if self.acting.is_cut(learner, direction):
            return -1
        self.count += 1
        if self.acting.takes(learner, direction):
            return -1
        if self.loss > 0.0 and draws.uniform(self.seed, _LOSSES, self.count) < self.loss:
            return -1
        start = max(now, connection.free_at[direction][channel])
        limits = (self.bandwidth, self.acting.bytes_per_s(learner) if channel == BULK else 0.0)
        bandwidth = min((limit for limit in limits if limit > 0.0), default=0.0)
        if bandwidth > 0.0:
            start += int(nbytes / bandwidth * SECOND)
            connection.free_at[direction][channel] = start
        delay = self.times.message_ns(learner, direction, message, self.count)
        delay += self.acting.added_ns(learner, direction)
        at = max(start + delay, connection.last_at[direction][channel])
        connection.last_at[direction][channel] = at
        return at
