"""Random runs in virtual time with their tapes, and what the machines were on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import xarray as xr

from workbench.algorithms.schedule import offsets
from workbench.config import RunConfig, to_toml
from workbench.protocol.faults import FaultPlan
from workbench.protocol.learner_state import LearnerState
from workbench.protocol.records import Record
from workbench.protocol.syncer_state import SyncerState
from workbench.simulate import schedules
from workbench.simulate.arithmetic import Ledgered
from workbench.simulate.world import World
from workbench.tape import JournalWriter, Recorder, open_tape

LIMIT_NS = 120 * 10**9


class Look(NamedTuple):
    """What the machines were when so many records were in the journal.

    Attributes
    ----------
    records : int
    syncer : SyncerState or None
        None while there is no syncer.
    learners : dict of int to LearnerState
        Those of which every record was in the journal.
    """

    records: int
    syncer: SyncerState | None
    learners: dict[int, LearnerState]


class Looks:
    """An observer that looks at all machines every so many events."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.found: list[Look] = []

    def on_input(self, world: World, process: int, event: Any) -> None:
        """Nothing."""

    def on_action(self, world: World, process: int, action: Any) -> None:
        """Nothing."""

    def after_event(self, world: World) -> None:
        """Look."""
        if world.events % self.every == 0 or world.finished:
            self.look(world)

    def look(self, world: World) -> None:
        """Copy what the machines are, as a journal that is read again would hold it."""
        alive = world.syncer.alive and world.syncer.started
        state = world.syncer.machine.state
        whole = {
            m: msgspec.convert(msgspec.to_builtins(process.machine.state), LearnerState)
            for m, process in world.learners.items()
            if alive and process.alive and process.machine.state.has_state
            and process.machine.state.adopting is None
            and m in state.members and state.members[m].known_seq == process.machine.state.seq
        }  # fmt: skip
        syncer = _copied(state) if alive else None
        self.found.append(Look(len(world.records), syncer, whole))


def _copied(state: SyncerState) -> SyncerState:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=SyncerState)


class Taped(NamedTuple):
    """A random run: its configuration, records, looks and tape."""

    config: RunConfig
    records: list[Record]
    looks: list[Look]
    tape: xr.DataTree


def taped(seed: int, folder: Path, every: int = 25) -> Taped:
    """The run of a seed of the explorer, to its end or its time limit, laid onto a tape."""
    schedule = schedules.draw(seed, more=False, recovery=False)  # without states from peers, snapshots and resumes
    config = schedule.run_config()
    looks = Looks(every)
    world = World(
        config,
        offsets(config.fragments, config.period),
        Ledgered(config.fragments),
        FaultPlan(schedule.faults),
        observer=looks,
    )
    for change in schedule.changes:
        world.at(change.at_ns, world.ask, (dict(change.values), "test"))
    if schedule.release_every_ns:
        world.at(schedule.release_every_ns, schedules.release_again, (world, schedule.release_every_ns))
    world.run(until_ns=LIMIT_NS)
    looks.look(world)
    folder.mkdir(parents=True)
    with JournalWriter(folder / "journal", {"run_id": f"seed {seed}", "config": to_toml(config)}) as journal:
        journal.append(list(world.records))
    with Recorder(folder):
        pass
    return Taped(config, list(world.records), looks.found, open_tape(folder).load())
