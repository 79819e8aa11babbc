"""What was clicked, and what came of it: requested, acknowledged by the run, seen in what the run reports."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from workbench.pages import effects
from workbench.pages.effects import SHOWING, Answer, Effect
from workbench.protocol.faults import SYNCER_KINDS
from workbench.protocol.records import Kind, Record

KEPT = 12
IN_FORCE_MAX = 100
"""Faults in force are kept beyond that, but not without end."""
RECORD_LIMIT_S = 1.0
"""A record of what a status shows comes within that, or was lost."""
SEEN_LIMIT_S = 30.0

Status = dict[str, Any]


class Command:
    """One click.

    Parameters
    ----------
    what : str
        For people.
    request : dict
        As the supervisor takes it (`workbench.engine.requests`).
    effect : Effect
        What there is to be seen of it.
    inverse : function, optional
        Makes the click that undoes this one.

    Attributes
    ----------
    requested, acknowledged, refused : str
        What to say of each moment, empty before it.
    number : int
        Among all clicks on the run.
    syncers : int
        Processes that the syncer had had before; -1 where that is not known.
    """

    def __init__(
        self,
        what: str,
        request: dict[str, Any],
        effect: Effect,
        inverse: Callable[[], Command] | None = None,
    ) -> None:
        self.what, self.request, self.effect, self.inverse = what, request, effect, inverse
        self.number = self.syncers = -1
        self.requested = time.strftime("%H:%M:%S")
        self.acknowledged = self.refused = self._unseen = ""
        self._began_s = time.monotonic()
        self._answer: Answer | None = None
        self.answered_s = self._missing_s = float("inf")
        self._early: list[tuple[Record, float | None, int]] = []

    @property
    def seen(self) -> str:
        """What was seen of its effect so far, and why nothing is looked for where nothing was."""
        return "; ".join(self.effect.told) or self._unseen

    @property
    def struck(self) -> dict[str, Any]:
        """The fault that it asks for; empty for another click."""
        return dict(self.request.get("fault", {}))

    @property
    def lasts(self) -> bool:
        """Whether it is a fault that acts until it is over or healed."""
        return effects.is_in_force_until_healed(self.struck.get("kind", ""), self.struck.get("learner", -1))

    @property
    def is_in_force(self) -> bool:
        """Whether it is such a fault, and acts now as far as is known."""
        return self.lasts and self._answer is not None and not self.refused and not self.effect.done

    @property
    def can_be_undone(self) -> bool:
        """Whether it was done, has an inverse, and is not over."""
        return bool(self.inverse and self.acknowledged) and (self.is_in_force or not self.lasts)

    def answered(self, answer: Answer) -> None:
        """The run has acknowledged."""
        self.answered_s = time.monotonic()
        parts = [f"after {self.answered_s - self._began_s:.2f} s"]
        parts += [f"revision {answer['revision']}" if "revision" in answer else ""]
        parts += [f"round {answer['round']}" if answer.get("round", -1) >= 0 else ""]
        self.acknowledged = ", ".join(part for part in parts if part)
        self._answer = answer
        if answer.get("healed") == 0:
            self.effect.end("nothing was in force on it: nothing ended")
        for record, origin_s, round_ in self._early:
            self.note(record, origin_s, round_)
        self._early.clear()

    def note(self, record: Record, origin_s: float | None, round_: int = -1) -> None:
        """Look whether a record shows the effect.

        Parameters
        ----------
        record : Record
        origin_s : float or None
            When rounds began on the run's clock; None before.
        round_ : int
            The round that was opened last; -1 before the first.
        """
        if self.effect.done or self.refused:
            return
        if self._answer is None:
            if record.kind in SHOWING:
                self._early.append((record, origin_s, round_))
            return
        shown = self.effect.note(record, self._answer)
        if shown:
            at = "before rounds began" if origin_s is None else f"at {record.time_ns / 1e9 - origin_s:.2f} s"
            place = f" (round {round_:,})" if round_ >= 0 and not self.effect.told and "round" not in shown else ""
            self.effect.tell(f"{shown} {at}{place}")

    def look(self, status: Status, asked_s: float) -> None:
        """See in a status what no record tells; ``asked_s``: when it was asked for [s, monotonic]."""
        if self.effect.done or self.refused or self._answer is None:
            return
        if self.request["verb"] == "stop" and status["phase"] == "ending":
            self.effect.end("the run is ending")
        elif self.struck.get("kind") in SYNCER_KINDS and 0 <= self.syncers < _syncers(status):
            self.effect.end(f"started again (start {_syncers(status)})")  # telemetry of its death died with it
        elif self.is_in_force and self.answered_s < asked_s and not self._acts(status):
            self._missing_s = min(self._missing_s, asked_s)
            if asked_s - self._missing_s > RECORD_LIMIT_S:
                self.effect.end("over")
        elif not self.effect.told and asked_s - self.answered_s > SEEN_LIMIT_S:
            self._unseen = f"nothing in {SEEN_LIMIT_S:.0f} s; what did not reach this page is on the tape"

    def _acts(self, status: Status) -> bool:
        found = [one for one in status.get("learners", ()) if one["learner"] == self.struck["learner"]]
        return not found or self.struck["kind"] in found[0].get("acting", ())

    def ended(self) -> None:
        """The run is over."""
        if self.refused or self.effect.done:
            return
        stops = self.request["verb"] == "stop"
        self.acknowledged = self.acknowledged or ("it ended" if stops else "")
        self.effect.end("the run is over" if stops else "no more before the run was over")


def _syncers(status: Status) -> int:
    """The how-manieth process of the syncer runs; -1 while none does."""
    syncer = status.get("syncer") or {}
    return int(syncer["number"]) if syncer.get("state") == "running" else -1


class Commands:
    """The newest clicks on one run, and those that are still in force; under its watcher's lock.

    Attributes
    ----------
    kept : list of Command
        The oldest first.
    began_s : float or None
        The run's time at which rounds began; None before [s].
    round : int
        The round that was opened last; -1 before the first.
    """

    def __init__(self) -> None:
        self.kept: list[Command] = []
        self._count, self._syncers = 0, -1
        self.began_s: float | None = None
        self.round = -1

    def add(self, command: Command) -> None:
        """Take a click."""
        command.number, self._count = self._count, self._count + 1
        command.syncers = self._syncers
        self.kept.append(command)
        passing = [one for one in self.kept if not one.is_in_force]
        leave = set(map(id, passing[: max(0, len(self.kept) - KEPT)])) - {id(command)}
        self.kept = [one for one in self.kept if id(one) not in leave][-IN_FORCE_MAX:]

    def why_not(self, command: Command) -> str:
        """Why a fault is not asked for a second time, "" where it may be."""
        struck = command.struck
        if not command.lasts or effects.may_be_doubled(struck["kind"]):
            return ""
        for one in self.kept:
            if one.struck == struck and not one.refused and not one.effect.done:
                return f"L{struck['learner']} has this fault already, the same twice would add up; heal it first"
        return ""

    def inverse(self, number: str) -> Command | None:
        """The click that undoes one that was done, which can be undone once."""
        found = next((one for one in self.kept if str(one.number) == number and one.can_be_undone), None)
        if found is None or found.inverse is None:
            return None
        made, found.inverse = found.inverse(), None
        return made

    def note(self, record: Record) -> None:
        """Show a record to all clicks that wait for their effect."""
        if record.kind == Kind.ROUND_OPENED:
            self.round = record.round
        elif record.kind in SHOWING:
            for one in self.kept:
                one.note(record, self.began_s, self.round)

    def look(self, status: Status, asked_s: float) -> None:
        """See in a status what no record tells; ``asked_s``: when it was asked for [s, monotonic]."""
        self.round = max(self.round, int(status.get("round", -1)))
        self._syncers = max(self._syncers, _syncers(status))
        for one in self.kept:
            one.look(status, asked_s)

    def ended(self) -> None:
        """The run is over."""
        for one in self.kept:
            one.ended()
