"""Short measurements of what a run does besides stepping, each over a plain copy of the same bytes on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np

from workbench.algorithms import orders
from workbench.algorithms.compiled import aligned
from workbench.algorithms.digest import digest
from workbench.algorithms.fragments import Fragmentation, TensorSpec
from workbench.algorithms.merging import MergeSettings
from workbench.algorithms.syncer_arithmetic import SyncerArithmetic
from workbench.config import RunConfig
from workbench.engine.learner_wire import LearnerWire
from workbench.engine.runtime_folder import RuntimeFolder
from workbench.engine.wire import SyncerWire
from workbench.protocol.messages import BULK, Fragment

PARAMETERS = 1 << 22
SIDE = 512
TURNS = 5
ARRIVE_LIMIT_S = 30.0


class Yardstick(NamedTuple):
    """One measurement.

    Attributes
    ----------
    bytes_per_s, copy_bytes_per_s : float
        Of the thing, and of ``numpy.copyto`` by turns with it; the fastest turn of each [bytes/s].
    seconds : float
        Of the fastest turn [s].
    """

    bytes_per_s: float
    copy_bytes_per_s: float
    seconds: float

    @property
    def ratio(self) -> float:
        """The thing over the copy."""
        return self.bytes_per_s / self.copy_bytes_per_s


def merging(config: RunConfig) -> Yardstick:
    """A merge with its outer step: each contribution, Theta and the outer state read, Theta and state written.

    As many contributions as the configuration has learners, to one fragment of `PARAMETERS` parameters, by its merge
    rule and outer optimiser, digests included.
    """
    count = config.learners
    tensors = tuple(
        TensorSpec(f"matrix{i:02}", (SIDE, SIDE), "float32", "matrix") for i in range(PARAMETERS // SIDE**2)
    )
    generator = np.random.default_rng(0)
    theta = generator.standard_normal(PARAMETERS, np.float32)
    arithmetic = SyncerArithmetic(Fragmentation(tensors, (0,) * len(tensors), 1), [theta])
    sent = [theta + np.float32(0.01) * generator.standard_normal(PARAMETERS, np.float32) for _ in range(count)]
    looks = [orders.look(arithmetic, 0, values, "f32", 0, digest(values)).arrived for values in sent]
    arrived = [found for found in looks if found is not None]
    settings = MergeSettings(config.merge, config.outer, config.outer_rate, config.outer_momentum)
    learners, weights, ages = list(range(count)), [1.0] * count, [0] * count

    def merge() -> None:
        orders.merge(arithmetic, 0, 1, learners, arrived, weights, ages, settings, fresh_outer=False)

    return _by_turns(merge, (count + 4) * theta.nbytes)


def wire() -> Yardstick:
    """A fragment of `PARAMETERS` parameters from a learner's array to where the syncer reads it, on this machine."""
    folder = RuntimeFolder.create()
    try:
        with (
            closing(SyncerWire("bench", [PARAMETERS], folder=folder.path)) as syncer,
            closing(LearnerWire("bench", [PARAMETERS], 0, 1, str(folder.path))) as learner,
        ):
            learner.connect()
            _until(lambda: (syncer.poll(1), learner.poll(1), learner.opened())[2])
            values = np.ones(PARAMETERS, np.float32)
            message = Fragment(0, 1, 0, 0, 0, 1, 1, 1, "f32", 0, values.nbytes, 1, 1, (1,), [])

            def send() -> None:
                learner.send(learner.connection, BULK, message, values)
                for _, came in _until(lambda: (learner.poll(0), syncer.poll(1))[1]):
                    assert isinstance(came, Fragment)
                    assert syncer.payload(came.handle).nbytes == values.nbytes
                    syncer.release(came.handle)
                learner.poll(0)

            for _ in range(6):
                send()  # each slot is touched for the first time
            return _by_turns(send, 2 * values.nbytes)
    finally:
        folder.remove()


def _until(ask: Callable[[], list[Any]]) -> list[Any]:
    end = time.monotonic() + ARRIVE_LIMIT_S
    while not (found := ask()):
        if time.monotonic() > end:
            raise TimeoutError(f"nothing came over the wire within {ARRIVE_LIMIT_S:g} s")
    return found


def _by_turns(what: Callable[[], None], moved_bytes: int) -> Yardstick:
    """The fastest of some turns of ``what``, which reads and writes so much, and of a copy, which reads and writes."""
    source, target = aligned((PARAMETERS,)), aligned((PARAMETERS,))
    source[:] = target[:] = 1.0
    spent: dict[str, list[float]] = {"what": [], "copy": []}
    what()
    for _ in range(TURNS):
        for name, job in (("what", what), ("copy", lambda: np.copyto(target, source))):
            begin = time.perf_counter()
            job()
            spent[name].append(time.perf_counter() - begin)
    fastest = {name: min(times) for name, times in spent.items()}
    return Yardstick(moved_bytes / fastest["what"], 2 * source.nbytes / fastest["copy"], fastest["what"])
