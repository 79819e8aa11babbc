"""The syncer's process: its machine on real time, with what the supervisor asks of it."""

from __future__ import annotations

import math
import os
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

from workbench.algorithms.committed import mapped_slots
from workbench.algorithms.fragment_slots import slots_needed
from workbench.algorithms.schedule import offsets
from workbench.algorithms.syncer_arithmetic import OUTER_VECTORS, SyncerArithmetic
from workbench.config import ConfigError, RunConfig
from workbench.config.idle import idle_notes
from workbench.engine.door import DoorLog
from workbench.engine.frames import Ask, Facts
from workbench.engine.layout import read_config
from workbench.engine.links import Link
from workbench.engine.listening import read_listening
from workbench.engine.reception import Reception
from workbench.engine.runtime_folder import RuntimeFolder
from workbench.engine.syncer_driver import RunLost, SyncerDriver
from workbench.engine.syncer_status import StatusBook
from workbench.engine.telemetry import TelemetrySender
from workbench.engine.weights import load_initial
from workbench.engine.wire import SyncerWire
from workbench.protocol import events as ev
from workbench.protocol import restart, syncer
from workbench.protocol.records import Kind, Record
from workbench.protocol.settings import fixed_settings_of, settings_book_of, values_in_force
from workbench.protocol.syncer_state import SyncerState
from workbench.tape.errors import StorageFull, TapeError, is_full, no_room
from workbench.tape.fragmentation import fragmentation_of_header
from workbench.tape.going_on import merged_tokens
from workbench.tape.journal import JournalWriter, read_journal
from workbench.tape.run_folder import RunFolder

STATUS_EVERY_S = 0.25
ORPHAN_LIMIT_S = 4.0
"""How long a syncer whose supervisor is gone may take to end the run."""
CLOSE_LIMIT_S = 3600.0
"""How long a syncer that has ended the run waits for its supervisor's last word: the last evaluation takes its time."""


def main(link: Link, arguments: dict[str, Any]) -> int:
    """Serve the run ``arguments["run"]`` until it is over."""
    try:
        process = SyncerProcess(link, RunFolder(Path(arguments["run"])), Path(arguments["runtime"]), arguments)
        return process.run()
    except (ConfigError, RunLost, TapeError, OSError) as error:
        line = str(no_room(RunFolder(Path(arguments["run"])).path)) if is_full(error) else str(error)
        link.send({"failed": line})
        print(f"syncer: {line}", flush=True)
        return 2 if isinstance(error, ConfigError | TapeError) and not isinstance(error, StorageFull) else 3


class SyncerProcess:
    """One life of the syncer.

    Parameters
    ----------
    link : Link
        To the supervisor.
    folder : RunFolder
    runtime : Path
        Folder of sockets and blocks.
    arguments : dict
        ``origin_ns`` (monotonic time of the run's begin), ``listen`` (where, if learners come by hand),
        ``acting`` (faults that act on links), ``resume`` (the run goes on after it had ended or was lost), ``cut`` (the
        snapshot that it goes back to then).
    """

    def __init__(self, link: Link, folder: RunFolder, runtime: Path, arguments: dict[str, Any]) -> None:
        self.link, self.folder, self.runtime = link, folder, runtime
        self.config: RunConfig = read_config(folder.path)
        self.journal = JournalWriter(folder.journal)
        contents = read_journal(folder.journal)
        fragmentation = fragmentation_of_header(contents.header, self.config.fragments)
        self.sizes = fragmentation.sizes
        self.book = StatusBook(self.sizes)
        self.book.note(contents.records)
        self.book.merged_tokens = merged_tokens(contents.records, len(self.sizes), arguments["cut"])
        self.cut: dict[str, Any] | None = arguments["cut"]
        state, self.uncommitted, self.aborted = self._state(contents.records)
        arithmetic = self._arithmetic(fragmentation, state, bool(contents.records))
        listening = read_listening(folder.path)
        self.reception = Reception(listening, self.config, contents.header) if listening is not None else None
        self.wire = self._open_wire(contents.header, arguments["listen"], state)
        self.driver = SyncerDriver(
            syncer.SyncerMachine(state),
            self.wire,
            arithmetic,
            self.journal,
            self.book,
            arguments["origin_ns"],
            self.config.seed,
            self._no_room,
            runtime,
        )
        self.telemetry = TelemetrySender(runtime, len(contents.records))
        self.driver.heard = self.telemetry.note
        for table in arguments["acting"]:
            self.driver.links.take(table)
        again = "resume" if arguments["resume"] else "restart"
        self.reason = again if contents.records else "new"
        self.evaluated_at = max((r.steps for r in contents.records if r.kind == Kind.EVALUATED), default=-1)
        self.stop_reason = ""
        self.close_asked = False
        self.orphaned = False
        self.told: tuple[int, int] | None = None
        self.status_at = 0.0
        self.known: dict[int, int] = {}
        self.asked_late: list[dict[str, Any]] = []
        self.door = DoorLog()

    def _open_wire(self, header: dict[str, Any], address: str, state: SyncerState) -> SyncerWire:
        """For learners of this machine, or, at an address, for those that are started by hand."""
        if self.reception is None:
            return SyncerWire(header["run_id"], list(self.sizes), folder=self.runtime)
        wire = self.reception.open(list(self.sizes), address, state)
        wire.answer(self._facts)
        return wire

    def _facts(self, ask: Ask) -> Facts | str:
        assert self.reception is not None
        return self.reception.facts(ask, self.driver.machine.state, self.book, self.driver.now())

    def _state(self, records: list[Record]) -> tuple[SyncerState, list[tuple[int, int, int]], list[tuple[int, int]]]:
        fixed = fixed_settings_of(self.config, offsets(self.config.fragments, self.config.period))
        book = settings_book_of(self.config)
        if not records:
            return syncer.new_state(fixed, book), [], []
        found = restart.restore(fixed, book, records, self.cut)
        return found.state, found.uncommitted, found.aborted

    def _arithmetic(self, fragmentation: Any, state: SyncerState, restarted: bool) -> SyncerArithmetic:
        count = slots_needed(self.config.anchor, self.config.anchors_kept)
        slots = mapped_slots(self.folder.slots, self.sizes, count, OUTER_VECTORS)
        arithmetic = SyncerArithmetic(fragmentation, load_initial(self.folder.path, self.sizes), slots)
        if restarted or any(slot.header.any() for slot in slots):
            for p, version in enumerate(state.versions):
                if not arithmetic.restore(p, version):
                    raise RunLost(
                        f"no slot in {self.folder.slots} holds version {version} of fragment {p}, which "
                        "the journal names; the file is damaged or of another run"
                    )
        return arithmetic

    def run(self) -> int:
        """Turn until the run is over and the supervisor has said its last word."""
        self.driver.begin(self.reason, self.uncommitted, self.cut, self.aborted)
        self.wire.watch(self.link.fileno())
        self.link.send({"up": self.wire.address if self.wire.across else ""})
        while not (self.driver.finished or self.close_asked):
            self.driver.turn(self.telemetry.left_ms)
            self._serve()
        self._report(last=True)
        if self.config.eval_every and self.evaluated_at != self.driver.machine.state.merges:
            self._ask_evaluation()
        if self.driver.finished:
            self.link.send({"finished": self.driver.finished})
        until = time.monotonic() + CLOSE_LIMIT_S
        while not (self.close_asked or self.link.closed or time.monotonic() > until):
            self.driver.turn(self.telemetry.left_ms)
            self._serve()
        self.driver.close()
        self.telemetry.close()
        self.wire.close()
        self.link.send({"closed": True})
        if self.orphaned:
            RuntimeFolder.open(self.runtime).remove()
        return 0

    def _serve(self) -> None:
        """What the supervisor asks, and what it is told."""
        self.link.flush()
        asked, self.asked_late = [*self.asked_late, *self.link.read()], []
        for message in asked:
            self._answer(message)
        if self.link.closed:
            self._orphan()
        for number in self.driver.links.used_up():
            self.link.send({"used_up": number})
        for order in self.driver.snapshots.orders():
            self.link.send(order)
        for answer in self.book.settled():
            self.link.send(answer)
        self._tell_progress()
        if self.driver.committed or self.evaluated_at < 0:
            self.driver.committed.clear()
            self._evaluate_when_due()
        self.telemetry.turn(self._status)
        now = time.monotonic()
        if now - self.status_at >= STATUS_EVERY_S:
            self.status_at = now
            self._report()

    def _answer(self, message: dict[str, Any]) -> None:
        give, state = self.driver.give, self.driver.machine.state
        if "records" in message:
            give(ev.RecordsCame(message["process"], msgspec.convert(message["records"], list[Record])))
            self.link.send({"known": message["process"], "seq": state.known_seq.get(message["process"], 0)})
        elif "settings" in message:
            self.book.refused = None
            give(ev.SettingsAsked(message["settings"], message["who"]))
            notes = idle_notes(values_in_force(self.config, state.book), message["settings"], "real")
            answer = {"revision": state.book.revision, "round": state.next_t, "why_not": self.book.refused}
            self.link.send({"answer": message["ticket"], **answer, "notes": notes})
        elif "release" in message:
            self.book.refused = None
            give(ev.QuarantineAsked(message["release"], False, message["who"]))
            self.link.send({"answer": message["ticket"], "why_not": self.book.refused})
        elif "snapshot" in message:
            self.book.tickets.append((state.snapshot_serial, message["ticket"]))
            give(ev.SnapshotAsked(message["snapshot"]))
        elif "snapshot_written" in message:
            give(ev.SnapshotWritten(message["snapshot_written"], message["digest"], message["reason"]))
            self.driver.snapshots.drop(message["snapshot_written"])
        elif "add" in message or "remove" in message:
            self.book.refused = self._make_room() if "add" in message else None
            who = message["who"]
            if self.book.refused is None:
                give(ev.AddAsked(who) if "add" in message else ev.RemoveAsked(message["remove"], who))
            roster = {"added": list(state.added), "removed": list(state.removed)}
            self.link.send({"answer": message["ticket"], "why_not": self.book.refused, **roster})
        elif "stop" in message:
            give(ev.StopAsked(message["stop"]))
        elif "acting" in message:
            self.driver.links.take(message["acting"])
        elif "tell_progress" in message:
            self.told = (0, 0)
        elif "evaluate_now" in message:
            self._ask_evaluation()
        elif "close" in message:
            self.close_asked = True

    def _make_room(self) -> str | None:
        """Why there is no room for one more learner, None if there is: one that comes by hand needs a key."""
        if self.reception is None:
            return None
        return self.reception.make_room(self.wire, self.driver.machine.state)

    def _tell_progress(self) -> None:
        """What faults wait for: merges done, and the last round that was opened."""
        state = self.driver.machine.state
        now = (state.merges, state.opened_t)
        if self.told is not None and now != self.told:
            self.told = now
            self.link.send({"progress": now})

    def _orphan(self) -> None:
        """The supervisor is gone: end the run in order, and at the latest when the limit has passed."""
        if self.orphaned:
            return
        self.orphaned = True
        guard = threading.Timer(ORPHAN_LIMIT_S, os._exit, (3,))
        guard.daemon = True
        guard.start()
        self.wire.unwatch(self.link.fileno()) if self.link.fileno() >= 0 else None
        self.driver.give(ev.StopAsked("supervisor_gone"))

    def _evaluate_when_due(self) -> None:
        """At the start and whenever ``eval_every`` more merges are done; several merges may lie between two looks."""
        every, merges = self.config.eval_every, self.driver.machine.state.merges
        if every and merges // every > self.evaluated_at // every:
            self._ask_evaluation()
        self.evaluated_at = max(self.evaluated_at, 0)

    def _ask_evaluation(self) -> None:
        state = self.driver.machine.state
        self.evaluated_at = state.merges
        self.link.send(
            {"evaluate": state.merges, "versions": list(state.versions), "tokens": self.book.tokens_merged()}
        )

    def _report(self, last: bool = False) -> None:
        line = self.door.line(self.wire.refused, self.wire.last_refusal, math.inf if last else None)
        if line:
            print(f"syncer: {line}", flush=True)
        self.link.send({"status": self._status()})

    def _status(self) -> dict[str, Any]:
        return {**self.book.status(self.driver.machine.state, self.driver.now()), "refused": dict(self.wire.refused)}

    def _no_room(self, line: str) -> None:
        """While the journal cannot be written: say so, and give the run up if that is asked for."""
        self._report()
        for message in self.link.read():
            if "stop" in message or "close" in message:
                raise RunLost(line)
            self.asked_late.append(message)
        if self.link.closed:
            raise RunLost(line)
