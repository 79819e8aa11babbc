"""A run over tcp whose learners people start: keys, garbage, kills, two of one number, Ctrl-C, the end, replay."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import random
import re
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import psutil
import pytest
import zmq

from tests.engine.hands import ByHand, Command
from tests.engine.real_runs import GUARD_S, of_kind, records_of, until
from workbench.analysis.summary import summary
from workbench.cli.train import is_balanced
from workbench.config import ConfigError, from_toml
from workbench.engine.control import address_of
from workbench.engine.frames import Chunked, Frame, Hello, encode, frame, sizes_digest
from workbench.engine.key_folder import client_keys
from workbench.engine.listening import read_listening
from workbench.engine.security import secure_client
from workbench.engine.sockets import endpoints
from workbench.protocol.messages import BULK, CONTROL, Fragment, Heartbeat, Join
from workbench.protocol.records import SYNCER, Kind, learner_of
from workbench.replay.exact import replay
from workbench.replay.machines import rerun_machines
from workbench.tape import open_tape
from workbench.tape.journal import read_header
from workbench.training.flat import fragmentation_of

pytestmark = pytest.mark.usefixtures("own_cache")

RSS_GROWTH_MAX = 10 << 20
FLOOD = 100
REFUSALS = {
    "rate": "inner.rate = 0.5 at the learner, 0.003 at the syncer; start the learner with --set inner.rate=0.003",
    "data": "data manifest = ",
    "number": "learners = 3 at the learner, 2 at the syncer",
}


class Played(NamedTuple):
    """A run that is over, and what was seen while it went on."""

    place: Path
    run: Path
    hand: ByHand
    refused: dict[str, int]
    growth: int
    statuses: list[dict[str, Any]]
    ends: dict[str, int]
    commands: dict[str, Command]

    @property
    def members(self) -> list[Command]:
        """Learners that took part, in the order of their starts."""
        return [self.commands[name] for name in ("first", "killed", "again", "second")]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """Two learners by hand; garbage; one killed and started again; one replaced by a second; Ctrl-C; stopped."""
    place = tmp_path_factory.mktemp("hand")
    hand = ByHand(place, lead=12, codec="bf16")  # who outruns the syncer waits: nothing piles up on a busy machine
    try:
        statuses = [hand.run.status()]
        others = strangers(hand)
        first, killed = hand.learner(0, "first"), hand.learner(1, "killed")
        hand.stepping(0, 1)
        hand.stepping(1, 1)
        hand.merged(5)
        statuses.append(hand.run.status())
        refused, growth = garbage(hand)
        killed.kill()
        until(lambda: hand.state(1)["state"] == "lost", "the killed learner is lost")
        again, second = hand.learner(1, "again"), hand.learner(0, "second")
        hand.stepping(1, 2)
        hand.stepping(0, 2)
        ends = {"first": first.ended(), **{name: command.ended() for name, command in others.items()}}
        with pytest.raises(ConfigError, match="L0 is started by hand"):
            hand.run.kill(0)
        hand.run.kill("syncer", down_s=0.01)
        until(lambda: "takes part again" in again.said and "takes part again" in second.said, "both are back")
        hand.merged(5)
        second.interrupt()
        ends["second"] = second.ended()
        until(lambda: hand.state(0)["state"] == "left", "who left is shown so")
        again.process.send_signal(signal.SIGSTOP)
        until(lambda: hand.state(1)["state"] == "silent" and hand.state(1)["silent_s"] >= 2.0, "silence is shown")
        again.process.send_signal(signal.SIGCONT)
        until(lambda: hand.state(1)["state"] == "connected", "it is back")
        hand.merged(5)
        hand.syncer.interrupt()
        ends |= {"again": again.ended(), "syncer": hand.syncer.ended()}
        commands = {"first": first, "killed": killed, "again": again, "second": second, **others}
        yield Played(place, hand.run_path, hand, refused, growth, statuses, ends, commands)
    finally:
        hand.close()


def strangers(hand: ByHand) -> dict[str, Command]:
    """Learners that mean another run."""
    text = hand.place / "text.txt"
    text.write_text("quite another text " * 500)
    return {
        "rate": hand.learner(0, "rate", "--set", "inner.rate=0.5"),
        "data": hand.learner(0, "data", "--data", str(text)),
        "number": hand.learner(1, "number", "--set", "learners=3"),
    }


# garbage


def garbage(hand: ByHand) -> tuple[dict[str, int], int]:
    """Whatever comes in at both ports; returns what was counted, and by how much the syncer's memory grew."""
    syncer = psutil.Process(hand.run.status()["syncer"]["pid"])
    throw(hand, 20)
    hand.merged(3)
    before = syncer.memory_info().rss
    throw(hand, FLOOD)
    hand.merged(3)
    growth = syncer.memory_info().rss - before
    until(lambda: hand.run.status()["refused"].get("handshake", 0) >= 2 * FLOOD, "all are counted")
    return hand.run.status()["refused"], growth


def throw(hand: ByHand, times: int) -> None:
    """Bytes by those who have no key, and frames by one who has."""
    chance = random.Random(3)
    claim = b"\xff" + bytes(8) + b"\x7f\x03\x00CURVE" + bytes(47) + b"\x06" + (1 << 30).to_bytes(8, "big") + b"x" * 99
    noises = [
        b"POST /kill HTTP/1.1\r\nContent-Length: 1073741824\r\n\r\n",
        claim,
        pickle.dumps(os.system),
        b"\xff" * 99,
    ]
    for place in endpoints(hand.address):
        host, port = place.removeprefix("tcp://").split(":")
        for number in range(times):
            with socket.create_connection((host, int(port)), timeout=GUARD_S) as raw:
                make_noise(raw, noises[number % 5] if number % 5 < 4 else chance.randbytes(4000))
    frames_of_one_with_a_key(hand, times)


def make_noise(raw: socket.socket, noise: bytes) -> None:
    """Send, then read until the other side closes; it may do so before all is sent."""
    with contextlib.suppress(OSError):
        raw.sendall(noise)
        raw.shutdown(socket.SHUT_WR)
        while raw.recv(4096):
            pass


def frames_of_one_with_a_key(hand: ByHand, times: int) -> None:
    """A connection like that of learner 1, with what must not be in it: lengths, codecs, versions, names."""
    sizes = list(fragmentation_of(from_toml(hand.config.read_text())).sizes)
    listening = read_listening(hand.run_path)
    assert listening is not None
    run_id = f"{read_header(hand.run_path / 'journal')['run_id']}.{listening.instance}"
    hello = Hello(run_id, 1, 1, sizes_digest(sizes), False)
    good = Fragment(
        1, 1, 6, 0, 1, 5, 5, 100, "f32", 7, 4 * sizes[0], 5, 1, (), []
    )  # fmt: skip
    before = hand.run.status()["refused"].get("size", 0)
    identity = b"S" + os.urandom(8)
    context: zmq.Context[Any] = zmq.Context()
    try:
        sockets = []
        for place in endpoints(hand.address):
            client = context.socket(zmq.DEALER)
            client.identity = identity
            secure_client(client, client_keys(hand.keys, 1))
            client.connect(place)
            sockets.append(client)
        for channel in (CONTROL, BULK):
            sockets[channel].send(frame(Frame.HELLO, msgspec.structs.replace(hello, learner=99)))
            sockets[channel].send(frame(Frame.HELLO, hello))
        for client in sockets:
            client.rcvtimeo = int(1e3 * GUARD_S)
            while client.recv()[1] != Frame.OPENED:
                pass
        zeros = [0] * len(sizes)
        wrong: list[tuple[bytes, ...]] = [
            (bytes((9, Frame.MESSAGE)) + b"?",),
            (frame(Frame.MESSAGE, Heartbeat(0, 1, (), [])),),
            (frame(Frame.MESSAGE, Join(1, 1, 0, 0, zeros, zeros, zeros, False, False, (), [], {"pid": [1]})),),
            (frame(Frame.MESSAGE, msgspec.structs.replace(good, codec="f64")), encode(Chunked(1, 8))),
            (frame(Frame.MESSAGE, msgspec.structs.replace(good, fragment=10**6)), encode(Chunked(1, 8))),
            (frame(Frame.MESSAGE) + b"\xdd\xff\xff\xff\xff",),
            (frame(Frame.MESSAGE) + pickle.dumps(os.system),),
            (frame(Frame.MESSAGE) + bytes(1 << 14),),
        ]
        for number in range(times * len(wrong)):
            sockets[number % 2].send_multipart(wrong[number // 2 % len(wrong)])
        sockets[BULK].send_multipart((frame(Frame.MESSAGE, good), encode(Chunked(1, 1 << 40))))
        until(lambda: hand.run.status()["refused"].get("size", 0) > before, "the last of it has come")
    finally:
        context.destroy(2000)


def test_garbage_is_counted_said_in_few_lines_and_takes_no_memory(played: Played) -> None:
    print(f"memory of the syncer grew by {played.growth / 1e6:.1f} MB; refused: {played.refused}")
    assert played.growth < RSS_GROWTH_MAX
    for reason in ("handshake", "version", "learner", "codec", "fragment", "number", "garbled", "size"):
        assert played.refused[reason] >= 1, reason
    lines = [line for line in (played.run / "logs" / "syncer.log").read_text().splitlines() if "refused:" in line]
    assert 1 <= len(lines) <= 60 and all(len(line) < 1000 for line in lines)


# people


def test_status_tells_who_was_seen_and_where(played: Played) -> None:
    before, during = played.statuses
    assert [one["state"] for one in before["learners"]] == ["never seen", "never seen"]
    assert [one["state"] for one in during["learners"]] == ["connected", "connected"]
    assert all(one["where"] == f"{socket.gethostname()}, pid {pid}" for one, pid in zip(
        during["learners"], (one.process.pid for one in played.members[:2]), strict=True
    ))  # fmt: skip


def test_the_command_line_of_each_learner_is_printed(played: Played) -> None:
    said = played.hand.syncer.said
    for m in range(2):
        line = f"workbench learner --connect {played.statuses[0]['address']} --learner {m}"
        assert f"{line} --config {played.hand.config} --keys {played.hand.keys}" in said


def test_everybody_leaves_with_the_code_that_fits(played: Played) -> None:
    ends = {name: code for name, code in played.ends.items() if name not in REFUSALS}
    assert ends == {"first": 3, "second": 130, "again": 0, "syncer": 130}
    first, _, again, second = played.members
    assert "another process, started later, is L0 now" in first.last
    assert "takes the place of the process that is L0 now" in second.said
    assert "left after own step" in second.last and "the run is over (stopped)" in again.last


@pytest.mark.parametrize("name", ["rate", "data", "number"])
def test_what_differs_is_refused_by_the_syncer_with_one_line(played: Played, name: str) -> None:
    command = played.commands[name]
    assert played.ends[name] == 2
    assert REFUSALS[name] in command.last and len(command.said.splitlines()) == 1
    assert played.refused["differs"] == len(REFUSALS)
    log = (played.run / "logs" / "syncer.log").read_text()
    assert re.search(r"refused: .*\d learners that mean another run.*; the last: \S", log)


def test_nothing_is_left(played: Played) -> None:
    assert all(command.process.poll() is not None for command in played.hand.commands)
    host, port = played.statuses[0]["address"].removeprefix("tcp://").split(":")
    for number in (int(port), int(port) + 1):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, number)).close()


def test_keys_are_in_no_config_log_or_tape(played: Played) -> None:
    secrets = [path.read_bytes().split()[1] for path in played.hand.keys.glob("*.key")]
    assert len(secrets) == 3
    files = [path for path in played.run.rglob("*") if path.is_file()]
    outputs = [command.err for command in played.hand.commands]
    for path in (*files, *outputs):
        content = path.read_bytes()
        assert not any(secret in content for secret in secrets), path


# the tape


def test_lives_on_the_tape_hold_host_pid_and_fingerprint(played: Played) -> None:
    lives = open_tape(played.run)["incarnations"].to_dataset()
    pids = {command.process.pid for command in played.members}
    rows = [i for i, process in enumerate(lives["process"].values.tolist()) if learner_of(process) >= 0]
    assert {int(lives["pid"].values[i]) for i in rows} == pids
    assert {str(lives["host"].values[i]) for i in rows} == {socket.gethostname()}
    assert all(json.loads(lives["fingerprint"].values[i])["jaxlib"] for i in rows)
    starts = {int(lives["pid"].values[i]): int(lives["start_number"].values[i]) for i in rows}
    first, killed, again, second = (command.process.pid for command in played.members)
    assert starts[first] < starts[second] and starts[killed] < starts[again], "process numbers rise over starts"


def test_records_say_who_came_and_went(played: Played) -> None:
    records = records_of(played.run)
    losses = [(learner_of(r.peer), r.reason) for r in of_kind(records, Kind.LEARNER_LOST)]
    assert (1, "socket") in losses and (0, "superseded") in losses and (0, "left") in losses and (1, "ended") in losses
    joined = of_kind(records, Kind.LEARNER_JOINED)
    assert all(("host" in r.detail) == (r.reason == "process") for r in joined)
    for r in joined:
        steps = [s.step for s in of_kind(records, Kind.STEP_ENDED) if s.process == r.peer]
        assert steps == list(range(1, len(steps) + 1)), "own steps are consecutive over all lives"
    assert [r.reason for r in of_kind(records, Kind.SYNCER_STARTED)] == ["new", "restart"]
    assert {r.peer for r in of_kind(records, Kind.PROCESS_STARTED)} == {SYNCER}


def test_ledger_balances(played: Played) -> None:
    assert is_balanced(summary(open_tape(played.run)))


def test_it_replays_bit_for_bit_and_the_machine_decides_the_same(played: Played) -> None:
    report = replay(played.run)
    assert report.bit_exact, report.first_difference
    assert report.merges == report.merges_compared == len(of_kind(records_of(played.run), Kind.MERGED)) > 20
    machines = rerun_machines(played.run)
    assert machines.equal, machines.first_difference
    assert machines.lives == 2


# alone


def test_a_learner_whose_syncer_is_gone_for_good_trains_on_and_ends(tmp_path: Path) -> None:
    hand = ByHand(tmp_path, keys=False)
    try:
        learner = hand.learner(0, "alone", "--patience", "3", "--json")
        hand.stepping(0, 1)
        for pid in (address_of(hand.run_path).pid, hand.run.status()["syncer"]["pid"]):
            os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        assert learner.ended() == 3
        print(f"ended {time.monotonic() - began:.1f} s after its syncer")
        assert "the limit is --patience 3" in learner.last and "trains on" in learner.said
        told = json.loads(learner.out.read_text())
        assert told["code"] == 3 and told["step"] > 0
    finally:
        hand.close()
