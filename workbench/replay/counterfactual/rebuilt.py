"""A learner at a branch: its machine, what it does, and what has not reached it or left it."""

from __future__ import annotations

from typing import Any, NamedTuple

from workbench.protocol.actions import StartStep
from workbench.protocol.learner import LearnerMachine
from workbench.protocol.learner_state import Copy, Cut
from workbench.protocol.messages import Mark


class Mail(NamedTuple):
    """A message to a learner: when it was sent, on which connection."""

    time_ns: int
    connection: int
    channel: int
    message: Any


class Rebuilt(NamedTuple):
    """A learner at the cut.

    Attributes
    ----------
    machine : LearnerMachine
    step : StartStep or None
        The step that it makes.
    since_ns : int
        When that began.
    unheard : list of Mail
        Messages that have not reached it.
    unsent : list of int
        Numbers of records that it made and that are not in the journal: the rest of its last boundary.
    made, differing : int
        Records made again, and how many of them are not those of the tape.
    goes_on : bool
        Whether its next step is the one behind those on the tape: else too much of what it heard is not there.
    copies : dict of int to Copy
        All that it has copied of its state: by number of the request, or by less that of the snapshot.
    cut : Cut or None
        The last snapshot that has reached it.
    marks : list of Mark
        Its MARKERs that left behind the last record in the journal.
    """

    machine: LearnerMachine
    step: StartStep | None
    since_ns: int
    unheard: list[Mail]
    unsent: list[int]
    made: int
    differing: int
    goes_on: bool
    copies: dict[int, Copy]
    cut: Cut | None
    marks: list[Mark]
