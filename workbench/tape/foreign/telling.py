"""From what logs prove to the records of a tape, with clocks that claim nothing else.

A replica's events follow each other; the syncs follow each other by their numbers; a sync follows its participants'
steps before it, and what a participant does next follows the sync.  Everything else is concurrent.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from typing import Any

from workbench.protocol.records import FIRST_LEARNER, SUPERVISOR, SYNCER, Kind, Record, process_of
from workbench.tape.foreign.history import History, Sync
from workbench.tape.foreign.reading import Line

LEFT = "left"
"""Why a replica is no more there: the log has no more of it."""


def _due(steps: list[Line], place: int, first: int, until: int) -> Iterator[tuple[int, int, int]]:
    """Time, replica and number of some steps of one replica."""
    for at in range(first, until):
        yield steps[at].time_ns, place, at


def records_of(history: History) -> Iterator[Record]:
    """Records in an order that agrees with all that is proved, else in that of the time stamps."""
    return _Teller(history).told()


class _Teller:
    """Tells a history, one sync after the other."""

    def __init__(self, history: History) -> None:
        self.programs, self.syncs = history.programs, history.syncs
        count = len(self.programs)
        self.clocks = [[0] * (FIRST_LEARNER + count) for _ in range(FIRST_LEARNER + count)]
        self.done = [0] * count
        self.life = [-1] * count
        self.counted = [(0, 0)] * count
        self.known = [0] * count
        self.origin = self._origin()
        self.ends_ns = [0] * count
        self.bounds = [self._bounds(place) for place in range(count)]
        self.merged_ns = 0

    def _origin(self) -> int:
        starts = [p.steps[0].time_ns - max(0, p.steps[0].duration_ns) for p in self.programs if p.steps]
        return min([*starts, *(sync.time_ns for sync in self.syncs)])

    def _bounds(self, place: int) -> list[int]:
        """Places of a replica's syncs, ascending, last of them the end of its program."""
        mine = [sync.positions[place] for sync in self.syncs if place in sync.positions]
        return [*mine, len(self.programs[place].steps)][::-1]

    def told(self) -> Iterator[Record]:
        """All records."""
        yield self._record(Kind.ROUNDS_BEGAN, SYNCER, 0, value=float(len(self.programs)), reason="log")
        for version, sync in enumerate(self.syncs, 1):
            for place in sync.participants:
                self.bounds[place].pop()
            yield from self._steps(sync)
            yield from self._sync(sync, version)
        yield from self._steps(None)
        yield from self._ends()

    def _steps(self, sync: Sync | None) -> Iterator[Record]:
        """Steps that come before a sync: those of its participants, and others' that are older and free."""
        parts = []
        for place, program in enumerate(self.programs):
            if sync is None:
                until = len(program.steps)
            elif place in sync.positions:
                until = sync.positions[place]
            else:
                until = self._free_until(place, sync.time_ns)
            parts.append(_due(program.steps, place, self.done[place], until))
            self.done[place] = max(self.done[place], until)
        for _, place, at in merge(*parts):
            yield from self._step(place, at)

    def _free_until(self, place: int, time_ns: int) -> int:
        """Steps up to a time, but none behind a sync that is still to come."""
        steps, most, at = self.programs[place].steps, self.bounds[place][-1], self.done[place]
        while at < most and steps[at].time_ns <= time_ns:
            at += 1
        return at

    def _step(self, place: int, at: int) -> Iterator[Record]:
        line = self.programs[place].steps[at]
        end = line.time_ns - self.origin
        new = self.programs[place].lives[at] > self.life[place]
        begun = self.ends_ns[place] if self.life[place] >= 0 and not new else end
        start = max(0, end - line.duration_ns) if line.duration_ns >= 0 else min(begun, end)
        if new:
            yield from self._life(place, start, -1 if line.step is None else line.step)
        self.ends_ns[place] = end
        steps, tokens = self.counted[place]
        self.counted[place] = steps + 1, tokens + line.tokens
        detail = {"start_ns": start, "end_ns": max(start, end), "injected_ns": 0, "waited_ns": 0}
        yield self._record(
            Kind.STEP_ENDED, process_of(place), max(start, end), step=line.step, steps=1, tokens=line.tokens,
            value=line.loss, detail=detail,
        )  # fmt: skip

    def _life(self, place: int, time_ns: int, step: int) -> Iterator[Record]:
        """A replica is there: for the first time, or again."""
        peer = process_of(place)
        if self.life[place] >= 0:
            number = self.life[place] + 1
            yield self._record(
                Kind.LEARNER_LOST, SUPERVISOR, self.ends_ns[place], peer=peer, version=number, reason="exit"
            )
        self.life[place] += 1
        self.counted[place] = 0, 0
        self.known[place] = 0 if self.life[place] == 0 else -1
        number = self.life[place] + 1
        yield self._record(
            Kind.LEARNER_JOINED, SUPERVISOR, time_ns, peer=peer, value=float(number), reason="process", version=number,
            step=step,
        )  # fmt: skip
        yield self._record(Kind.LEARNER_HEALED, SUPERVISOR, time_ns, peer=peer, step=step)

    def _sync(self, sync: Sync, version: int) -> Iterator[Record]:
        """The merge, and its participants that go on from it."""
        mine = sync.participants
        for place in mine:
            if self.life[place] < 0:
                yield from self._life(place, max(self.merged_ns, sync.time_ns - self.origin), -1)
        self.merged_ns = max(self.merged_ns, sync.time_ns - self.origin)
        for place in mine:
            self._hear(SYNCER, process_of(place))
        counted = [self.counted[place] for place in mine]
        detail = {
            "learners": mine,
            "steps_captured": [self._last_step(place) for place in mine],
            "c_steps": [steps for steps, _ in counted],
            "c_tokens": [tokens for _, tokens in counted],
            "base_versions": [version - 1 if self.known[place] == version - 1 else -1 for place in mine],
        }
        yield self._record(
            Kind.MERGED, SYNCER, self.merged_ns, round=sync.number, fragment=0, version=version,
            base_version=version - 1, tokens=sum(tokens for _, tokens in counted), detail=detail,
        )  # fmt: skip
        number = self.clocks[SYNCER][SYNCER]
        for place in mine:
            yield self._fold(sync, place, version, number)

    def _last_step(self, place: int) -> int:
        found = self.programs[place].steps[self.done[place] - 1].step if self.done[place] else -1
        return -1 if found is None else found

    def _fold(self, sync: Sync, place: int, version: int, number: int) -> Record:
        """A participant goes on from the result."""
        process, before = process_of(place), self.known[place]
        steps, tokens = self.counted[place]
        self.counted[place], self.known[place] = (0, 0), version
        self._hear(process, SYNCER)
        self.ends_ns[place] = max(self.ends_ns[place], self.merged_ns)
        return self._record(
            Kind.UPDATE_FOLDED, process, self.ends_ns[place], cause=(SYNCER, number), fragment=0, round=sync.number,
            version=version, base_version=before, step=self._last_step(place), steps=steps, tokens=tokens,
            reason="overwrite", detail={"included": 1},
        )  # fmt: skip

    def _ends(self) -> Iterator[Record]:
        """Replicas of which the log has no more, and its end."""
        close = max([self.merged_ns, *self.ends_ns])
        last = self.syncs[-1] if self.syncs else None
        for place in range(len(self.programs)):
            there = last is not None and place in last.positions
            if self.life[place] >= 0 and not there and self.ends_ns[place] < self.merged_ns:
                peer, number = process_of(place), self.life[place] + 1
                yield self._record(
                    Kind.LEARNER_LOST, SUPERVISOR, self.ends_ns[place], peer=peer, version=number, reason=LEFT
                )
        yield self._record(Kind.RUN_ENDED, SYNCER, close, reason="log_ends", value=float(len(self.syncs)))

    def _hear(self, process: int, other: int) -> None:
        self.clocks[process] = list(map(max, self.clocks[process], self.clocks[other]))

    def _record(self, kind: Kind, process: int, time_ns: int, **columns: Any) -> Record:
        """The next record of a process."""
        clock = self.clocks[process]
        clock[process] += 1
        place = process - FIRST_LEARNER
        life = self.life[place] + 1 if place >= 0 else 0
        return Record(kind, process, life, clock[process], time_ns, clock=tuple(clock), **columns)
