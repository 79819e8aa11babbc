"""A run that is over, on the page that watched it."""

from __future__ import annotations

import json
import shutil
import threading
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.analysis.runs import CONFIG, simulated
from tests.analysis.tapes import taped
from workbench.config import RunConfig
from workbench.engine.layout import OUTCOME_FILE, PLAN_FILE
from workbench.pages import so_far
from workbench.pages.badges import preset_words
from workbench.pages.clicks import Commands
from workbench.pages.controls import Controls
from workbench.pages.ended import GONE, Whole, ended_html, sentence, was_lost, way_on, whole_run
from workbench.pages.so_far import SoFar
from workbench.protocol.live_storm import Storm
from workbench.views.learner_cells import ended_cell

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # names that only Panel 2 knows
TAPE, RUNS = "?page=replay", "?page=start"


def test_the_numbers_are_of_the_whole_run_and_what_is_gone_is_said(tmp_path: Path) -> None:
    run = tmp_path / "a run"
    taped(run, simulated())
    whole = whole_run(run)
    assert (whole.state, whole.merges, whole.wanted) == ("finished", CONFIG.rounds, CONFIG.rounds)
    status = {"merges": 59, "rounds": CONFIG.rounds, "learners": []}
    html = ended_html(whole, status)
    assert f"{whole.numbers['goodput']:.0%}" in html and html.count(">whole run<") == 3 and "last 10 s" not in html
    assert ">60<" in html and ">59<" in ended_html(None, status) and "being read" in ended_html(None, status)
    assert "resume" not in way_on(run, whole, TAPE, RUNS)
    shutil.rmtree(run)
    gone = whole_run(run)
    assert gone.state == GONE and "folder is gone" in sentence((3, f"see {run}/logs"), gone)
    said = way_on(run, gone, TAPE, RUNS)
    assert TAPE not in said and RUNS in said and "–" in ended_html(gone, status)


def test_who_stopped_a_run_and_how_to_go_on_are_said() -> None:
    cut = Whole("cut_off", "", 7, 20)
    assert sentence((3, "the supervisor is gone"), cut) == (
        "The run is over: the supervisor is gone (exit code 3), after 7 of 20 merges."
    )
    assert "<code>workbench resume &#x27;/runs/a b&#x27;</code>" in way_on(Path("/runs/a b"), cut, TAPE, RUNS)


@pytest.mark.parametrize(("left", "lost"), [("outcome 0", False), ("outcome 3", True), ("plan", True), ("", False)])
def test_a_run_that_was_lost_is_told_from_one_that_ended(tmp_path: Path, left: str, lost: bool) -> None:
    if left.startswith("outcome"):
        (tmp_path / OUTCOME_FILE).write_text(json.dumps({"code": int(left[-1]), "line": ""}), encoding="utf-8")
    if left:
        (tmp_path / PLAN_FILE).write_text("{}", encoding="utf-8")
    assert was_lost(tmp_path) == lost


def test_cells_of_a_run_that_is_over_keep_who_was_removed() -> None:
    learners = [{"learner": m, "label": f"L{m}", "state": state} for m, state in enumerate(("running", "removed"))]
    cells = [ended_cell({**one, "connected": True, "healed": True}) for one in learners]
    assert [(cell["word"], cell["button"]) for cell in cells] == [("ended", ""), ("removed", "")]


def test_the_figure_is_drawn_once_more_when_the_run_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Future[Any]] = []

    def submit(*_: Any) -> Future[Any]:
        asked.append(Future())
        return asked[-1]

    site: Any = SimpleNamespace(drawing=SimpleNamespace(submit=submit))
    figure = SoFar(site, Path("run"))
    monkeypatch.setattr(so_far, "EVERY_S", 1e9)
    figure.tick(shown=True)
    asked[0].set_result((None, 0.0))
    for _ in range(2):
        figure.tick(shown=True)
    assert len(asked) == 1 and "again every" in figure.said.object
    for _ in range(2):
        figure.tick(shown=True, over=True)
    asked[1].set_result((None, 0.0))
    for _ in range(2):
        figure.tick(shown=True, over=True)
    assert len(asked) == 2 and "again" not in figure.said.object and "the run is over" in figure.said.object


def test_nothing_can_be_pressed_or_sent_when_the_run_is_over() -> None:
    sent: list[Any] = []
    session: Any = SimpleNamespace(
        may_control=True, site=SimpleNamespace(asking=SimpleNamespace(submit=lambda *call: sent.append(call)))
    )
    watcher: Any = SimpleNamespace(
        settings={}, lock=threading.Lock(), commands=Commands(), config=SimpleNamespace(learners=2), send=None,
        stormer=SimpleNamespace(storm=Storm(2), struck=0, missed=0), targets=(0, 1), going=False, status=None,
    )  # fmt: skip
    controls = Controls(session, watcher)
    card = controls.panel()
    controls.end()
    controls.act("kill", 0)
    assert not sent and len(card) == 1 and "nothing acts on it" in card[0].object


def test_a_badge_says_what_was_changed_of_a_preset() -> None:
    config = RunConfig(preset="tiny-4")
    assert preset_words(config.set({"learners": 2})).startswith("preset tiny-4, learners = 2")
    assert preset_words(RunConfig()) == ""
