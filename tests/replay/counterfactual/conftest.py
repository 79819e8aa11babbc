"""Parents that the tests of counterfactuals share: quiet, with a slow learner, with faults, with a kill."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import xarray as xr

import workbench as wb
from tests.replay.runs import FAULTS, SECOND, Live, config_of, live, tape_of
from workbench.config import VirtualConfig
from workbench.protocol.faults import Fault
from workbench.protocol.records import Record
from workbench.replay.counterfactual.outcome import WhatIf
from workbench.replay.machines import rerun_machines


class Told(NamedTuple):
    """A run and its tape."""

    run: Live
    path: Path
    tape: xr.DataTree


def told(text: Path, folder: Path, faults: Sequence[Fault] = (), changes: Any = (), **keys: Any) -> Told:
    """Train, and lay the tape."""
    run = live(config_of(text, **{"seed": 5, "eval_every": 6, **keys}), faults, changes)
    return Told(run, folder, tape_of(run, folder))


@pytest.fixture(scope="session")
def quiet(text_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """No faults."""
    return told(text_path, tmp_path_factory.mktemp("quiet") / "run", quorum=2, rounds=36)


@pytest.fixture(scope="session")
def one_slow(text_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The last learner takes a third longer; the grace window lets it take part."""
    virtual = VirtualConfig(slow=(1.0, 1.0, 1.3))
    return told(text_path, tmp_path_factory.mktemp("slow") / "run", rounds=60, virtual=virtual, eval_every=0)


@pytest.fixture(scope="session")
def faulty(text_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Faults of a process, a link and numbers, a syncer that dies, live changes."""
    changes = [(0.9, {"quorum": 1}), (1.1, {"rounds": 3})]
    return told(text_path, tmp_path_factory.mktemp("faulty") / "run", FAULTS, changes, quorum=2, rounds=36)


@pytest.fixture(scope="session")
def killed(text_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """One learner is killed in the middle and comes back much later."""
    fault = Fault("kill", int(1.5 * SECOND), learner=1, for_ns=2 * SECOND)
    return told(text_path, tmp_path_factory.mktemp("killed") / "run", [fault], quorum=2, rounds=36)


def check(found: WhatIf, parent: Told, replay: bool = True) -> list[Record]:
    """The child shares what is before its branch, and is a run like any other."""
    records = found.tape.wb.records()
    shared = found.shared_events
    assert records[:shared] == parent.run.records[:shared]
    assert records[shared:] != parent.run.records[shared:]
    marks = found.tape.wb.marks().values
    assert set(marks[:shared].tolist()) <= {0, 2}
    assert set(marks[shared:].tolist()) == {1}
    assert found.tape.attrs["parent"]["event"] == found.branch_event
    report = rerun_machines(found.tape)
    assert report.equal, report.first_difference
    assert not replay or wb.replay(found.path).verify().bit_exact
    assert found.tape.wb.summary()["merges"] == found.children[0]["merges"]
    return records
