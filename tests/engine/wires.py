"""Both ends of a wire in one process, and the messages that tests send."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from workbench.engine.learner_wire import LearnerWire
from workbench.engine.runtime_folder import RuntimeFolder
from workbench.engine.security import ClientKeys, ServerKeys, make_keys
from workbench.engine.wire import SyncerWire
from workbench.protocol.messages import (
    Beat,
    Change,
    End,
    Fragment,
    Heartbeat,
    Join,
    Metadata,
    Notice,
    Pull,
    Refused,
    Update,
    Welcome,
)
from workbench.protocol.records import Kind, Record, process_of

SIZES = [1000, 7, 2_500_001]
LARGE = 2
RUN = "run-of-the-tests"
LEARNER, PROCESS = 3, 7
HANG_S = 60.0
TRANSPORTS = ("mapped", "tcp", "curve")


def until(done: Callable[[], Any]) -> Any:
    """Repeat until something true comes back; a hang fails."""
    end = time.monotonic() + HANG_S
    while not (found := done()):
        assert time.monotonic() < end, "nothing happened for a minute"
    return found


class Pair:
    """A syncer's wire and a learner's, polled in turns; what came is kept."""

    def __init__(self, transport: str, folder: RuntimeFolder) -> None:
        self.folder = folder
        self.client: ClientKeys | None = None
        if transport == "mapped":
            self.syncer = SyncerWire(RUN, SIZES, folder=folder.path)
        else:
            own, client = make_keys(), make_keys()
            curve = transport == "curve"
            self.client = ClientKeys(client, own.public) if curve else None
            keys = ServerKeys(own, frozenset([client.public])) if curve else None
            self.syncer = SyncerWire(RUN, SIZES, listen="tcp://127.0.0.1:0", keys=keys)
        self.learner = self.another()
        self.up: list[tuple[int, Any]] = []
        self.down: list[tuple[int, Any]] = []
        self.opened: list[int] = []
        self.gone: list[int] = []
        self.ended: list[int] = []
        self.handed: list[tuple[int, int, int]] = []

    def another(self, **changes: Any) -> LearnerWire:
        """Another learner's end."""
        values: dict[str, Any] = {
            "run_id": RUN,
            "sizes": SIZES,
            "learner": LEARNER,
            "process_number": PROCESS,
            "address": self.syncer.address,
            "keys": self.client,
        }
        return LearnerWire(**{**values, **changes})

    def turn(self) -> Pair:
        """Let both ends do what they have to do."""
        self.turn_syncer()
        self.down += self.learner.poll(1)
        self.opened += self.learner.opened()
        self.ended += self.learner.closed()
        return self

    def turn_syncer(self) -> Pair:
        """Let the syncer's end do what it has to do."""
        self.up += self.syncer.poll(1)
        self.gone += self.syncer.closed()
        self.handed += self.syncer.handed()
        return self

    def connect(self) -> int:
        """Open a connection; its number."""
        before = len(self.opened)
        self.learner.connect()
        until(lambda: len(self.turn().opened) > before)
        return self.opened[-1]


@contextmanager
def pair(transport: str) -> Iterator[Pair]:
    folder = RuntimeFolder.create()
    both = Pair(transport, folder)
    try:
        yield both
    finally:
        both.learner.close(0)
        both.syncer.close(0)
        folder.remove()


def values(fragment: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(SIZES[fragment], np.float32)


def record(seq: int = 1, learner: int = LEARNER, kind: int = Kind.STEP_ENDED) -> Record:
    return Record(kind, process_of(learner), 1, seq, 5, (1, 2), (0, 3), step=4, value=0.5, detail={"batch": 8})


def join(learner: int = LEARNER, process: int = PROCESS) -> Join:
    zeros = [0] * len(SIZES)
    return Join(learner, process, 0, 0, zeros, zeros, [-1] * len(SIZES), False, False, (1, 2), [record()])


def metadata(n: int = 4, g: int = 6) -> Metadata:
    counts = list(range(len(SIZES)))
    return Metadata(LEARNER, 1, n, g, counts, counts, counts, 10, True, False, 9, (1, 2), [record()])


def fragment(p: int = 0, number: int = 5, codec: str = "f32", **changes: Any) -> Fragment:
    nbytes = SIZES[p] * (4 if codec == "f32" else 2)
    sent: dict[str, Any] = {"learner": LEARNER, "incarnation": 1, "round": number, "fragment": p, "base_version": 2}
    sent |= {"step": 9, "steps": 9, "tokens": 1000, "codec": codec, "digest": 2**64 - 1, "nbytes": nbytes}
    sent |= {"captured_ns": 8, "origin": 1, "clock": (1, 2), "records": [record()]}
    return Fragment(**{**sent, **changes})


def update(p: int = 0, version: int = 1) -> Update:
    return Update(1, p, version, 3, -1, -1, 0, 5, 2, 7, (1, 2))


def learner_messages() -> list[Any]:
    refused = Refused(LEARNER, 1, 5, 1, "unfolded", 3, (1, 2), [record()])
    return [join(), metadata(), refused, Heartbeat(LEARNER, 1, (1, 2), [])]


def syncer_messages() -> list[Any]:
    return [
        Welcome(1, 0, [3, 4, 5], 6, 0, {"fold": "overwrite", "lead": None}, 1, 1, False, 0, 2, 4, (1, 2)),
        Pull(1, 5, 2, 3, "f32", 5, 2, 7, (1, 2)),
        Notice(1, 5, 5, 2, (1, 2)),
        Beat(1, 5, 2, (1, 2), True),
        Change(1, 2, {"fold_alpha": 0.5}, 5, 2, 7, (1, 2)),
        End(1, "done", 5, 2, (1, 2)),
    ]
