"""A run in virtual time that goes on after it ended, or was lost: same journal, same tape."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

from workbench.algorithms.schedule import offsets
from workbench.config import ConfigError
from workbench.datasets import open_text
from workbench.protocol.plans import skipped_line
from workbench.simulate.numbers import Numbers
from workbench.simulate.outages import resume_run
from workbench.simulate.training_run import Progress, TrainedRun, Writer, finish
from workbench.simulate.world import World
from workbench.tape.going_on import check_text, rest_for, resumable, set_tape_aside
from workbench.tape.going_on_from import look, slots_of
from workbench.training.environment import fingerprint
from workbench.training.program import TrainingProgram
from workbench.training.threads import use_threads


def resume_virtual(
    run: str | Path,
    snapshot: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    faults: bool = True,
    say: Callable[[str], None] = lambda line: None,
) -> TrainedRun:
    """Go on with a run in virtual time.

    Parameters
    ----------
    run : path
        Its folder.
    snapshot : int, optional
        Go back to this one; by default nothing that was merged is lost, unless the file of the committed fragments is
        damaged: then the newest snapshot counts.
    progress : callable, optional
        Called now and then.
    faults : bool
        Whether planned faults that have not struck are yet to come, and those that last act on.
    say : callable, optional
        Takes a line about what is other than somebody might think.

    Raises
    ------
    ConfigError
        The run cannot go on; the line says why, and its folder is as it was.
    RunLost, KeyboardInterrupt
        As in `workbench.simulate.training_run.train_virtual`.
    """
    began = time.monotonic()
    found = resumable(run)
    if found.header.get("clock") != "virtual":
        raise ConfigError(f"{found.folder.path} is a run of real processes; its clock is not virtual")
    config = found.config
    rest = rest_for(found, faults)
    use_threads(config.machine.threads)
    text = open_text(config.data)
    check_text(found, text)
    program = TrainingProgram(config, text)
    cut = look(found, snapshot)
    if line := set_tape_aside(found):
        say(line)
    writer = Writer(found.folder, found.header)  # from here on nobody else goes on with it
    try:
        if cut is not None and slots_of(found) is None:
            found.folder.slots.unlink(missing_ok=True)
        numbers = Numbers(config, program, found.folder.snapshots, found.folder.slots)
    except BaseException:
        writer.release()
        raise
    identity = {"host": socket.gethostname(), "pid": os.getpid(), "fingerprint": fingerprint()}

    def make() -> World:
        world = World(
            config,
            offsets(config.fragments, config.period),
            numbers,
            journal=writer.append,
            sizes=program.fragmentation.sizes,
            identity=identity,
            history=found.records,
        )
        resume_run(world, None if cut is None else cut["snapshot"], rest)
        if world.striker.skipped:
            say(skipped_line(world.striker.skipped))
        return world

    return finish(make, numbers, writer, progress, began)
