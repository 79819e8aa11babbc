"""What a run is: its configuration in short, how far it came, and whether it ended."""

from __future__ import annotations

from typing import Any

import xarray as xr

from workbench.analysis.arrays.tables import NS, Tables, events_of, learner_count, run_span
from workbench.analysis.from_tape import config_of, tables_of
from workbench.analysis.labelled import Source
from workbench.config import PRESETS, RunConfig, diff, preset
from workbench.protocol.records import Kind

FINISHED, STOPPED, RUNNING, CUT_OFF = "finished", "stopped", "running", "cut_off"
"""All merges done; ended before; being written; no end on the tape and no writer (killed, or the disk was full)."""

SHOWN = (
    "learners", "quorum", "fragments", "period", "overlap", "grace", "grace_s", "grace_gamma", "grace_cap_steps",
    "eligibility", "lead", "anchor", "merge", "weights", "outer", "outer_rate", "outer_momentum", "fold", "codec",
    "seed",
)  # fmt: skip
"""Keys that a reader of a run asks for first."""


def facts(source: Source, config: RunConfig | None = None, *, written: bool = False) -> dict[str, Any]:
    """Describe a run.

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
        ``run_id``, ``preset``, ``clock``, ``code_version``, ``config`` (`SHOWN`), ``changed`` (keys that differ from
        the preset: [its value, the run's]), ``state`` (``finished``, ``stopped``, ``running`` or ``cut_off``),
        ``state_reason``, ``closed`` (the tape), ``merges``, ``merges_wanted``, ``duration_s`` (from the start of
        rounds), ``began_s`` (the start of rounds on the clocks of the processes), ``learners_seen``,
        ``torn_bytes`` (of records that a crash cut off in mid-write), ``faults_planned`` (chaos and scenario texts),
        ``imported`` (whether the tape was made from the logs of another trainer: then no key of ``config`` is known).
    """
    tables, config = tables_of(source), config or config_of(source)
    attrs = source.attrs if isinstance(source, xr.DataTree) else {}
    began, ended = run_span(tables)
    state, reason = _state(tables, closed=bool(attrs.get("closed", False)), written=written)
    imported = bool(attrs.get("imported"))
    base = config if imported else preset(config.preset) if config.preset in PRESETS else RunConfig()
    return {
        "run_id": str(attrs.get("run_id", "")),
        "preset": config.preset,
        "clock": str(attrs.get("clock", "")),
        "code_version": str(attrs.get("code_version", "")),
        "config": {key: None if imported else getattr(config, key) for key in SHOWN},
        "changed": {key: list(values) for key, values in diff(base, config).items()},
        "state": state,
        "state_reason": reason,
        "closed": bool(attrs.get("closed", False)),
        "merges": len(tables["merges"]["event"]),
        "merges_wanted": len(tables["merges"]["event"]) if imported else config.rounds,
        "duration_s": (ended - began) * NS,
        "began_s": began * NS,
        "learners_seen": learner_count(tables),
        "torn_bytes": int(attrs.get("torn_bytes", 0)),
        "faults_planned": dict(attrs.get("faults") or {}),
        "imported": imported,
    }


def _state(tables: Tables, *, closed: bool, written: bool) -> tuple[str, str]:
    ends = events_of(tables, Kind.RUN_ENDED)
    if len(ends):
        reason = str(tables["events"]["reason"][ends[-1]])
        return (FINISHED if reason == "rounds" else STOPPED), reason
    if closed:
        return STOPPED, ""
    return (RUNNING if written else CUT_OFF), ""
