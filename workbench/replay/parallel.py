"""Exact replay in several processes: the learners in workers, the merges here.  The bits are those of one process."""

from __future__ import annotations

import os
import queue
import socket
import subprocess
import sys
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from workbench.config import RunConfig, to_toml
from workbench.protocol.records import SYNCER
from workbench.replay.differences import Findings, Impossible
from workbench.replay.letters import Done, Failed, MergeMade, Run, Sent, StateMade, Task, Waits
from workbench.replay.program import Merged, Programs, Step, StepEnded, UpdateFolded
from workbench.replay.report import ReplayReport, report_of
from workbench.replay.syncer import ReplayedSyncer
from workbench.training.flat import fragmentation_of, initial_weights

END_LIMIT_S = 10.0
"""Workers that have not ended by themselves after so long are killed [s]."""


class WorkerLost(ChildProcessError):
    """A worker process ended, or failed, in the middle of a replay."""


class _Worker:
    """One worker process; threads move what it says into a queue and what it is told out of another."""

    def __init__(self, number: int, task: Task, inbox: queue.Queue[tuple[int, Any]]) -> None:
        here, there = socket.socketpair()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "workbench.replay.worker", str(there.fileno())],
            pass_fds=[there.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,
        )
        there.close()
        self.connection = Connection(here.detach())
        self.outbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.folds = {
            (step.fragment, step.version)
            for steps in task.programs.values()
            for step in steps
            if isinstance(step, UpdateFolded)
        }
        self.takes = Programs(task.programs, None).handed_on
        self.told = 0
        self.active, self.stopped = False, False
        self.waits: Waits | None = None
        self.found = Done(False, Findings(), 0, 0)
        self.threads = [
            threading.Thread(target=_read, args=(number, self.connection, inbox), daemon=True),
            threading.Thread(target=_write, args=(self.connection, self.outbox), daemon=True),
        ]
        for thread in self.threads:
            thread.start()
        self.outbox.put(task)

    def tell(self, made: MergeMade | StateMade) -> None:
        """Tell of something for which its learners may wait."""
        self.told += 1
        self.outbox.put(made)

    def hang_up(self) -> None:
        """Close the connection; the process ends when it notices."""
        self.outbox.put(None)
        with suppress(OSError), socket.socket(fileno=os.dup(self.connection.fileno())) as end:
            end.shutdown(socket.SHUT_RDWR)

    def wait(self) -> None:
        """Wait until the process and both threads have ended."""
        try:
            self.process.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for thread in self.threads:
            thread.join()
        self.connection.close()


def _environment() -> dict[str, str]:
    root = str(Path(__file__).resolve().parents[2])
    paths = dict.fromkeys([root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _read(number: int, connection: Connection, inbox: queue.Queue[tuple[int, Any]]) -> None:
    try:
        while True:
            inbox.put((number, connection.recv()))
    except (EOFError, OSError):
        inbox.put((number, None))


def _write(connection: Connection, outbox: queue.SimpleQueue[Any]) -> None:
    try:
        while (message := outbox.get()) is not None:
            connection.send(message)
    except OSError:
        return  # the reader of this connection says that it is gone


def _end(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.hang_up()
    for worker in workers:
        worker.wait()


class ParallelReplay:
    """One execution of the programs of a run by several processes; see `workbench.replay.exact.Replay`.

    Parameters
    ----------
    config : RunConfig
    programs : Programs
    workers : int
        Processes for the learners, no more than there are learners.
    before : array (events,), bool, optional
        Events that are not compared.
    """

    def __init__(self, config: RunConfig, programs: Programs, workers: int, before: np.ndarray | None = None) -> None:
        self.programs = programs
        self.fragmentation = fragmentation_of(config)
        self.initial = initial_weights(config)
        own = Programs({SYNCER: programs.steps.get(SYNCER, [])}, None)
        self._own = Findings(before)
        self.syncer = ReplayedSyncer(config, self.fragmentation, self.initial, own, self._own)
        self.stopped = False
        self._done = 0
        self._inbox: queue.Queue[tuple[int, Any]] = queue.Queue()
        self._workers = [
            _Worker(number, task, self._inbox) for number, task in enumerate(_tasks(config, programs, workers, before))
        ]
        self._close = weakref.finalize(self, _end, self._workers)

    @property
    def findings(self) -> Findings:
        """Differences that all of them found."""
        return combined([self._own, *(worker.found.findings for worker in self._workers)])

    def run(
        self,
        order: str | int = "journal",
        progress: Callable[[int, int], None] | None = None,
        upto: Mapping[int, int] | None = None,
    ) -> None:
        """See `workbench.replay.exact.Replay.run`; the order between processes is what comes of it."""
        if self.stopped:
            return
        limits = {process: len(steps) for process, steps in self.programs.steps.items()} if upto is None else upto
        for worker in self._workers:
            worker.active, worker.waits = True, None
            worker.outbox.put(Run({process: limit for process, limit in limits.items() if process != SYNCER}))
        try:
            own = self.programs.steps.get(SYNCER, [])[: limits.get(SYNCER, 0)]
            self._run([step for step in own if isinstance(step, Merged)], progress)
        except Impossible:
            self.stopped = True
            self._call_off()
        if self.programs.broken is not None and upto is None:
            self.stopped = True
            self._own.out_of_order(self.programs.broken)

    def _run(self, merges: list[Merged], progress: Callable[[int, int], None] | None) -> None:
        while True:
            while self._done < len(merges) and self.syncer.ready(SYNCER, merges[self._done]):
                self._merge(merges[self._done])
                if progress is not None:
                    progress(self.syncer.merges, len(self.programs.merges))
            head = merges[self._done] if self._done < len(merges) else None
            if not any(worker.active for worker in self._workers) and head is None:
                break
            if not any(worker.active and not self._is_stuck(worker) for worker in self._workers):
                self._give_up(head)
                return
            self._hear()
        self.stopped = any(worker.stopped for worker in self._workers)

    def _merge(self, step: Merged) -> None:
        self.syncer.execute(step)
        self._done += 1
        theta = self.syncer.arithmetic.theta(step.fragment).copy()
        taken = tuple((c.learner, c.n) for c in step.contributions)
        for worker in self._workers:
            needed = (step.fragment, step.version) in worker.folds
            worker.tell(MergeMade(step.fragment, step.version, taken, theta if needed else None))

    def _is_stuck(self, worker: _Worker) -> bool:
        """Whether a worker waits although it has heard of all that was made for it."""
        return worker.waits is not None and worker.waits.heard == worker.told

    def _hear(self) -> None:
        number, message = self._inbox.get()
        worker = self._workers[number]
        if isinstance(message, Sent):
            worker.waits = None
            self.syncer.captured(message.learner, message.step, message.payload, message.same)
        elif isinstance(message, StateMade):
            worker.waits = None
            for other in self._workers:
                if (message.process, message.seq) in other.takes:
                    other.tell(message)
        elif isinstance(message, Waits):
            worker.waits = message
        elif isinstance(message, Done):
            worker.active, worker.waits = False, None
            worker.found, worker.stopped = message, message.stopped
        else:
            self.stopped = True
            why = message.text if isinstance(message, Failed) else f"exit code {worker.process.wait()}"
            self.close()
            raise WorkerLost(f"a worker of the replay is gone: {why}; replay with one process (without --workers)")

    def _give_up(self, head: Merged | None) -> None:
        """Nothing can go on: the tape lacks what the first of the steps that wait needs, or a learner stopped."""
        self.stopped = True
        if not any(worker.stopped for worker in self._workers):
            waiting: list[tuple[int, int, Step]] = [
                (worker.waits.step.event, worker.waits.process, worker.waits.step)
                for worker in self._workers
                if worker.waits is not None
            ]
            waiting += [] if head is None else [(head.event, SYNCER, head)]
            _, process, step = min(waiting, key=lambda entry: entry[:2])
            self._own.impossible(step, process, "tape", self.syncer.missing(step))
        self._call_off()

    def _call_off(self) -> None:
        """Have every worker stop where it is, and say what it found."""
        for worker in self._workers:
            if worker.active:
                worker.outbox.put(Run({}))
        while any(worker.active for worker in self._workers):
            self._hear()

    def report(self, environment: tuple[str, ...] = ()) -> ReplayReport:
        """What was found."""
        steps = sum(worker.found.steps for worker in self._workers)
        captures = sum(worker.found.captures for worker in self._workers)
        return report_of(self.programs, self.findings, self.syncer, self.fragmentation, steps, captures, environment)

    def close(self) -> None:
        """End the workers."""
        self._close()


def _tasks(config: RunConfig, programs: Programs, workers: int, before: np.ndarray | None) -> list[Task]:
    """Learners shared out so that each worker has about as many inner steps."""
    learners = {process: steps for process, steps in programs.steps.items() if process != SYNCER}
    counts = {process: sum(isinstance(step, StepEnded) for step in steps) for process, steps in learners.items()}
    loads = [0] * max(1, min(workers, len(learners)))
    shared: dict[int, dict[int, list[Step]]] = defaultdict(dict)
    for process in sorted(learners, key=lambda process: (-counts[process], process)):
        lightest = loads.index(min(loads))
        loads[lightest] += counts[process]
        shared[lightest][process] = learners[process]
    wanted = frozenset((c.learner, m.fragment, m.round, c.n) for m in programs.merges for c in m.contributions)
    text = to_toml(config)
    tasks = []
    for number in range(len(loads)):
        own = dict(sorted(shared[number].items()))
        elsewhere = Programs({p: steps for p, steps in learners.items() if p not in own}, None).handed_on
        given = frozenset((process, seq) for process, seq in elsewhere if process in own)
        tasks.append(Task(text, own, wanted, before, given))
    return tasks


def combined(parts: list[Findings]) -> Findings:
    """All findings as one: the first by its place in the journal, counts added, the largest difference."""
    found = Findings(parts[0].before)
    for part in parts:
        if part.first is not None and (found.first is None or part.first.event < found.first.event):
            found.first = part.first
        found.count += part.count
        found.largest = max(found.largest, part.largest)
    return found
