"""What each learner had: processes, and steps of which length."""

from __future__ import annotations

from workbench.analysis.arrays.presence import presences
from workbench.analysis.arrays.spread import Spread, spread
from workbench.analysis.arrays.tables import NS, Tables, learner_count


def step_times(tables: Tables) -> list[Spread]:
    """Duration of a step by learner [s]: end - start, waiting and injected slow-downs within it included."""
    steps = tables["steps"]
    took = (steps["end_ns"] - steps["start_ns"]) * NS
    return [spread(took[steps["learner"] == learner]) for learner in range(learner_count(tables))]


def processes_started(tables: Tables) -> list[int]:
    """Processes that each learner has had."""
    return [len(presence.lives) for presence in presences(tables)]
