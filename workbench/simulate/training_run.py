"""A training run in virtual time: real gradients, modelled clock and network, a journal and a tape."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from workbench.algorithms.schedule import offsets
from workbench.config import RunConfig, to_toml
from workbench.datasets import open_text
from workbench.protocol import quorum
from workbench.protocol.events import StopAsked
from workbench.protocol.faults import NO_FAULTS, FaultPlan
from workbench.protocol.plans import facts_of, numbered
from workbench.protocol.records import Record
from workbench.simulate.interrupt import first_interrupt
from workbench.simulate.numbers import Numbers
from workbench.simulate.world import World
from workbench.tape.journal import Input, JournalWriter
from workbench.tape.recorder import Recorder
from workbench.tape.run_folder import RunFolder, create_run_folder
from workbench.training.program import TrainingProgram
from workbench.training.run_header import run_header
from workbench.training.threads import use_threads

EVENTS_PER_LOOK = 200
INTERRUPTED = "interrupted"
"""Reason of a run that Ctrl-C ended."""


class Progress(NamedTuple):
    """How far a run is.

    Attributes
    ----------
    merges, rounds : int
        Done, opened.
    time_s : float
        Virtual time [s].
    loss : float or None
        Last validation loss [nats per byte].
    waits_for : str
        Why nothing is merged, empty while all is well.
    """

    merges: int
    rounds: int
    time_s: float
    loss: float | None
    waits_for: str = ""


class TrainedRun(NamedTuple):
    """What a run left.

    Attributes
    ----------
    path : Path
        Run folder.
    merges : int
        Done.
    wall_s, virtual_s : float
        Real and virtual seconds.
    digest : int
        xxh3-64 of the final weights in the order of the fragments.
    """

    path: Path
    merges: int
    wall_s: float
    virtual_s: float
    digest: int


class RunLost(RuntimeError):
    """The run cannot go on: a state that must not be, or events have run out."""


class Writer:
    """The syncer's journal, and the recorder that follows it about once a second."""

    def __init__(self, folder: RunFolder, header: dict[str, Any]) -> None:
        self.folder = folder
        self.journal = JournalWriter(folder.journal, header)
        self.recorder = Recorder(folder)
        self.began = self.drained = time.monotonic()

    def append(self, inputs: list[tuple[int, int, int, bytes]], records: list[Record]) -> None:
        """One write: the inputs of the machine and the records that follow from them."""
        self.journal.append([*(Input(*item) for item in inputs), *records])

    def follow(self) -> None:
        """Drain into the tape when the interval has passed."""
        now = time.monotonic()
        if now - self.drained >= self.recorder.interval_s(now - self.began):
            self.drained = now
            self.recorder.drain()

    def close(self) -> None:
        """Everything onto the tape, which is closed."""
        self.journal.close()
        self.recorder.close()

    def release(self) -> None:
        """After an error: locks are given back, the journal stays."""
        self.journal.close()
        self.recorder.release()


def train_virtual(
    config: RunConfig,
    out: str | Path,
    faults: FaultPlan = NO_FAULTS,
    progress: Callable[[Progress], None] | None = None,
) -> TrainedRun:
    """Train by Decoupled DiLoCo in virtual time and leave a tape.

    Parameters
    ----------
    config : RunConfig
    out : path
        Folder of the run; refused if it holds anything.
    faults : FaultPlan
        Faults to inject.
    progress : callable, optional
        Called now and then.

    Raises
    ------
    ConfigError
        The data cannot be used, or the folder holds something.
    RunLost
        The run came to no end.
    KeyboardInterrupt
        Ctrl-C: the syncer has ended the run, or, after a second one, the tape was closed where it was.
    """
    began = time.monotonic()
    use_threads(config.machine.threads)
    text = open_text(config.data)
    program = TrainingProgram(config, text)
    header = run_header(config, text, program, "virtual", facts_of(faults, config, "virtual"))
    folder = create_run_folder(out, to_toml(config))
    numbers = Numbers(config, program, folder.snapshots, folder.slots)
    writer = Writer(folder, header)

    def make() -> World:
        return World(
            config,
            offsets(config.fragments, config.period),
            numbers,
            numbered(faults),
            journal=writer.append,
            sizes=program.fragmentation.sizes,
            identity={"host": socket.gethostname(), "pid": os.getpid(), "fingerprint": header["fingerprint"]},
        )

    return finish(make, numbers, writer, progress, began)


def finish(
    make: Callable[[], World],
    numbers: Numbers,
    writer: Writer,
    progress: Callable[[Progress], None] | None,
    began: float,
) -> TrainedRun:
    """Make a world, let it run to its end, close the tape; see `train_virtual` for what is raised."""
    try:
        world = make()
        with first_interrupt() as interrupted:
            _go(world, writer, progress, interrupted)
    except KeyboardInterrupt:
        writer.close()
        raise
    except BaseException:
        writer.release()
        raise
    writer.close()
    if world.finished == INTERRUPTED:
        raise KeyboardInterrupt
    return TrainedRun(
        writer.folder.path,
        world.syncer.machine.state.merges,
        time.monotonic() - began,
        world.now / 1e9,
        numbers.digest(),
    )


def _go(
    world: World,
    writer: Writer,
    progress: Callable[[Progress], None] | None,
    interrupted: Callable[[], bool],
) -> None:
    """Let the world run to its end, with a look at the tape and at the reader now and then."""
    count = 0
    while not world.finished and not world.failed:
        if not world.heap:
            raise RunLost(f"nothing is left to happen at {world.now / 1e9:.1f} s of virtual time")
        world.step()
        if interrupted() and world.syncer.alive and not world.syncer.machine.state.ending:
            world.give(world.syncer, StopAsked(INTERRUPTED))
        count += 1
        if count % EVENTS_PER_LOOK == 0:
            writer.follow()
            if progress is not None:
                progress(_progress(world))
    if progress is not None:
        progress(_progress(world))
    if world.failed:
        raise RunLost(world.failed)
    world.evaluations.when_due(last=True)


def _progress(world: World) -> Progress:
    state = world.syncer.machine.state
    return Progress(state.merges, state.opened_t, world.now / 1e9, world.evaluations.last_loss, _what_is_missing(world))


def _what_is_missing(world: World) -> str:
    state = world.syncer.machine.state
    if not world.syncer.alive:
        return "the syncer is down"
    if not state.quorum_lost:
        return ""
    present = {m.learner for m in state.members.values() if m.connected and not m.quarantined}
    missing = ", ".join(f"L{m}" for m in quorum.expected(state) if m not in present)
    kept_out = ", ".join(f"L{m}" for m in quorum.quarantined(state))
    why = f"; {kept_out} quarantined by a guard, for good in virtual time" if kept_out else ""
    return f"no quorum: {len(present)} of {state.book.policy.quorum} needed, missing {missing}{why}"
