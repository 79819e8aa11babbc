"""The verbs of runs by hand: what is refused before anything is started, and the command lines that are printed."""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workbench.cli import learner, syncer
from workbench.cli.main import Parser, main
from workbench.config import RunConfig, load
from workbench.engine.key_folder import client_keys, make_key_folder, server_keys
from workbench.engine.listening import joining_line, new_listening, reachable


def parsed(*words: str) -> argparse.Namespace:
    parser = Parser()
    syncer.add_arguments(parser)
    return parser.parse_args(["--listen", "tcp://127.0.0.1:0", *words])


def test_keys_are_made_and_said_where_they_go(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "keys"
    assert main(["keys", str(folder), "--learners", "2"]) == 0
    assert "learner-M.key" in capsys.readouterr().out
    assert len(server_keys(folder).clients) == 2
    assert main(["keys", str(folder), "--learners", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["made"] == ["learner-2"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--listen", "tcp://0.0.0.0:5555"], "without keys would let in anybody"),
        (["--listen", "5555"], "expected tcp://HOST:PORT"),
        (["--listen", "tcp://127.0.0.1:0", "--set", "quorum=9"], "quorum = 9"),
    ],
)
def test_a_syncer_that_cannot_be_leaves_nothing(
    words: list[str], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["syncer", *words, "--out", str(tmp_path / "run")]) == 2
    assert line in capsys.readouterr().err and not (tmp_path / "run").exists()


@pytest.mark.parametrize("offset", [0, 1])
def test_a_port_in_use_is_named(offset: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1] - offset
        code = main(["syncer", "--listen", f"tcp://127.0.0.1:{port}", "--out", str(tmp_path / "run")])
        assert code == 2
        error = capsys.readouterr().err
        assert f"tcp://127.0.0.1:{port + offset}" in error and "already in use" in error and error.count("\n") == 1
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--connect", "tcp://127.0.0.1:0", "--learner", "0"], "port 0 is nobody's"),
        (["--connect", "far", "--learner", "0"], "expected tcp://HOST:PORT"),
        (["--connect", "tcp://127.0.0.1:9", "--learner", "-4"], "allowed: 0 to 3"),
        (["--connect", "tcp://127.0.0.1:9", "--learner", "4096"], "allowed: 0 to 3"),
        (["--connect", "tcp://10.0.0.7:9", "--learner", "0"], "give --keys FOLDER"),
        (["--connect", "tcp://127.0.0.1:9", "--learner", "0", "--patience", "-1"], "--patience -1"),
        (["--connect", "tcp://127.0.0.1:9", "--learner", "0", "--keys", "none"], "no keys in none"),
        (["--learner", "0"], "--connect"),
    ],
)
def test_a_learner_that_cannot_be_is_told_at_once(
    words: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["learner", *words]) == 2
    error = capsys.readouterr().err
    assert line in error and error.count("\n") == 1


def test_a_learner_needs_its_own_key_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_key_folder(tmp_path / "keys", 1)
    words = ["learner", "--connect", "tcp://10.0.0.7:9", "--keys", str(tmp_path / "keys"), "--learner"]
    parser = Parser()
    learner.add_arguments(parser)
    learner.check(parser.parse_args([*words[1:], "0"]), RunConfig())
    assert client_keys(tmp_path / "keys", 0).own.public in server_keys(tmp_path / "keys").clients
    assert main([*words, "1"]) == 2
    assert "learner-1.key" in capsys.readouterr().err


def test_without_a_syncer_the_first_line_comes_soon_and_the_exit_at_the_limit(tmp_path: Path) -> None:
    words = ["learner", "--connect", "tcp://127.0.0.1:9", "--learner", "0", "--set", "connect_limit_s=4", "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "workbench", *words], cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}, text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None and process.stdout is not None
        began = time.monotonic()
        first = process.stderr.readline()
        print(f"first line after {time.monotonic() - began:.1f} s")
        last = process.stderr.readlines()[-1]
        assert process.wait(40.0) == 3
        told = json.loads(process.stdout.read())
    assert first == "L0 waits for the syncer at tcp://127.0.0.1:9, 0 s (nothing answers there)\n"
    assert "found no syncer at tcp://127.0.0.1:9 within connect_limit_s = 4 (" in last
    assert (told["learner"], told["code"], told["step"]) == (0, 3, 0)


def test_the_command_line_of_a_learner_repeats_what_the_run_was_given() -> None:
    words = ["--preset", "tiny-4", "--seed", "3", "--set", "quorum=2", "--set", "lead=none", "--keys", "my keys"]
    listening = new_listening("tcp://10.0.0.1:0", None, syncer.flags_of(parsed(*words)))
    line = joining_line(listening, "tcp://10.0.0.1:5000", 2)
    assert line == (
        "workbench learner --connect tcp://10.0.0.1:5000 --learner 2 --preset tiny-4 --seed 3 --keys 'my keys' "
        "--set quorum=2 --set lead=none"
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "*", "[::]"])
def test_who_listens_everywhere_is_reached_by_name(host: str) -> None:
    assert reachable(f"tcp://{host}:5000") == f"tcp://{socket.gethostname()}:5000"


def test_the_codec_follows_the_network_unless_somebody_chose_one(tmp_path: Path) -> None:
    here, across = parsed(), parsed()
    across.listen = "tcp://10.0.0.1:5000"
    config, note = syncer.with_codec(load("tiny-4"), here)
    assert config.codec == "f32" and "this machine only" in note
    config, note = syncer.with_codec(load("tiny-4"), across)
    assert config.codec == "bf16" and "--set codec=f32" in note
    across.sets = ["codec=f32"]
    assert syncer.with_codec(load("tiny-4", sets=across.sets), across)[0].codec == "f32"
    across.sets, across.config = [], tmp_path / "config.toml"
    across.config.write_text('codec = "f32"\n')
    config, note = syncer.with_codec(load(toml=across.config), across)
    assert config.codec == "f32" and "as asked for" in note
