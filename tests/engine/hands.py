"""What tests of runs by hand share: the commands as people type them, each in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.engine.real_runs import GUARD_S, tiny, until
from workbench.config import ConfigError, to_toml
from workbench.engine.launch import Run, attach

ROOT = str(Path(__file__).parents[2])


class Command:
    """A `workbench` command that runs; what it prints lies in files."""

    def __init__(self, place: Path, name: str, *words: str) -> None:
        self.out, self.err = place / f"{name}.out", place / f"{name}.err"
        environment = {**os.environ, "PYTHONPATH": ROOT}
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "workbench", *words], stdout=out, stderr=err, env=environment, cwd=place
            )

    @property
    def said(self) -> str:
        """What it has printed for people so far."""
        return self.err.read_text()

    @property
    def last(self) -> str:
        """Its last line."""
        return self.said.splitlines()[-1]

    def ended(self) -> int:
        """Exit code, when it ends."""
        return self.process.wait(GUARD_S)

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """SIGKILL, if it still runs."""
        self.process.kill()
        self.process.wait(GUARD_S)


class ByHand:
    """A syncer in a terminal, and learners in others.

    Parameters
    ----------
    place : Path
        Folder for all files.
    keys : bool
        With keys, made at the first use.
    **values
        Keys of the configuration beside those of a tiny run.
    """

    def __init__(self, place: Path, keys: bool = True, **values: Any) -> None:
        self.place = place
        self.config = place / "config.toml"
        self.config.write_text(to_toml(tiny(**{"learners": 2, "recovery": "peer", **values})))
        self.keys = place / "keys"
        self.with_keys = ["--keys", str(self.keys)] if keys else []
        self.run_path = place / "run"
        self.commands: list[Command] = []
        self.syncer = self._start("syncer", "syncer", "--listen", "tcp://127.0.0.1:0", "--out", str(self.run_path))
        until(lambda: bool(self.address) or self.syncer.process.poll() is not None, "the syncer listens")

    def _start(self, name: str, *words: str) -> Command:
        command = Command(self.place, name, *words, "--config", str(self.config), *self.with_keys)
        self.commands.append(command)
        return command

    @property
    def run(self) -> Run:
        """The run, as others see it."""
        return attach(self.run_path)

    @property
    def address(self) -> str:
        """Where the syncer listens, empty before it does."""
        try:
            return str(self.run.status()["address"])
        except ConfigError:
            return ""

    def learner(self, number: int, name: str, *words: str) -> Command:
        """Start a learner."""
        return self._start(name, "learner", "--connect", self.address, "--learner", str(number), *words)

    def state(self, number: int) -> dict[str, Any]:
        """What the status says of a learner."""
        found: dict[str, Any] = self.run.status()["learners"][number]
        return found

    def stepping(self, number: int, start: int) -> None:
        """Wait until the given start of a learner has made a step."""
        until(
            lambda: (one := self.state(number))["number"] == start and one["state"] == "connected" and one["step"] > 0,
            f"start {start} of learner {number} steps",
        )

    def merged(self, more: int) -> None:
        """Wait for so many further merges."""
        self.run.wait(rounds=self.run.status()["merges"] + more, timeout_s=GUARD_S)

    def close(self) -> None:
        """End what is left."""
        for command in self.commands[1:]:
            command.kill()
        if self.syncer.process.poll() is None:
            self.syncer.interrupt()
            self.syncer.ended()
