"""Telemetry: nothing is lost while a subscriber keeps up, everything that is lost is counted, nobody waits."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq

from tests.engine.real_runs import GUARD_S, records_of, tiny, until
from workbench.engine.launch import launch
from workbench.engine.reference_process import peak_bytes
from workbench.engine.runtime_folder import RuntimeFolder
from workbench.engine.telemetry import (
    BATCH_EVERY_S,
    COLLECTED_MAX,
    KEPT_MAX,
    LATEST_S,
    RECORDS_A_BATCH,
    SENDING_MAX,
    SOCKET_NAME,
    STATUS_EVERY_S,
    Batch,
    Telemetry,
    TelemetrySender,
)
from workbench.protocol.records import Kind, Record

BACKLOG = SENDING_MAX + KEPT_MAX
PAUSE_S = 0.0625
"""Longer than the time between two batches, and exact in binary."""


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def some_records(count: int, first: int = 0) -> list[Record]:
    return [Record(Kind.STEP_ENDED, 3, 1, first + i + 1, 0, clock=(0, 1, 2), detail={"batch": 8}) for i in range(count)]


def status() -> dict[str, object]:
    return {"merges": 7}


@pytest.fixture
def folder() -> Iterator[Path]:
    runtime = RuntimeFolder.create()
    yield runtime.path
    runtime.remove()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sender(folder: Path, clock: Clock) -> Iterator[TelemetrySender]:
    made = TelemetrySender(folder, 40, clock)
    yield made
    made.close()


def turn(sender: TelemetrySender, clock: Clock, records: list[Record]) -> bool:
    """Let a batch go; whether anybody listens."""
    sender.note(records)
    clock.now += PAUSE_S
    sender.turn(status)
    return sender.subscribed


def joined(sender: TelemetrySender, clock: Clock, telemetry: Telemetry) -> list[Batch]:
    """Turn until the subscription has been seen; the batches that it brought."""
    found: list[Batch] = []

    def seen() -> bool:
        clock.now += PAUSE_S
        sender.turn(status)
        found.extend(telemetry.take(0.01))  # a socket that is not asked does not subscribe again either
        return bool(found)

    until(seen, "somebody subscribes")
    return found


def taken(telemetry: Telemetry, enough: Callable[[list[Batch]], bool]) -> list[Batch]:
    """Batches until there are enough of them."""
    found: list[Batch] = []

    def take() -> bool:
        found.extend(telemetry.take(0.05))
        return enough(found)

    until(take, "enough batches have come")
    return found


def test_nothing_is_collected_or_encoded_while_nobody_subscribes(sender: TelemetrySender, clock: Clock) -> None:
    def never() -> dict[str, object]:
        raise AssertionError("nobody asked")

    for _ in range(5):
        sender.note(some_records(3))
        clock.now += 1.0
        sender.turn(never)
    assert sender.left_ms == float("inf")
    assert not sender._waiting


def test_a_subscriber_gets_records_and_status_from_its_start_on(
    folder: Path, sender: TelemetrySender, clock: Clock
) -> None:
    sender.note(some_records(2))
    with Telemetry(folder) as telemetry:
        (first, *_) = joined(sender, clock, telemetry)
        assert (first.first, first.records, first.status, first.missed) == (42, [], {"merges": 7}, 0)
        sent = some_records(2 * RECORDS_A_BATCH + 1)
        turn(sender, clock, sent)
        found = taken(telemetry, lambda batches: sum(len(b.records) for b in batches) == len(sent))
        assert [record for batch in found for record in batch.records] == sent
        assert [batch.sequence for batch in found] == list(range(found[0].sequence, found[0].sequence + len(found)))
        assert telemetry.missed == 0


def test_batches_are_at_least_so_far_apart_and_status_comes_four_times_a_second(
    folder: Path, sender: TelemetrySender, clock: Clock
) -> None:
    with Telemetry(folder) as telemetry:
        joined(sender, clock, telemetry)
        start, count = clock.now, 400
        for seq in range(count):
            sender.note(some_records(1, seq))
            clock.now += 2**-8
            sender.turn(status)
        clock.now += PAUSE_S
        sender.turn(status)
        found = taken(telemetry, lambda batches: sum(len(b.records) for b in batches) == count)
        lasted = clock.now - start
        assert len(found) <= lasted / BATCH_EVERY_S + 1
        assert lasted / STATUS_EVERY_S - 2 <= sum(b.status is not None for b in found) <= lasted / STATUS_EVERY_S + 1


def test_what_waits_is_sent_soon_though_nothing_else_happens(
    folder: Path, sender: TelemetrySender, clock: Clock
) -> None:
    with Telemetry(folder) as telemetry:
        joined(sender, clock, telemetry)
        assert 0 < sender.left_ms <= STATUS_EVERY_S * 1e3 + 0.001
        sender.note(some_records(1))
        assert 0 < sender.left_ms <= LATEST_S * 1e3 + 0.001
        clock.now += LATEST_S + 1e-6
        assert sender.left_ms == 0
        sender.turn(status)
        taken(telemetry, lambda batches: any(batch.records for batch in batches))


def test_who_sleeps_is_told_how_much_it_missed(folder: Path, sender: TelemetrySender, clock: Clock) -> None:
    with Telemetry(folder) as telemetry:
        joined(sender, clock, telemetry)
        sent = 0
        for _ in range(4 * BACKLOG):  # nothing is taken meanwhile
            turn(sender, clock, some_records(3, sent))
            sent += 3
        found = telemetry.take(1.0)
        while more := telemetry.take(0.2):
            found += more
        turn(sender, clock, some_records(3, sent))
        found += taken(telemetry, lambda batches: any(b.records and b.records[0].seq == sent + 1 for b in batches))
        shown = sum(len(batch.records) for batch in found)
        assert telemetry.missed > 0
        assert shown + telemetry.missed == sent + 3
        assert sum(batch.missed for batch in found) == telemetry.missed


def test_a_stopped_subscriber_costs_neither_time_nor_memory(
    folder: Path, sender: TelemetrySender, clock: Clock
) -> None:
    script = (
        "import sys, time; from pathlib import Path; from workbench.engine.telemetry import Telemetry;"
        "t = Telemetry(Path(sys.argv[1])); t.take(60.0); print('here', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE) as other:
        try:
            until(lambda: turn(sender, clock, []), "the other process subscribes")
            assert other.stdout is not None
            assert other.stdout.readline() == b"here\n"
            os.kill(other.pid, signal.SIGSTOP)
            records = some_records(200)

            def send(batches: int) -> float:
                begin = time.thread_time()
                for _ in range(batches):
                    turn(sender, clock, records)
                return time.thread_time() - begin

            send(2 * BACKLOG)
            before = peak_bytes()
            spent = send(2 * BACKLOG)
            grown = peak_bytes() - before
        finally:
            other.kill()
    print(f"{spent / (2 * BACKLOG) * 1e3:.2f} ms a batch of 200 records, {grown / 2**20:.1f} MiB more")
    assert grown < 4 << 20
    until(lambda: not turn(sender, clock, []), "its end is seen")


def test_what_waits_for_a_late_turn_is_bounded_and_counted(folder: Path, sender: TelemetrySender, clock: Clock) -> None:
    with Telemetry(folder) as telemetry:
        joined(sender, clock, telemetry)
        turn(sender, clock, some_records(COLLECTED_MAX + 10))
        found = taken(telemetry, lambda batches: sum(len(b.records) for b in batches) == COLLECTED_MAX)
        assert telemetry.missed == 10
        assert found[-1].records[-1].seq == COLLECTED_MAX + 10


def test_subscribers_come_and_go_without_each_other(folder: Path, sender: TelemetrySender, clock: Clock) -> None:
    with Telemetry(folder) as one:
        joined(sender, clock, one)
        with Telemetry(folder) as two:
            until(lambda: turn(sender, clock, []) and bool(two.take(0.02)), "the second one gets something")
        turn(sender, clock, some_records(5))
        taken(one, lambda batches: sum(len(b.records) for b in batches) == 5)
        assert one.missed == 0
    until(lambda: not turn(sender, clock, []), "nobody is left")


def test_a_new_sender_is_found_and_what_was_journalled_in_between_is_counted(folder: Path, clock: Clock) -> None:
    first = TelemetrySender(folder, 0, clock)
    with Telemetry(folder) as telemetry:
        joined(first, clock, telemetry)
        turn(first, clock, some_records(10))
        taken(telemetry, lambda batches: sum(len(b.records) for b in batches) == 10)
        first.close()
        second = TelemetrySender(folder, 25, clock)
        joined(second, clock, telemetry)
        assert telemetry.missed == 15
        second.close()


def test_the_socket_is_private_and_refuses_what_is_no_subscription(
    folder: Path, sender: TelemetrySender, clock: Clock
) -> None:
    assert stat.S_IMODE((folder / SOCKET_NAME).stat().st_mode) == 0o600
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.XSUB)
    socket.connect(f"ipc://{folder / SOCKET_NAME}")
    socket.send(b"\x01" + bytes(1000))
    with Telemetry(folder) as telemetry:
        joined(sender, clock, telemetry)
    context.destroy(0)


def test_frames_that_are_no_batch_are_counted_not_raised(folder: Path) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.XPUB)
    socket.bind(f"ipc://{folder / SOCKET_NAME}")
    with Telemetry(folder) as telemetry:
        socket.recv()
        for frame in (b"", b"\xc1", b"\x94\x01\x02\x03", bytes(100), b"\x93\x01\x00\x91\x91\xa1x"):
            socket.send(frame)
        until(lambda: telemetry.take(0.02) == [] and telemetry.refused == 5, "all are refused")
    context.destroy(0)


def test_a_subscriber_of_a_real_run_sees_the_journal_and_outlives_the_syncer(tmp_path: Path) -> None:
    with launch(tiny(learners=2), tmp_path / "run") as run:
        telemetry = run.telemetry()
        run.wait(rounds=3, timeout_s=GUARD_S)
        batches = taken(telemetry, lambda found: sum(len(batch.records) for batch in found) > 100)
        assert telemetry.missed == 0
        run.kill("syncer", down_s=0.01)
        batches += taken(telemetry, lambda found: telemetry.missed > 0)
        batches += taken(telemetry, lambda found: any(batch.status for batch in found))
        run.set(grace_gamma=0.5)
        run.stop()
        batches += list(telemetry)
    journal = records_of(tmp_path / "run")
    start = batches[0].first
    at = start
    for batch in batches:
        at += batch.missed
        assert batch.first == at
        assert batch.records == journal[at : at + len(batch.records)]
        at += len(batch.records)
    assert at == len(journal), "the last record came"
    shown = {record.kind for batch in batches for record in batch.records}
    assert {Kind.STEP_ENDED, Kind.MERGED, Kind.SETTING_CHANGED, Kind.RUN_ENDED} <= shown
    found = next(batch.status for batch in reversed(batches) if batch.status)
    assert found["merges"] > 3 and set(found["learners"]) == {"0", "1"}
    print(f"{at - start} records, not shown: {telemetry.missed}")
    telemetry.close()


def test_iterating_ends_with_the_run(folder: Path, sender: TelemetrySender, clock: Clock) -> None:
    with Telemetry(folder, lambda: False) as telemetry:
        assert list(telemetry) == []
