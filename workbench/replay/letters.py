"""What a replay and its worker processes tell each other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from workbench.replay.differences import Findings
from workbench.replay.program import FragmentCaptured, Step
from workbench.replay.states import Copied

Taken = tuple[tuple[int, int], ...]
"""(learner, own step n) of the contributions of a merge."""


class Task(NamedTuple):
    """What a worker begins with: programs of its learners, and keys (learner, p, round, n) that merges will use.

    Events of ``before`` are not compared; states ``handed_on``, (process, number of its record), are taken elsewhere.
    """

    config: str
    programs: dict[int, list[Step]]
    wanted: frozenset[tuple[int, int, int, int]]
    before: np.ndarray | None
    handed_on: frozenset[tuple[int, int]]


class Run(NamedTuple):
    """Go on, of each process up to so many of its steps."""

    upto: dict[int, int]


class MergeMade(NamedTuple):
    """A merge is done; ``theta`` only where a learner of the worker will fold it."""

    fragment: int
    version: int
    taken: Taken
    theta: np.ndarray | None


class StateMade(NamedTuple):
    """A learner's state at its record ``seq``, which a learner of another worker takes."""

    process: int
    seq: int
    copied: Copied


class Sent(NamedTuple):
    """A contribution that a merge will use; ``same``: its payload is the tape's."""

    learner: int
    step: FragmentCaptured
    payload: Any
    same: bool


class Waits(NamedTuple):
    """Nothing can be done after ``heard`` merges and states were heard of; the first of what waits."""

    heard: int
    process: int
    step: Step


class Done(NamedTuple):
    """All that was asked is done, or as much as can be; the counts are those since the start."""

    stopped: bool
    findings: Findings
    steps: int
    captures: int


class Failed(NamedTuple):
    """Something that is no difference went wrong."""

    text: str
