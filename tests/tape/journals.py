"""Journals for the ledger's tests: a scripted learner fleet, and a ledger that keeps a fate per single step."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from workbench.protocol.records import SUPERVISOR, SYNCER, Kind, Record, process_of

Fates = list[list[dict[int, str]]]


@dataclass
class Capture:
    """A contribution on its way: which steps it holds."""

    learner: int
    fragment: int
    round: int
    step: int
    held: list[int]


@dataclass
class Reference:
    """Brute force: every own step of every (learner, fragment) has a fate of its own, ``local`` while open."""

    learners: int
    fragments: int
    tokens: list[dict[int, int]] = field(default_factory=list)
    fate: Fates = field(default_factory=list)
    open_from: list[list[int]] = field(default_factory=list)
    reason: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for _ in range(self.learners):
            self.tokens.append({})
            self.fate.append([{} for _ in range(self.fragments)])
            self.open_from.append([1] * self.fragments)
            self.reason.append(["not_ready"] * self.fragments)

    def held(self, m: int, p: int) -> list[int]:
        """Own steps of the open interval."""
        return [n for n in self.fate[m][p] if n >= self.open_from[m][p]]

    def close(self, m: int, p: int, last: int, fate: Callable[[bool], str]) -> None:
        """Give the steps up to ``last`` that no merge took a fate; told whether a merge took any."""
        inside = [n for n in self.held(m, p) if n <= last]
        taken = any(self.fate[m][p][n] == "merged" for n in inside)
        for n in inside:
            if self.fate[m][p][n] == "local":
                self.fate[m][p][n] = fate(taken)
        self.open_from[m][p] = last + 1
        self.reason[m][p] = "not_ready"

    def merge(self, m: int, p: int, held: list[int], interval: list[int]) -> None:
        """Take steps from wherever they are; the rest of a replaced interval was overwritten then."""
        for n in held:
            self.fate[m][p][n] = "merged"
        for n in interval:
            if self.fate[m][p][n].startswith("not_merged"):
                self.fate[m][p][n] = "overwritten"

    def book(self, m: int, p: int) -> Counter[str]:
        """Tokens by fate, reasons left out."""
        count: Counter[str] = Counter()
        for n, fate in self.fate[m][p].items():
            count[fate.split(":")[0]] += self.tokens[m][n]
        return count

    def reasons(self, sizes: list[int]) -> Counter[str]:
        """Tokens times size by fate and reason."""
        count: Counter[str] = Counter()
        for m in range(self.learners):
            for p in range(self.fragments):
                for n, fate in self.fate[m][p].items():
                    count[fate] += self.tokens[m][n] * sizes[p]
        return count


class Fleet:
    """Draws records in an order that the protocol allows, and tells the reference what each means."""

    def __init__(self, seed: int, learners: int = 2, fragments: int = 2) -> None:
        self.random = random.Random(seed)
        self.reference = Reference(learners, fragments)
        self.records: list[Record] = []
        self.seq = Counter[int]()
        self.n = [0] * learners
        self.number = [0] * learners
        self.alive = [False] * learners
        self.base = [[-1] * fragments for _ in range(learners)]
        self.captures: list[Capture] = []
        self.closed: dict[tuple[int, int, int], list[int]] = {}
        self.late: list[tuple[int, int]] = []
        self.round = 0
        self.version = [0] * fragments

    def emit(self, kind: Kind, process: int, **columns: Any) -> None:
        """Append a record."""
        self.seq[process] += 1
        self.records.append(Record(kind, process, 0, self.seq[process], len(self.records), **columns))

    def run(self, events: int) -> Fleet:
        """Draw that many events."""
        moves = [self.step] * 6 + [self.capture] * 3 + [self.merge, self.merge, self.fold, self.fold]
        moves += [self.drop, self.leave_out, self.die_or_join, self.disconnect, self.adopt, self.skip, self.late_word]
        for _ in range(events):
            m = self.random.randrange(self.reference.learners)
            p = self.random.randrange(self.reference.fragments)
            move = self.random.choice(moves)
            if self.alive[m]:
                move(m, p)
            else:
                self.die_or_join(m, p)
        return self

    def step(self, m: int, p: int) -> None:
        tokens = self.random.choice((64, 100))
        self.n[m] += 1
        self.reference.tokens[m][self.n[m]] = tokens
        for fate in self.reference.fate[m]:
            fate[self.n[m]] = "local"
        self.emit(Kind.STEP_ENDED, process_of(m), step=self.n[m], steps=1, tokens=tokens)

    def capture(self, m: int, p: int) -> None:
        held = self.reference.held(m, p)
        waiting = any(c.learner == m and c.fragment == p for c in self.captures)
        if not held or waiting or any(self.reference.fate[m][p][n] == "merged" for n in held):
            return
        self.round += 1
        self.captures.append(Capture(m, p, self.round, held[-1], held))
        tokens = sum(self.reference.tokens[m][n] for n in held)
        self.emit(
            Kind.FRAGMENT_CAPTURED,
            process_of(m),
            fragment=p,
            round=self.round,
            step=held[-1],
            steps=len(held),
            tokens=tokens,
        )

    def interval_of(self, c: Capture) -> list[int]:
        """Steps of the closed interval that a capture belongs to; empty while it is open."""
        return next(
            (v for (m, p, _), v in self.closed.items() if (m, p) == (c.learner, c.fragment) and c.step in v), []
        )

    def merge(self, m: int, p: int) -> None:
        used = sorted((c for c in self.captures if c.fragment == p), key=lambda c: c.learner)
        if not used:
            return
        tokens = [sum(self.reference.tokens[c.learner][n] for n in c.held) for c in used]
        self.captures = [c for c in self.captures if c.fragment != p]
        for c in used:
            self.reference.merge(c.learner, p, c.held, self.interval_of(c))
        for other in range(self.reference.learners):
            if other not in [c.learner for c in used]:
                self.reference.reason[other][p] = "passed"
        self.version[p] += 1
        self.round += 1
        self.emit(
            Kind.MERGED, SYNCER, fragment=p, round=self.round, version=self.version[p], tokens=sum(tokens),
            detail={
                "learners": [c.learner for c in used],
                "steps_captured": [c.step for c in used],
                "c_steps": [len(c.held) for c in used],
                "c_tokens": tokens,
            },
        )  # fmt: skip

    def fold(self, m: int, p: int) -> None:
        rule = self.random.choice(("overwrite", "blend", "delay_corrected"))
        alpha = self.random.choice((0.0, 0.5)) if rule == "blend" else 0.0
        held, reference = self.reference.held(m, p), self.reference
        merged = [n for n in held if reference.fate[m][p][n] == "merged"]
        last = merged[-1] if rule == "delay_corrected" and merged else -1
        tokens = sum(reference.tokens[m][n] for n in held)
        self.emit(
            Kind.UPDATE_FOLDED, process_of(m), fragment=p, version=self.version[p], base_version=self.base[m][p],
            step=self.n[m], steps=len(held), tokens=tokens, value=alpha, reason=rule, detail={"reference": last},
        )  # fmt: skip
        healing, self.base[m][p] = self.base[m][p] < 0, self.version[p]
        end = self.n[m]
        if healing:
            fate: Callable[[bool], str] = lambda taken: "lost:healing"  # noqa: E731
        elif rule == "delay_corrected":
            if last < 0:
                return
            end, fate = last, lambda taken: "overwritten"
        elif alpha > 0:
            fate = lambda taken: f"blended:{alpha}"  # noqa: E731
        else:
            why = reference.reason[m][p]
            fate = lambda taken: "overwritten" if taken else f"not_merged:{why}"  # noqa: E731
        self.closed[m, p, len(self.records)] = [n for n in held if n <= end]
        reference.close(m, p, end, fate)

    def drop(self, m: int, p: int) -> None:
        mine = [c for c in self.captures if c.learner == m and c.fragment == p]
        if not mine:
            return
        self.captures.remove(mine[0])
        reason = self.random.choice(("late", "stale", "nonfinite", "pull_limit"))
        self.round += 1
        self.emit(
            Kind.FRAGMENT_DROPPED,
            SYNCER,
            peer=process_of(m),
            fragment=p,
            round=self.round,
            step=mine[0].step,
            reason=reason,
        )
        interval = self.interval_of(mine[0])
        for n in interval:
            if self.reference.fate[m][p][n].startswith("not_merged"):
                self.reference.fate[m][p][n] = f"not_merged:{reason}"
        if not interval:
            self.reference.reason[m][p] = reason

    def leave_out(self, m: int, p: int) -> None:
        self.round += 1
        self.emit(Kind.GRACE_ENDED, SYNCER, fragment=p, round=self.round, detail={"left_out": {str(m): "guard"}})
        self.reference.reason[m][p] = "guard"

    def skip(self, m: int, p: int) -> None:
        self.round += 1
        self.emit(Kind.ROUND_SKIPPED, SYNCER, fragment=p, round=self.round, reason="weights_zero")
        for other in range(self.reference.learners):
            self.reference.reason[other][p] = "round_skipped"

    def end_all(self, m: int, cause: str) -> None:
        for p in range(self.reference.fragments):
            self.closed[m, p, len(self.records)] = self.reference.held(m, p)
            self.reference.close(m, p, self.n[m], lambda taken: f"lost:{cause}")

    def die_or_join(self, m: int, p: int) -> None:
        if self.alive[m]:
            kind = self.random.randrange(3)
            if kind == 0:
                self.emit(Kind.PROCESS_ENDED, SUPERVISOR, peer=process_of(m), value=self.number[m], reason="SIGKILL")
            elif kind == 1:
                self.emit(Kind.LEARNER_LOST, SYNCER, peer=process_of(m), reason="exit")
            else:  # only the next process shows that it died
                self.emit(Kind.LEARNER_LOST, SYNCER, peer=process_of(m), reason="socket")
            if kind < 2:
                self.end_all(m, "death")
            self.alive[m] = False
            return
        self.number[m] += 1
        self.alive[m], self.base[m] = True, [-1] * self.reference.fragments
        self.emit(
            Kind.LEARNER_JOINED,
            SYNCER,
            peer=process_of(m),
            value=self.number[m],
            reason="process",
            version=self.number[m],
        )
        self.end_all(m, "death")
        self.emit(Kind.STATE_ADOPTED, process_of(m), reason="initial")
        if self.number[m] > 1:
            self.late.append((m, self.number[m] - 1))

    def late_word(self, m: int, p: int) -> None:
        """Let the supervisor's word on the exit of an earlier process come after its successor."""
        if self.late:
            learner, number = self.late.pop()
            self.emit(Kind.PROCESS_ENDED, SUPERVISOR, peer=process_of(learner), value=number, reason="SIGKILL")

    def disconnect(self, m: int, p: int) -> None:
        self.emit(Kind.LEARNER_LOST, SYNCER, peer=process_of(m), reason="heartbeat")
        self.emit(Kind.LEARNER_JOINED, SYNCER, peer=process_of(m), value=self.number[m], reason="rejoin")

    def adopt(self, m: int, p: int) -> None:
        self.emit(Kind.STATE_ADOPTED, process_of(m), reason="snapshot")
        self.end_all(m, "adopted")
