from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from tests.analysis.runs import CONFIG, SECOND, simulated
from workbench.analysis import ACCESSORS
from workbench.analysis.from_records import tables
from workbench.analysis.reports import REPORTS, ROWS
from workbench.cli import output
from workbench.cli.inspect import TABLES
from workbench.cli.main import main
from workbench.cli.pages import incidents, overview, rounds
from workbench.engine.layout import OUTCOME_FILE, write_private
from workbench.protocol.faults import Fault
from workbench.protocol.records import Kind
from workbench.tape import JournalWriter, open_tape, read_header, read_journal

Tell = Callable[..., dict[str, Any]]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run inspect on a terminal of a given width and return what it printed, without ends of lines."""

    def look(*words: str, width: int = 80, code: int = 0) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        capsys.readouterr()
        assert main(["inspect", *words]) == code
        out = capsys.readouterr().out
        assert max((len(line.rstrip()) for line in out.splitlines() if str(words[0]) not in line), default=0) <= width
        return " ".join(out.split())

    return look


def test_faults_that_the_run_was_too_short_for_are_named(small_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tape = open_tape(small_run)
    more = '[[fault]]\nkind = "kill"\nlearner = 2\nat_s = 999.0\n[[fault]]\nkind = "stall_syncer"\nat_merge = 2000\n'
    tape.attrs["faults"] = {"chaos": "", "scenario": more}
    report = REPORTS["overview"](tape)
    printed = io.StringIO()
    monkeypatch.setattr("sys.stdout", printed)
    for part in incidents.show(report):
        output.console().print(part)
    said = " ".join(printed.getvalue().split())
    assert "never struck kill L2 at 999 s, stall syncer at merge 2,000: the run was over before" in said
    assert REPORTS["overview"](open_tape(small_run))["faults_unstruck"] == []
    assert REPORTS["overview"](tape, written=True)["run"]["state"] == "finished"


def journaled(folder: Path, like: Path, without: Callable[[int, Any], bool]) -> Path:
    """Write a run folder whose journal holds the records of another run but some."""
    records = [r for i, r in enumerate(read_journal(like / "journal").records) if not without(i, r)]
    folder.mkdir()
    shutil.copy(like / "config.toml", folder)
    with JournalWriter(folder / "journal", read_header(like / "journal")) as journal:
        journal.append(records)
    return folder


def test_the_overview_tells_the_story(small_run: Path, terminal: Callable[..., str]) -> None:
    out = terminal(str(small_run))
    report = REPORTS["overview"](open_tape(small_run))
    kill = report["faults"][0]
    texts = [
        "finished: 60 merges in", "3 learners, K 2, fresh, grace adaptive", "changed from the defaults: rounds 60",
        f"{report['validation']['last']:.3f} nats/byte", "token ledger: balanced",
        "faults that struck: 2 kill, 1 stall, 1 nan (1 found nobody)",
        f"kill L1 for 1 s missed {kill['merges_missed']} merges", "none: its target was gone", "kill syncer for 500 ms",
        "syncer started again once", "staleness versions 0/0/0", "TABLE is ledger",
    ]  # fmt: skip
    assert [text for text in texts if text not in out] == []
    assert [f"L{learner}" for learner in range(3) if f" L{learner} " not in out] == []


def test_a_wait_in_which_no_merge_was_due_is_explained_beside_the_availability() -> None:
    def report(quorum: int) -> dict[str, Any]:
        config = CONFIG.set(quorum=quorum)
        records = simulated((Fault("kill", 4 * SECOND, learner=1, for_ns=20 * SECOND),), config)
        found: dict[str, Any] = REPORTS["overview"](tables(records), config)["rounds"]
        return found

    def lines(quorum: int) -> list[str]:
        return [str(line) for line in rounds.waits(report(quorum)) if isinstance(line, Text)]

    assert re.fullmatch(r"100 %, longest wait for a merge \d+ ms", overview.availability(report(2)))
    wait = r"100 %, longest wait for a merge (2\d\.\d s)"
    why = "fewer learners than a quorum could contribute then; a merge was due for at most {} at a stretch"
    asked = why.format(r"(\S+) (ms|s)")
    waited = re.fullmatch(rf"{wait} \({asked}\)", overview.availability(report(3)))
    assert waited and float(waited[2]) / (1e3 if waited[3] == "ms" else 1) < 5.0
    assert f"the longest, {waited[1]}: {why.format(f'{waited[2]} {waited[3]}')}" in lines(3)
    assert not any("the longest, " in line for line in lines(2))


@pytest.mark.parametrize(
    ("code", "line", "said"),
    [
        (0, "", ""),
        (1, "L1 failed 5 times in a row without one step", "ended with exit code 1: L1 failed 5 times in a row"),
        (3, "the process that starts the others is gone", "ended with exit code 3: the process that starts"),
        (3, "", "ended with exit code 3: no word"),
    ],
)
def test_however_a_run_ended_its_outcome_is_told(
    code: int, line: str, said: str, small_run: Path, tmp_path: Path, terminal: Callable[..., str], told: Tell
) -> None:
    run = journaled(tmp_path / "run", small_run, lambda i, r: r.kind == Kind.RUN_ENDED)
    write_private(run / OUTCOME_FILE, json.dumps({"code": code, "line": line}).encode())
    for words in ([], ["ledger"]):
        out = terminal(str(run), *words)
        assert "cut off after 60 of 60 merges" in out
        assert said in out if said else "ended with" not in out
    assert told("inspect", str(run))["run"]["outcome"] == {"code": code, "line": line}
    assert told("inspect", str(small_run))["run"]["outcome"] is None


@pytest.mark.parametrize(("kind", "said"), [("late", "start late L1 for 8 s"), ("cut", "6.2 s before cut L1 for 8 s")])
def test_what_came_before_rounds_began_is_not_at_a_negative_time(
    kind: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kinds = ("starved", "stalled", "quorums_lost", "own_stops", "own_ends", "settings_changed", "syncer_restarts")
    nothing: dict[str, list[Any]] = {name: [] for name in kinds}
    lost = {"start_s": -6.2, "for_s": 8.0, "missing": ["L1"], "possible": 1, "quorum": 2, "regained": True}
    lost |= {"quarantined": []}
    row = {
        "time_s": -6.2,
        "kind": kind,
        "learner": 1,
        "for_s": 8.0,
        "effect": True,
        "skipped": False,
        "merges_missed": 0,
    }
    faults = [{**row, "merged_again_s": 2.0}]
    found = {**nothing, "quorums_lost": [lost], "quorum_lost_s": 8.0}
    for part in incidents.show({"faults": faults, "faults_unstruck": [], "incidents": found}):
        output.console().print(part)
    out = " ".join(capsys.readouterr().out.split())
    assert said in out and "once, 8 s 6.2 s before rounds began: 1 of the 2" in out and "-6.2" not in out


def test_faults_without_effect_are_counted_apart() -> None:
    rows: list[Any] = [
        {"kind": kind, "effect": effect} for kind, effect in (("kill", True), ("kill", False), ("nan", False))
    ]
    assert incidents.heading(rows) == "faults that struck: 1 kill (2 found nobody)"
    assert incidents.heading(rows[:1]) == "faults that struck: 1 kill"
    assert incidents.heading(rows[1:2]) == "faults that struck: none (1 found nobody)"


@pytest.mark.parametrize("table", TABLES)
def test_every_table_fits_a_wide_terminal_and_its_rows_a_narrow_one(
    table: str, small_run: Path, terminal: Callable[..., str]
) -> None:
    assert "finished: 60 merges" in terminal(str(small_run), table, width=120)
    assert terminal(str(small_run), table, "--rows", "3")


@pytest.mark.parametrize(
    ("table", "texts"),
    [
        ("ledger", ["token ledger: balanced", "in 3 learners x 6 fragments", "lost death", "tokens by learner"]),
        ("participation", ["expected contributions", "not expected down", "in a merge", "why not in a merge"]),
        ("staleness", ["version merged into - 1 - base version", "by learner: median/p95/max", "H = 6 folds median"]),
        ("goodput", ["useful of", "dead or stopped", "by learner allocated goodput", "a cell"]),
        ("rounds", ["first ready → quorum", "learners in a merge", "between two merges:", "bound B"]),
        ("validation", ["nats/byte", "tokens processed", "┤", "to reach a loss", "untrained model"]),
    ],
)
def test_every_table_tells_what_it_is_for(
    table: str, texts: list[str], small_run: Path, terminal: Callable[..., str]
) -> None:
    out = terminal(str(small_run), table)
    assert [text for text in texts if text not in out] == []


@pytest.mark.parametrize("table", TABLES)
def test_json_is_the_report_and_the_rows_behind_it(table: str, small_run: Path, told: Tell) -> None:
    tape = open_tape(small_run)
    found = told("inspect", str(small_run), table)
    assert (found["table"], found["path"], found["run"]["state"]) == (table, str(small_run), "finished")
    assert set(REPORTS[table](tape)) <= set(found)
    rows = ACCESSORS[ROWS[table]](tape)
    assert found["rows"]["dims"] == dict(rows.sizes)
    assert set(found["rows"]["data_vars"]) == set(map(str, rows.data_vars))
    few = told("inspect", str(small_run), table, "--rows", "-2")
    assert all(few["rows"]["dims"][dim] == 2 for dim in rows.sizes if dim in ("merge", "contribution", "row"))


def test_the_numbers_of_the_json(small_run: Path, told: Tell) -> None:
    goodput = told("inspect", str(small_run), "goodput")
    for row in goodput["by_learner"]:
        assert row["goodput"] + sum(row["badput"].values()) == pytest.approx(1.0)
    rounds = told("inspect", str(small_run), "rounds")
    assert sum(row["merges"] for row in rounds["contributors"]) == 60
    validation = told("inspect", str(small_run), "validation", "--reach", "5.3,0.001")
    assert [row["loss"] for row in validation["reached"]] == [5.3, 0.001]
    assert validation["reached"][1]["merges"] is None
    overview = told("inspect", str(small_run))
    assert overview["validation"]["last"] == validation["last"]
    assert len(overview["learners"]) == 3


def test_rows_are_those_asked_for(small_run: Path, terminal: Callable[..., str]) -> None:
    first = terminal(str(small_run), "rounds", "--rows", "2", width=200)
    assert "row round fragment epoch version outcome" in first and " 0 1 " in first
    last = terminal(str(small_run), "participation", "--rows", "-1", width=200)
    assert " 59 " in last and "included L2" in last
    every = terminal(str(small_run), "validation", "--rows", "0")
    assert len(every.split()) > 7 * 6


def test_a_ledger_that_does_not_balance_is_code_1(
    small_run: Path, tmp_path: Path, terminal: Callable[..., str], told: Tell
) -> None:
    run = journaled(tmp_path / "run", small_run, lambda i, record: record.kind == Kind.STEP_ENDED and 400 < i < 500)
    assert "token ledger: NOT balanced in 3 learners x 6 fragments: L" in terminal(str(run), "ledger", code=1)
    assert "NOT balanced" in terminal(str(run), code=1)
    assert told("inspect", str(run), "ledger", code=1)["balanced"] is False


def test_a_run_that_was_cut_off_is_told_up_to_there(
    small_run: Path, tmp_path: Path, terminal: Callable[..., str]
) -> None:
    count = len(read_journal(small_run / "journal").records)
    run = journaled(tmp_path / "run", small_run, lambda i, record: i > count // 2)
    for words in ((), ("participation",), ("rounds",)):
        assert "cut off after" in terminal(str(run), *words)


def test_a_run_that_has_just_begun_is_told(small_run: Path, tmp_path: Path, terminal: Callable[..., str]) -> None:
    run = journaled(tmp_path / "run", small_run, lambda i, record: i > 3)
    for words in ((), *((table,) for table in TABLES)):
        assert "0 of 60 merges" in terminal(str(run), *words)


def test_a_copied_tape_alone_is_told(small_run: Path, tmp_path: Path, terminal: Callable[..., str]) -> None:
    shutil.copytree(small_run / "tape", tmp_path / "copy")
    assert "finished: 60 merges" in terminal(str(tmp_path / "copy"))


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--rows", "3"], "--rows needs a table"),
        (["goodput", "--reach", "2"], "--reach goes with validation"),
        (["validation", "--reach", "two"], "--reach two holds no numbers"),
        (["weather"], "invalid choice: 'weather'"),
        (["rounds", "--rows", "few"], "invalid int value: 'few'"),
    ],
)
def test_flags_that_do_not_go_together_are_one_line(
    words: list[str], part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(tmp_path), *words]) == 2
    err = capsys.readouterr().err
    assert part in err and err.count("\n") == 1


def test_train_prints_what_inspect_knows(
    small_words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = tmp_path / "run"
    assert main(["train", *small_words, "--set", "rounds=8", "--set", "learners=2", "--out", str(out)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "finished: 8 merges in" in text and "token ledger: balanced" in text and "weights digest" in text
    assert main(["inspect", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["run"]["merges"] == 8


def test_the_words_below_the_learners_are_one_paragraph(small_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(small_run)]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("step: median"))
    assert lines[first : first + 2] == [
        "step: median; merged: share of its tokens; part.: participation; alive, in:",
        "merges of 60; starts: processes",
    ]


def test_a_quorum_that_was_awaited_is_not_lost(capsys: pytest.CaptureFixture[str]) -> None:
    kinds = ("starved", "stalled", "quorums_lost", "own_stops", "own_ends", "settings_changed", "syncer_restarts")
    found: dict[str, Any] = {name: [] for name in kinds} | {"quorum_lost_s": 0.0, "quorum_awaited_s": 13.2}
    for part in incidents.show({"faults": [], "faults_unstruck": [], "incidents": found}):
        output.console().print(part)
    out = " ".join(capsys.readouterr().out.split())
    assert "learners waited for at the start, 13.2 s with fewer than K there" in out and "lost" not in out
