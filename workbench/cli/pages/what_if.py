"""What came of a what-if: class, change and branch, and parent against answer."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.text import Text

from workbench.cli import output, words
from workbench.cli.pages.compare import rounded, titled

if TYPE_CHECKING:
    from workbench.replay.counterfactual.asking import WhatIf

ROWS = ("val_loss_last", "tokens_merged", "participation", "goodput", "merges", "rounds", "time_s")
"""Numbers that are compared."""
CLASSES = {
    "arithmetic": "arithmetic: the schedule of the tape, everything computed anew; exact",
    "schedule": "schedule: virtual time from the branch on, with the durations of the tape",
}
FROM_ROUND = "arithmetic: the schedule of the tape, everything computed anew from the branch on; exact"
DURATIONS = {
    "steps": ("step",),
    "messages": ("meta", "up", "down", "update", "handed", "welcome", "notice"),
    "merges and commits": ("merge", "commit"),
    "starts of processes": ("start",),
    "states copied, handed over and taken up": ("adopt", "copy", "state", "passed", "taken"),
    "snapshots written": ("write",),
}
"""What takes a time, with the kinds of `workbench.replay.counterfactual.durations` that it consists of."""


def show(found: WhatIf, run: str) -> Iterator[Any]:
    """Yield the answer."""
    yield output.pairs(f"what if: {run}", facts(found, run))
    yield Text("times count from the start of rounds", style="dim")
    heads = ["", ">parent", ">what if", *([">least", ">most"] if found.seeds > 1 else [])]
    yield output.aligned("", heads, [[titled(name), *_cells(found, name)] for name in ROWS])
    if found.kind == "schedule" and found.calibration is None:
        yield Text(
            "the parent was recorded, the answer is modelled from the branch on: a part of the differences may be the "
            "timing model's; to see how much, with nothing changed:",
            style="dim",
        )
        yield f"  workbench what-if {shlex.quote(run)} --resimulate"
    if found.learners_per_core is not None and found.kind == "schedule":
        yield Text(
            f"learners per core: {found.learners_per_core:g}; on fewer cores than learners the speed of one depends "
            "on the others, which durations of a tape do not show",
            style="dim",
        )
    path = shlex.quote(str(found.path))
    yield f"\nwhat happened: workbench inspect {path}"
    yield f"bit for bit:   workbench replay {path}"


def facts(found: WhatIf, run: str) -> list[tuple[str, Any]]:
    """Class, change and branch."""
    changes = ", ".join(f"{key} = {value}" for key, value in found.changes.items())
    gone, new = "; ".join(found.without), "; ".join(found.added)
    parts = (changes, gone and f"without {gone}", new and f"with {new}")
    changed = "; ".join(part for part in parts if part) or "nothing"
    since = "" if found.from_round is None else f", from round {found.from_round} on"
    rows: list[tuple[str, Any]] = [
        ("class", FROM_ROUND if found.kind == "arithmetic" and found.branch_event is not None else CLASSES[found.kind]),
        ("changed", changed + since),
        *compared(found),
        *branch(found),
    ]
    if found.asked != found.kind:
        rows.append(("turned", "a decision that depends on values changed the schedule at the branch"))
    if found.seeds > 1:
        rows.append(("seeds", found.seeds))
    elif found.seeds_asked > 1:
        rows.append(("seeds", f"1; nothing is drawn in this answer, so that {found.seeds_asked} seeds give the same"))
    if found.drawn:
        rows.append(("drawn", f"durations that the tape does not have, from others of their kind: {drawn(found)}"))
    return rows


def branch(found: WhatIf) -> Iterator[tuple[str, str]]:
    """Where the parent was left, and what both have."""
    if found.branch_event is None:
        if found.kind == "schedule":
            yield "branch", "none: no decision comes out otherwise"
        return
    if not found.branch_event and not found.shared_events:
        yield "branch", "at the start of the run: nothing is shared"
        return
    where = found.branch or f"event {found.branch_event}"
    before = "" if found.from_round is None else f"where round {found.from_round} is about to be opened: "
    yield "branch", before + where
    yield "shared", f"the first {words.plural(found.shared_events, 'event')} of the parent; what follows is made anew"


def compared(found: WhatIf) -> Iterator[tuple[str, Any]]:
    """What came of a question that changes nothing, against the parent."""
    if found.unlike is not None:
        every = f"all {found.shared_events:,} events came out again, bit for bit"
        yield "the parent", f"{found.unlike:,} events came out otherwise" if found.unlike else every
    if found.calibration is not None:
        yield "timing model", found.calibration.text()
        parent, *children = found.calibration.merges
        if any(merges != parent for merges in children):
            yield "merges", f"{', '.join(map(str, children))} against {parent}"


def drawn(found: WhatIf) -> str:
    """How many durations of each kind the tape does not have, of those that were needed."""
    parts = []
    for name, kinds in DURATIONS.items():
        missing, needed = (sum(counts.get(kind, 0) for kind in kinds) for counts in (found.drawn, found.used))
        if missing:
            parts.append(f"{missing:,} of {needed:,} {name}")
    return ", ".join(parts)


def _cells(found: WhatIf, name: str) -> list[str]:
    shown = 3 if found.seeds > 1 else 1
    spread = found.interval[name] or (None, None, None)
    return [rounded(name, value) for value in (found.parent[name], *spread[:shown])]
