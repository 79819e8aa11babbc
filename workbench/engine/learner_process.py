"""A learner's process: compiles its step, reaches the syncer, trains until it is told to leave."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from workbench.algorithms.codecs import CODECS
from workbench.algorithms.folds import FOLDS
from workbench.algorithms.schedule import offsets
from workbench.config import ConfigError, RunConfig
from workbench.datasets import Text, open_text
from workbench.engine import child
from workbench.engine.compiling import cache_folder, compiling
from workbench.engine.layout import read_config
from workbench.engine.learner_driver import LearnerDriver
from workbench.engine.learner_wire import LearnerWire
from workbench.engine.link_faults import acting_of
from workbench.engine.links import Link
from workbench.engine.weights import load_initial
from workbench.protocol.copies import restore
from workbench.protocol.learner import LearnerMachine
from workbench.protocol.learner_state import new_state
from workbench.protocol.records import label_of, process_of
from workbench.protocol.settings import fixed_settings_of, learner_settings_of
from workbench.training.flat import fragmentation_of
from workbench.training.learner_arithmetic import LearnerArithmetic
from workbench.training.program import TrainingProgram
from workbench.training.snapshot_files import read_manifest
from workbench.training.threads import use_threads

WAITS_EVERY_S = 5.0
EXIT_CODE = 1
"""Of a process that a fault tells to end itself."""


def main(link: Link, arguments: dict[str, Any]) -> int:
    """Train as ``arguments["learner"]``, its process number ``arguments["number"]``."""
    try:
        return LearnerProcess(link, arguments).run()
    except ConfigError as error:
        link.send({"failed": str(error)})
        print(error, flush=True)
        return 2
    except Exception as error:
        link.send({"failed": child.last_line(error)})
        raise


def _facts(snapshots: Path, snapshot: int, learner: int) -> dict[str, Any]:
    facts: dict[str, Any] = read_manifest(snapshots, snapshot)["learners"][str(learner)]["facts"]
    return facts


def compiled_arithmetic(config: RunConfig, learner: int, text: Text | None = None) -> LearnerArithmetic:
    """The arithmetic of a learner, without weights, its step compiled: who joins can step.

    Raises
    ------
    ConfigError
        The text (by default that of the configuration) is not there, or not enough.
    """
    program = TrainingProgram(config, open_text(config.data) if text is None else text)
    with compiling(cache_folder(), (config.model, config.inner)):
        program.warm_up()
    _rehearse(LearnerArithmetic(config, learner, program, program.fragmentation), program.fragmentation.sizes)
    return LearnerArithmetic(config, learner, program, program.fragmentation)


def _rehearse(arithmetic: LearnerArithmetic, sizes: Sequence[int]) -> None:
    """Fold and capture once by every rule: fetching their kernels later would hold up heartbeats."""
    weights = [np.zeros(size, np.float32) for size in sizes]
    arithmetic.load(weights)
    for rule in FOLDS:
        arithmetic.fold(0, weights[0], 0, rule, 0.5, None)
    arithmetic.publish()
    for codec in CODECS:
        arithmetic.capture(0, 0, codec)


class LearnerProcess:
    """One life of a learner.

    Parameters
    ----------
    link : Link
        To whoever started it.
    arguments : dict
        ``run`` (folder of the run), ``run_id``, ``address`` of the syncer, ``learner``, ``number`` of the process,
        ``origin_ns``, ``acting`` (faults that act on it), ``restore`` (snapshot that it goes on from, or None),
        ``beside`` (cores of the threads that do not step, empty for those of the process).
    """

    def __init__(self, link: Link, arguments: dict[str, Any]) -> None:
        self.link = link
        self.run_folder = Path(arguments["run"])
        self.config: RunConfig = read_config(self.run_folder)
        use_threads(self.config.machine.threads)
        self.learner: int = arguments["learner"]
        self.label = label_of(process_of(self.learner))
        self.address: str = arguments["address"]
        fixed = fixed_settings_of(self.config, offsets(self.config.fragments, self.config.period))
        number: int = arguments["number"]
        state = new_state(self.learner, number, fixed, learner_settings_of(self.config))
        snapshots = self.run_folder / "snapshots"
        if arguments["restore"] is not None:
            restore(state, _facts(snapshots, arguments["restore"], self.learner), arguments["restore"])
        machine = LearnerMachine(state)
        arithmetic = compiled_arithmetic(self.config, self.learner)
        arithmetic.load(load_initial(self.run_folder, fragmentation_of(self.config).sizes))
        step_cores = child.move_aside(arguments["beside"])
        sizes = list(fragmentation_of(self.config).sizes)
        wire = LearnerWire(arguments["run_id"], sizes, self.learner, number, self.address)
        self.driver = LearnerDriver(machine, wire, arithmetic, arguments["origin_ns"], snapshots, step_cores)
        for table in arguments["acting"]:
            self.driver.links.take(table)

    def run(self) -> int:
        """Turn until the machine leaves."""
        driver, state = self.driver, self.driver.machine.state
        self._await_the_others()
        began = said = time.monotonic()
        driver.begin()
        self._watch()
        while not driver.left:
            driver.turn()
            self._serve()
            now = time.monotonic()
            if state.incarnation:
                continue
            why = f" ({driver.wire.refusal})" if driver.wire.refusal else ""
            if now - said >= WAITS_EVERY_S:
                said = now
                print(f"{self.label} waits for the syncer at {self.address}, {now - began:.0f} s{why}", flush=True)
            if now - began >= self.config.connect_limit_s:
                return self._give_up(why)
        return self._leave()

    def _await_the_others(self) -> None:
        """Say that the step is compiled; whoever started this process says when to begin."""
        self.link.send({"ready": True})
        while not self.link.closed:
            message = self.link.receive(3600.0)
            if message is not None and "go" in message:
                return
            if message is not None:
                self._do(message)

    def _watch(self) -> None:
        """Have a turn end when the supervisor says something."""
        fd = self.link.fileno()
        if not self.link.closed:
            self.driver.wire.watch(fd)
            self.link.on_close = partial(self.driver.wire.unwatch, fd)

    def _serve(self) -> None:
        """What the supervisor tells, and what it is told."""
        for message in self.link.read():
            self._do(message)
        poisons = self.driver.poisons
        for number in (*self.driver.links.used_up(), *poisons.used_up):
            self.link.send({"used_up": number})
        poisons.used_up.clear()

    def _do(self, message: dict[str, Any]) -> None:
        if "acting" in message:
            self.driver.links.take(message["acting"])
        elif "poison" in message:
            for acting in acting_of(message["poison"]):
                self.driver.poisons.add(acting)
        elif "exit" in message:
            print(f"{self.label} ends itself: fault {message['exit']} tells it to", flush=True)
            self.driver.wire.close(0)
            raise SystemExit(EXIT_CODE)

    def _give_up(self, why: str) -> int:
        line = (
            f"{self.label} found no syncer at {self.address} within connect_limit_s = {self.config.connect_limit_s:g}"
            f"{why}; start the syncer first, or give its address with --connect"
        )
        print(line, flush=True)
        self.link.send({"failed": line})
        return 3

    def _leave(self) -> int:
        """Let the last messages go out."""
        self.driver.turn()
        self.driver.wire.close()
        return 0
