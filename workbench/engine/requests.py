"""What is asked over the control socket."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.config import ConfigError
from workbench.engine.links import Link
from workbench.engine.processes import BACKOFF_FIRST_S, Managed
from workbench.engine.runtime_folder import is_stopped
from workbench.protocol.faults import ROSTER_KINDS, Fault
from workbench.protocol.records import label_of, process_of
from workbench.protocol.scenario import fault_of

if TYPE_CHECKING:
    from workbench.engine.fleet import Fleet

DURATION_MAX_S = 1e6


class Refused(ValueError):
    """A request that cannot be done, as one line."""


class Requests:
    """Answers requests; each is a table with ``verb`` and what that needs."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._ticket = 0

    def take(self, request: dict[str, Any], client: Link) -> None:
        """Do what is asked, and answer."""
        verb = request.get("verb")
        handler = _VERBS.get(verb) if isinstance(verb, str) else None
        try:
            if handler is None:
                raise Refused(f"unknown request {verb!r}; allowed: {', '.join(_VERBS)}")
            answer = handler(self, request, client.send)
        except Refused as error:
            answer = {"error": str(error)}
        if answer is not None:
            client.send(answer)

    def _status(self, request: dict[str, Any], reply: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        return {"status": status_of(self.fleet)}

    def _kill(self, request: dict[str, Any], reply: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        down_s = _seconds(request, "down_s", BACKOFF_FIRST_S)
        return self._strike("kill", request, down_s)

    def _stall(self, request: dict[str, Any], reply: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        return self._strike("stall", request, _seconds(request, "for_s", 3.0))

    def _strike(self, kind: str, request: dict[str, Any], for_s: float) -> dict[str, Any]:
        target = self._target(request)
        name = kind if target.learner >= 0 else f"{kind}_syncer"
        return self._struck(Fault(name, 0, target.learner, int(for_s * 1e9)))

    def _fault(self, request: dict[str, Any], reply: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        try:
            return self._struck(fault_of(request.get("fault"), "fault", len(self.fleet.learners), now=True))
        except ConfigError as error:
            raise Refused(str(error)) from error

    def _struck(self, fault: Fault) -> dict[str, Any]:
        target = self.fleet.learners[fault.learner] if fault.learner >= 0 else self.fleet.syncer
        if fault.kind in ROSTER_KINDS:
            raise Refused(f"{fault.kind} as a fault is for scenarios; ask for it itself: control RUN {fault.kind}")
        if fault.kind == "late":
            raise Refused("late is for scenarios: a learner that has started cannot start late any more")
        out_of_reach = self.fleet.launcher.why_not(target) if fault.learner >= 0 else ""
        if not self.fleet.striker.strike(fault):
            raise Refused(out_of_reach or f"{target.label} is {target.state}: there is no process for a {fault.kind}")
        return {"done": fault.kind, "target": target.label, "fault": self.fleet.striker.struck}

    def _heal(self, request: dict[str, Any], reply: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        target = self._target(request)
        if target.learner < 0:
            raise Refused("target = 'syncer'; allowed: a learner, whose link and whose steps are healed")
        return {"done": "heal", "target": target.label, "healed": self.fleet.striker.lasting.heal(target.learner)}

    def _target(self, request: dict[str, Any]) -> Managed:
        target = request.get("target")
        if target == "syncer":
            return self.fleet.syncer
        last = len(self.fleet.learners) - 1
        if isinstance(target, bool) or not isinstance(target, int) or not 0 <= target <= last:
            raise Refused(f"target = {target!r}; allowed: a learner 0 to {last}, or syncer")
        learner = self.fleet.learners[target]
        out_of_reach = self.fleet.launcher.why_not(learner)
        if out_of_reach:
            raise Refused(out_of_reach)
        return learner

    def _revive(self, request: dict[str, Any], reply: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        target = self._target(request)
        if target.alive or target.state == "starting":
            raise Refused(
                f"{target.label} is {target.state}; only what has ended, failed, or waits for its start can be revived"
            )
        target.failed_starts = 0
        target.got_somewhere()
        self.fleet.start(target)
        return {"done": "revive", "target": target.label}

    def _release(self, request: dict[str, Any], reply: Callable[[dict[str, Any]], Any]) -> None:
        target, last = request.get("target"), len(self.fleet.learners) - 1
        if isinstance(target, bool) or not isinstance(target, int) or not 0 <= target <= last:
            raise Refused(f"target = {target!r}; allowed: a learner 0 to {last}, which is quarantined")
        message = {"release": target, "who": str(request.get("who", "control"))}
        self._ask_syncer(message, lambda answer: reply(_released(answer, self.fleet.learners[target].label)))

    def _add(self, request: dict[str, Any], reply: Callable[[dict[str, Any]], Any]) -> None:
        self._change_roster(self.fleet.roster.add, request, lambda answer: reply(_added(answer)))

    def _remove(self, request: dict[str, Any], reply: Callable[[dict[str, Any]], Any]) -> None:
        target = request.get("target")
        if isinstance(target, bool) or not isinstance(target, int) or target < 0:
            raise Refused(f"target = {target!r}; allowed: a learner of the run")
        done = {"done": "remove", "target": label_of(process_of(target))}
        self._change_roster(
            partial(self.fleet.roster.remove, target),
            request,
            lambda answer: reply(done if answer["why_not"] is None else {"error": answer["why_not"]}),
        )

    def _change_roster(
        self,
        ask: Callable[[str, Callable[[dict[str, Any]], Any]], bool],
        request: dict[str, Any],
        answered: Callable[[dict[str, Any]], Any],
    ) -> None:
        if self.fleet.ending.finished:
            raise Refused("the run is ending: nobody is added or removed any more")
        if not ask(str(request.get("who", "control")), answered):
            raise Refused("there is no syncer at this moment; ask again")

    def _ask_syncer(self, message: dict[str, Any], answered: Callable[[dict[str, Any]], Any]) -> None:
        """Have the syncer decide; whoever asked is answered when it has."""
        self._ticket += 1
        self.fleet.answers[self._ticket] = answered
        if not self.fleet.tell_syncer({**message, "ticket": self._ticket}):
            del self.fleet.answers[self._ticket]
            raise Refused("there is no syncer at this moment; ask again")

    def _set(self, request: dict[str, Any], reply: Callable[[dict[str, Any]], Any]) -> None:
        values, who = request.get("values"), request.get("who", "control")
        if not isinstance(values, dict) or not values or not all(isinstance(key, str) for key in values):
            raise Refused(f"values = {values!r}; allowed: a table of live settings")
        self._ask_syncer({"settings": values, "who": str(who)}, lambda answer: reply(_settings_answer(answer)))

    def _snapshot(self, request: dict[str, Any], reply: Callable[[dict[str, Any]], Any]) -> None:
        message = {"snapshot": str(request.get("who", "control"))}
        self._ask_syncer(message, lambda answer: reply(_snapshot_answer(answer)))

    def _stop(self, request: dict[str, Any], reply: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        self.fleet.ending.stop(str(request.get("reason", "stopped")))
        return {"done": "stop"}


_VERBS: dict[str, Callable[..., dict[str, Any] | None]] = {
    "status": Requests._status,
    "kill": Requests._kill,
    "stall": Requests._stall,
    "fault": Requests._fault,
    "heal": Requests._heal,
    "set": Requests._set,
    "add": Requests._add,
    "remove": Requests._remove,
    "release": Requests._release,
    "revive": Requests._revive,
    "snapshot": Requests._snapshot,
    "stop": Requests._stop,
}


def _added(answer: dict[str, Any]) -> dict[str, Any]:
    if answer["why_not"] is not None:
        return {"error": answer["why_not"]}
    return {"done": "add", "learner": answer["added"][-1]}


def _released(answer: dict[str, Any], label: str) -> dict[str, Any]:
    return {"error": answer["why_not"]} if answer["why_not"] is not None else {"done": "release", "target": label}


def _settings_answer(answer: dict[str, Any]) -> dict[str, Any]:
    if answer["why_not"] is not None:
        return {"error": answer["why_not"]}
    return {"done": "set", "revision": answer["revision"], "round": answer["round"], "notes": answer["notes"]}


def _snapshot_answer(answer: dict[str, Any]) -> dict[str, Any]:
    if answer["why_not"] is not None:
        which = f"snapshot {answer['snapshot']} was given up: " if "snapshot" in answer else ""
        return {"error": f"{which}{answer['why_not']}"}
    return {"done": "snapshot", "snapshot": answer["snapshot"]}


def _seconds(request: dict[str, Any], key: str, default: float) -> float:
    value = request.get(key, default)
    if value is None:
        value = default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= DURATION_MAX_S:
        raise Refused(f"{key} = {value!r}; allowed: seconds from 0 to {DURATION_MAX_S:g}")
    return float(value)


def _phase(fleet: Fleet) -> str:
    if fleet.status.get("storage_full"):
        return "storage_full"
    if fleet.ending.finished or fleet.ending.stopping:
        return "ending"
    return "running" if fleet.status.get("began") and not fleet.status.get("gathers") else "starting"


def _syncer(fleet: Fleet) -> dict[str, Any]:
    syncer = fleet.syncer
    return {
        "state": "stopped" if syncer.alive and (syncer.stops or is_stopped(syncer.pid)) else syncer.state,
        "pid": syncer.pid,
        "number": syncer.number,
        "silent_s": 0.0 if fleet.heard_s < 0 or fleet.ending.finished else time.monotonic() - fleet.heard_s,
    }


def status_of(fleet: Fleet) -> dict[str, Any]:
    """The run as people and programs want to see it."""
    seen = fleet.status.get("learners", {})
    learners = []
    for managed in fleet.learners:
        facts = seen.get(str(managed.learner), {})
        halted = managed.alive and (managed.stops or is_stopped(managed.pid))
        learners.append(
            {
                **facts,
                "learner": managed.learner,
                "label": managed.label,
                "state": "stopped" if halted else managed.state,
                "pid": managed.pid,
                "number": managed.number,
                "faults": [acting.fault.kind for acting in fleet.striker.lasting.acting.of(managed.learner)],
                "line": managed.line,
                "line_of": managed.line_of,
                "how": managed.how,
                "acting": [acting.fault.kind for acting in fleet.striker.lasting.acting.of(managed.learner)],
                "log": str(fleet.folder.logs / f"{managed.label}.log"),
            }
        )
    rest = {key: value for key, value in fleet.status.items() if key != "learners"}
    return {
        **rest,
        "merges": fleet.status.get("merges", 0),
        "rounds": fleet.config.rounds,
        "phase": _phase(fleet),
        "run": str(fleet.folder.path),
        "address": fleet.address,
        "elapsed_s": fleet.now() / 1e9,
        "skipped": list(fleet.striker.skipped),
        "val_loss": fleet.evaluations.last.get("loss"),
        "syncer": _syncer(fleet),
        "processes": [m.pid for m in (fleet.syncer, fleet.recorder, fleet.evaluator, *fleet.learners) if m.pid],
        "learners": learners,
    }
