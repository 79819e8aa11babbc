"""A failing schedule becomes a small one that fails alike, and one line runs it again."""

from __future__ import annotations

import shlex

import pytest

from tests.simulate.planting import planted
from workbench.cli.main import main
from workbench.protocol import restart
from workbench.simulate import explorer, schedules

LINE = "        member.last_step = max(member.last_step, record.step)\n"


def test_a_failure_shrinks_to_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    with planted(restart, LINE, "        pass\n"):
        report = explorer.explore(60)
        assert report.failures
        failure = report.failures[0]
        assert "own steps are not consecutive" in failure.message
        words = shlex.split(failure.command)
        small = schedules.parse(words[-1])
        assert len(small.faults) == 2, "a syncer restart and a learner that starts anew"
        kinds = {fault.kind for fault in small.faults}
        assert "kill_syncer" in kinds and kinds & {"kill", "exit"}
        assert main(words[1:]) == 1
        assert "own steps are not consecutive" in capsys.readouterr().out
    assert main(words[1:]) == 0
