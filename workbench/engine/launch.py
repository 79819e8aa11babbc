"""Launching a run of real processes from Python: scripts, notebooks, and the command line alike."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec

from workbench.config import ConfigError, RunConfig, to_toml
from workbench.config.idle import idle_in
from workbench.engine import control
from workbench.engine.injecting import Injecting
from workbench.engine.layout import CONTROL_FILE, PLAN_FILE, Plan, read_outcome, write_private
from workbench.engine.listening import Listening, save_listening
from workbench.engine.placing import check_cores
from workbench.engine.showing import Showing
from workbench.engine.starting import start_supervisor
from workbench.protocol.faults import NO_FAULTS, FaultPlan
from workbench.protocol.plans import REAL, facts_of, numbered
from workbench.protocol.settings import live_value
from workbench.tape.lock import held
from workbench.tape.run_folder import RunFolder, create_run_folder

if TYPE_CHECKING:
    from workbench.engine.telemetry import Telemetry

RUNS = Path("runs")
LOOK_EVERY_S = 0.1
END_LIMIT_S = 120.0
OWNER_LIMIT_S = 10.0
SNAPSHOT_LIMIT_S = 600.0
START_LIMIT_S = 60.0
"""How long a supervisor that lives may take until it listens, on however busy a machine."""


class RunEnded(RuntimeError):
    """The run is over, and came to no good end or to none that was waited for; ``code`` is its exit code."""

    def __init__(self, line: str, code: int) -> None:
        super().__init__(line)
        self.code = code


def launch(
    config: RunConfig,
    out: str | Path | None = None,
    detach: bool = False,
    faults: FaultPlan = NO_FAULTS,
    listening: Listening | None = None,
) -> Run:
    """Train by Decoupled DiLoCo (arXiv 2604.21428) with real processes.

    The calling process forks nothing and needs no ``__main__`` guard: a supervisor starts everything else.

    Parameters
    ----------
    config : RunConfig
    out : path, optional
        Folder of the run; by default a new one under ``runs``.
    detach : bool
        Let the run go on when this process ends; else it ends within seconds, its tape closed.
    faults : FaultPlan, optional
        Times count from the start of rounds.
    listening : Listening, optional
        Start no learners: they come by hand, to this address.

    Returns
    -------
    Run
        A context manager: leaving it stops the run.

    Raises
    ------
    ConfigError
        The folder holds something, or a core cannot be used here.

    Examples
    --------
    >>> import workbench as wb
    >>> with wb.launch(wb.preset("tiny-4")) as run:  # doctest: +SKIP
    ...     run.kill(2)
    ...     run.wait()
    """
    check_cores(config)
    tell(idle_in(config, "real"))
    plan = Plan(list(numbered(faults).faults), facts_of(faults, config, REAL))
    folder = create_run_folder(_folder(config) if out is None else out, to_toml(config))
    write_private(folder.path / PLAN_FILE, msgspec.json.encode(plan))
    if listening is not None:
        save_listening(folder.path, listening)
    return Run(folder, start_supervisor(folder, detach))


def tell(notes: list[str]) -> None:
    """Say lines to whoever sits before the screen; empty ones are none."""
    for note in filter(None, notes):
        print(f"workbench: {note}", file=sys.stderr, flush=True)


def attach(run: str | Path) -> Run:
    """A run that goes on, started by somebody else; leaving the context lets it go on.

    Raises
    ------
    ConfigError
        It does not go on.
    """
    folder = RunFolder(Path(run).resolve())
    control.address_of(folder.path)
    return Run(folder, None)


def _folder(config: RunConfig) -> Path:
    stem = f"{config.preset or 'run'}-s{config.seed}"
    return next(path for n in range(1, 10**9) if not (path := RUNS / f"{stem}-{n}").exists())


class Run(Injecting, Showing):
    """A run of real processes.

    Attributes
    ----------
    path : Path
        Its folder.
    """

    def __init__(self, folder: RunFolder, supervisor: subprocess.Popen[bytes] | None) -> None:
        self.folder = folder
        self.path = folder.path
        self._supervisor = supervisor

    # looking

    @property
    def running(self) -> bool:
        """Whether the supervisor is there."""
        if self._supervisor is not None:
            return self._supervisor.poll() is None
        try:
            control.address_of(self.path)
        except ConfigError:
            return False
        return True

    def status(self) -> dict[str, Any]:
        """The run now: phase, merges, last merge, and for each learner state, step, loss, how far it is behind."""
        status: dict[str, Any] = self._ask({"verb": "status"})["status"]
        return status

    def telemetry(self) -> Telemetry:
        """Subscribe to what happens from now on: records as they are journalled, status four times a second.

        Raises
        ------
        ConfigError
            The run does not go on.

        Examples
        --------
        >>> with run.telemetry() as telemetry:  # doctest: +SKIP
        ...     for batch in telemetry:
        ...         print(len(batch.records), "records, not shown:", batch.missed)
        """
        from workbench.engine.telemetry import Telemetry

        self.await_control()
        return Telemetry(Path(control.address_of(self.path).runtime), lambda: self.running)

    @property
    def tape(self) -> Any:
        """The tape, an `xarray.DataTree`, while the run goes on and after."""
        from workbench.tape import open_tape

        return open_tape(self.path)

    def outcome(self) -> tuple[int, str]:
        """Exit code and last line of a run that is over; a supervisor that is about to tell them is waited for."""
        without_a_word = 3, f"the supervisor of {self.path} is gone without a word; see {self.folder.logs}"
        until = time.monotonic() + OWNER_LIMIT_S
        while (found := read_outcome(self.path)) is None and held(self.folder.supervisor_lock):
            if time.monotonic() > until:
                break
            time.sleep(LOOK_EVERY_S / 2)
        return found or without_a_word

    # acting: faults are in `Injecting`

    def set(self, changes: dict[str, Any] | None = None, /, who: str = "python", **values: Any) -> int:
        """Change live settings; returns the revision that holds them.  The tape says ``who`` asked.

        Raises
        ------
        ConfigError
            A key that cannot change live, or an impossible value.
        """
        wanted = {key: live_value(key, value) for key, value in {**(changes or {}), **values}.items()}
        answer = self._ask({"verb": "set", "values": wanted, "who": who})
        tell(answer.get("notes", []))
        return int(answer["revision"])

    def snapshot(self, who: str = "api", timeout_s: float = SNAPSHOT_LIMIT_S) -> int:
        """Take a snapshot and wait until it lies on disk; returns its number.

        Raises
        ------
        ConfigError
            It was given up; the line says why.
        """
        return int(self._ask({"verb": "snapshot", "who": who}, timeout_s)["snapshot"])

    def wait(self, rounds: int | None = None, timeout_s: float | None = None) -> int:
        """Wait until so many merges are done, or, without a number, until the run is over.

        Returns
        -------
        int
            Merges done, or the run's exit code.

        Raises
        ------
        RunEnded
            The run ended before, or badly.
        TimeoutError
            After ``timeout_s`` seconds.
        """
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while self.running:
            if rounds is not None and (merges := self._merges()) >= rounds:
                return merges
            if until is not None and time.monotonic() > until:
                raise TimeoutError(f"{self.path} has not come so far within {timeout_s:g} s; see {self.folder.logs}")
            time.sleep(LOOK_EVERY_S)
        self._reap()
        code, line = self.outcome()
        if code != 0 or rounds is not None:
            raise RunEnded(line or f"the run was over before {rounds} merges", code)
        return code

    def _merges(self) -> int:
        """Merges done, -1 while the supervisor does not answer (it is about to listen, or to end)."""
        try:
            return int(self.status()["merges"])
        except ConfigError:
            return -1

    def stop(self, timeout_s: float = END_LIMIT_S) -> None:
        """End the run in order and wait for that; a run that is over stays over."""
        until = time.monotonic() + timeout_s
        asked = False
        while self.running and time.monotonic() < until:
            if not asked:
                try:
                    asked = bool(control.ask(self.path, {"verb": "stop", "reason": "stopped"}))
                except ConfigError:
                    asked = False
            time.sleep(LOOK_EVERY_S / 2)
        if self.running:
            raise TimeoutError(f"{self.path} did not end within {timeout_s:g} s; see {self.folder.logs}")
        self._reap()

    def _reap(self) -> None:
        """Nothing of a supervisor that has ended is left in this process, and who outlives it has closed the tape."""
        if self._supervisor is not None:
            self._supervisor.wait(timeout=OWNER_LIMIT_S)
            if self._supervisor.stdin is not None:
                self._supervisor.stdin.close()
        until = time.monotonic() + END_LIMIT_S
        while held(self.folder.journal_lock) or held(self.folder.tape_lock):
            if time.monotonic() > until:
                break
            time.sleep(LOOK_EVERY_S / 2)

    def _ask(self, request: dict[str, Any], timeout_s: float = control.ANSWER_LIMIT_S) -> dict[str, Any]:
        self.await_control()
        return control.ask(self.path, request, timeout_s)

    def give_up(self) -> None:
        """Whoever started the run is called away before it listens: it ends in order."""
        if self._supervisor is not None:
            self._supervisor.terminate()

    def await_control(self) -> None:
        """Give a supervisor that has only just been started the time to listen."""
        until = time.monotonic() + START_LIMIT_S
        while not (self.path / CONTROL_FILE).exists() and self.running and time.monotonic() < until:
            time.sleep(LOOK_EVERY_S / 2)
        if not self.running:
            raise ConfigError(f"{self.path} is over: {self.outcome()[1] or 'it ended as it should'}")

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._supervisor is not None:
            self.stop()

    def __repr__(self) -> str:
        said = "running" if self.running else f"over: {self.outcome()[1] or 'it ended as it should'}"
        return f"<Run {self.path}, {said}>"
