"""The runtime folder: private, short, and swept when its owner is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.real_runs import until
from workbench.engine import runtime_folder
from workbench.engine.runtime_folder import NAME_MAX, SOCKET_PATH_MAX, RuntimeFolder, is_stopped, process_started

SLEEPER = "import sys; sys.stdin.read()"


@pytest.fixture(autouse=True)
def _own_root(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_folder, "roots", lambda: [tmp_path_factory.mktemp("r", numbered=True).parent])


def test_a_folder_is_private_short_and_opens_again() -> None:
    folder = RuntimeFolder.create()
    try:
        assert os.stat(folder.path).st_mode & 0o777 == 0o700
        assert len(str(folder.path)) + 1 + NAME_MAX <= SOCKET_PATH_MAX
        again = RuntimeFolder.open(str(folder.path))
        assert again.owner == folder.owner and again.owner.alive and again.owner.pid == os.getpid()
        assert folder.path not in RuntimeFolder.sweep()
    finally:
        folder.remove()
    folder.remove()
    assert not folder.path.exists()


def test_whether_a_process_is_stopped_is_seen_whoever_stopped_it() -> None:
    with subprocess.Popen([sys.executable, "-c", SLEEPER], stdin=subprocess.PIPE) as process:
        for number, stopped in ((signal.SIGSTOP, True), (signal.SIGCONT, False)):
            process.send_signal(number)
            until(lambda: is_stopped(process.pid) == stopped, f"{number.name} acts")  # noqa: B023
        assert process.stdin is not None
        process.stdin.close()
    assert not is_stopped(process.pid)


def test_the_folder_of_a_process_that_ended_is_swept() -> None:
    process = subprocess.Popen([sys.executable, "-c", SLEEPER], stdin=subprocess.PIPE)
    folder = RuntimeFolder.create(process.pid)
    (folder.path / "block").write_bytes(b"x")
    assert folder.path not in RuntimeFolder.sweep()
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # still a zombie: gone all the same
    assert RuntimeFolder.sweep() == [folder.path]
    assert process.stdin is not None
    process.stdin.close()
    process.wait()
    assert not folder.path.exists()


def test_a_process_number_given_again_is_another_owner() -> None:
    folder = RuntimeFolder.create()
    text = (folder.path / "owner.json").read_text()
    (folder.path / "owner.json").write_text(text.replace(str(folder.owner.started), str(folder.owner.started - 1)))
    assert RuntimeFolder.sweep() == [folder.path]


def test_folders_of_others_and_half_made_ones_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    open_to_all, half = (RuntimeFolder.create().path for _ in range(2))
    os.chmod(open_to_all, 0o755)
    (half / "owner.json").unlink()
    with pytest.raises(PermissionError, match="0700"):
        RuntimeFolder.open(open_to_all)
    assert RuntimeFolder.sweep() == []
    os.utime(half, (1, 1))
    assert RuntimeFolder.sweep() == [half]
    (open_to_all / "owner.json").write_text("{")
    os.chmod(open_to_all, 0o700)
    with pytest.raises(OSError, match="no pid"):
        RuntimeFolder.open(open_to_all)


def test_a_long_path_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    long = tmp_path / ("x" * 80)
    long.mkdir()
    monkeypatch.setattr(runtime_folder, "roots", lambda: [long])
    with pytest.raises(OSError, match="too long a path"):
        RuntimeFolder.create()
    assert list(long.iterdir()) == []


def test_processes_that_are_not_there_have_no_start() -> None:
    assert process_started(os.getpid()) > 0
    assert process_started(2**22 + 5) == -1
