"""The processes of one run, in the hands of its supervisor."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.config import RunConfig
from workbench.engine.ending import LOST, Ending
from workbench.engine.evaluations import Evaluations
from workbench.engine.launchers import ByHand, Launcher, Local
from workbench.engine.layout import Plan
from workbench.engine.links import Link
from workbench.engine.listening import read_listening
from workbench.engine.placing import beside_steps, fingerprint_there, place_of
from workbench.engine.processes import STEADY_AFTER_S, Managed, Nursery
from workbench.engine.reports import Reports
from workbench.engine.restarts import Restarts
from workbench.engine.resuming import Resume, Resumed
from workbench.engine.roster import REMOVED, Roster
from workbench.engine.snapshotting import Snapshots
from workbench.engine.start_line import StartLine
from workbench.engine.striker import Striker
from workbench.engine.timers import Timers
from workbench.protocol.records import EVALUATOR, SYNCER, Kind, label_of, process_of
from workbench.tape.journal import read_header
from workbench.tape.run_folder import RunFolder

FOLDER_EVERY_S = 1.0
"""So often it is looked whether the run's folder is still there."""


class Fleet:
    """Starts, restarts and ends the processes of a run.

    Parameters
    ----------
    folder : RunFolder
    runtime : Path
        Folder of sockets and blocks.
    config : RunConfig
    plan : Plan
    timers : Timers
    watch : callable
        Takes (link, what, owner): have `heard` called with what comes over a link.

    Attributes
    ----------
    over : bool
        Nothing is left to be supervised.
    launcher : Launcher
        Where learners come from.
    address : str
        Where the syncer listens for learners that are started by hand, empty before it does, and if none are.
    """

    def __init__(
        self,
        folder: RunFolder,
        runtime: Path,
        config: RunConfig,
        plan: Plan,
        timers: Timers,
        watch: Callable[[Link, str, Any], None],
    ) -> None:
        self.folder, self.runtime, self.config, self.timers, self.watch = folder, runtime, config, timers, watch
        self.origin_ns = time.monotonic_ns()
        self.over = False
        self.run_id = ""
        self.identity: dict[str, Any] = {"host": socket.gethostname()}
        self.status: dict[str, Any] = {}
        self.heard_s = -1.0
        self.answers: dict[int, Callable[[dict[str, Any]], None]] = {}
        self.preparer = Managed("prepare", "prepare")
        self.syncer = Managed("syncer", "syncer", SYNCER)
        self.recorder = Managed("recorder", "recorder")
        self.evaluator = Managed("evaluator", "evaluator", EVALUATOR)
        self.learners = [Managed("learner", label_of(process_of(m)), process_of(m), m) for m in range(config.learners)]
        self.listening = read_listening(folder.path)
        self.address = ""
        self.launcher: Launcher = Local(self) if self.listening is None else ByHand(self)
        self.reports = Reports(self)
        self.snapshots = Snapshots(self)
        self.resume = Resume()
        self.evaluations = Evaluations(self)
        self.striker = Striker(self, plan)
        self.ending = Ending(self)
        self.restarts = Restarts(self)
        self.roster = Roster(self)
        self.start_line = StartLine(self)
        self.nursery = Nursery(folder.logs)
        watch(self.nursery.link, "nursery", None)

    def now(self) -> int:
        """Time since the run began [ns]."""
        return time.monotonic_ns() - self.origin_ns

    # starts

    def begin(self) -> None:
        """Prepare the run; everything else follows from that."""
        self.start(self.preparer)

    def start(self, managed: Managed) -> None:
        """Have a process started, learners by whatever starts them."""
        if managed.learner in self.roster.removed:
            managed.state = REMOVED
        elif managed.learner >= 0:
            self.launcher.start(managed)
        else:
            self.spawn(managed)

    def spawn(self, managed: Managed) -> None:
        """Start a process of this machine, unless the run is ending."""
        if managed.alive or managed.state == "starting" or (self.ending.finished and managed is not self.recorder):
            return
        managed.number += 1
        managed.restart_at = -1.0
        managed.stops = 0
        managed.ready = managed.steady = False
        environment = self.launcher.environment(managed.role)
        cores = place_of(self.config, managed.learner)
        link = self.nursery.start(managed, self._arguments(managed), environment, cores)
        self.watch(link, "process", managed)

    def _arguments(self, managed: Managed) -> dict[str, Any]:
        return {
            "run": str(self.folder.path),
            "runtime": str(self.runtime),
            "run_id": self.run_id,
            "address": str(self.runtime),
            "listen": self.address or (self.listening.address if self.listening is not None else ""),
            "learner": managed.learner,
            "number": managed.number,
            "origin_ns": self.origin_ns,
            "acting": self.striker.lasting.known_to(managed),
            "beside": list(beside_steps(self.config)) if managed.learner >= 0 else [],
            **self.resume.arguments(managed.process, managed.number),
        }

    def _prepared(self, fingerprint: dict[str, str], resumed: dict[str, Any] | None) -> None:
        self.run_id = read_header(self.folder.journal)["run_id"]
        self.identity["fingerprint"] = fingerprint
        if resumed is not None:
            self._go_on(self.resume.begin(resumed))
        self.look_after_folder()
        self.start(self.syncer)
        self.striker.start_learners()
        if self.config.eval_every:
            self.start(self.evaluator)
        self.start(self.recorder)

    def _go_on(self, resumed: Resumed) -> None:
        """The run's time, its processes' numbers and its records go on where they had ended."""
        self.origin_ns = time.monotonic_ns() - resumed.time_ns
        for managed in (self.syncer, *self.learners):
            managed.number = self.resume.number(managed.process)
        self.reports.go_on(resumed.known, resumed.epoch, resumed.clock)
        self.striker.go_on(resumed.rest, resumed.merges, resumed.round)

    # what comes

    def heard(self, what: str, managed: Managed | None, message: dict[str, Any], link: Link) -> None:
        """A message of the nursery or of a process."""
        if what == "nursery":
            happened, whose, _ = self.nursery.heard(message)
            if happened == "started" and whose is not None:
                self._started(whose, message["pid"])
            elif happened == "ended" and whose is not None:
                self.restarts.ended(whose, message["how"])
            return
        if managed is None or managed.link is not link:
            return
        if "used_up" in message:
            self.striker.lasting.used_up(message["used_up"])
            return
        if "failed" in message or "refused" in message:
            managed.line = str(message.get("failed") or message.get("refused"))
            managed.line_of = managed.number
        elif "prepared" in message:
            self._prepared(message["prepared"], message.get("resumed"))
        elif "ready" in message:
            self.start_line.ready(managed)
        elif managed is self.syncer:
            self._syncer_said(message)
        elif managed is self.evaluator:
            self.evaluations.heard(message)
        elif managed is self.snapshots.keeper:
            self.snapshots.heard(message)
        elif managed is self.recorder:
            self._recorder_said(message)

    def _syncer_said(self, message: dict[str, Any]) -> None:
        if "status" in message:
            self._status(message["status"])
        elif "progress" in message:
            self.striker.progress(*message["progress"])
        elif "known" in message:
            self.reports.known(message["known"], message["seq"])
        elif "up" in message:
            self.address = message["up"]
            self.resume.up()
            self.syncer.state = "running"
            self.timers.after(STEADY_AFTER_S, self._steady, self.syncer.number)
            self.reports.again()
            self.evaluations.again()
            if self.striker.waiting:
                self.tell_syncer({"tell_progress": True})
            if self.ending.stopping:
                self.tell_syncer({"stop": self.ending.stopping})
        elif "evaluate" in message:
            self.evaluations.asked(message)
        elif "write_snapshot" in message:
            self.snapshots.write(message)
        elif "answer" in message:
            answer = self.answers.pop(message["answer"], None)
            if answer is not None:
                answer(message)
        elif "finished" in message:
            self.ending.finish(message["finished"])
        elif "closed" in message:
            self.syncer.state = "done"

    def _recorder_said(self, message: dict[str, Any]) -> None:
        if "recorded" in message:
            self.recorder.state = "done"
        elif "up" in message and self.ending.closing and self.recorder.link is not None:
            self.recorder.link.send({"close": True})  # its predecessor died of the end

    def tell_syncer(self, message: dict[str, Any]) -> bool:
        """Send something to the syncer, if there is one."""
        link = self.syncer.link
        return link is not None and not link.closed and link.send(message)

    def answer_for_syncer(self) -> None:
        """The syncer is gone: what it was asked it will not answer."""
        answers, self.answers = self.answers, {}
        for answer in answers.values():
            answer({"why_not": "the syncer ended before it answered; ask again"})

    def _steady(self, number: int) -> None:
        if self.syncer.number == number and self.syncer.alive:
            self.syncer.got_somewhere()

    def _status(self, status: dict[str, Any]) -> None:
        if status["merges"] > self.status.get("merges", 0):
            self.syncer.got_somewhere()
        self.status, self.heard_s = status, time.monotonic()
        if status["began"]:
            self.striker.begin()
        self.striker.progress(status["merges"], status["round"])
        self.roster.follow(status["added"], status["removed"])
        for key, seen in status["learners"].items():
            self.launcher.seen(self.learners[int(key)], seen)

    # ends

    def _started(self, managed: Managed, pid: int) -> None:
        managed.pid = pid
        if managed.learner >= 0 and self.ending.finished:
            self.nursery.signal(managed, signal.SIGKILL)  # it was asked for before the end, and nobody is left to join
        if managed.process >= 0:
            self.reports.supervisor(
                Kind.PROCESS_STARTED,
                peer=managed.process,
                value=float(managed.number),
                detail={**self._identity_of(managed), "pid": pid},
            )

    def _identity_of(self, managed: Managed) -> dict[str, Any]:
        cores = place_of(self.config, managed.learner)
        return {**self.identity, "fingerprint": fingerprint_there(self.identity["fingerprint"], cores)}

    def look_after_nursery(self) -> None:
        """Without the nursery nothing can be started; of what it had started syncer and recorder end in order."""
        if not self.nursery.link.closed or self.over:
            return
        if not self.ending.line:
            log = self.folder.logs / "nursery.log"
            self.ending.lose(LOST, f"the process that starts the others is gone; see {log}")
        self.restarts.unheard()

    def look_after_folder(self) -> None:
        """Whoever takes the run's folder away ends the run: nothing more can be recorded, and nobody could stop it."""
        if not self.over and not self.ending.line:
            if not self.folder.journal.exists():
                self.ending.lose(LOST, f"{self.folder.path} is gone, with the journal: nothing more can be recorded")
                return
            self.timers.after(FOLDER_EVERY_S, self.look_after_folder)

    def flush(self) -> None:
        """Send what waits."""
        for managed in (self.syncer, self.recorder, self.evaluator, self.snapshots.keeper):
            if managed.link is not None:
                managed.link.flush()
        self.nursery.link.flush()

    def end(self) -> None:
        """Nothing that was started is left."""
        self.over = True
        helpers = (self.evaluator, self.snapshots.keeper, self.syncer, self.recorder, self.preparer)
        for managed in (*self.learners, *helpers):
            if managed.alive:
                self.nursery.signal(managed, signal.SIGKILL)
        self.nursery.end()
