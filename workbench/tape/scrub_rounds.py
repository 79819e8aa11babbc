"""Rounds in flight at a moment, from the syncer's records."""

from __future__ import annotations

import numpy as np

from workbench.protocol.records import SYNCER, Kind, learner_of
from workbench.protocol.round_state import RoundState
from workbench.tape.event_sets import Ints
from workbench.tape.moment import RoundThen
from workbench.tape.own_events import OwnEvents

_STATES = {
    Kind.ROUND_OPENED: RoundState.OPEN,
    Kind.ROUND_RESTARTED: RoundState.OPEN,
    Kind.ROUND_READY: RoundState.READY,
    Kind.QUORUM_REACHED: RoundState.GRACE,
    Kind.GRACE_ENDED: RoundState.PULLING,
    Kind.MERGED: RoundState.COMMITTING,
}
_ANSWERS = {
    Kind.PULL_SENT: "asked",
    Kind.FRAGMENT_ARRIVED: "arrived",
    Kind.FRAGMENT_DROPPED: "dropped",
    Kind.REFUSAL_ARRIVED: "refused",
}
GUARD = "guard"
"""Why a fragment that has arrived is dropped all the same."""
_NO_ANSWERS = ("duplicate", "gone", "incarnation")
_CLOSES = (Kind.MERGE_COMMITTED, Kind.ROUND_SKIPPED, Kind.ROUND_ABORTED)


class RoundsThen:
    """Answers for all rounds of a tape.

    Parameters
    ----------
    events : OwnEvents

    Attributes
    ----------
    opened, closed : ndarray (round,)
        Places, among the syncer's events, where each round was opened and closed (beyond all places: never).
    """

    def __init__(self, events: OwnEvents) -> None:
        self.events = events
        rows = events.index.rows[SYNCER] if events.index.rows else np.zeros(0, np.int64)
        kinds, self._numbers = events["kind"][rows], events["round"][rows]
        mine = np.isin(kinds, [*_STATES, *_ANSWERS, *_CLOSES]) & (events["fragment"][rows] >= 0)
        places = np.flatnonzero(mine)
        self._kinds = kinds
        self._order = places[np.argsort(self._numbers[places], kind="stable")]
        self._sorted = self._numbers[self._order]
        self.opened = np.flatnonzero(kinds == Kind.ROUND_OPENED)
        closes = np.flatnonzero(np.isin(kinds, _CLOSES) & (events["fragment"][rows] >= 0))
        self.closed = self._first_after(self.opened, closes, len(rows))

    def _first_after(self, opened: Ints, closes: Ints, never: int) -> Ints:
        """The first closing of the same round after each opening."""
        width = never + 1
        keys = np.sort(self._numbers[closes] * width + closes)
        at = np.searchsorted(keys, self._numbers[opened] * width + opened)
        found = np.append(keys, -1)[np.minimum(at, len(keys))]
        return np.where((found >= 0) & (found // width == self._numbers[opened]), found % width, never)

    def at(self, stop: int) -> tuple[RoundThen, ...]:
        """Rounds that were open when the syncer had made so many records."""
        upto = int(np.searchsorted(self.opened, stop))
        return tuple(self._round(int(self.opened[i]), stop) for i in np.flatnonzero(self.closed[:upto] >= stop))

    def _round(self, opened: int, stop: int) -> RoundThen:
        t = int(self._numbers[opened])
        begin, end = np.searchsorted(self._sorted, t), np.searchsorted(self._sorted, t, "right")
        state, answers = RoundState.OPEN, dict[int, str]()
        for place in self._order[begin:end].tolist():
            kind = Kind(self._kinds[place])
            if not opened <= place < stop:
                continue
            state = _STATES.get(kind, state)
            if kind == Kind.ROUND_RESTARTED:
                answers.clear()
            elif kind in _ANSWERS:
                self._answer(answers, kind, place)
        return self._then(t, opened, state, answers)

    def _answer(self, answers: dict[int, str], kind: Kind, place: int) -> None:
        """What a PULL came to; a fragment of another life, or a second one, answers none."""
        learner = learner_of(self.events.value("peer", SYNCER, place))
        dropped = kind == Kind.FRAGMENT_DROPPED
        wanted = "arrived" if dropped and self.events.reason(SYNCER, place) == GUARD else "asked"
        if dropped and (answers.get(learner) != wanted or self.events.reason(SYNCER, place) in _NO_ANSWERS):
            return
        answers[learner] = _ANSWERS[kind]

    def _then(self, t: int, opened: int, state: RoundState, answers: dict[int, str]) -> RoundThen:
        own = self.events
        return RoundThen(
            round=t,
            fragment=int(own.value("fragment", SYNCER, opened)),
            version=int(own.value("version", SYNCER, opened)),
            revision=int(own.value("setting", SYNCER, opened)),
            state=state.name,
            since_s=(own.value("time_ns", SYNCER, opened) - own.began_ns) * 1e-9,
            answers=dict(sorted(answers.items())),
        )
