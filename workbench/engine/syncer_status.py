"""What a syncer tells its supervisor about the run, from its records and its state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.protocol.guards import ROUNDS_RUNNING
from workbench.protocol.moments import NEVER
from workbench.protocol.records import FIRST_LEARNER, Kind, Record, learner_of
from workbench.protocol.snapshots import why_given_up
from workbench.protocol.syncer_state import SyncerState

RATE_FACTOR = 0.2
"""Of the moving average of tokens per second."""


class LearnerNotes:
    """Last step of a learner as its records tell it."""

    __slots__ = ("loss", "lost", "number", "starts", "stepped", "tokens_per_s", "where")

    def __init__(self) -> None:
        self.loss: float | None = None
        self.lost = ""
        self.tokens_per_s = 0.0
        self.number = 0
        self.stepped = 0
        self.starts = 0
        self.where = ""


class StatusBook:
    """Keeps, from the records as they are journalled, what the state of the machine does not hold."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = list(sizes)
        self.merged_tokens = [0] * len(self.sizes)
        self.learners: dict[int, LearnerNotes] = {}
        self.last_merge: dict[str, Any] = {}
        self.window_s: float | None = None
        self.began_s: float | None = None
        self.lost_since_s = -1.0
        self.resumed = False
        """The run was resumed, and has had no quorum since."""
        self.storage_full = ""
        self.refused: str | None = None
        self._last_end: dict[int, int] = {}
        self.snapshots: list[dict[str, Any]] = []
        """What became of the last snapshots: number, and why it was abandoned."""
        self.tickets: list[tuple[int, int]] = []
        """Whoever asked for a snapshot: number of the last that had begun then, ticket."""

    def note(self, records: Sequence[Record]) -> None:
        """Take what is new."""
        for record in records:
            if record.kind == Kind.STEP_ENDED:
                self._stepped(record)
            elif record.kind == Kind.MERGED:
                self.merged_tokens[record.fragment] += record.tokens
                self.last_merge = {
                    "round": record.round,
                    "fragment": record.fragment,
                    "learners": record.detail["learners"],
                    "time_s": record.time_ns / 1e9,
                }
            elif record.kind == Kind.LEARNER_JOINED:
                self._joined(record)
            elif record.kind == Kind.LEARNER_LOST:
                self._of(learner_of(record.peer)).lost = record.reason
            elif record.kind == Kind.QUORUM_REACHED:
                self.window_s = record.value
            elif record.kind in (Kind.QUORUM_LOST, Kind.QUORUM_REGAINED):
                self.lost_since_s = record.time_ns / 1e9 if record.kind == Kind.QUORUM_LOST else -1.0
                self.resumed = self.resumed and record.kind == Kind.QUORUM_LOST
            elif record.kind == Kind.SYNCER_STARTED:
                self.resumed = self.resumed or record.reason == "resume"
            elif record.kind == Kind.ROUNDS_BEGAN and self.began_s is None:
                self.began_s = record.time_ns / 1e9
            elif record.kind == Kind.SETTING_REFUSED:
                self.refused = record.reason
            elif record.kind in (Kind.SNAPSHOT_COMPLETED, Kind.SNAPSHOT_ABANDONED):
                complete = record.kind == Kind.SNAPSHOT_COMPLETED
                why_not = None if complete else why_given_up(record.reason, record.detail)
                fate = {"snapshot": int(record.value), "why_not": why_not}
                self.snapshots = [*self.snapshots[-7:], fate]

    def settled(self) -> list[dict[str, Any]]:
        """Answers to those who asked for a snapshot: what became of the first that was begun after that."""
        answers, left = [], []
        for serial, ticket in self.tickets:
            fate = next((f for f in self.snapshots if f["snapshot"] > serial), None)
            if fate is None:
                left.append((serial, ticket))
            else:
                answers.append({"answer": ticket, **fate})
        self.tickets = left
        return answers

    def _of(self, learner: int) -> LearnerNotes:
        return self.learners.setdefault(learner, LearnerNotes())

    def _joined(self, record: Record) -> None:
        notes, number = self._of(learner_of(record.peer)), int(record.value)
        notes.starts += number != notes.number
        notes.lost = ""
        notes.number = number
        if "host" in record.detail:
            notes.where = f"{record.detail['host']}, pid {record.detail['pid']}"

    def where(self, learner: int) -> str:
        """Host and pid of a learner that said so, empty for the others."""
        return self._of(learner).where

    def _stepped(self, record: Record) -> None:
        notes = self._of(record.process - FIRST_LEARNER)
        end_ns = record.detail["end_ns"]
        since = self._last_end.get(record.process, record.detail["start_ns"])
        self._last_end[record.process] = end_ns
        notes.loss = record.value
        notes.stepped = notes.number
        if end_ns > since:
            rate = record.tokens / (end_ns - since) * 1e9
            notes.tokens_per_s += (RATE_FACTOR if notes.tokens_per_s else 1.0) * (rate - notes.tokens_per_s)

    def tokens_merged(self) -> int:
        """Merged tokens of the run: those of its fragments, by size."""
        return sum(n * size for n, size in zip(self.merged_tokens, self.sizes, strict=True)) // sum(self.sizes)

    def gathers(self, state: SyncerState, now: int) -> bool:
        """Whether a run has had no quorum yet and only waits for learners to start: a new one, or one resumed."""
        kept_out = any(member.quarantined for member in state.members.values())
        resumed = self.resumed and now < state.start_until
        return (resumed or not state.began) and state.quorum_lost and not kept_out

    def status(self, state: SyncerState, now: int) -> dict[str, Any]:
        """The run at a time of the syncer's clock [ns]."""
        gathers = self.gathers(state, now)
        lost = state.quorum_lost and not gathers
        return {
            "merges": state.merges,
            "round": state.opened_t,
            "began": state.began,
            "began_s": self.began_s,
            "gathers": gathers,
            "ending": state.ending,
            "quorum": state.book.policy.quorum,
            "quorum_lost": lost,
            "quorum_lost_since_s": self.lost_since_s if lost else None,
            "grace": state.book.policy.grace,
            "window_s": self.window_s,
            "last_merge": self.last_merge,
            "storage_full": self.storage_full,
            "revision": state.book.revision,
            "settings": state.book.in_force(),
            "added": list(state.added),
            "removed": list(state.removed),
            "learners": {str(m): self._learner(state, m, now) for m in state.members},
        }

    def _learner(self, state: SyncerState, learner: int, now: int) -> dict[str, Any]:
        member, notes = state.members[learner], self._of(learner)
        total = sum(self.sizes)
        behind = sum(
            size * (version - max(base, 0))
            for size, version, base in zip(self.sizes, state.versions, member.base, strict=True)
        )
        return {
            "connected": member.connected,
            "lost": "" if member.connected else notes.lost,
            "silent_s": max(0, now - member.last_heard) / 1e9 if member.last_heard != NEVER else None,
            "healed": member.healed,
            "counts": member.connected and not member.quarantined,
            "stalled": member.stalled,
            "quarantined": member.quarantined,
            "flagged": member.opposed >= ROUNDS_RUNNING,
            "step": member.n,
            "g": member.g,
            "behind": behind / total,
            "loss": notes.loss,
            "tokens_per_s": notes.tokens_per_s,
            "stepped": notes.stepped,
            "starts": notes.starts,
            "where": notes.where,
        }
