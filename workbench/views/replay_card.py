"""What a replay found, as a card."""

from __future__ import annotations

from workbench.replay.report import ReplayReport
from workbench.views import markup
from workbench.views.palette import GREEN, ORANGE, VERMILLION


def replay_card(report: ReplayReport) -> str:
    """HTML of a report."""
    exact = report.bit_exact
    sign, colour = ("✓", GREEN) if exact else ("?", ORANGE) if exact is None else ("✕", VERMILLION)
    lines = [
        ("merges compared", f"{report.merges_compared:,} of {report.merges:,}"),
        ("recomputed", f"{report.steps:,} inner steps, {report.captures:,} contributions"),
        ("first difference", report.first_difference or ""),
        ("environment", "; ".join(report.environment)),
        ("final weights", f"{report.final_digest:016x} (xxh3-64)"),
    ]
    return markup.card(report.verdict, "replay:", [markup.verdict(sign, colour, _word(exact)), markup.facts(lines)])


def waiting_card() -> str:
    """HTML of a replay that nothing was asked of yet."""
    said = "nothing is computed yet; verify() executes everything, weights(merge) as far as that merge"
    return markup.card("", "replay", [markup.note(said)])


def _word(exact: bool | None) -> str:
    return {True: "bit-exact", None: "nothing to compare", False: "not bit-exact"}[exact]
