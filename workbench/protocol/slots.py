"""Strategy slots on plain numbers (DESIGN section 8): when fragments are due, how learners work, who talks to whom.

Admission, the fourth of them, has a file of its own.  A new member is one function and one line in its table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.algorithms.schedule import due_fragment, next_due
from workbench.protocol.settings import FixedSettings, LearnerSettings


def staggered(t: int, fixed: FixedSettings) -> tuple[int, int]:
    """First round after ``t`` and its fragment, one offset per fragment in a period of H steps."""
    due = next_due(t, fixed.offsets, fixed.period)
    return due, due_fragment(due, fixed.offsets, fixed.period)


SYNC_TRIGGERS: dict[str, Callable[[int, FixedSettings], tuple[int, int]]] = {"staggered": staggered}
"""(t, fixed settings) to the next round and the fragment that it syncs."""


def fixed_work(settings: LearnerSettings, n: int) -> tuple[int, int]:
    """Batch size and accumulation of every step as set."""
    return settings.batch, settings.accumulation


LOCAL_WORK: dict[str, Callable[[LearnerSettings, int], tuple[int, int]]] = {"fixed": fixed_work}
"""(learner settings, own step) to batch size and accumulation of that step."""


def star(sender: int, connected: Sequence[int]) -> Sequence[int]:
    """Every connected learner hears of every merge."""
    return connected


TOPOLOGIES: dict[str, Callable[[int, Sequence[int]], Sequence[int]]] = {"star": star}
"""(fragment, connected learners) to those that get its update."""
