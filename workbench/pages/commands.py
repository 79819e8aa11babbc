"""What was clicked, and what came of it: requested, acknowledged by the run, seen in what the run reports."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from workbench.config import ConfigError
from workbench.engine import control
from workbench.protocol.faults import ENDING_KINDS, LASTING_KINDS, Fault
from workbench.protocol.records import Kind, Record, label_of, process_of
from workbench.protocol.scenario import fault_of, keys_of

KEPT = 12

Status = dict[str, Any]


class Command:
    """One click.

    Parameters
    ----------
    what : str
        For people.
    request : dict
        As the supervisor takes it (`workbench.engine.requests`).
    effect : function (Record, answer) -> str
        What of the effect a record shows, "" for one that shows nothing of it.

    Attributes
    ----------
    requested, acknowledged, seen, refused : str
        What to say of each moment, empty before it.
    number : int
        Among all clicks on the run.
    inverse : function or None
        Makes the click that undoes this one.
    """

    def __init__(
        self,
        what: str,
        request: dict[str, Any],
        effect: Callable[[Record, dict[str, Any]], str],
        inverse: Callable[[], Command] | None = None,
    ) -> None:
        self.what, self.request, self._effect, self.inverse = what, request, effect, inverse
        self.number = -1
        self.requested = time.strftime("%H:%M:%S")
        self.acknowledged = self.seen = self.refused = ""
        self._began_s = time.monotonic()
        self._answer: dict[str, Any] | None = None
        self._early: list[tuple[Record, float | None]] = []

    @property
    def can_be_undone(self) -> bool:
        """Whether it was done, and has an inverse."""
        return bool(self.inverse and self.acknowledged)

    def answered(self, answer: dict[str, Any]) -> None:
        """The run has acknowledged."""
        took_s = time.monotonic() - self._began_s
        parts = [f"after {took_s:.2f} s"]
        parts += [f"revision {answer['revision']}" if "revision" in answer else ""]
        parts += [f"round {answer['round']}" if answer.get("round", -1) >= 0 else ""]
        parts += [f"{answer['healed']} ended" if "healed" in answer else ""]
        self.acknowledged = ", ".join(part for part in parts if part)
        self._answer = answer
        for record, origin_s in self._early:
            self.note(record, origin_s)
        self._early.clear()

    def note(self, record: Record, origin_s: float | None) -> None:
        """Look whether a record shows the effect; ``origin_s``: when rounds began on the run's clock, None before."""
        if self.seen or self.refused:
            return
        if self._answer is None:
            if record.kind in SHOWING:
                self._early.append((record, origin_s))
            return
        shown = self._effect(record, self._answer)
        if shown:
            at = "before rounds began" if origin_s is None else f"at {record.time_ns / 1e9 - origin_s:.2f} s"
            self.seen = f"{shown}, {at}"


SHOWING = frozenset({
    Kind.LEARNER_ADDED, Kind.LEARNER_LOST, Kind.FAULT_INJECTED, Kind.FAULT_ENDED, Kind.PROCESS_STARTED,
    Kind.SETTING_CHANGED, Kind.SETTING_APPLIED, Kind.RUN_ENDED,
})  # fmt: skip


class Commands:
    """The newest clicks on one run; under its watcher's lock.

    Attributes
    ----------
    began_s : float or None
        The run's time at which rounds began; None before [s].
    """

    def __init__(self) -> None:
        self.kept: deque[Command] = deque(maxlen=KEPT)
        self._count = 0
        self.began_s: float | None = None

    def add(self, command: Command) -> None:
        """Take a click."""
        command.number, self._count = self._count, self._count + 1
        self.kept.append(command)

    def inverse(self, number: str) -> Command | None:
        """The click that undoes one that was done, which can be undone once."""
        found = next((one for one in self.kept if str(one.number) == number and one.can_be_undone), None)
        if found is None or found.inverse is None:
            return None
        made, found.inverse = found.inverse(), None
        return made

    def note(self, record: Record) -> None:
        """Show a record to all clicks that wait for their effect."""
        if record.kind in SHOWING:
            for one in self.kept:
                one.note(record, self.began_s)

    def look(self, status: Status) -> None:
        """See in a status what no record tells."""
        for one in self.kept:
            if one.request["verb"] == "stop" and one.acknowledged and not one.seen and status["phase"] == "ending":
                one.seen = "the run is ending"

    def ended(self) -> None:
        """The run is over."""
        for one in self.kept:
            if one.request["verb"] == "stop" and not one.refused:
                one.acknowledged, one.seen = one.acknowledged or "it ended", "the run is over"


def send(path: Path, command: Command) -> tuple[dict[str, Any] | None, str]:
    """Ask a run; returns its answer, or None and why not.  Waits for the answer: never on a page's own thread."""
    try:
        return control.ask(path, command.request), ""
    except ConfigError as error:
        return None, str(error)


def fault(kind: str, learner: int, **values: Any) -> Command:
    """A fault that acts now; seen when it is recorded.

    Raises
    ------
    ConfigError
        A number that it cannot have.
    """
    table = {"kind": kind, "learner": learner, **values}
    said = _numbers(fault_of(table, kind, learner + 1, now=True))

    def effect(record: Record, answer: dict[str, Any]) -> str:
        mine = record.kind == Kind.FAULT_INJECTED and record.detail.get("fault") == answer.get("fault")
        return "on the tape" if mine else ""

    lasts = kind in LASTING_KINDS and learner >= 0
    what = f"{kind_of(kind, learner)} ({said})" if said else kind_of(kind, learner)
    return Command(what, {"verb": "fault", "fault": table}, effect, partial(heal, learner) if lasts else None)


def kind_of(kind: str, learner: int) -> str:
    """A fault with its target, in a few words."""
    return f"{kind} L{learner}" if learner >= 0 else kind.replace("_", " ")


def refused(what: str, why: str) -> Command:
    """A click that is not sent: what was wanted, and why it cannot be."""
    made = Command(what, {"verb": "refused"}, lambda record, answer: "")
    made.refused = why
    return made


def _numbers(struck: Fault) -> str:
    """The numbers that a fault acts with, those that nobody gave among them.

    Examples
    --------
    >>> _numbers(Fault("bandwidth", 0, 1, bytes_per_s=1e6)), _numbers(Fault("kill", 0, 1, for_ns=3_000_000_000))
    ('until healed, 1,000,000 bytes/s', 'down 3 s')
    """
    keys, for_s = keys_of(struck.kind), struck.for_ns / 1e9
    if struck.kind in ENDING_KINDS:
        length = f"down {for_s:g} s" if for_s else "for good"
    else:
        length = f"for {for_s:g} s" if for_s else "until healed"
    said = {
        "for_s": length,
        "factor": f"factor {struck.factor:g}",
        "delay_s": f"{struck.delay_ns / 1e9:g} s longer",
        "jitter_s": f"give or take {struck.jitter_ns / 1e9:g} s" if struck.jitter_ns else "",
        "share": f"share {struck.share:g}",
        "bytes_per_s": f"{struck.bytes_per_s:,.0f} bytes/s",
        "count": f"count {struck.count:,}",
        "persistent": "persistent" if struck.persistent else "",
        "seed": f"seed {struck.seed}" if struck.seed >= 0 else "",
    }
    return ", ".join(text for key, text in said.items() if key in keys and text)


def heal(learner: int) -> Command:
    """End what lasts at a learner; seen when its end is recorded."""

    def effect(record: Record, answer: dict[str, Any]) -> str:
        mine = record.kind == Kind.FAULT_ENDED and record.peer == process_of(learner)
        return "its fault is over" if mine else ""

    return Command(f"heal L{learner}", {"verb": "heal", "target": learner}, effect)


def revive(learner: int) -> Command:
    """Start a learner again; seen when its process has started."""

    def effect(record: Record, answer: dict[str, Any]) -> str:
        mine = record.kind == Kind.PROCESS_STARTED and record.peer == process_of(learner)
        return f"start {record.value:.0f}" if mine else ""

    return Command(f"revive L{learner}", {"verb": "revive", "target": learner}, effect)


def release(learner: int) -> Command:
    """Let a learner that is quarantined in again; seen when the syncer has done so."""

    def effect(record: Record, answer: dict[str, Any]) -> str:
        mine = record.kind == Kind.SETTING_CHANGED and record.peer == process_of(learner)
        return "it may take part" if mine else ""

    return Command(f"release L{learner}", {"verb": "release", "target": learner, "who": "page"}, effect)


def add() -> Command:
    """One learner more; seen when the syncer has recorded it."""

    def effect(record: Record, answer: dict[str, Any]) -> str:
        mine = record.kind == Kind.LEARNER_ADDED and record.peer == process_of(int(answer["learner"]))
        return f"{label_of(record.peer)} is expected" if mine else ""

    return Command("add a learner", {"verb": "add", "who": "page"}, effect)


def remove(learner: int) -> Command:
    """Let a learner go for good; seen when the syncer counts on it no more."""

    def effect(record: Record, answer: dict[str, Any]) -> str:
        mine = record.kind == Kind.LEARNER_LOST and record.peer == process_of(learner)
        return "nobody counts on it" if mine else ""

    return Command(f"remove L{learner}", {"verb": "remove", "target": learner, "who": "page"}, effect)


def change(values: dict[str, Any], before: dict[str, Any] | None = None) -> Command:
    """Change live settings; seen when the syncer or a learner acts on them.  Undone by what held ``before``."""

    def effect(record: Record, answer: dict[str, Any]) -> str:
        if record.kind != Kind.SETTING_APPLIED or record.setting != answer.get("revision"):
            return ""
        place = f"from round {record.round:,}" if record.round >= 0 else f"from step {record.step:,}"
        return f"{label_of(record.process)} acts on it {place}"

    what = "set " + ", ".join(f"{key} = {value}" for key, value in values.items())
    inverse = partial(change, before, values) if before else None
    return Command(what, {"verb": "set", "values": values, "who": "page"}, effect, inverse)


def stop() -> Command:
    """End the run in order."""
    return Command("stop the run", {"verb": "stop", "reason": "stopped"}, lambda record, answer: "")
