from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.analysis.comparing.test_comparison import run
from tests.analysis.runs import CONFIG, simulated
from tests.analysis.tapes import taped
from workbench.algorithms.fragments import Fragmentation
from workbench.config import RunConfig, to_toml
from workbench.engine.launch import Run
from workbench.engine.layout import OUTCOME_FILE
from workbench.replay.counterfactual.outcome import WhatIf
from workbench.replay.report import ReplayReport
from workbench.tape.run_folder import create_run_folder
from workbench.views import markup
from workbench.views.run_card import run_card, status_parts
from workbench.views.states import COLOURS, STATES, state_of

EVIL = "<script>alert('x')</script>"
GOING = {"state": "running", "number": 1, "connected": True, "healed": True, "counts": True, "step": 120, "loss": 3.25}
STATUS: dict[str, Any] = {
    "merges": 84, "rounds": 200, "phase": "running", "elapsed_s": 20.4, "val_loss": 3.21, "quorum": 1,
    "last_merge": {"round": 160, "fragment": 3, "time_s": 20.1, "learners": [0, 2]},
    "learners": [
        {"label": "L0", "learner": 0, **GOING, "behind": 0.2, "tokens_per_s": 1320.0},
        {"label": "L1", "learner": 1, "state": "waiting", "number": 1, "how": EVIL},
        {"label": "L2", "learner": 2, **GOING, "number": 2, "acting": ["slow"]},
        {"label": "L3", "learner": 3, **GOING, "healed": False},
    ],
}  # fmt: skip


def write_outcome(run: Path, code: int, line: str) -> None:
    """How a run ended, as its supervisor leaves it."""
    (run / OUTCOME_FILE).write_text(json.dumps({"code": code, "line": line}), encoding="utf-8")


class Told(Run):
    """A run that says what it is told to say."""

    def __init__(self, folder: Path, status: dict[str, Any] | None = None) -> None:
        super().__init__(create_run_folder(folder, to_toml(RunConfig())), None)
        self.told = status
        self.looks = 0
        if status is not None:
            (self.path / "control.json").write_text("{}")

    @property
    def running(self) -> bool:
        return self.told is not None

    def status(self) -> dict[str, Any]:
        self.looks += 1
        assert self.told is not None
        return self.told


def test_a_run_that_goes_on_has_a_row_for_each_learner_with_sign_word_and_colour(tmp_path: Path) -> None:
    page = run_card(Told(tmp_path / "run", STATUS))
    for state in ("training", "down", "slow", "healing"):
        assert f">{STATES[state]}</span>{state}" in page and COLOURS[state] in page
    for words in ("84 of 200 merges", "3.210 nat per byte", "round 160, fragment 3, of L0, L2", "start 2", "1,320"):
        assert words in page
    assert EVIL not in page and "&lt;script&gt;" in page
    assert "<script" not in page and "<style" not in page


def test_a_lost_quorum_says_who_is_missing() -> None:
    page = "".join(status_parts({**STATUS, "quorum": 4, "quorum_lost": True}))
    assert "LOST: 4 needed, 3 of 4 there, waiting for L1" in page


def test_a_run_that_starts_and_one_that_is_over_have_a_card_too(tmp_path: Path) -> None:
    starting = Told(tmp_path / "a", STATUS)
    (starting.path / "control.json").unlink()
    assert "starting" in run_card(starting) and starting.looks == 0
    over = Told(tmp_path / "b")
    write_outcome(over.path, 3, f"the disk is full {EVIL}")
    page = over._repr_html_()
    assert "✕" in page and "exit code 3" in page and "the disk is full &lt;script" in page
    assert repr(over).endswith(f"over: the disk is full {EVIL}>")


def test_every_state_has_a_sign_and_a_colour() -> None:
    assert STATES.keys() == COLOURS.keys()
    assert state_of({"label": "L0", **GOING, "acting": ["cut_up"]}) == "cut off"


def test_a_tape_has_a_text_and_a_card(tmp_path: Path) -> None:
    tape = taped(tmp_path / "first", simulated())
    assert repr(tape.wb).startswith("<tape first: 60 merges, 3 learners, ") and repr(tape.wb).endswith(", open>")
    page = tape.wb._repr_html_()
    for words in (
        "60 of 60 merges",
        "finished",
        "virtual time",
        "kill L1 at ",
        ", stall L2 at ",
        "no evaluation",
    ):
        assert words in page
    assert page.count("<tr") >= 4 and "L2" in page


def test_a_tape_with_a_strange_name_is_escaped(tmp_path: Path) -> None:
    page = taped(tmp_path / "<b>x", simulated()).wb._repr_html_()
    assert "&lt;b&gt;x" in page and "<b>x" not in page


@pytest.mark.parametrize(
    ("exact", "sign", "word"),
    [(True, "✓", "bit-exact"), (False, "✕", "not bit-exact"), (None, "?", "nothing to compare")],
)
def test_a_replay_report_has_a_card(exact: bool | None, sign: str, word: str) -> None:
    final = [np.zeros(4, np.float32)]
    fragmentation: Any = Fragmentation
    report = ReplayReport(exact, 3, 3, 12, 6, "bit", 0.0, None, ("jaxlib: '1' here, '2' there",), final, fragmentation)
    page = report._repr_html_()
    assert f">{sign}</span>{word}" in page and "3 of 3" in page and "12 inner steps, 6 contributions" in page
    assert "jaxlib: &#x27;1&#x27;" in page


def test_a_counterfactual_has_a_card_with_both_and_the_spread_over_seeds() -> None:
    was = {"val_loss_last": 3.5, "tokens_merged": 1000.0, "participation": None, "merges": 40}
    children = [was | {"val_loss_last": 3.0}, was | {"val_loss_last": 3.25, "tokens_merged": 1200.0}]
    runs = [Path("runs/a"), Path("runs/b")]
    found = WhatIf(
        "schedule",
        "schedule",
        {"quorum": 2},
        ("kill L1",),
        7,
        f"event 7 {EVIL}",
        7,
        was,
        children,
        runs,
        {},
        {},
        0,
        0,
        None,
    )
    page = found._repr_html_()
    for words in (
        "quorum = 2, without kill L1",
        "3.5000",
        "3.1250 (3.0000 to 3.2500)",
        "1,100 (1,000 to 1,200)",
        "none",
    ):
        assert words in page
    assert EVIL not in page and "virtual time from the branch on" in page


def test_a_comparison_has_a_card(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", 2.0), run(tmp_path / "b<scr", 2.5, CONFIG.set(quorum=2), digest=5)
    page = wb.compare(a, b)._repr_html_()
    for words in ("2 runs", "quorum", "B parts from A", "digest", "2.5000 (+0.5000)"):
        assert words in page
    assert page.count("<tr") >= 8 and "b<scr" not in page and "b&lt;scr" in page
    assert "no setting that is known differs" in wb.compare(a, a)._repr_html_()


def test_a_bar_shows_that_there_is_something() -> None:
    assert "width:0.5%" in markup.bar(1e-6, "few", "red") and "width:0.0%" in markup.bar(0, "none", "red")
    assert "width:100.0%" in markup.bar(1.7, "more than all", "red")


def test_a_live_pane_looks_at_the_run_until_it_is_over(tmp_path: Path) -> None:
    run = Told(tmp_path / "run", STATUS)

    async def watch() -> tuple[str, str, int, int]:
        pane = run.live(every_s=0.1)
        while run.looks < 3:
            await asyncio.sleep(0.02)
        before = pane.object
        write_outcome(run.path, 0, "done")
        run.told = None
        while "over" not in pane.object:
            await asyncio.sleep(0.02)
        looks = run.looks
        await asyncio.sleep(0.3)
        return before, pane.object, looks, run.looks

    before, after, looks, later = asyncio.run(watch())
    assert "84 of 200 merges" in before and "over: done" in after
    assert looks == later


def test_without_a_loop_a_live_pane_shows_the_run_as_it_is(tmp_path: Path) -> None:
    assert "84 of 200" in Told(tmp_path / "run", STATUS).live().object


def test_cards_and_states_load_no_plotting_library() -> None:
    code = (
        "import sys, workbench as wb; wb.views; import workbench.views.run_card, workbench.views.tape_card;"
        "import workbench.views.replay_card;"
        "print([m for m in ('bokeh', 'holoviews', 'panel') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
