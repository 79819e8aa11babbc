"""What the start page says of each run."""

from __future__ import annotations

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.analysis.runs import simulated
from tests.analysis.tapes import taped
from workbench.engine.layout import OUTCOME_FILE
from workbench.pages.demo import DEMO
from workbench.pages.run_list import RunList, told


def test_a_run_says_its_state_merges_loss_learners_and_age(tmp_path: Path) -> None:
    run = tmp_path / "run"
    taped(run, simulated())
    hour_ago = time.time() - 3700
    os.utime(run / "journal", (hour_ago, hour_ago))
    said = told(run)
    assert said == "✓ finished · 60 merges · 3 learners · 1 h ago"
    (run / OUTCOME_FILE).write_text('{"code": 3, "line": "lost"}', encoding="utf-8")
    assert told(run).startswith("✕ failed (exit code 3) · 60 merges")
    assert "validation 2.356" in told(DEMO)


def test_what_is_damaged_or_lost_has_a_sign(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.toml").write_text("learners = 2\n", encoding="utf-8")
    (broken / "journal").write_bytes(b"nothing of a journal")
    assert told(broken).startswith("✕ damaged: no journal")
    (broken / "tape").mkdir()
    assert told(broken).startswith("✕ damaged: its tape")
    run = tmp_path / "run"
    taped(run, simulated()[:-40])
    assert told(run).startswith("✕ lost · "), told(run)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # names that only Panel 2 knows
def test_a_list_is_there_at_once_and_is_filled_from_a_thread() -> None:
    with ThreadPoolExecutor(1) as threads, ThreadPoolExecutor(1) as loop:  # a browser's loop may run in this thread
        site: Any = SimpleNamespace(reading=threads)
        runs = RunList(site, [(DEMO, "<a>demo</a>")])
        assert "<a>demo</a>" in runs.pane.object and "…" in runs.pane.object
        loop.submit(asyncio.run, runs.fill()).result()
    assert "86" in runs.pane.object and "…" not in runs.pane.object
