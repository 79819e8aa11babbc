"""A process that replays some of the learners: between merges they do not need each other.

It is started by `workbench.replay.parallel`, which alone talks to it, over an inherited socket.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from workbench.config import from_toml
from workbench.datasets import open_text
from workbench.protocol.records import label_of
from workbench.replay.differences import Findings, Impossible
from workbench.replay.learners import ReplayedLearner
from workbench.replay.letters import Done, Failed, MergeMade, Run, Sent, StateMade, Task, Waits
from workbench.replay.program import (
    ContributionAcknowledged,
    FragmentCaptured,
    Programs,
    StateAdopted,
    Step,
    UpdateFolded,
)
from workbench.replay.states import Copied, States
from workbench.training.flat import initial_weights
from workbench.training.program import TrainingProgram


class _States(States):
    """States of the learners of a worker; those that are taken elsewhere are sent there."""

    def __init__(self, connection: Connection, task: Task) -> None:
        super().__init__(Programs(task.programs, None), task.handed_on)
        self._connection, self._handed_on = connection, task.handed_on

    def keep(self, process: int, seq: int, copied: Copied) -> None:
        """A state that another worker has made."""
        super().put(process, seq, None, copied)

    def put(self, process: int, seq: int, number: float | None, copied: Copied) -> None:
        """See `States.put`."""
        super().put(process, seq, number, copied)
        if number is None and (process, seq) in self._handed_on:
            self._connection.send(StateMade(process, seq, copied._replace(waiting={})))


class _Mail:
    """The syncer as the learners of a worker see it."""

    def __init__(self, connection: Connection, task: Task, initial: list[np.ndarray]) -> None:
        self.connection, self.wanted = connection, task.wanted
        self.versions = [0] * len(initial)
        self.heard = 0
        folds = (step for steps in task.programs.values() for step in steps if isinstance(step, UpdateFolded))
        self._folds = Counter((fold.fragment, fold.version) for fold in folds)
        self._thetas = {(p, 0): flat for p, flat in enumerate(initial)}
        self._merged: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        self.states = _States(connection, task)

    def epoch_of(self, event: int) -> int:
        """A tape on which a run went back is replayed by one process."""
        return 0

    def hear(self, made: MergeMade | StateMade) -> None:
        """Take note of a merge, or of a state that is taken here."""
        self.heard += 1
        if isinstance(made, StateMade):
            self.states.keep(made.process, made.seq, made.copied)
            return
        self.versions[made.fragment] = made.version
        for learner, n in made.taken:
            self._merged[learner, made.fragment].append((made.version, n))
        if made.theta is not None:
            self._thetas[made.fragment, made.version] = made.theta

    def ready(self, step: Step) -> bool:
        """See `workbench.replay.syncer.ReplayedSyncer.ready`."""
        if isinstance(step, UpdateFolded | ContributionAcknowledged):
            return 0 <= step.fragment < len(self.versions) and 0 <= step.version <= self.versions[step.fragment]
        if isinstance(step, StateAdopted) and step.source == "peer":
            return self.states.from_peer(step.peer, step.copied) is not None
        return True

    def take_theta(self, fold: UpdateFolded) -> np.ndarray:
        """See `workbench.replay.syncer.ReplayedSyncer.take_theta`."""
        p, version = fold.fragment, fold.version
        self._folds[p, version] -= 1
        return self._thetas[p, version] if self._folds[p, version] else self._thetas.pop((p, version))

    def took(self, learner: int, step: ContributionAcknowledged, base_version: int) -> bool:
        """See `workbench.replay.syncer.ReplayedSyncer.took`."""
        known = [entry for entry in self._merged[learner, step.fragment] if entry[0] <= step.version]
        return bool(known) and known[-1][1] == step.n and known[-1][0] > base_version

    def captured(self, learner: int, step: FragmentCaptured, payload: Any, same: bool) -> None:
        """See `workbench.replay.syncer.ReplayedSyncer.captured`."""
        if (learner, step.fragment, step.round, step.n) in self.wanted:
            self.connection.send(Sent(learner, step, payload, same))


class Worker:
    """The learners of one process, and the connection to whoever merges.

    Parameters
    ----------
    connection : Connection
    task : Task
    """

    def __init__(self, connection: Connection, task: Task) -> None:
        config = from_toml(task.config)
        program = TrainingProgram(config, open_text(config.data))
        initial = initial_weights(config)
        self.connection, self.programs = connection, task.programs
        self.mail, self.findings = _Mail(connection, task, initial), Findings(task.before)
        syncer: Any = self.mail
        self.learners = {
            process: ReplayedLearner(config, process, program, initial, syncer, self.findings)
            for process in task.programs
        }
        self.done = dict.fromkeys(task.programs, 0)
        self.stopped = False

    def run(self, upto: dict[int, int]) -> None:
        """Do the steps asked for, waiting for merges where it must."""
        while not self.stopped and (heads := self._heads(upto)):
            while self.connection.poll():
                self._hear(heads[0])
            able = next((head for head in heads if self.mail.ready(head[2])), None)
            if able is None:
                _, process, step = heads[0]
                self.connection.send(Waits(self.mail.heard, process, step))
                self._hear(heads[0])
            else:
                self._do(able[1], able[2])
        steps = sum(learner.steps for learner in self.learners.values())
        captures = sum(learner.captures for learner in self.learners.values())
        self.connection.send(Done(self.stopped, self.findings, steps, captures))

    def _heads(self, upto: dict[int, int]) -> list[tuple[int, int, Step]]:
        """The next step of each learner that has one left, in journal order."""
        left = [(process, self.programs[process][at]) for process, at in self.done.items() if at < upto.get(process, 0)]
        return sorted(((step.event, process, step) for process, step in left), key=lambda head: head[:2])

    def _do(self, process: int, step: Step) -> None:
        self.done[process] += 1
        try:
            self.learners[process].execute(step)
        except Impossible:
            self.stopped = True

    def _hear(self, head: tuple[int, int, Step]) -> None:
        """Take one message; a worker that is told to run no further stops where it is."""
        message = self.connection.recv()
        if isinstance(message, MergeMade | StateMade):
            self.mail.hear(message)
        elif not isinstance(message, Run):
            raise RuntimeError(f"{type(message).__name__} came while {label_of(head[1])} was replayed")
        elif not message.upto:
            self.stopped = True


def main(descriptor: int) -> int:
    """Serve until the other end is gone."""
    connection = Connection(descriptor)
    try:
        worker = Worker(connection, connection.recv())
        while True:
            message = connection.recv()
            if isinstance(message, MergeMade | StateMade):
                worker.mail.hear(message)
            elif isinstance(message, Run):
                worker.run(message.upto)
    except (EOFError, ConnectionError):
        return 0
    except Exception as error:  # told to whoever asked: it has no traceback to read
        connection.send(Failed(f"{type(error).__name__}: {error}"))
        return 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
