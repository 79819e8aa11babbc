"""``workbench what-if``: what it asks for, what it prints, what it refuses."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_lost_runs import files_up_to
from workbench.analysis.comparing.comparison import compare
from workbench.cli.main import main
from workbench.cli.what_if import moved_of
from workbench.config import ConfigError
from workbench.replay.counterfactual.writing import RunWriter
from workbench.tape import open_tape
from workbench.tape.lock import FileLock


def test_an_arithmetic_question_is_answered_exactly(
    small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["what-if", str(small_run), "--set", "merge=mean", "--out", str(tmp_path / "child"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["class"], told["seeds"], told["branch_event"]) == ("arithmetic", 1, None)
    assert told["changes"] == {"merge": "mean"}
    assert told["child"]["merges"] == told["parent"]["merges"] == 60
    assert told["child"]["val_loss_last"] != told["parent"]["val_loss_last"]
    assert main(["replay", told["tape"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["machines_agree"] is True
    assert main(["inspect", told["tape"]]) == 0
    assert "merge mean" in capsys.readouterr().out


def test_a_page_says_class_branch_and_what_was_drawn(
    small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["what-if", str(small_run), "--without", "kill:1", "--seeds", "2", "--out", str(tmp_path / "children")]
    assert main(words) == 0
    out = capsys.readouterr().out
    page = " ".join(out.split())
    assert max(map(len, out.split("what happened:")[0].splitlines())) <= 80
    assert "schedule: virtual time from the branch on" in page
    assert "without kill of L1 at" in page
    assert "fault injected of L1" in page
    drawn = page.split("drawn durations that the tape does not have, from others of their kind: ")[1]
    counts = re.findall(r"[\d,]+ of [\d,]+ ([a-z ]+)", drawn.split("times count")[0])
    assert {"steps", "messages"} <= {one.strip() for one in counts} and len(set(counts)) == len(counts)
    assert page.count("times count from the start of rounds") == 1 and "time of rounds [s]" in page
    assert f"timing model's; to see how much, with nothing changed: workbench what-if {small_run} --resimulate" in page
    assert "least" in page
    assert f"workbench replay {tmp_path / 'children' / 'seed-0'}" in page


def test_arithmetic_from_a_round_on_says_where_it_leaves_the_parent(
    small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["what-if", str(small_run), "--set", "merge=mean", "--from-round", "20", "--out"]
    assert main([*words, str(tmp_path / "child")]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "class arithmetic: the schedule of the tape, everything computed anew from the branch on; exact" in page
    assert "changed merge = mean" in page and "from round 20 on" in page
    assert "branch where round 20 is about to be opened: event" in page and "drawn" not in page
    assert "timing model" not in page
    assert main([*words, str(tmp_path / "again"), "--json"]) == 0
    branch = json.loads(capsys.readouterr().out)["branch_event"]
    assert main(["compare", str(small_run), str(tmp_path / "child"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["first_divergence"]["event"] >= branch > 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--set", "model.width=32"], "what-if cannot change model.width"),
        (["--set", "seed=3"], "what-if cannot change seed"),
        (["--set", "learners=9"], "what-if cannot make learners = 9"),
        (["--without", "cut"], "no fault of the tape is called so"),
        (["--move", "1"], "--move 1: expected the number of a fault and seconds"),
        (["--move", "1=nan"], "--move 1=nan: expected the number of a fault and seconds"),
        (["--move", "1=-2"], "--move 1=-2: expected the number of a fault and seconds"),
        (["--move", "1=99999"], "seconds from the start of rounds to the end of the tape"),
        (["--move", "99=1"], "there is no fault 99"),
        (["--move", "1=1", "--move", "1=2"], "fault 1 is moved twice"),
        (["--without", "kill:7"], "no fault of the tape is called so"),
        (["--from-round", "99999", "--set", "quorum=1"], "the last round that the tape opens"),
        (["--from-round", "9", "--set", "quorum=1", "--resimulate"], "leave one of the two out"),
        (["--set", "grace"], "--set grace has no value"),
    ],
)
def test_what_cannot_be_asked_is_one_line_and_exit_code_2(
    words: list[str], told: str, small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["what-if", str(small_run), *words, "--out", str(tmp_path / "child")]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
    assert not (tmp_path / "child").exists()


def test_a_question_without_a_change_says_so_and_compares(
    small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["what-if", str(small_run), "--seeds", "2", "--out", str(tmp_path / "same")]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "changed nothing" in page
    assert "came out again, bit for bit" in page
    assert "so that 2 seeds give the same" in page
    assert main(["what-if", str(small_run), "--resimulate", "--out", str(tmp_path / "again"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    with_times = open_tape(small_run).wb
    assert told["parent"]["time_s"] == pytest.approx(compare(small_run, small_run).figures[0]["time_s"])
    assert with_times.at(0).time_s < 0 and repr(with_times.at(0)).startswith("event 0, before rounds began: ")
    assert told["calibration"]["merges"] == [60, 60]
    assert told["calibration"]["interval_error"] <= 0.1
    assert told["calibration"]["same_set"] >= 0.9


def test_moved() -> None:
    assert moved_of("3=2.5") == (3, 2.5)
    with pytest.raises(ConfigError, match="as in --move 1=2"):
        moved_of("x=2")


def test_a_full_disk_leaves_whole_answers_alone(
    small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "child"
    for words in (["--set", "merge=mean"], ["--without", "kill:1"], ["--resimulate"]):
        capsys.readouterr()
        with files_up_to(60_000):
            assert main(["what-if", str(small_run), *words, "--out", str(out)]) == 3
        (said,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("workbench: ")]
        assert f"no room for the answer in {out}: the disk is full; what was begun of the answer is removed" in said
        assert not out.exists()


def interrupted_in(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Ctrl-C come at the 100th write of the answer in a folder of that name."""
    append, counted = RunWriter.append, [0]

    def appending(self: RunWriter, *words: Any) -> None:
        append(self, *words)
        counted[0] += self.folder.path.name == name
        if counted[0] == 100 and self.folder.path.name == name:
            raise KeyboardInterrupt

    monkeypatch.setattr(RunWriter, "append", appending)


def test_ctrl_c_says_what_is_left(
    small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "child"
    words = ["what-if", str(small_run), "--resimulate", "--out", str(out)]
    interrupted_in("child", monkeypatch)
    assert main(words) == 130
    assert "interrupted; what was begun of the answer is removed\n" in capsys.readouterr().err
    assert not out.exists()
    interrupted_in("seed-1", monkeypatch)
    assert main([*words, "--seeds", "2"]) == 130
    assert f"whole are {out / 'seed-0'}, what else was begun is removed\n" in capsys.readouterr().err
    assert [each.name for each in out.iterdir()] == ["seed-0"]
    assert main([*words, "--seeds", "2"]) == 2
    said = capsys.readouterr().err
    assert f"already holds answers of an earlier question (seed-0 whole); delete them (rm -r {out}) or give a" in said


def test_a_folder_in_which_an_answer_was_killed_is_named(
    small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "child"
    words = ["what-if", str(small_run), "--resimulate", "--out", str(out)]
    assert main(words) == 0
    merges = cut_off(out)
    capsys.readouterr()
    assert main(words) == 2
    assert capsys.readouterr().err == (
        f"workbench: {out} already holds a run that was cut off after {merges} of 60 merges; delete it (rm -r {out}) "
        f"or give a new folder, for example --out {out}-2\n"
    )
    assert main([*words[:-1], str(small_run)]) == 2
    assert f"{small_run} already holds a run; give a new folder" in capsys.readouterr().err


def cut_off(run: Path) -> int:
    """Leave what kill -9 leaves of a run: half a journal, a tape that is open.  How many merges that are."""
    with (run / "journal").open("r+b") as journal:
        journal.truncate((run / "journal").stat().st_size // 2)
    shutil.rmtree(run / "tape")
    return int(open_tape(run)["merges"].sizes["merge"])


@pytest.mark.parametrize("asked", [["--set", "merge=mean"], ["--set", "quorum=1"], ["--without", "kill:1"]])
def test_a_run_that_goes_on_is_asked_what_it_has_so_far(
    asked: list[str], small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(small_run, tmp_path / "run"))
    merges = cut_off(run)
    with FileLock(run / "journal.lock", "the journal"):
        assert main(["what-if", str(run), *asked, "--out", str(tmp_path / "child")]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("workbench: ")]
    assert lines == [f"workbench: {run} still goes on: asked of its first {merges} merges"] and 0 < merges < 60
