"""Speed of the wire: a fragment from a learner's array to the syncer's, over what the machine does without it.

Run as ``python -m tests.benchmarks wire``.  On one machine the reference is a copy of the same array; across machines
it is a bare pair of ZeroMQ sockets that moves the same bytes in messages of 4 MB, plain or enciphered.  The sending
end is a process of its own, as it is in a run.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from contextlib import closing
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import zmq

from tests.benchmarks.rows import Row
from workbench.engine.learner_wire import LearnerWire
from workbench.engine.runtime_folder import RuntimeFolder
from workbench.engine.security import ClientKeys, KeyPair, ServerKeys, make_keys
from workbench.engine.wire import SyncerWire
from workbench.protocol.messages import BULK, Fragment

PARAMETERS = 8 << 20
CHUNK = 4 << 20
ROUNDS = 12
FRAGMENTS = 4
"""Sent in one round, so that it is not the waking of processes that is measured."""
ROUND_BYTES = 4 * PARAMETERS * FRAGMENTS
RUN = "bench"
HANG_S = 120


def _array() -> np.ndarray:
    return np.random.default_rng(0).standard_normal(PARAMETERS, np.float32)


def _fragment(nbytes: int) -> Fragment:
    return Fragment(0, 1, 0, 0, 0, 1, 1, 1, "f32", 0, nbytes, 1, 1, (1,), [])


def _learner(pipe: Connection, address: str, keys: ClientKeys | None) -> None:
    """Send a fragment whenever the pipe says so, until it closes."""
    values = _array()
    with closing(LearnerWire(RUN, [PARAMETERS], 0, 0, address, keys=keys)) as wire:
        wire.connect()
        wire.watch(pipe.fileno())
        while True:
            wire.poll(100)
            if wire.opened():
                pipe.send("open")
            if pipe.poll(0):
                try:
                    pipe.recv()
                except EOFError:
                    return
                for _ in range(FRAGMENTS):
                    wire.send(wire.connection, BULK, _fragment(values.nbytes), values)


def _bare_sender(pipe: Connection, address: str, keys: ClientKeys | None) -> None:
    """Send the same bytes in bare messages, without a copy."""
    values = memoryview(_array().view(np.uint8))  # type: ignore[arg-type]
    context: zmq.Context[Any] = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.sndhwm = 8
    if keys is not None:
        socket.curve_secretkey, socket.curve_publickey = keys.own.secret, keys.own.public
        socket.curve_serverkey = keys.server
    socket.connect(address)
    while True:
        try:
            pipe.recv()
        except EOFError:
            break
        for start in FRAGMENTS * list(range(0, len(values), CHUNK)):
            socket.send(values[start : start + CHUNK], copy=False)
    context.destroy(0)


def _timed(pipe: Connection, receive: Callable[[], None]) -> float:
    begin = time.perf_counter()
    pipe.send(None)
    receive()
    return time.perf_counter() - begin


class _Sender:
    """A sending process and the pipe that asks it to send."""

    def __init__(self, target: Callable[..., None], address: str, keys: ClientKeys | None) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, end = context.Pipe()
        self._process = context.Process(target=target, args=(end, address, keys))
        self._process.start()
        end.close()

    def close(self) -> None:
        self.pipe.close()
        self._process.join(HANG_S)


def _bare(keys: tuple[KeyPair, KeyPair] | None) -> tuple[Callable[[], None], _Sender, Callable[[], None]]:
    out = np.empty(PARAMETERS * 4, np.uint8)
    context: zmq.Context[Any] = zmq.Context()
    socket = context.socket(zmq.ROUTER)
    socket.rcvhwm = 8
    if keys is not None:
        socket.curve_secretkey, socket.curve_publickey, socket.curve_server = keys[0].secret, keys[0].public, True
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    client = None if keys is None else ClientKeys(keys[1], keys[0].public)
    sender = _Sender(_bare_sender, f"tcp://127.0.0.1:{port}", client)

    def receive() -> None:
        for start in FRAGMENTS * list(range(0, out.nbytes, CHUNK)):
            socket.recv()
            socket.recv_into(memoryview(out)[start : start + CHUNK])  # type: ignore[arg-type]

    return receive, sender, lambda: context.destroy(0)


def _wired(wire: SyncerWire, client: ClientKeys | None) -> tuple[Callable[[], None], _Sender]:
    sender = _Sender(_learner, wire.address, client)
    end = time.monotonic() + HANG_S
    while not sender.pipe.poll(0):
        wire.poll(20)
        assert time.monotonic() < end, "no learner came"
    sender.pipe.recv()

    def receive() -> None:
        came, end = 0, time.monotonic() + HANG_S
        while came < FRAGMENTS:
            assert time.monotonic() < end, "no fragment came"
            for _, message in wire.poll(1000):
                assert isinstance(message, Fragment) and wire.payload(message.handle).nbytes == PARAMETERS * 4
                wire.release(message.handle)
                came += 1

    return receive, sender


def _interleaved(ways: dict[str, tuple[Callable[[], None], _Sender]]) -> dict[str, float]:
    """Bytes per second of each way, from the fastest of rounds that take turns: the least disturbed ones."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS + 2):
        for name, (receive, sender) in ways.items():
            times[name].append(_timed(sender.pipe, receive))
    return {name: ROUND_BYTES / min(spent[2:]) for name, spent in times.items()}


def _one_machine() -> tuple[float, float]:
    """Bytes per second of the wire and of a memory copy."""
    folder = RuntimeFolder.create()
    values, out = _array(), np.empty(PARAMETERS, np.float32)
    copies = []
    try:
        with closing(SyncerWire(RUN, [PARAMETERS], folder=folder.path)) as wire:
            receive, sender = _wired(wire, None)
            spent = []
            for _ in range(ROUNDS + 6):  # the first ones touch each slot for the first time
                spent.append(_timed(sender.pipe, receive))
                begin = time.perf_counter()
                for _ in range(FRAGMENTS):
                    np.copyto(out, values)
                copies.append(time.perf_counter() - begin)
            sender.close()
    finally:
        folder.remove()
    return ROUND_BYTES / min(spent[6:]), ROUND_BYTES / min(copies[6:])


def _across(keys: tuple[KeyPair, KeyPair] | None) -> tuple[float, float]:
    """Bytes per second of the wire and of bare sockets, both over tcp."""
    server = None if keys is None else ServerKeys(keys[0], frozenset([keys[1].public]))
    client = None if keys is None else ClientKeys(keys[1], keys[0].public)
    bare, bare_sender, end_bare = _bare(keys)
    with closing(SyncerWire(RUN, [PARAMETERS], listen="tcp://127.0.0.1:0", keys=server)) as wire:
        receive, sender = _wired(wire, client)
        found = _interleaved({"wire": (receive, sender), "bare": (bare, bare_sender)})
        sender.close()
        bare_sender.close()
    end_bare()
    return found["wire"], found["bare"]


def run() -> list[Row]:
    """Measure all three ways; return the figures."""
    rows = []
    ways = {
        "one_machine": (_one_machine(), "memory copy", 0.5),
        "tcp": (_across(None), "ZeroMQ in 4 MB messages", 0.8),
        "curve": (_across((make_keys(), make_keys())), "ZeroMQ with CURVE", 0.8),
    }
    for name, ((wire, reference), against, budget) in ways.items():
        ratio = wire / reference
        rows.append(Row(f"fragment_{name}_over_{against.replace(' ', '_')}", ratio, "1", budget, ratio >= budget))
        rows.append(Row(f"fragment_{name}", wire / 1e9, "GB/s", None, True))
    return rows
