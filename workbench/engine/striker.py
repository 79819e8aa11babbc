"""Faults at work on real processes: SIGKILL, SIGSTOP, and the restart that follows."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

from workbench.config import ConfigError
from workbench.engine.layout import Plan, PlannedFault
from workbench.engine.processes import Managed
from workbench.protocol.records import Kind

if TYPE_CHECKING:
    from workbench.engine.fleet import Fleet

KINDS = ("kill", "stall", "kill_syncer", "stall_syncer")
FOREVER_NS = 2**62
NOT_AGAIN = -2.0
"""`Managed.restart_at` of a process that stays dead."""


def check_kinds(plan: Plan) -> None:
    """Raise `ConfigError` for a fault that does not act on real processes."""
    for fault in plan.faults:
        if fault.kind not in KINDS:
            raise ConfigError(
                f"fault {fault.kind!r} does not act on real processes; allowed with --clock real: {', '.join(KINDS)} "
                "(all kinds act in virtual time)"
            )


class Striker:
    """Lets the faults of a plan act, counted from the start of rounds, and those that are asked for at once."""

    def __init__(self, fleet: Fleet, plan: Plan) -> None:
        check_kinds(plan)
        self.fleet, self.plan = fleet, plan
        self.began = False

    def begin(self) -> None:
        """Rounds have begun: faults count from now."""
        if not self.began:
            self.began = True
            for fault in self.plan.faults:
                self.fleet.timers.after(fault.at_ns / 1e9, self.strike, fault)

    def strike(self, fault: PlannedFault) -> bool:
        """Let a fault act now; on a target that is gone it is recorded as without effect."""
        fleet = self.fleet
        target = fleet.syncer if fault.learner < 0 else fleet.learners[fault.learner]
        act = self._kill if fault.kind.startswith("kill") else self._stall
        effect = not fleet.ending.finished and target.alive and act(target, fault.for_ns)
        if not effect:
            until = fleet.now()
        elif fault.for_ns:
            until = fleet.now() + fault.for_ns
        else:
            until = FOREVER_NS if fault.kind.startswith("kill") else fleet.now()
        fleet.reports.supervisor(
            Kind.FAULT_INJECTED,
            peer=target.process,
            reason=fault.kind,
            value=fault.for_ns / 1e9,
            detail={"until_ns": until, "factor": 1.0, "count": 1, "effect": int(effect)},
        )
        return effect

    def _kill(self, target: Managed, for_ns: int) -> bool:
        target.restart_at = time.monotonic() + for_ns / 1e9 if for_ns else NOT_AGAIN
        target.got_somewhere()
        return self.fleet.nursery.signal(target, signal.SIGKILL)

    def _stall(self, target: Managed, for_ns: int) -> bool:
        target.stops += 1
        self.fleet.timers.after(for_ns / 1e9, self._resume, target, target.number)
        return self.fleet.nursery.signal(target, signal.SIGSTOP)

    def _resume(self, target: Managed, number: int) -> None:
        if target.number != number:
            return
        target.stops = max(0, target.stops - 1)
        if not target.stops:
            self.fleet.nursery.signal(target, signal.SIGCONT)
