"""A run on one page: what it was, how it ended, what came out, what went wrong."""

from __future__ import annotations

from typing import Any

from workbench.analysis.arrays import incidents, recoveries, refusals
from workbench.analysis.arrays.fault_effects import fault_effects
from workbench.analysis.arrays.learner_totals import processes_started, step_times
from workbench.analysis.arrays.tables import Tables
from workbench.analysis.arrays.unstruck import unstruck
from workbench.analysis.from_tape import config_of, tables_of
from workbench.analysis.labelled import Source
from workbench.analysis.reports import goodput, ledger, participation, rounds, staleness, validation
from workbench.analysis.reports.facts import RUNNING, facts
from workbench.config import RunConfig
from workbench.protocol.starvation import REMEDIES


def report(source: Source, config: RunConfig | None = None, *, written: bool = False) -> dict[str, Any]:
    """Report a run as a whole.

    Parameters
    ----------
    source : tape or tables
    config : RunConfig, optional
        The tape's own by default.
    written : bool
        Whether a process writes the run at present.

    Returns
    -------
    dict
        ``run`` (`workbench.analysis.reports.facts.facts`), ``validation``, ``ledger``, ``goodput``, ``participation``,
        ``staleness`` and ``rounds`` (what is said of the run as a whole in the reports of these names), ``faults``
        (`fault_effects`), ``faults_unstruck`` (`unstruck`, empty while the run goes on), ``incidents`` (``starved``,
        ``stalled``, ``quorums_lost``, ``quorum_lost_s``, ``quorum_awaited_s`` (before rounds began), ``own_stops``,
        ``syncer_restarts``, ``own_ends``, ``left_by_hand``, ``settings_changed``, ``refused``, ``quarantines``,
        ``recoveries``, ``snapshots``, ``resumes``) and ``learners``, one row each.
    """
    tables, config = tables_of(source), config or config_of(source)
    parts = {
        "validation": validation.report(tables, config),
        "ledger": ledger.report(source, config),
        "goodput": goodput.report(tables, config),
        "participation": participation.report(tables, config),
        "staleness": staleness.report(source, config),
        "rounds": rounds.report(tables, config),
    }
    lost = incidents.quorums_lost(tables)
    run = facts(source, config, written=written)
    return {
        "run": run,
        **{name: _whole(part) for name, part in parts.items()},
        "faults": fault_effects(tables),
        "faults_unstruck": _unstruck(tables, run),
        "incidents": {
            "starved": _starved(tables, parts["participation"]),
            "stalled": incidents.stalled(tables),
            "quorums_lost": [row for row in lost if not row["awaited"]],
            "quorum_lost_s": sum(row["for_s"] for row in lost if not row["awaited"]),
            "quorum_awaited_s": sum(row["for_s"] for row in lost if row["awaited"]),
            "own_stops": incidents.own_stops(tables),
            "syncer_restarts": incidents.syncer_restarts(tables),
            "own_ends": incidents.own_ends(tables),
            "left_by_hand": incidents.left_by_hand(tables),
            "settings_changed": incidents.settings_changed(tables),
            "refused": refusals.refused(tables),
            "quarantines": refusals.quarantines(tables),
            "recoveries": recoveries.recoveries(tables),
            "snapshots": recoveries.snapshots_taken(tables),
            "resumes": recoveries.resumes(tables),
        },
        "learners": _learners(tables, parts),
    }


def _starved(tables: Tables, participation: dict[str, Any]) -> list[dict[str, Any]]:
    """Starved learners with the cause that kept each out of most merges of the run, as the table of participation."""
    rows = incidents.starved(tables)
    for row in rows:
        causes = participation["by_learner"][row["learner"]]["left_out"]
        if causes:
            row["cause"] = next(iter(causes))
            row["remedy"] = REMEDIES.get(row["cause"], "")
    return rows


def _unstruck(tables: Tables, run: dict[str, Any]) -> list[dict[str, Any]]:
    scenario = str(run["faults_planned"].get("scenario", ""))
    return [] if run["state"] == RUNNING else unstruck(tables, scenario, run["clock"])


_OF_PARTS = ("by_learner", "by_fragment", "behind", "effective_period", "edges_s", "reached")


def _whole(part: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name not in _OF_PARTS}


def _learners(tables: Tables, parts: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """What is known of each learner: one row from the reports that have rows by learner."""
    rows = zip(
        *(parts[name]["by_learner"] for name in ("ledger", "participation", "goodput")),
        step_times(tables),
        processes_started(tables),
        strict=True,
    )
    return [
        {
            "learner": tokens["learner"],
            "steps": times["count"],
            "step_s": times["median"],
            "processes": processes,
            "tokens": tokens["processed"],
            "merged_share": tokens["merged_share"],
            "participation": part["participation"],
            "goodput": time["goodput"],
            "alive": part["alive"],
            "contributed": part["contributed"],
        }
        for tokens, part, time, times, processes in rows
    ]
