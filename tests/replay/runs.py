"""Small runs with real gradients in virtual time, kept in memory, with faults and live changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import xarray as xr

from workbench.algorithms.schedule import offsets
from workbench.config import DataConfig, InnerConfig, ModelConfig, RunConfig, to_toml
from workbench.datasets import open_text
from workbench.protocol.events import SnapshotAsked
from workbench.protocol.faults import Fault, FaultPlan
from workbench.protocol.records import Record
from workbench.replay.exact import Replay
from workbench.replay.program import read_programs
from workbench.replay.report import ReplayReport
from workbench.simulate.numbers import Numbers
from workbench.simulate.outages import lose_everything, resume_run
from workbench.simulate.schedules import release_again
from workbench.simulate.world import World
from workbench.tape import Input, JournalWriter, Recorder, open_tape
from workbench.training.program import TrainingProgram
from workbench.training.run_header import run_header

SECOND = 10**9
SMALL = ModelConfig(layers=1, width=16, heads=2, kv_heads=1, mlp=32, context=16)

FAULTS = (
    Fault("nan", int(0.8 * SECOND), learner=0, count=2),
    Fault("flip", int(0.9 * SECOND), learner=2, persistent=True),
    Fault("kill", SECOND, learner=1, for_ns=SECOND // 2),
    Fault("slow", SECOND, learner=0, for_ns=SECOND, factor=2.0),
    Fault("stall", int(1.3 * SECOND), learner=2, for_ns=SECOND // 2),
    Fault("kill_syncer", int(1.7 * SECOND), for_ns=SECOND // 3),
    Fault("cut", int(2.2 * SECOND), learner=0, for_ns=SECOND // 2),
    Fault("stall_syncer", int(2.5 * SECOND), for_ns=SECOND),
    Fault("random", int(2.6 * SECOND), learner=1, count=2),
    Fault("shape", int(2.7 * SECOND), learner=0),
    Fault("corrupt", int(2.7 * SECOND), learner=2),
    Fault("scale", int(2.8 * SECOND), learner=2, factor=3.0, persistent=True),
)
"""One of each kind that concerns a process, a link or numbers, in the first three seconds."""

Changes = Sequence[tuple[float, dict[str, Any]]]
"""(time [s], live settings)."""


Losses = Sequence[tuple[float, float, bool]]
"""(time [s], time until the run is resumed [s], whether it goes back to its newest snapshot)."""


class Live(NamedTuple):
    """A run that went to its end."""

    config: RunConfig
    program: TrainingProgram
    plan: FaultPlan
    log: list[tuple[list[Input], list[Record]]]
    digest: int

    @property
    def records(self) -> list[Record]:
        """In journal order."""
        return [record for _, records in self.log for record in records]

    @property
    def inputs(self) -> list[Input]:
        """Of the syncer's machine."""
        return [item for inputs, _ in self.log for item in inputs]


def config_of(text: Path, **keys: Any) -> RunConfig:
    """A small configuration on the given text."""
    base: dict[str, Any] = {
        "learners": 3,
        "rounds": 24,
        "period": 4,
        "fragments": 4,
        "eval_every": 0,
        "eval_batches": 2,
        "model": SMALL,
        "data": DataConfig(source="path", path=str(text)),
        "inner": InnerConfig(batch=2, warmup=5, rate=1e-2),
    }
    return RunConfig(**{**base, **keys})


def live(
    config: RunConfig,
    faults: Sequence[Fault] = (),
    changes: Changes = (),
    snapshots: Path | None = None,
    wanted: Sequence[float] = (),
    losses: Losses = (),
    release_every_ns: int = 0,
) -> Live:
    """Train to the end; the journal stays in memory, as it would be read from a file.

    Snapshots lie in a folder, and are ``wanted`` at times [s]; at a loss every process is killed, and after another
    time [s] the run is resumed, back at its newest snapshot or as it was.  Who is quarantined is released so often.
    """
    program = TrainingProgram(config, open_text(config.data))
    numbers, plan = Numbers(config, program, snapshots), FaultPlan(tuple(faults))
    log: list[tuple[list[Input], list[Record]]] = []

    def journal(inputs: list[tuple[int, int, int, bytes]], records: list[Record]) -> None:
        log.append(([Input(*item) for item in inputs], _decoded(_encoded(records))))

    due = offsets(config.fragments, config.period)
    world = World(config, due, numbers, plan, journal=journal, sizes=program.fragmentation.sizes)
    for at_s, values in changes:
        world.at(int(at_s * SECOND), world.ask, (dict(values), "test"))
    for at_s in wanted:
        world.at(int(at_s * SECOND), world.give, (world.syncer, SnapshotAsked("test")))
    for at_s, down_s, back in losses:
        world.run(until_ns=int(at_s * SECOND))
        lose_everything(world)
        world.now += int(down_s * SECOND)
        resume_run(world, -1 if back else None)
    if release_every_ns:
        world.at(release_every_ns, release_again, (world, release_every_ns))
    world.run(until_ns=600 * SECOND)
    assert world.finished == "rounds", (world.finished, world.failed, world.now)
    return Live(config, program, plan, log, numbers.digest())


_encoded = msgspec.msgpack.Encoder().encode
_decoded = msgspec.msgpack.Decoder(list[Record]).decode


def replayed(run: Live, order: str | int = "journal", records: list[Record] | None = None) -> ReplayReport:
    """Replay a run from its records."""
    done = Replay(run.config, run.program, read_programs(run.records if records is None else records))
    done.run(order)
    return done.report()


def tape_of(run: Live, folder: Path) -> xr.DataTree:
    """The tape of a run, from a journal in ``folder``."""
    folder.mkdir()
    (folder / "config.toml").write_text(to_toml(run.config), encoding="utf-8")
    faults = {"chaos": run.plan.chaos, "scenario": run.plan.scenario}
    header = run_header(run.config, run.program.text, run.program, "virtual", faults)
    with JournalWriter(folder / "journal", header) as journal:
        for inputs, records in run.log:
            journal.append([*inputs, *records])
    with Recorder(folder):
        pass
    return open_tape(folder)
