"""Nothing hangs off the order of sets or of hashes: another process with another hash seed makes the same tape."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec

from tests.replay.runs import FAULTS, SECOND, config_of
from workbench.config import to_toml
from workbench.protocol.faults import FaultPlan
from workbench.protocol.records import Kind, Record
from workbench.simulate.training_run import train_virtual
from workbench.tape import open_tape

SCRIPT = """
import sys
from pathlib import Path
from tests.replay.runs import FAULTS
from workbench.config import from_toml
from workbench.protocol.faults import FaultPlan
from workbench.simulate.training_run import train_virtual
train_virtual(from_toml(Path(sys.argv[1]).read_text()), sys.argv[2], FaultPlan(FAULTS))
"""


def test_two_processes_with_different_hash_seeds_make_equal_tapes(text_path: Path, tmp_path: Path) -> None:
    config = config_of(text_path, seed=11, eval_every=8)
    (tmp_path / "config.toml").write_text(to_toml(config))
    here = train_virtual(config, tmp_path / "here", FaultPlan(FAULTS))
    hash_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "config.toml"), str(tmp_path / "there")],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        cwd=Path(__file__).parents[2],
        check=True,
        timeout=240,
    )
    there = [_without_host(record) for record in open_tape(tmp_path / "there").wb.records()]
    for event, record in enumerate(open_tape(here.path).wb.records()):
        assert there[event] == _without_host(record), event
    assert len(there) == event + 1
    assert there[-1].time_ns > 2 * SECOND
    inputs = [open_tape(tmp_path / name).wb.inputs() for name in ("here", "there")]
    assert [i.time_ns for i in inputs[0]] == [i.time_ns for i in inputs[1]]


def _without_host(record: Record) -> Record:
    """Without the process id, which no two processes share."""
    if record.kind != Kind.PROCESS_STARTED:
        return record
    return msgspec.structs.replace(record, detail={k: v for k, v in record.detail.items() if k != "pid"})
