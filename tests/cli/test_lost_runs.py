"""Runs that end before their end: a full disk, Ctrl-C, kill -9.  What was recorded is told."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from workbench.cli.main import main
from workbench.protocol.records import Kind
from workbench.tape import open_tape, read_journal


@contextmanager
def files_up_to(count: int) -> Iterator[None]:
    """Let no file grow beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_loses_the_run_and_no_record(
    small_words: list[str], small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    capsys.readouterr()
    with files_up_to(200_000):
        assert main(["train", *small_words, "--set", "rounds=100000", "--out", str(run)]) == 3
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("workbench: ")]
    assert len(lines) == 1 and "no room" in lines[0]
    journal = read_journal(run / "journal")
    assert journal.dropped_bytes == 0 and journal.offset == (run / "journal").stat().st_size
    assert any(record.kind == Kind.MERGED for record in journal.records)
    with files_up_to((run / "journal").stat().st_size // 20):  # nor does the reader need room
        assert main(["inspect", str(run)]) == 0
    assert "cut off after" in capsys.readouterr().out
    assert main(["inspect", str(run), "ledger"]) == 0


def test_no_room_for_the_run_folder(
    small_words: list[str], small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with files_up_to(0):
        assert main(["train", *small_words, "--out", str(tmp_path / "run")]) == 3
    assert "no room for a run" in capsys.readouterr().err


def when_begun(run: Path, act: Callable[[], None]) -> None:
    """Do something as soon as a run has some merges behind it."""
    until = time.monotonic() + 120
    while not (run / "journal").exists() or (run / "journal").stat().st_size < 60_000:
        assert time.monotonic() < until, "the run has not begun"
        time.sleep(0.02)
    act()


ENDLESS = ("--set", "rounds=1000000", "--set", "learners=2")


def test_ctrl_c_closes_the_tape(small_words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    capsys.readouterr()
    with ThreadPoolExecutor(1) as pool:
        pressed = pool.submit(when_begun, run, lambda: os.kill(os.getpid(), signal.SIGINT))
        assert main(["train", *small_words, *ENDLESS, "--out", str(run)]) == 130
        pressed.result()
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("workbench: ")]
    assert lines == [f"workbench: interrupted; the tape is closed: workbench inspect {run}"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    tape = open_tape(run)
    assert tape.wb.closed and tape.wb.reasons(tape.wb.events(Kind.RUN_ENDED)).tolist() == ["interrupted"]
    merges = tape["evals"].dataset["merges"].values.tolist()
    assert (merges[0], merges[-1]) == (0, tape["merges"].dataset.sizes["merge"]), "the last evaluation is of the last"
    assert main(["inspect", str(run), "ledger"]) == 0
    assert main(["replay", str(run)]) == 0
    assert "stopped (interrupted) after" in capsys.readouterr().out


def test_kill_9_leaves_a_run_that_can_be_told(
    small_words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    words = [sys.executable, "-m", "workbench", "train", *small_words, *ENDLESS, "--out", str(run)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        when_begun(run, lambda: None)
        assert main(["inspect", str(run)]) == 0
        assert "running: " in capsys.readouterr().out
    finally:
        process.kill()
        process.wait()
    recorded = len(read_journal(run / "journal").records)
    assert main(["inspect", str(run)]) == 0
    assert "cut off after" in capsys.readouterr().out
    with (run / "journal").open("ab") as journal:
        journal.write(b"torn")
    torn = open_tape(run).attrs["torn_bytes"]
    assert main(["inspect", str(run)]) == 0
    assert torn >= 4 and f"{torn:,} bytes dropped: records cut off in mid-write" in capsys.readouterr().out
    tape = open_tape(run)
    assert not tape.wb.closed and tape["events"].sizes["event"] == recorded
    assert np.count_nonzero(tape["events"]["kind"] == Kind.MERGED) > 0
