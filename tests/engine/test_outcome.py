"""What is told of a run that has just ended, and a Ctrl-C that comes while it ends."""

from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path

import msgspec
import pytest

from tests.engine.real_runs import tiny
from workbench.cli.train_real import _end
from workbench.config import ConfigError, to_toml
from workbench.engine.launch import Run
from workbench.engine.layout import OUTCOME_FILE
from workbench.engine.supervisor import _said
from workbench.tape.lock import FileLock, holder
from workbench.tape.run_folder import RunFolder, create_run_folder


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return create_run_folder(tmp_path / "run", to_toml(tiny()))


def test_a_supervisor_that_is_about_to_tell_how_it_ended_is_waited_for(folder: RunFolder) -> None:
    lock = FileLock(folder.supervisor_lock, "the run")

    def tell() -> None:
        time.sleep(0.3)
        (folder.path / OUTCOME_FILE).write_bytes(msgspec.json.encode({"code": 0, "line": ""}))
        lock.release()

    telling = threading.Thread(target=tell)
    telling.start()
    assert Run(folder, None).outcome() == (0, "")
    telling.join()


def test_one_that_is_gone_is_not(folder: RunFolder) -> None:
    code, line = Run(folder, None).outcome()
    assert code == 3 and "is gone without a word" in line


def test_who_writes_a_run_is_named_to_whoever_wants_its_folder(folder: RunFolder) -> None:
    with FileLock(folder.supervisor_lock, "the run"):
        assert holder(folder.supervisor_lock) == str(os.getpid())
        with pytest.raises(ConfigError, match=rf"already holds a run, which process {os.getpid()} writes; give a new"):
            create_run_folder(folder.path, "")
    assert holder(folder.supervisor_lock) == ""
    with pytest.raises(ConfigError, match=r"already holds a run; give a new folder"):
        create_run_folder(folder.path, "")


def test_a_run_is_stopped_however_often_ctrl_c_is_pressed(folder: RunFolder) -> None:
    class Busy(Run):
        pressed, given_up, stopped = 2, 0, False

        def stop(self, timeout_s: float = 0.0) -> None:
            if self.pressed:
                self.pressed -= 1
                raise KeyboardInterrupt
            self.stopped = True

        def give_up(self) -> None:
            self.given_up += 1

    run = Busy(folder, None)
    _end(run)
    assert run.stopped and run.given_up == 2


def test_a_full_disk_is_said_with_its_place() -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert _said(full, Path("r")).startswith("no room for r: the disk is full; free space there, or ")
    gone = OSError(errno.EIO, os.strerror(errno.EIO), "r/slots")
    assert _said(gone, Path("r")) == f"r/slots: {os.strerror(errno.EIO)}"
