"""Where a replay differs from its tape, and by how much."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from workbench.protocol.records import label_of
from workbench.replay.program import KINDS, OutOfOrder, Step

CLOSE = 1e-6
"""Relative difference of losses and norms up to which runs on different machines count as alike."""


class Difference(NamedTuple):
    """One event whose recomputed values are not those of the tape.

    Attributes
    ----------
    event : int
        Index in the tape's /events; -1 for what the run began with.
    kind, process : str
        As the tape calls them.
    round, fragment : int
        -1 where the event has none.
    place : str
        ``tape`` (records out of order or contradictory), ``start``, ``learner``, ``wire`` or ``merge``.
    what, recorded, computed : str
        Which value, on the tape and here; both empty where ``what`` is a whole sentence.
    merge : int
        Number of the merge, by row of /merges; -1 for what is none.
    """

    event: int
    kind: str
    process: str
    round: int
    fragment: int
    place: str
    what: str
    recorded: str
    computed: str
    merge: int = -1

    def text(self) -> str:
        """One line."""
        where = "".join(
            f", {name} {value}" for name, value in (("round", self.round), ("fragment", self.fragment)) if value >= 0
        )
        number = f"merge {self.merge}, " if self.merge >= 0 else ""
        begin = (
            f"{number}event {self.event}: {self.kind} of {self.process}{where}"
            if self.event >= 0
            else "before any event"
        )
        values = f" is {self.recorded} on the tape, {self.computed} here" if self.recorded or self.computed else ""
        return f"{begin}: {self.what}{values} (place: {self.place})"


class Impossible(Exception):
    """A step that cannot be executed as the tape has it; `Findings` holds the difference."""


UNFIT = (ArithmeticError, LookupError, TypeError, ValueError)
"""What executors raise for values that make no sense to them."""


class Findings:
    """Differences of one replay: the first by its place in the journal, how many, and the largest of a number.

    Parameters
    ----------
    before : array (events,), bool, optional
        Events that are executed, because what follows needs them, and not compared.

    Attributes
    ----------
    first : Difference or None
    count : int
    largest : float
        Largest relative difference of a loss or a norm; infinite if a step could not be executed.
    """

    def __init__(self, before: np.ndarray | None = None) -> None:
        self.before = before
        self.first: Difference | None = None
        self.count = 0
        self.largest = 0.0

    @property
    def match(self) -> str:
        """``bit``, ``1e-6`` (all losses and norms within that) or ``diverged``."""
        if not self.count:
            return "bit"
        return f"{CLOSE:g}".replace("e-0", "e-") if self.largest <= CLOSE else "diverged"

    def compares(self, event: int) -> bool:
        """Whether an event (-1: what the run began with) lies in the part that is compared."""
        return self.before is None or (event >= 0 and not self.before[event])

    def note(self, difference: Difference) -> None:
        """Take note of a difference; of all the one that the journal has first is kept.

        Of one event what was computed otherwise says more than what the tape has otherwise in two places.
        """
        if self.compares(difference.event):
            self._keep(difference)

    def _keep(self, difference: Difference) -> None:
        self.count += 1
        if self.first is None or _order(difference) < _order(self.first):
            self.first = difference

    def digests(self, step: Step, process: int, place: str, what: str, recorded: int, computed: int) -> bool:
        """Compare two digests; whether they are equal."""
        if recorded != computed:
            self.note(_difference(step, process, place, what, f"{recorded:016x}", f"{computed:016x}"))
        return recorded == computed

    def values(self, step: Step, process: int, place: str, what: str, recorded: Any, computed: Any) -> bool:
        """Compare whole numbers, words or lists; whether they are equal."""
        if recorded != computed:
            self.note(_difference(step, process, place, what, repr(recorded), repr(computed)))
        return bool(recorded == computed)

    def numbers(self, step: Step, process: int, place: str, what: str, recorded: float, computed: float) -> bool:
        """Compare two real numbers bit for bit, and keep their relative difference; whether they are equal."""
        if float(recorded).hex() == float(computed).hex():
            return True
        if self.compares(step.event):
            self.largest = max(self.largest, relative(recorded, computed))
        self.note(_difference(step, process, place, what, repr(float(recorded)), repr(float(computed))))
        return False

    def contradiction(self, step: Step, process: int, place: str, what: str) -> None:
        """Take note of something on the tape that cannot be so."""
        self.note(_difference(step, process, place, what, "", ""))

    def out_of_order(self, b: OutOfOrder) -> None:
        """Take note of the record at which the programs end."""
        place = (b.event, b.kind.name.lower(), label_of(b.process), -1, -1, "tape")
        self._keep(Difference(*place, "number of the record", str(b.seq), str(b.expected)))

    def impossible(self, step: Step, process: int, place: str, why: object) -> Impossible:
        """Take note of a step that cannot be executed; to be raised."""
        self.largest = math.inf
        if isinstance(why, KeyError | IndexError | TypeError):
            why = f"{type(why).__name__}: {why}"
        self._keep(_difference(step, process, place, f"cannot be executed: {why}", "", ""))
        return Impossible(str(why))


def _order(difference: Difference) -> tuple[int, bool]:
    return difference.event, difference.place == "tape"


def relative(a: float, b: float) -> float:
    """|a - b| over the larger of |a| and |b|; infinite if either is not finite."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    scale = max(abs(a), abs(b))
    return abs(a - b) / scale if scale else 0.0


def _difference(step: Step, process: int, place: str, what: str, recorded: str, computed: str) -> Difference:
    return Difference(
        step.event,
        KINDS[type(step)].name.lower(),
        label_of(process),
        getattr(step, "round", -1),
        getattr(step, "fragment", -1),
        place,
        what,
        recorded,
        computed,
    )
