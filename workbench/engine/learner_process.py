"""A learner's process: compiles its step, reaches the syncer, trains until it is told to leave."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from workbench.algorithms.schedule import offsets
from workbench.config import ConfigError, RunConfig
from workbench.datasets import open_text
from workbench.engine.compiling import cache_folder, compiling
from workbench.engine.layout import read_config
from workbench.engine.learner_driver import LearnerDriver
from workbench.engine.learner_wire import LearnerWire
from workbench.engine.links import Link
from workbench.engine.weights import load_initial
from workbench.protocol.learner import LearnerMachine
from workbench.protocol.learner_state import new_state
from workbench.protocol.records import label_of, process_of
from workbench.protocol.settings import fixed_settings_of, learner_settings_of
from workbench.training.flat import fragmentation_of
from workbench.training.learner_arithmetic import LearnerArithmetic
from workbench.training.program import TrainingProgram
from workbench.training.threads import use_threads

WAITS_EVERY_S = 5.0


def main(link: Link, arguments: dict[str, Any]) -> int:
    """Train as ``arguments["learner"]``, its process number ``arguments["number"]``."""
    try:
        return LearnerProcess(link, arguments).run()
    except ConfigError as error:
        link.send({"failed": str(error)})
        print(error, flush=True)
        return 2


class LearnerProcess:
    """One life of a learner.

    Parameters
    ----------
    link : Link
        To whoever started it.
    arguments : dict
        ``run`` (folder of the run), ``run_id``, ``address`` of the syncer, ``learner``, ``number`` of the process,
        ``origin_ns``.
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
        machine = LearnerMachine(new_state(self.learner, number, fixed, learner_settings_of(self.config)))
        arithmetic = self._make()
        sizes = list(fragmentation_of(self.config).sizes)
        wire = LearnerWire(arguments["run_id"], sizes, self.learner, number, self.address)
        self.driver = LearnerDriver(machine, wire, arithmetic, arguments["origin_ns"])

    def _make(self) -> LearnerArithmetic:
        """The arithmetic with the first weights, its step compiled: who joins can step."""
        program = TrainingProgram(self.config, open_text(self.config.data))
        with compiling(cache_folder(), (self.config.model, self.config.inner)):
            program.warm_up()
        arithmetic = LearnerArithmetic(self.config, self.learner, program, program.fragmentation)
        arithmetic.load(load_initial(self.run_folder, program.fragmentation.sizes))
        return arithmetic

    def run(self) -> int:
        """Turn until the machine leaves."""
        driver, state = self.driver, self.driver.machine.state
        self._await_the_others()
        began = said = time.monotonic()
        driver.begin()
        while not driver.left:
            driver.turn()
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
