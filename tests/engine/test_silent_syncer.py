"""A syncer that is stopped is said to be, while its learners train on."""

from __future__ import annotations

from pathlib import Path

from tests.engine.real_runs import GUARD_S, tiny, until
from workbench.engine.launch import launch
from workbench.views.states import SILENT_S, syncer_silence


def test_status_tells_for_how_long_the_syncer_has_said_nothing(tmp_path: Path) -> None:
    with launch(tiny(2), tmp_path / "run") as run:
        run.wait(rounds=3, timeout_s=GUARD_S)
        assert run.status()["syncer"]["state"] == "running"
        run.stall("syncer", for_s=4.0)
        until(lambda: run.status()["syncer"]["silent_s"] > SILENT_S, "the syncer is silent")
        said = run.status()
        assert said["syncer"]["state"] == "stopped" and syncer_silence(said).startswith("stopped, silent for ")
        merges = said["merges"]
        run.wait(rounds=merges + 3, timeout_s=GUARD_S)
        assert syncer_silence(run.status()) == ""
        run.stop()
