"""A learner that was started by hand: one process in the foreground, without a supervisor and without a run folder.

``python -m workbench.engine.joiner FD``, where the file FD holds a `Joining`; ``workbench learner`` becomes this
process, so that settings of the environment which act only at the start of a process do act.  JAX is loaded once the
syncer has agreed to the configuration; first weights and text are made here and compared by digest.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from workbench.algorithms.digest import digest
from workbench.algorithms.schedule import offsets
from workbench.config import ConfigError, RunConfig, from_toml
from workbench.datasets import Text, open_text
from workbench.engine import child
from workbench.engine.agreement import claims_of, data_claim, weights_claim
from workbench.engine.finding import Finding, first_limit
from workbench.engine.key_folder import client_keys
from workbench.engine.learner_wire import LearnerWire
from workbench.engine.placing import beside_steps, check_cores, place_of
from workbench.engine.processes import NICE
from workbench.engine.staying import Staying
from workbench.protocol.learner import LearnerMachine
from workbench.protocol.learner_state import new_state
from workbench.protocol.records import label_of, process_of
from workbench.protocol.settings import fixed_settings_of, learner_settings_of
from workbench.training.environment import fingerprint, malloc_advice
from workbench.training.threads import use_threads

if TYPE_CHECKING:
    from workbench.engine.learner_driver import LearnerDriver
    from workbench.training.learner_arithmetic import LearnerArithmetic

WRONG, LOST = 2, 3


class Joining(msgspec.Struct, frozen=True):
    """What a learner is told that is started by hand.

    Attributes
    ----------
    config : str
        TOML.
    learner : int
    address : str
        ``tcp://HOST:PORT`` of the syncer.
    keys : str
        Folder of keys, empty for none.
    patience_s : float
        How long it trains on without a syncer.
    as_json, debug : bool
        Print the outcome as JSON; show the traceback of an error.
    """

    config: str
    learner: int
    address: str
    keys: str = ""
    patience_s: float = 600.0
    as_json: bool = False
    debug: bool = False


def become(joining: Joining) -> NoReturn:
    """Turn this process into the learner."""
    with tempfile.TemporaryFile() as file:
        file.write(msgspec.json.encode(joining))
        file.seek(0)
        os.set_inheritable(file.fileno(), True)
        root = str(Path(__file__).resolve().parents[2])
        paths = dict.fromkeys([root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
        environment = {**os.environ, **malloc_advice(), "PYTHONPATH": os.pathsep.join(paths)}
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(sys.executable, [sys.executable, "-m", "workbench.engine.joiner", str(file.fileno())], environment)


def main() -> int:
    """Train as the file on the command line says; returns the exit code."""
    with open(int(sys.argv[1]), "rb") as file:
        joining = msgspec.json.decode(file.read(), type=Joining)
    label = label_of(process_of(joining.learner))
    child.name_process(f"wb-{label}")
    code, left, step = LOST, "", 0
    try:
        joiner = Joiner(joining)
        code, left = joiner.run()
        step = joiner.step
    except ConfigError as error:
        code, left = WRONG, str(error)
    except KeyboardInterrupt:
        code, left = 128 + signal.SIGINT, "interrupted before it took part"
    except OSError as error:
        code, left = LOST, str(error)
    except Exception as error:
        if joining.debug:
            traceback.print_exc()
        left = f"unexpected {type(error).__name__}: {error} (--debug shows the traceback)"
    print(f"workbench: {label}: {left}", file=sys.stderr, flush=True)
    if joining.as_json:
        print(msgspec.json.encode({"learner": joining.learner, "code": code, "line": left, "step": step}).decode())
    return code


class Joiner:
    """One life of a learner that was started by hand.

    Parameters
    ----------
    joining : Joining

    Raises
    ------
    ConfigError
        Configuration, keys or cores cannot be.
    """

    def __init__(self, joining: Joining) -> None:
        self.joining = joining
        self.config: RunConfig = from_toml(joining.config)
        self.keys = client_keys(Path(joining.keys), joining.learner) if joining.keys else None
        check_cores(self.config)
        self.limit = first_limit(self.config.connect_limit_s, joining.patience_s)
        self.finding = Finding(joining.address, self.keys, joining.learner, self.limit)
        self.driver: LearnerDriver | None = None

    @property
    def step(self) -> int:
        """Own steps made so far, in all lives."""
        return self.driver.machine.state.n if self.driver is not None else 0

    def run(self) -> tuple[int, str]:
        """Find the syncer, agree, make what a learner needs, take part; returns exit code and last line."""
        if not self.finding.agree(claims_of(self.config)):
            return LOST, self.finding.line
        use_threads(self.config.machine.threads)
        beside = beside_steps(self.config)
        child.settle(NICE["learner"], place_of(self.config, self.joining.learner))
        text = open_text(self.config.data)
        if not self.finding.agree(data_claim(text)):
            return LOST, self.finding.line
        arithmetic = self._make(text)
        if arithmetic is None:
            return LOST, self.finding.line
        self.driver = self._driver(arithmetic, child.move_aside(beside))
        staying = Staying(self.driver, self.joining.address, self.limit, self.joining.patience_s)
        return staying.run()

    def _make(self, text: Text) -> LearnerArithmetic | None:
        """The arithmetic with the run's first weights, made here; None if the syncer is not there any more."""
        from workbench.engine.learner_process import compiled_arithmetic
        from workbench.training.flat import initial_weights

        made = compiled_arithmetic(self.config, self.joining.learner, text)
        weights = initial_weights(self.config)
        made.load(weights)
        agreed = self.finding.agree(weights_claim(digest(b"".join(part.tobytes() for part in weights))))
        self.finding.look(fingerprint())
        return made if agreed else None

    def _driver(self, arithmetic: LearnerArithmetic, step_cores: tuple[int, ...]) -> LearnerDriver:
        from workbench.engine.learner_driver import LearnerDriver
        from workbench.training.flat import fragmentation_of

        facts, learner = self.finding.facts, self.joining.learner
        number = max(facts.number, time.time_ns() // 1000)  # rises, whatever the clocks of the machines say
        fixed = fixed_settings_of(self.config, offsets(self.config.fragments, self.config.period))
        state = new_state(learner, number, fixed, learner_settings_of(self.config))
        state.identity = self._identity()
        sizes = list(fragmentation_of(self.config).sizes)
        wire = LearnerWire(facts.run_id, sizes, learner, number, self.joining.address, keys=self.keys)
        return LearnerDriver(LearnerMachine(state), wire, arithmetic, self.finding.origin_ns, step_cores=step_cores)

    def _identity(self) -> dict[str, Any]:
        return {"host": socket.gethostname(), "pid": os.getpid(), "fingerprint": fingerprint()}


if __name__ == "__main__":
    child.run_and_leave(main)
