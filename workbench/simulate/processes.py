"""Processes of a virtual run: a machine, and what an operating system knows of it."""

from __future__ import annotations

from collections import deque
from typing import Any

from workbench.protocol import learner as learner_module
from workbench.protocol import learner_state
from workbench.protocol import syncer as syncer_module
from workbench.protocol.actions import StartStep
from workbench.protocol.poisoning import Poisons
from workbench.protocol.records import SYNCER, process_of
from workbench.protocol.settings import FixedSettings, LearnerSettings
from workbench.protocol.syncer_state import SyncerState


class VirtualProcess:
    """What learners and the syncer have in common: alive, stopped, and inputs that wait while stopped."""

    __slots__ = ("alive", "machine", "process", "queue", "scheduled_wake", "started", "stops")

    def __init__(self, machine: Any, process: int) -> None:
        self.machine = machine
        self.process = process
        self.alive = True
        self.started = False
        self.stops = 0
        self.queue: deque[Any] = deque()
        self.scheduled_wake = -1


class LearnerProcess(VirtualProcess):
    """A learner process with the step that it is making."""

    __slots__ = (
        "injected_ns",
        "learner",
        "number",
        "poisons",
        "step",
        "step_end",
        "step_left",
        "step_start",
        "token",
    )

    def __init__(self, learner: int, number: int, fixed: FixedSettings, settings: LearnerSettings) -> None:
        machine = learner_module.LearnerMachine(learner_state.new_state(learner, number, fixed, settings))
        super().__init__(machine, process_of(learner))
        self.learner = learner
        self.number = number
        self.step: StartStep | None = None
        self.step_start = 0
        self.step_end = 0
        self.step_left = 0
        self.injected_ns = 0
        self.token = 0
        self.poisons = Poisons()


class SyncerProcess(VirtualProcess):
    """The syncer process; ``life`` tells what belongs to it from what an earlier one had started."""

    __slots__ = ("life",)

    def __init__(self, state: SyncerState, life: int) -> None:
        super().__init__(syncer_module.SyncerMachine(state), SYNCER)
        self.life = life
