"""Faults at work on real processes: when each strikes, and what it does."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.engine.lasting import Lasting
from workbench.engine.layout import Plan
from workbench.engine.link_faults import told
from workbench.engine.processes import Managed
from workbench.protocol.acting import Acting, seeded
from workbench.protocol.faults import LASTING_KINDS, NUMBER_KINDS, ROSTER_KINDS, SCENARIO, Fault, ended, injected
from workbench.protocol.plans import Rest, has_passed, planned_words
from workbench.protocol.records import Kind

if TYPE_CHECKING:
    from workbench.engine.fleet import Fleet

NOT_AGAIN = -2.0
"""`Managed.restart_at` of a process that stays dead."""


class Striker:
    """Lets the faults of a plan act, counted from the start of rounds, and those that are asked for at once.

    Attributes
    ----------
    lasting : Lasting
        What acts now.
    timed, waiting : list of Fault
        Faults that wait for a time (of the plan), for a round or for a merge.
    late : dict of int to Fault
        Learners that start later than the others.
    began : bool
        The plan is under way: rounds have begun.
    struck : int
        Number of the last fault.
    skipped : list of str
        Faults that came due while nothing ran.
    """

    def __init__(self, fleet: Fleet, plan: Plan) -> None:
        self.fleet = fleet
        self.lasting = Lasting(fleet)
        self.timed: list[Fault] = []
        self.waiting: list[Fault] = []
        self.late: dict[int, Fault] = {}
        self.began = False
        self.struck = 0
        self.skipped: list[str] = []
        self._began_ns = -1
        self._held_until: dict[int, int] = {}
        self._plan(plan.faults)

    def _plan(self, faults: Iterable[Fault]) -> None:
        for fault in faults:
            if fault.kind == "late":
                self.late[fault.learner] = fault
            else:
                (self.waiting if fault.is_tied else self.timed).append(fault)

    def go_on(self, rest: Rest, merges: int, round_: int) -> None:
        """A run goes on with the rest of its plan: what had not struck is yet to come, what lasts acts on."""
        self.struck, self._began_ns = rest.struck, rest.began_ns
        since_ns = self.fleet.now() - rest.began_ns
        for fault in rest.to_come:
            if rest.began_ns >= 0 and has_passed(fault, since_ns, merges, round_):
                self.skip(fault)
            else:
                self._plan([fault])
        for number, fault, began_ns in rest.acting:
            if fault.kind == "late":
                self.late[fault.learner] = fault
                self._held_until[fault.learner] = began_ns + fault.for_ns
            else:
                self.lasting.take_up(Acting(number, fault), began_ns)

    def start_learners(self) -> None:
        """Start all learners but those that are to come late."""
        for learner in self.fleet.learners:
            late = self.late.get(learner.learner)
            if learner.learner in self._held_until:
                left_ns = self._held_until[learner.learner] - self.fleet.now()
                self.fleet.timers.after(max(0, left_ns) / 1e9, self.fleet.start, learner)
            elif late is None or not self.strike(late):
                self.fleet.start(learner)

    def begin(self) -> None:
        """Rounds have begun: faults count from now, or, in a run that goes on, from when they had."""
        if self.began:
            return
        self.began = True
        now = self.fleet.now()
        since_ns = 0 if self._began_ns < 0 else now - self._began_ns
        for fault in self.timed:
            if fault.at_ns < since_ns:
                self.skip(fault)
            else:
                self.fleet.timers.after((fault.at_ns - since_ns) / 1e9, self.strike, fault)

    def progress(self, merges: int, round_: int) -> None:
        """So many merges are done, and the round of this global step was the last to be opened."""
        for fault in list(self.waiting):
            come = round_ >= fault.at_round if fault.at_round >= 0 else merges >= fault.at_merge
            if come:
                self.waiting.remove(fault)
                self.strike(fault)

    def strike(self, fault: Fault) -> bool:
        """Let a fault act now; on a target that is gone it is recorded as without effect."""
        fleet = self.fleet
        self.struck += 1
        acting = Acting(self.struck, replace(fault, seed=seeded(fault, self.struck, fleet.config.seed)))
        target = self._target(fault)
        effect = target is not None and self._is_in_reach(target, fault) and self._act(target, acting)
        fleet.reports.supervisor(Kind.FAULT_INJECTED, **injected(fault, acting.number, fleet.now(), effect))
        self._again(fault)
        return effect

    def skip(self, fault: Fault) -> None:
        """A fault came due while nothing ran: it is recorded, and strikes nobody."""
        self.struck += 1
        now = self.fleet.now()
        self.fleet.reports.supervisor(Kind.FAULT_INJECTED, **injected(fault, self.struck, now, False, skipped=True))
        self.skipped.append(planned_words(fault))
        self._again(fault)

    def _again(self, fault: Fault) -> None:
        if fault.every_ns and fault.times != 1 and not self.fleet.ending.finished:
            later = replace(fault, times=max(0, fault.times - 1))
            self.fleet.timers.after(fault.every_ns / 1e9, self.strike, later)

    def _target(self, fault: Fault) -> Managed | None:
        """Whom a fault strikes, None if there is no such learner yet."""
        if fault.learner < 0:
            return self.fleet.syncer
        return self.fleet.learners[fault.learner] if fault.learner < len(self.fleet.learners) else None

    def _is_in_reach(self, target: Managed, fault: Fault) -> bool:
        if self.fleet.ending.finished:
            return False
        return fault.learner < 0 or fault.kind in ROSTER_KINDS or not self.fleet.launcher.why_not(target)

    def _act(self, target: Managed, acting: Acting) -> bool:
        kind = acting.fault.kind
        if kind == "add":
            return self.fleet.roster.add(SCENARIO, lambda answer: None)
        if kind == "remove":
            return self.fleet.roster.remove(target.learner, SCENARIO, lambda answer: None)
        if kind in LASTING_KINDS:
            return self._last(target, acting)
        if kind == "late":
            self.fleet.timers.after(acting.fault.for_ns / 1e9, self.fleet.start, target)
            return True
        act = Striker._poison if kind in NUMBER_KINDS else _ACTS[kind]
        return target.alive and act(self, target, acting)

    def _last(self, target: Managed, acting: Acting) -> bool:
        """A link is there while its learner may come back; a slow-down needs a process."""
        if target.state in ("ended", "failed") or (acting.fault.kind == "slow" and not target.alive):
            return False
        self.lasting.begin(acting)
        return True

    def _kill(self, target: Managed, acting: Acting) -> bool:
        self._expect_end(target, acting.fault)
        return self.fleet.nursery.signal(target, signal.SIGKILL)

    def _poison(self, target: Managed, acting: Acting) -> bool:
        if target.link is None or not target.link.send({"poison": told(target.learner, [acting])}):
            return False
        self.lasting.counted(acting)
        return True

    def _exit(self, target: Managed, acting: Acting) -> bool:
        if target.link is None or not target.link.send({"exit": acting.number}):
            return False
        self._expect_end(target, acting.fault)
        return True

    @staticmethod
    def _expect_end(target: Managed, fault: Fault) -> None:
        """The end that comes now is no failure of the process; when the next is to start."""
        target.restart_at = time.monotonic() + fault.for_ns / 1e9 if fault.for_ns else NOT_AGAIN
        target.got_somewhere()

    def _stall(self, target: Managed, acting: Acting) -> bool:
        target.stops += 1
        arguments = (target, target.number, acting, self.fleet.now())
        self.fleet.timers.after(acting.fault.for_ns / 1e9, self._resume, *arguments)
        return self.fleet.nursery.signal(target, signal.SIGSTOP)

    def _resume(self, target: Managed, number: int, acting: Acting, began: int) -> None:
        if target.number != number or not target.alive:
            return
        target.stops = max(0, target.stops - 1)
        now = self.fleet.now()
        self.fleet.reports.supervisor(Kind.FAULT_ENDED, **ended(acting.fault, acting.number, began, now, "over"))
        if not target.stops:
            self.fleet.nursery.signal(target, signal.SIGCONT)


_ACTS: dict[str, Callable[[Striker, Managed, Acting], bool]] = {
    "kill": Striker._kill,
    "kill_syncer": Striker._kill,
    "exit": Striker._exit,
    "stall": Striker._stall,
    "stall_syncer": Striker._stall,
}
