"""A tape as a card: what the run was, what came out, and what is known of each learner."""

from __future__ import annotations

from typing import Any

import xarray as xr

from workbench.analysis.arrays.fault_effects import fault_effects
from workbench.analysis.arrays.learner_totals import processes_started, step_times
from workbench.analysis.from_tape import tables_of
from workbench.analysis.reports import goodput, participation, validation
from workbench.analysis.reports.facts import FINISHED, RUNNING, facts
from workbench.protocol.records import SYNCER, process_of
from workbench.views import markup
from workbench.views.palette import GREEN, ORANGE, SKY
from workbench.views.states import fault_name

FAULTS_NAMED = 6


def tape_card(tape: xr.DataTree) -> str:
    """HTML of a tape."""
    run = facts(tape, written=True)
    sign, colour = {FINISHED: ("✓", GREEN), RUNNING: ("▸", SKY)}.get(run["state"], ("‖", ORANGE))
    merges, wanted = run["merges"], run["merges_wanted"]
    parts = [
        markup.verdict(sign, colour, f"{_ended(run)}, {run['duration_s']:.1f} s of {run['clock'] or 'unknown'} time"),
        markup.bar(merges / max(wanted, 1), f"{merges:,} of {wanted:,} merges", GREEN),
        markup.facts(_lines(tape, run)),
    ]
    return markup.card(str(tape.name or "tape"), "tape", [*parts, *_learners(tape)])


def _ended(run: dict[str, Any]) -> str:
    if run["state"] == RUNNING:
        return "open: the run goes on, or was cut off"
    reason = run["state_reason"]
    return str(run["state"]) + (f" ({reason})" if reason not in ("", "rounds", run["state"]) else "")


def _lines(tape: xr.DataTree, run: dict[str, Any]) -> list[tuple[str, str]]:
    told = validation.report(tape)
    config = run["config"]
    changed = ", ".join(f"{key} = {now}" for key, (_, now) in run["changed"].items() if key != "preset")
    return [
        ("preset", run["preset"]),
        ("changed", changed),
        (
            "rule",
            f"merge {config['merge']}, outer {config['outer']}, quorum {config['quorum']}, grace {config['grace']}",
        ),
        ("validation loss", _losses(told)),
        ("faults", _faults(tape)),
        ("events", _events(tape["events"].dataset.sizes["event"])),
    ]


def _losses(told: dict[str, Any]) -> str:
    losses = [told.get(name) for name in ("first", "last")]
    shown = [f"{value:.3f}" for value in losses if value is not None]
    return " → ".join(shown) + " nat per byte" if shown else "no evaluation"


def _faults(tape: xr.DataTree) -> str:
    found = fault_effects(tables_of(tape))
    named = [
        f"{fault_name(fault['kind'], _target(fault['learner']))} at {fault['time_s']:.1f} s"
        for fault in found[:FAULTS_NAMED]
    ]
    rest = f" and {len(found) - FAULTS_NAMED} more" if len(found) > FAULTS_NAMED else ""
    return ", ".join(named) + rest


def _target(learner: int | None) -> int:
    return SYNCER if learner is None else process_of(learner)


def _learners(tape: xr.DataTree) -> list[str]:
    tables = tables_of(tape)
    shares, took_part = goodput.report(tape)["by_learner"], participation.report(tape)["by_learner"]
    rows = [
        (
            f"L{time['learner']}", f"{steps['count']:,}", _share(time["goodput"]), _share(part["participation"]),
            f"{part['contributed']:,}", f"{starts:,}",
        )
        for time, part, steps, starts in zip(
            shares, took_part, step_times(tables), processes_started(tables), strict=True
        )
    ]  # fmt: skip
    if not rows:
        return []
    heads = ("learner", "steps", "goodput", "participation", "in merges", "processes")
    return [markup.table(heads, rows, right=(False, True, True, True, True, True))]


def _share(value: float | None) -> str:
    return "none" if value is None else f"{value * 100:.1f} %"


def _events(count: int) -> str:
    """How many there are, and how they are numbered."""
    return f"{count:,}, numbered 0 to {count - 1:,}" if count else "0"
