"""The programs of a run: what each process did to its arrays, in its own order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from workbench.algorithms.poisons import Poison
from workbench.protocol.poisoning import WEIGHTS
from workbench.protocol.records import FIRST_LEARNER, LEARNER_PROGRAM, SYNCER, Kind, Record, label_of
from workbench.replay.columns import values_read
from workbench.tape import TapeError


class StateAdopted(NamedTuple):
    """A process takes a state: ``source`` says from where.

    ``digest`` is that of its parameters (``initial``), or of the whole state that it was given: that of process
    ``peer`` as of its record ``copied``, or what it recorded itself for snapshot ``number``.  ``n`` is its last own
    step.
    """

    event: int
    source: str
    digest: int
    n: int
    peer: int
    copied: int
    number: float


class StateCopied(NamedTuple):
    """The state is copied for a peer; ``seq`` is the number of this record."""

    event: int
    seq: int


class SnapshotRecorded(NamedTuple):
    """The state is copied for snapshot ``number``; ``seq`` is the number of this record."""

    event: int
    number: float
    seq: int


class Restored(NamedTuple):
    """The process is again what it recorded for snapshot ``number``."""

    event: int
    number: float
    digest: int


class StepEnded(NamedTuple):
    """Own step ``n`` with the learning rate of global step ``g``."""

    event: int
    n: int
    g: int
    tokens: int
    loss: float
    batch: int
    accumulation: int


class UpdateFolded(NamedTuple):
    """The syncer's ``version`` of a fragment absorbed after own step ``n``; ``reference`` -1 is the base."""

    event: int
    fragment: int
    version: int
    base_version: int
    n: int
    rule: str
    alpha: float
    reference: int


class FragmentCaptured(NamedTuple):
    """The host copy of own step ``n`` encoded for a round; ``poison`` is the numeric fault on it, if any."""

    event: int
    fragment: int
    round: int
    base_version: int
    n: int
    steps: int
    tokens: int
    codec: str
    digest: int
    poison: Poison | None = None


class ContributionAcknowledged(NamedTuple):
    """The learner knows from ``version`` whether its contribution was ``taken``; the copy goes with the next fold."""

    event: int
    fragment: int
    round: int
    n: int
    version: int
    taken: float


class SettingApplied(NamedTuple):
    """A factor on the learning rate from here on."""

    event: int
    rate_scale: float


class FaultApplied(NamedTuple):
    """A numeric fault on the next capture of a fragment for a round, or, without a round, on the learner's own."""

    event: int
    fault: str
    fragment: int
    round: int
    factor: float
    seed: int

    @property
    def poison(self) -> Poison:
        """What it does."""
        return Poison(self.fault, self.factor, self.seed)


class Contribution(NamedTuple):
    """One learner's part in a merge."""

    learner: int
    n: int
    steps: int
    tokens: int
    weight: float
    base_version: int
    digest: int


class Merged(NamedTuple):
    """A merge, and what came out of it."""

    event: int
    round: int
    fragment: int
    version: int
    merge: str
    digest: int
    outer_digest: int
    norm: float
    weights_rule: str
    outer: str
    outer_rate: float
    outer_momentum: float
    fresh_outer: bool
    contributions: tuple[Contribution, ...]


Step = (
    StateAdopted
    | StepEnded
    | UpdateFolded
    | FragmentCaptured
    | ContributionAcknowledged
    | SettingApplied
    | FaultApplied
    | StateCopied
    | SnapshotRecorded
    | Restored
    | Merged
)

KINDS: dict[type, Kind] = {
    StateAdopted: Kind.STATE_ADOPTED,
    StepEnded: Kind.STEP_ENDED,
    UpdateFolded: Kind.UPDATE_FOLDED,
    FragmentCaptured: Kind.FRAGMENT_CAPTURED,
    ContributionAcknowledged: Kind.CONTRIBUTION_ACKNOWLEDGED,
    SettingApplied: Kind.SETTING_APPLIED,
    FaultApplied: Kind.FAULT_APPLIED,
    StateCopied: Kind.STATE_COPIED,
    SnapshotRecorded: Kind.SNAPSHOT_RECORDED,
    Restored: Kind.RESTORED,
    Merged: Kind.MERGED,
}
"""Step to the kind of record that it is made of."""


class OutOfOrder(NamedTuple):
    """A record whose number is not the next of its process."""

    event: int
    kind: Kind
    process: int
    seq: int
    expected: int


class Programs(NamedTuple):
    """What all processes did.

    Attributes
    ----------
    steps : dict of int to list of Step
        By process number.
    broken : OutOfOrder or None
        The first record that is out of order; programs end before it.
    """

    steps: dict[int, list[Step]]
    broken: OutOfOrder | None

    @property
    def merges(self) -> list[Merged]:
        """Steps of the syncer."""
        return [step for step in self.steps.get(SYNCER, ()) if isinstance(step, Merged)]

    @property
    def cuts(self) -> list[int]:
        """Events at which the run went back to a snapshot: each begins an epoch."""
        return [step.event for step in self.steps.get(SYNCER, ()) if isinstance(step, Restored)]

    @property
    def handed_on(self) -> frozenset[tuple[int, int]]:
        """States that a process took from another: (process that gave it, number of its record)."""
        own = (step for steps in self.steps.values() for step in steps)
        return frozenset((s.peer, s.copied) for s in own if isinstance(s, StateAdopted) and s.source == "peer")


def read_programs(records: Iterable[Record]) -> Programs:
    """Read the programs off the records of a tape, in journal order.

    Raises
    ------
    TapeError
        When a value that a program needs is missing or makes no sense.
    """
    steps: dict[int, list[Step]] = defaultdict(list)
    seqs: dict[int, int] = defaultdict(int)
    for event, record in enumerate(records):
        seqs[record.process] += 1
        if record.seq != seqs[record.process]:
            broken = OutOfOrder(event, Kind(record.kind), record.process, record.seq, seqs[record.process])
            return Programs(_arranged(steps), broken)
        if record.kind == Kind.MERGED and record.process == SYNCER:
            steps[SYNCER].append(_merged(record, event))
        elif (record.process >= FIRST_LEARNER and record.kind in LEARNER_PROGRAM) or (
            record.process == SYNCER and record.kind in _SYNCER_STATES
        ):
            own = (record.seq,) if record.kind in _COPIES else ()
            steps[record.process].append(_MAKERS[Kind(record.kind)](event, *values_read(record, event), *own))
    return Programs(_arranged(steps), None)


_SYNCER_STATES = (Kind.SNAPSHOT_RECORDED, Kind.RESTORED)
_COPIES = (Kind.SNAPSHOT_RECORDED, Kind.STATE_COPIED)
_MAKERS: dict[Kind, Callable[..., Step]] = {kind: step for step, kind in KINDS.items() if kind != Kind.MERGED}


def _merged(record: Record, event: int) -> Merged:
    *plain, learners, n, steps, tokens, weights, bases, digests = values_read(record, event)
    try:
        rows = zip(learners, n, steps, tokens, weights, bases, digests, strict=True)
        contributions = tuple(Contribution(*row) for row in rows)
    except (TypeError, ValueError) as error:
        raise TapeError(
            f"event {event}, merged by {label_of(record.process)}, lists contributions of different lengths; "
            "expected one entry for each learner in every list"
        ) from error
    return Merged._make([event, *plain, contributions])


def _arranged(steps: dict[int, list[Step]]) -> dict[int, list[Step]]:
    return {process: _with_copies(_with_poison(own)) for process, own in sorted(steps.items())}


def _with_poison(steps: list[Step]) -> list[Step]:
    """Let numeric faults act on the captures that they were recorded for."""
    waiting: dict[tuple[int, int], Poison] = {}
    result: list[Step] = []
    for step in steps:
        if isinstance(step, FaultApplied) and step.round != WEIGHTS:
            waiting[step.fragment, step.round] = step.poison
        elif isinstance(step, FragmentCaptured):
            result.append(step._replace(poison=waiting.pop((step.fragment, step.round), None)))
        else:
            result.append(step)
    return result


def _with_copies(steps: list[Step]) -> list[Step]:
    """Put captures next to where their host copy was published.

    A copy is recorded when it is encoded, which may be after later steps and folds of the training thread; it
    holds the fragment as it was after own step n and the fold of its base version.
    """
    groups: list[list[Step]] = []
    copies = _Copies()
    for step in steps:
        place = copies.place(step) if isinstance(step, FragmentCaptured) else -1
        if place >= 0:
            groups[place].append(step)
        else:
            groups.append([step])
            copies.note(step, len(groups) - 1)
    return [step for group in groups for step in group]


class _Copies:
    """Where in a program each host copy was published."""

    def __init__(self) -> None:
        self._steps: dict[int, int] = {}
        self._folds: dict[tuple[int, int], int] = {}
        self._now: dict[int, tuple[int, int]] = {}
        self._n = -1
        self._restored = -1

    def note(self, step: Step, place: int) -> None:
        if (isinstance(step, StateAdopted) and step.source == "initial") or isinstance(step, Restored):
            self._steps, self._folds, self._now, self._n = {}, {}, {}, -1
            self._restored = place if isinstance(step, Restored) else -1
        elif isinstance(step, StepEnded):
            self._n, self._steps[step.n] = step.n, place
        elif isinstance(step, UpdateFolded):
            self._folds[step.fragment, step.version] = place
            self._now[step.fragment] = (step.version, place)
        elif isinstance(step, FaultApplied):
            self._n = -1  # what was published is not what the learner holds any more

    def place(self, capture: FragmentCaptured) -> int:
        """Group to which an older copy belongs; -1 for the present copy, and for one that never was."""
        version, _ = self._now.get(capture.fragment, (-1, -1))
        present = capture.n == self._n and capture.base_version == version
        if present or (capture.n not in self._steps and self._restored < 0):
            return -1
        fold = self._folds.get((capture.fragment, capture.base_version), -1)
        return max(self._steps.get(capture.n, self._restored), fold)
