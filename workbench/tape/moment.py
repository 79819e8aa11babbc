"""What a run was at one event: the state of every process, as far as its records tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from workbench.tape.event_sets import EventSet

Numbers = tuple[int, ...]


class LearnerThen(NamedTuple):
    """One learner.

    Attributes
    ----------
    learner : int
    alive, connected, healed, stalled, quarantined : bool
        Its process runs (the supervisor's word; the syncer's where there is none); the syncer counts on it; every
        base is there and a step was made; the syncer missed its steps; somebody keeps it out.
    faults : tuple of str
        Injected faults that act on it.
    process_number, incarnation : int
        As the syncer knows them, -1 and 0 before it joined.
    n, g : int
        Own step, and global step, which an UPDATE that is not folded yet may have raised without a record.
    base, c_steps, c_tokens, last_merged : tuple of int
        By fragment: version folded (-1 for none), counters since the last reset, version that holds its last
        contribution (-1 for none).
    steps, tokens, merged : int
        Inner steps and tokens of all its lives, and merges that hold a contribution of it.
    loss : float
        Of its last step, NaN before the first [nat].
    revision : int
        Of the settings that it acts on.
    expected, removed : bool
        The run has it: always, but for one that is added later; it was removed for good.
    """

    learner: int
    alive: bool
    connected: bool
    healed: bool
    stalled: bool
    quarantined: bool
    faults: tuple[str, ...]
    process_number: int
    incarnation: int
    n: int
    g: int
    base: Numbers
    c_steps: Numbers
    c_tokens: Numbers
    last_merged: Numbers
    steps: int
    tokens: int
    merged: int
    loss: float
    revision: int
    expected: bool
    removed: bool


class RoundThen(NamedTuple):
    """One round in flight.

    Attributes
    ----------
    round, fragment, version, revision : int
        ``version`` is the fragment's before the merge, ``revision`` that of the round's arithmetic.
    state : str
        Of PROTOCOL section 2, by its last record: a round that is merging says ``PULLING`` until ``merged`` is
        recorded, one that lost its quorum again says ``GRACE`` or ``PULLING`` until it has one.
    since_s : float
        When it was opened [s from the start of rounds].
    answers : dict of int to str
        By learner that was pulled: ``asked``, ``arrived``, ``refused`` or ``dropped``.
    """

    round: int
    fragment: int
    version: int
    revision: int
    state: str
    since_s: float
    answers: dict[int, str]


@dataclass(frozen=True, repr=False)
class Moment:
    """The state of a run just after an event was recorded.

    Attributes
    ----------
    event : int
    time_s : float
        Of the syncer's last record [s from the start of rounds], negative before them.
    recorded : EventSet
        Events up to it, by process.
    syncer_starts : int
        Lives of the syncer so far.
    began : bool
        Whether rounds may open.
    ended : str
        Why the run has ended, empty while it goes on.
    versions : tuple of int
        Of each fragment.
    merges : int
        Committed.
    rounds : tuple of RoundThen
    learners : tuple of LearnerThen
    quorum_lost : bool
    revision : int
        Of the settings.
    settings : dict
        The values in force, by key; empty where the tape holds no configuration.
    validation : tuple of (int, float) or None
        Merges in the last evaluation, and its loss [nat].
    """

    event: int
    time_s: float
    recorded: EventSet
    syncer_starts: int
    began: bool
    ended: str
    versions: Numbers
    merges: int
    rounds: tuple[RoundThen, ...]
    learners: tuple[LearnerThen, ...]
    quorum_lost: bool
    revision: int
    settings: dict[str, Any]
    validation: tuple[int, float] | None
    _ledger: Callable[[int], dict[str, float]] = field(compare=False)

    @property
    def ledger(self) -> dict[str, float]:
        """Run totals of the token ledger, as `workbench.tape.ledger.Ledger.totals` names them."""
        return self._ledger(self.event)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if not f.name.startswith("_")}
        own["recorded"] = self.recorded.lengths
        for name in ("rounds", "learners"):
            own[name] = [row._asdict() for row in own[name]]
        return {**own, "ledger": self.ledger}

    def __repr__(self) -> str:
        state = f"ended ({self.ended})" if self.ended else "rounds open" if self.began else "waits for learners"
        when = f"{self.time_s:.3f} s from the start of rounds" if self.time_s >= 0 else "before rounds began"
        lines = [
            f"event {self.event:,}, {when}: {self.merges:,} merges, {state}, revision {self.revision} of the settings",
            f"fragments at versions {', '.join(map(str, self.versions))}",
        ]
        lines += [f"round {r.round:,} of fragment {r.fragment} {_state(r.state)}{_answers(r)}" for r in self.rounds]
        lines += [f"L{m.learner}: {_learner(m)}" for m in self.learners]
        return "\n".join(lines)


STATES = {
    "OPEN": "is open: nobody is ready yet",
    "READY": "waits for its quorum",
    "GRACE": "has its quorum and gives the others grace",
    "PULLING": "pulls contributions",
    "MERGING": "is being merged",
    "COMMITTING": "is merged and not committed yet",
}
"""What a round does, by its state."""


def _state(state: str) -> str:
    return STATES.get(state, state.lower())


def _answers(r: RoundThen) -> str:
    return "".join(f"; L{learner} {answer}" for learner, answer in sorted(r.answers.items()))


def _learner(m: LearnerThen) -> str:
    marks = [word for word in ("alive", "connected", "healed", "stalled", "quarantined") if getattr(m, word)]
    words = [*(marks if m.alive or m.connected else ["not there"]), *m.faults]
    loss = "no loss yet" if m.loss != m.loss else f"loss {m.loss:.4g} nat per byte"
    bases = ", ".join("none" if version < 0 else str(version) for version in m.base)
    return f"{', '.join(words)}; own step {m.n:,}, global step {m.g:,}, {loss}, fragments folded up to versions {bases}"
