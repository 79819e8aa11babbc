"""A counterfactual as a card: what was changed, and what came of it beside what was."""

from __future__ import annotations

from typing import Any

from workbench.replay.counterfactual.outcome import WhatIf
from workbench.views import markup

NAMES = {
    "val_loss_last": ("validation loss [nat per byte]", ".4f"),
    "tokens_merged": ("tokens merged", ",.0f"),
    "tokens_processed": ("tokens processed", ",.0f"),
    "participation": ("participation", ".1%"),
    "goodput": ("goodput", ".1%"),
    "merges": ("merges", ",.0f"),
    "rounds": ("rounds", ",.0f"),
    "time_s": ("time [s]", ",.1f"),
}
CLASSES = {
    "arithmetic": "arithmetic: the schedule of the tape, computed anew; one exact answer",
    "schedule": "schedule: virtual time from the branch on; an answer for each seed",
}


def what_if_card(found: WhatIf) -> str:
    """HTML of a counterfactual."""
    changed = [f"{key} = {value}" for key, value in found.changes.items()]
    changed += [f"without {fault}" for fault in found.without] + [f"with {fault}" for fault in found.added]
    lines = [
        ("class", CLASSES.get(found.kind, found.kind)),
        ("changed", ", ".join(changed) or "nothing"),
        ("the parent", _compared(found)),
        ("timing model", found.calibration.text() if found.calibration is not None else ""),
        ("left the tape at", found.branch),
        ("seeds", str(found.seeds) if found.seeds > 1 else ""),
    ]
    told = found.interval
    rows = [
        (name, _number(found.parent[key], how), _spread(told[key], how))
        for key, (name, how) in NAMES.items()
        if key in found.parent
    ]
    heads = ("", "as it was", "what if")
    return markup.card(
        str(found.path), "what if", [markup.facts(lines), markup.table(heads, rows, right=(False, True, True))]
    )


def _compared(found: WhatIf) -> str:
    """Whether an answer to no change is the parent."""
    if found.unlike is None:
        return ""
    return f"{found.unlike:,} events came out otherwise" if found.unlike else "came out again, bit for bit"


def _number(value: Any, how: str) -> str:
    return "none" if value is None else _text(value, how)


def _spread(found: tuple[float, float, float] | None, how: str) -> str:
    """Median, with the least and the largest where seeds differ."""
    if found is None:
        return "none"
    middle, low, high = found
    return _text(middle, how) + (f" ({_text(low, how)} to {_text(high, how)})" if low < high else "")


def _text(value: float, how: str) -> str:
    return format(value, how).replace("%", " %")
