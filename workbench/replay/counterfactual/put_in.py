"""A change of settings put into a tape: which records it adds, and to whom they belong.

The syncer records that it was asked for; every learner records it at its first boundary at which it has heard of that,
or of anything later, and every process that is started later at its first.  Nothing else is added, and no time changes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from workbench.protocol.records import FIRST_LEARNER, SYNCER, Kind, Record
from workbench.protocol.settings import LearnerSettings
from workbench.replay.counterfactual.turn import Turn

OF_ROUNDS = (Kind.ROUND_OPENED, Kind.MERGED, Kind.ROUND_RESTARTED)
"""Records of the syncer that name the revision with which a round was opened."""


class PutIn:
    """Where the records of a change belong.

    Parameters
    ----------
    records : sequence of Record
        Of the parent.
    turn : Turn
        Where it is asked for.
    values : mapping
        Keys with their new values.

    Attributes
    ----------
    places : dict of process to list of int
        Numbers on the tape before which each process makes one record more.
    boundaries : dict of (process, seq) to int
        For those of learners: the event of the boundary at which the change is applied.
    revision : int
        That of the settings before, once it is known; -1.
    settings : LearnerSettings or None
        Those of learners with the change, once they are known.
    """

    def __init__(self, records: Sequence[Record], turn: Turn, values: Mapping[str, Any]) -> None:
        self.turn, self.values = turn, dict(values)
        self.revision = -1
        self.settings: LearnerSettings | None = None
        before = (r.seq for r in reversed(records[: turn.event]) if r.process == SYNCER)
        self.first = next(before, 0) + 1
        self.places: dict[int, list[int]] = defaultdict(list, {SYNCER: [self.first]})
        self.boundaries: dict[tuple[int, int], int] = {}
        self._applied: dict[int, list[tuple[int, bool]]] = defaultdict(list)
        own: dict[int, list[int]] = defaultdict(list)
        for event, r in enumerate(records):
            if r.process >= FIRST_LEARNER:
                own[r.process].append(event)
        for process, events in own.items():
            self._look(process, [(event, records[event]) for event in events])

    def _look(self, process: int, own: list[tuple[int, Record]]) -> None:
        """Find the boundaries of one learner at which the change is applied."""
        applied = False
        for place, (event, r) in enumerate(own):
            has_heard = len(r.clock) > SYNCER and r.clock[SYNCER] >= self.first
            if r.kind == Kind.RESTORED or (r.kind == Kind.STATE_ADOPTED and r.reason == "initial"):
                applied = False
                self._applied[process].append((r.seq, False))
                if has_heard and (there := _setting_behind(own, place)) is not None:
                    applied = True
                    self._applied[process].append((there.seq, True))
            elif r.kind != Kind.STEP_ENDED:
                continue
            if has_heard and not applied and place + 1 < len(own):
                applied = True
                self.places[process].append(r.seq + 1)
                self.boundaries[process, r.seq + 1] = event
                self._applied[process].append((r.seq + 1, True))

    def has_applied(self, process: int, seq: int) -> bool:
        """Whether a learner has the change at its record ``seq``."""
        own = self._applied[process]
        at = bisect_right(own, seq, key=lambda entry: entry[0]) - 1
        return at >= 0 and own[at][1]

    def setting(self, r: Record) -> int:
        """The revision that a record of the tape names now."""
        if r.setting < 0 or self.revision < 0:
            return r.setting
        if r.process == SYNCER:
            behind = r.seq >= self.first and (r.kind not in OF_ROUNDS or r.round >= self.turn.round)
        else:
            behind = self.has_applied(r.process, r.seq) and r.setting >= self.revision
        return r.setting + behind

    def message_revision(self, process: int, seq: int, revision: int) -> int:
        """The revision that a learner's METADATA names now."""
        has = self.revision >= 0 and revision >= self.revision and self.has_applied(process, seq)
        return revision + has

    def made(self, boundary: Record, seq: int, clock: tuple[int, ...]) -> Record:
        """What a learner records of the change; number and clock are those of now."""
        own = tuple(seq if p == boundary.process else entry for p, entry in enumerate(clock))
        return Record(
            Kind.SETTING_APPLIED, boundary.process, boundary.incarnation, seq, boundary.time_ns, own,
            step=boundary.step, setting=self.revision + 1, epoch=boundary.epoch,
            detail={"values": msgspec.structs.asdict(self.settings) if self.settings is not None else {}},
        )  # fmt: skip


def _setting_behind(own: list[tuple[int, Record]], place: int) -> Record | None:
    """The settings that a new process records before its first step, if its WELCOME brought it others."""
    for _, r in own[place + 1 :]:
        if r.kind == Kind.SETTING_APPLIED:
            return r
        if r.kind == Kind.STEP_ENDED:
            return None
    return None
