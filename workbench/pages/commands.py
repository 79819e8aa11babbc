"""What may be clicked, as requests to the run with what there is to be seen of them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from workbench.config import ConfigError
from workbench.engine import control
from workbench.pages import effects
from workbench.pages.clicks import Command
from workbench.pages.effects import Effect
from workbench.protocol.faults import ENDING_KINDS, Fault
from workbench.protocol.records import Kind, label_of
from workbench.protocol.scenario import fault_of, keys_of


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
    struck = fault_of(table, kind, learner + 1, now=True)
    said = _numbers(struck)
    effect = effects.of_fault(kind, learner, for_good=kind in ENDING_KINDS and not struck.for_ns)
    lasts = effects.is_in_force_until_healed(kind, learner)
    what = f"{kind_of(kind, learner)} ({said})" if said else kind_of(kind, learner)
    return Command(what, {"verb": "fault", "fault": table}, effect, partial(heal, learner) if lasts else None)


def kind_of(kind: str, learner: int) -> str:
    """A fault with its target, in a few words."""
    return f"{kind} L{learner}" if learner >= 0 else kind.replace("_", " ")


def refused(what: str, why: str) -> Command:
    """A click that is not sent: what was wanted, and why it cannot be."""
    made = Command(what, {"verb": "refused"}, Effect())
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
    return Command(f"heal L{learner}", {"verb": "heal", "target": learner}, effects.of_heal(learner))


def revive(learner: int) -> Command:
    """Start a learner again; seen when its process has started, joins and is merged."""
    effect = effects.of_coming(learner, Kind.PROCESS_STARTED, lambda record: f"start {record.value:.0f}")
    return Command(f"revive L{learner}", {"verb": "revive", "target": learner}, effect)


def release(learner: int) -> Command:
    """Let a learner that is quarantined in again; seen when the syncer has done so, and when it is merged."""
    effect = effects.of_coming(learner, Kind.SETTING_CHANGED, lambda record: "it may take part")
    return Command(f"release L{learner}", {"verb": "release", "target": learner, "who": "page"}, effect)


def add() -> Command:
    """One learner more; seen when the syncer has recorded it, when it joins and when it is merged."""
    effect = effects.of_coming(None, Kind.LEARNER_ADDED, lambda record: f"{label_of(record.peer)} is expected")
    return Command("add a learner", {"verb": "add", "who": "page"}, effect)


def remove(learner: int) -> Command:
    """Let a learner go for good; seen when the syncer counts on it no more."""
    request = {"verb": "remove", "target": learner, "who": "page"}
    return Command(f"remove L{learner}", request, effects.of_going(learner))


def change(values: dict[str, Any], before: dict[str, Any] | None = None) -> Command:
    """Change live settings; seen when the syncer or a learner acts on them.  Undone by what held ``before``."""
    what = "set " + ", ".join(f"{key} = {value}" for key, value in values.items())
    inverse = partial(change, before, values) if before else None
    return Command(what, {"verb": "set", "values": values, "who": "page"}, effects.of_settings(), inverse)


def stop() -> Command:
    """End the run in order."""
    return Command("stop the run", {"verb": "stop", "reason": "stopped"}, Effect())
