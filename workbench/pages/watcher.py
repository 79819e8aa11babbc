"""Watches one run that goes on, for all tabs: a thread that reads telemetry and status and keeps what pages show.

Telemetry is lossy and bounded; nothing here is waited for by the run.  Tabs look at `Watcher` when they like, under a
lock that is held for microseconds.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from workbench.config import ConfigError, from_toml
from workbench.engine.launch import Run
from workbench.pages.clicks import Command, Commands
from workbench.pages.commands import fault, send
from workbench.pages.courses import Course, Point, recorded_points, recorded_within
from workbench.pages.ended import Whole, whole_run
from workbench.pages.event_words import NOTABLE, Said, said_of
from workbench.pages.spans import Spans
from workbench.pages.storm import Stormer
from workbench.pages.tails import Tail
from workbench.protocol.live_storm import Storm, Strike
from workbench.protocol.records import Kind, Record
from workbench.protocol.settings import settings_book_of
from workbench.tape import TapeError, open_tape
from workbench.views.states import OVER, began_s, state_of

LOOK_EVERY_S = 0.2
EVENTS_KEPT = 400
RETRY_S = 0.5
AGAIN_S = 10.0
"""So often holes are looked for and filled from the tape, which lies some seconds behind its run."""

Status = dict[str, Any]


class Watcher:
    """Parameters
    ----------
    run : Run

    Attributes
    ----------
    status : dict or None
        What the supervisor said last; None before it has said something.
    heard_s : float
        When that was [s, monotonic].
    over : (int, str) or None
        Exit code and last line of a run that has ended.
    whole : Whole or None
        What its tape says of a run that has ended; None until that has been read.
    events, merges : Tail of (float, Said)
        Notable events, and merges, with the run's time [s].
    routine, missed : int
        Events that are not notable, and records that telemetry dropped.
    settings : dict
        Live settings in force, by key: as the syncer tells them, those that the run begins with before.
    stormer : Stormer
        Strikes at random while somebody wants it to.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.config = from_toml(run.folder.config.read_text(encoding="utf-8"))
        self.lock = threading.Lock()
        self.status: Status | None = None
        self.heard_s = time.monotonic()
        self.over: tuple[int, str] | None = None
        self.whole: Whole | None = None
        self.events: Tail[tuple[float, Said]] = Tail(EVENTS_KEPT)
        self.merges: Tail[tuple[float, Said]] = Tail(EVENTS_KEPT)
        self.routine = self.missed = 0
        self.course, self.spans, self.commands = Course(), Spans(), Commands()
        self.settings: dict[str, Any] = settings_book_of(self.config).in_force()
        self.stormer = Stormer(Storm(self.config.learners, self.config.seed), self._strike, lambda: self.going)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"watching {run.path.name}", daemon=True)

    @property
    def learners(self) -> int:
        """How many there are, those that have left among them."""
        return len(self.status["learners"]) if self.status is not None else self.config.learners

    @property
    def began_s(self) -> float | None:
        """The run's time at which rounds began, from which people count; None before [s]."""
        return began_s(self.status) if self.status is not None else None

    @property
    def targets(self) -> tuple[int, ...]:
        """Learners on which something may act: not those that have left for good."""
        if self.status is None:
            return tuple(range(self.config.learners))
        return tuple(one["learner"] for one in self.status["learners"] if state_of(one) not in OVER)

    @property
    def going(self) -> bool:
        """Whether the run goes on, as far as is known."""
        return self.over is None

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Leave the run; it goes on."""
        self._stopping.set()

    def send(self, command: Command) -> None:
        """Ask the run for what was clicked, and keep what it answers; waits for the answer."""
        try:
            answer, refusal = send(self.run.path, command)
            with self.lock:
                if answer is None:
                    command.refused = refusal
                else:
                    command.answered(answer)
        except Exception as error:  # whatever it was, the click does not wait for ever
            logging.getLogger(__name__).exception("a click went wrong: %s", command.what)
            with self.lock:
                command.refused = f"it went wrong on its way ({type(error).__name__}); the server's log says where"

    def _strike(self, strike: Strike) -> bool:
        command = fault(strike.kind, strike.learner)
        command.what = f"storm: {command.what}"
        with self.lock:
            self.commands.add(command)
        self.send(command)
        return not command.refused

    def _watch(self) -> None:
        began = False
        while not self._stopping.is_set() and self.run.running:
            try:
                self._ask()
                if not began:
                    began = True
                    self._look_back()
                    threading.Thread(target=self._look_again, name="looking back", daemon=True).start()
                self._listen()
            except ConfigError:  # its supervisor begins, or ends
                self._stopping.wait(RETRY_S)
        if not self._stopping.is_set():
            self.run._reap()
            over = self.run.outcome()
            with self.lock:
                self.over = over
                self.commands.ended()
            whole = whole_run(self.run.path)
            with self.lock:
                self.whole = whole
            self._fill()

    def _look_again(self) -> None:
        """Once more when the tape has caught up with what was looked at first; then for what was not heard."""
        if not self._stopping.wait(AGAIN_S):
            self._look_back()
        while self.going and not self._stopping.wait(AGAIN_S):
            self._fill()

    def _fill(self) -> None:
        """What of the course of the loss was not heard, from the tape."""
        with self.lock:
            holes = self.course.holes()
        if not holes:
            return
        try:
            points = recorded_within(open_tape(self.run.path), holes)
        except (TapeError, OSError):  # its folder is gone, or a tape is being laid
            return
        with self.lock:
            self.course.fill(points)

    def _look_back(self) -> None:
        """The course of the loss before this server came."""
        try:
            points = recorded_points(open_tape(self.run.path))
        except (TapeError, OSError):  # not laid yet: the run has only just begun
            points = []
        with self.lock:
            self.course.begin(points)

    def _listen(self) -> None:
        """Read until the run is over."""
        asked_s = 0.0
        with self.run.telemetry() as telemetry:
            while not self._stopping.is_set() and self.run.running:
                batches = telemetry.take(LOOK_EVERY_S)
                with self.lock:
                    for batch in batches:
                        self._note(batch.records)
                    self.missed = telemetry.missed
                if time.monotonic() - asked_s >= LOOK_EVERY_S:
                    asked_s = time.monotonic()
                    self._ask()

    def _ask(self) -> None:
        asked_s = time.monotonic()
        status = self.run.status()
        with self.lock:
            self.status, self.heard_s = status, time.monotonic()
            self.settings = status.get("settings", self.settings)
            self.course.look(status)
            self.spans.look(status["learners"], status["elapsed_s"])
            self.commands.began_s = began_s(status)
            self.commands.look(status, asked_s)
            self.stormer.aim(self.targets)

    def _note(self, records: list[Record]) -> None:
        news, merges = [], []
        for record in records:
            if record.kind == Kind.MERGED:
                merges.append((record.time_ns / 1e9, said_of(record)))
            elif record.kind in NOTABLE:
                news.append((record.time_ns / 1e9, said_of(record)))
            else:
                self.routine += 1
            if record.kind == Kind.EVALUATED:
                self.course.evaluated(Point(record.time_ns / 1e9, record.value))
            self.spans.note(record)
            self.commands.note(record)
        self.events.add(news)
        self.merges.add(merges)
