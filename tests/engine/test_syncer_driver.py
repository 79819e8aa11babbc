"""The syncer's driver: log before effect, waiting for room, links that take nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.algorithms.fragments import Fragmentation, TensorSpec
from workbench.algorithms.schedule import offsets
from workbench.algorithms.syncer_arithmetic import SyncerArithmetic
from workbench.config import RunConfig
from workbench.engine import syncer_driver
from workbench.engine.syncer_driver import RunLost, SyncerDriver
from workbench.engine.syncer_status import StatusBook
from workbench.protocol import syncer
from workbench.protocol.events import Received
from workbench.protocol.messages import Fragment, Join, Update, Welcome
from workbench.protocol.records import Kind
from workbench.protocol.settings import fixed_settings_of, settings_book_of
from workbench.tape.errors import StorageFull
from workbench.tape.frames import read_journal
from workbench.tape.journal import JournalWriter

TENSORS = (TensorSpec("a", (8,), "float32", "matrix"),)


class FakeWire:
    """Remembers what was sent, and what the journal held at that moment."""

    def __init__(self, journal: Path) -> None:
        self.journal = journal
        self.sent: list[tuple[int, Any, set[tuple[int, int]]]] = []
        self.takes = True
        self.disconnected: list[int] = []

    def wake(self) -> None:
        """Nobody polls."""

    def release(self, handle: int) -> None:
        """Nothing is kept."""

    def send(self, connection: int, channel: int, message: Any, payload: Any = None) -> bool:
        """Take it, or not."""
        records = {(r.process, r.seq) for r in read_journal(self.journal).records}
        self.sent.append((connection, message, records))
        return self.takes or not isinstance(message, Update)

    def disconnect(self, connection: int) -> None:
        """Remember it."""
        self.disconnected.append(connection)


def made(tmp_path: Path, said: list[str]) -> tuple[SyncerDriver, FakeWire]:
    config = RunConfig(learners=1, period=1, fragments=1, overlap=0)
    fixed = fixed_settings_of(config, offsets(1, 1))
    wire = FakeWire(tmp_path / "journal")
    driver = SyncerDriver(
        syncer.SyncerMachine(syncer.new_state(fixed, settings_book_of(config))),
        wire,
        SyncerArithmetic(Fragmentation(TENSORS, (0,), 1), [np.zeros(8, np.float32)]),
        JournalWriter(tmp_path / "journal", {"run_id": "r"}),
        StatusBook([8]),
        0,
        0,
        said.append,
        tmp_path,
    )
    driver.begin("new", [])
    return driver, wire


def join() -> Received:
    return Received(1, Join(0, 1, 0, 0, [0], [0], [-1], False, False))


def test_the_record_of_a_join_is_journalled_before_the_welcome_leaves(tmp_path: Path) -> None:
    driver, wire = made(tmp_path, [])
    driver.give(join())
    welcome, known = next((m, known) for _, m, known in wire.sent if isinstance(m, Welcome))
    assert (0, welcome.origin) in known
    contents = read_journal(tmp_path / "journal")
    assert len(contents.inputs) == 1
    kinds = [record.kind for record in contents.records]
    assert contents.positions[0] == kinds.index(Kind.LEARNER_JOINED), "the input stands before what follows from it"
    driver.close()


def test_a_journal_without_room_holds_everything_back_until_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syncer_driver, "STORAGE_RETRY_S", 0.0)
    said: list[str] = []
    driver, wire = made(tmp_path, said)
    append, tries = driver.journal.append, 0

    def full(items: Any) -> int:
        nonlocal tries
        tries += 1
        if tries <= 3:
            assert not any(isinstance(m, Welcome) for _, m, _ in wire.sent)
            raise StorageFull("no room")
        return append(items)

    monkeypatch.setattr(driver.journal, "append", full)
    driver.give(join())
    assert said == ["no room"] * 3 and driver.book.storage_full == ""
    assert any(isinstance(m, Welcome) for _, m, _ in wire.sent)
    driver.close()


def test_a_run_that_is_stopped_while_there_is_no_room_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, _ = made(tmp_path, [])

    def full(items: Any) -> int:
        raise StorageFull("no room")

    def stop(line: str) -> None:
        raise RunLost(line)

    monkeypatch.setattr(driver.journal, "append", full)
    driver.no_room = stop
    with pytest.raises(RunLost, match="no room"):
        driver.give(join())
    driver.close()


def test_a_link_that_takes_no_update_is_given_up(tmp_path: Path) -> None:
    driver, wire = made(tmp_path, [])
    wire.takes = False
    driver.give(join())
    assert wire.disconnected == [1]
    assert not driver.machine.state.members[0].connected
    driver.close()


def test_a_payload_that_the_wire_could_not_take_does_not_fit(tmp_path: Path) -> None:
    driver, _ = made(tmp_path, [])
    driver.give(join())
    came = Fragment(0, 1, 1, 0, 0, 1, 1, 10, "f32", 7, 32, 0, 1, (), [], -1)
    received = driver._received(1, came)
    assert not received.fits and received.finite
