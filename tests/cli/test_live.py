from __future__ import annotations

import fcntl
import json
import os
import re
import struct
import subprocess
import sys
import termios
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_live_picture import learner, status
from tests.engine.real_runs import GUARD_S, tiny
from workbench.cli import live
from workbench.config import ConfigError, to_toml

SHOWN_WITHIN_S = 2.0


class Shown:
    """A run that has one status after another."""

    def __init__(self, found: list[dict[str, Any] | None]) -> None:
        self.found = list(found)

    @property
    def running(self) -> bool:
        return bool(self.found)

    def status(self) -> dict[str, Any]:
        now = self.found.pop(0)
        if now is None:
            raise ConfigError("no answer")
        return now


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LOOK_EVERY_S", 0.0)


def one_down() -> dict[str, Any]:
    found = status(merges=41)
    found["learners"][1] = learner(
        1, state="waiting", number=1, line="ValueError: seven", line_of=1, how="exit 3", connected=False
    )
    return found


def test_without_a_terminal_lines_come_with_changes_and_failures_once(capsys: pytest.CaptureFixture[str]) -> None:
    live.watch(Shown([None, status(), status(), status(), one_down(), one_down(), None]))  # type: ignore[arg-type]
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "running: merges 40/900, 12 s of rounds, validation loss 2.500",
        "L1 failed (start 1): ValueError: seven; runs/x/logs/L1.log",
        "running: merges 41/900, 12 s of rounds, validation loss 2.500, L1 down",
    ]


@pytest.mark.parametrize("width", [80, 120])
def test_on_a_terminal_the_picture_redraws_itself_in_place(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    main, other = os.openpty()
    fcntl.ioctl(main, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    seen = bytearray()

    def read() -> None:
        while data := _read(main):
            seen.extend(data)

    reader = threading.Thread(target=read)
    reader.start()
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("LINES", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    with os.fdopen(other, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        live.watch(Shown([status(), status(), one_down(), status()]))  # type: ignore[arg-type]
    reader.join(GUARD_S)
    os.close(main)
    text = seen.decode()
    assert text.count("\x1b[2K") >= 3 * 11, "what was drawn is wiped before it is drawn anew"
    plain = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", text).replace("\r", "\n")
    assert max(map(len, plain.split("\n"))) <= width
    assert plain.count("L1 failed (start 1): ValueError: seven; runs/x/logs/L1.log") == 1
    assert plain.count("✕ down") == 1


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 65536)
    except OSError:  # the other end is closed
        return b""


RAISES = """
    import sys

    if "workbench.engine.nursery" in sys.orig_argv:
        from workbench.training.learner_arithmetic import LearnerArithmetic

        step = LearnerArithmetic.step

        def raising(self, n, *rest, **named):
            if self.learner == 1 and n == 3:
                raise RuntimeError("planned in step 3")
            return step(self, n, *rest, **named)

        LearnerArithmetic.step = raising
"""


def test_a_learner_that_raises_is_shown_with_its_log_and_the_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(textwrap.dedent(RAISES))
    (tmp_path / "config.toml").write_text(to_toml(tiny(learners=2, rounds=100)))
    run = tmp_path / "run"
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), root)), "XDG_CACHE_HOME": str(tmp_path)}
    words = ["train", "--clock", "real", "--config", str(tmp_path / "config.toml"), "--out", str(run), "--json"]
    log = run / "logs" / "L1.log"
    told: list[tuple[str, float]] = []
    with subprocess.Popen(
        [sys.executable, "-m", "workbench.cli.main", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment, cwd=root,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        for line in process.stderr:
            if "L1 failed" in line:
                told.append((line.strip(), time.time() - log.stat().st_mtime))
        assert process.stdout is not None
        out = process.stdout.read()
    line, took = told[0]
    print(f"shown {took:.2f} s after it was logged")
    assert re.fullmatch(rf"L1 failed \(start \d\): RuntimeError: planned in step 3; {re.escape(str(log))}", line)
    assert took < 10 * SHOWN_WITHIN_S
    assert "RuntimeError: planned in step 3" in log.read_text()
    assert json.loads(out)["merges"] == 100, "the others went on, and stdout is JSON alone"
