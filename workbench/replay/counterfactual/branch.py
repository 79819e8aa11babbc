"""Where a counterfactual leaves the tape, and the messages that a syncer has sent by then."""

from __future__ import annotations

from typing import Any, NamedTuple

from workbench.protocol import actions as act


class Branch(NamedTuple):
    """Where a counterfactual leaves the tape.

    Attributes
    ----------
    event : int
        First event of the tape that does not happen as recorded.
    time_ns : int
        The syncer's time [ns].
    number : int
        The input of the syncer's machine at which it happens; it is the last that was taken, unless ``before``.
    before : bool
        The branch lies before that input.
    what : str
        In which column, or why.
    actions : list of Action
        What the machine answered to that input: still to be done.
    """

    event: int
    time_ns: int
    number: int
    before: bool
    what: str
    actions: list[Any]

    @property
    def past_ns(self) -> int:
        """Until when things have happened as on the tape: what is at the time of a fault that is gone has not."""
        return self.time_ns - self.before


class Sent(NamedTuple):
    """A message of the syncer: when it left, in which of its lives."""

    time_ns: int
    life: int
    send: act.Send
