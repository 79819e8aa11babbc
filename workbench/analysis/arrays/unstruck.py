"""Faults of a scenario for which the run was over too soon."""

from __future__ import annotations

import tomllib
from typing import Any

from workbench.analysis.arrays.tables import NS, Tables, events_of, run_span
from workbench.protocol.records import Kind

TRIGGERS = ("at_s", "at_round", "at_merge")


def unstruck(tables: Tables, scenario: str, clock: str) -> list[dict[str, Any]]:
    """Faults that would have struck after the end of the run, in the order of the scenario.

    Parameters
    ----------
    tables : Tables
    scenario : str
        TOML text, as the run was given it; empty for none.
    clock : str
        ``real``: seconds count from the start of rounds; ``virtual``: from the start of the processes.

    Returns
    -------
    list of dict
        ``kind``; ``learner`` (None for the syncer); ``trigger`` (``at_s``, ``at_round`` or ``at_merge``); ``at``, in
        seconds, the global step of a round, or merges.
    """
    events = tables["events"]
    began, ended = run_span(tables)
    come = {
        "at_s": (ended - (began if clock == "real" else 0)) * NS,
        "at_round": int(events["round"][events_of(tables, Kind.ROUND_OPENED)].max(initial=-1)),
        "at_merge": len(tables["merges"]["event"]),
    }
    found = []
    for table in tomllib.loads(scenario).get("fault", []):
        for trigger in TRIGGERS:
            if trigger in table and table[trigger] > come[trigger]:
                target = table.get("learner") if not table["kind"].endswith("_syncer") else None
                found.append({"kind": table["kind"], "learner": target, "trigger": trigger, "at": table[trigger]})
    return found
