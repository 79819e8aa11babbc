"""The small world's driver does what the virtual-time driver does: same inputs in the same order, same journal."""

from __future__ import annotations

import dataclasses
from typing import Any

from workbench.algorithms.schedule import offsets
from workbench.config import VirtualConfig
from workbench.protocol import actions as act
from workbench.protocol import events as ev
from workbench.protocol.acting import TO_LEARNER, TO_SYNCER, Acting
from workbench.protocol.faults import Fault
from workbench.protocol.messages import BULK, CONTROL, Fragment, Refused, Update
from workbench.protocol.records import SUPERVISOR, SYNCER, Kind, Record, learner_of
from workbench.simulate import lives
from workbench.simulate.arithmetic import Ledgered
from workbench.simulate.durations import SECOND
from workbench.simulate.small.node import LEARNERS, Move, Small
from workbench.simulate.small.paths import move_text
from workbench.simulate.small.world import SmallWorld
from workbench.simulate.world import World

SMALL = Small(quorum=2)
KILLED_AT, BACK_AT, END = 0.37, 0.45, 0.98
"""In seconds; before 1 s no deadline of a machine comes, so that order alone decides."""


class Listener:
    """Writes down the inputs of all machines as moves of the small world."""

    def __init__(self) -> None:
        self.moves: list[Move] = []
        self.begun: set[tuple[int, int]] = set()

    def on_input(self, world: World, process: int, event: Any) -> None:
        self.moves += [move for move in [self._move(world, process, event)] if move is not None]

    def on_action(self, world: World, process: int, action: act.Action) -> None:
        if isinstance(action, act.Connect):
            learner = learner_of(process)
            life = (learner, world.learners[learner].number)
            if life not in self.begun:
                self.begun.add(life)
                self.moves.append(("start", learner))

    def after_event(self, world: World) -> None:
        pass

    def _move(self, world: World, process: int, event: Any) -> Move | None:
        match event:
            case ev.Received(connection=number, message=message):
                channel = BULK if isinstance(message, Fragment | Refused | Update) else CONTROL
                direction = TO_SYNCER if process == SYNCER else TO_LEARNER
                return "deliver", small_number(world, number) * 4 + direction * 2 + channel
            case ev.Connected(connection=number):
                return "connected", small_number(world, number)
            case ev.Disconnected(connection=number):
                return "closed_up", small_number(world, number)
            case ev.RecordsCame(records=records):
                return ("exited", 1) if any(r.kind == Kind.PROCESS_ENDED for r in records) else None
            case ev.StepEnded():
                return "step", learner_of(process)
            case ev.MergeDone():
                return "merge", 0
            case ev.CommitDone():
                return "commit", 0
        assert isinstance(event, ev.Handed | ev.Captured | ev.Adopted), event
        return None


def small_number(world: World, number: int) -> int:
    """Connection k of learner m has the number m + M k in the small world."""
    learner = world.network.connections[number].learner
    before = sum(c.learner == learner for n, c in world.network.connections.items() if n < number)
    return learner + LEARNERS * before


def said(record: Record) -> tuple[Any, ...]:
    """A record without times, clocks and numbers that the small world does not keep."""
    places = (record.peer, record.fragment, record.round, record.version, record.base_version)
    return Kind(record.kind).name, record.process, *places, record.step, record.global_step, record.steps, record.reason


def kill(world: World, listener: Listener) -> None:
    listener.moves.append(("kill", 1))
    lives.kill_learner(world, 1)


def in_virtual_time(listener: Listener, seed: int) -> list[Record]:
    virtual = VirtualConfig(step_s=0.06, jitter=0.3, delay_s=0.003, start_s=0.02)
    config = dataclasses.replace(SMALL.config(), virtual=virtual, seed=seed)
    world = World(config, offsets(2, 2), Ledgered(2), observer=listener)
    # no two inputs at one instant: there the order of the event heap would decide
    world.network.acting.begin(Acting(1, Fault("delay", 0, 1, delay_ns=900_000)))
    world.at(int(KILLED_AT * SECOND), kill, (world, listener))
    world.at(int(BACK_AT * SECOND), lives.start_learner, (world, 1, 2))
    world.run(until_ns=int(END * SECOND))
    return world.records


def in_small_world(moves: list[Move]) -> list[Record]:
    world = SmallWorld(SMALL)
    records: list[Record] = []
    append = world.machines.append

    def appended(journal: int, batch: int) -> int:
        records.extend(world.machines.tables.batches.get(batch))
        return append(journal, batch)

    world.machines.append = appended  # type: ignore[method-assign]
    node = world.first()
    for move in moves:
        assert move in world.moves(node, bounded=False), (move_text(move), world.story(node))
        node = world.after(node, move)
    return records


def test_same_inputs_give_the_same_journal() -> None:
    for seed in range(6):
        listener = Listener()
        wanted = [said(r) for r in in_virtual_time(listener, seed) if r.process != SUPERVISOR]
        found = [said(r) for r in in_small_world(listener.moves) if r.process != SUPERVISOR]
        assert found == wanted
        kinds = {entry[0] for entry in wanted}
        assert {"MERGED", "FRAGMENT_CAPTURED", "LEARNER_LOST", "QUORUM_LOST", "QUORUM_REGAINED"} <= kinds
        assert ("kill", 1) in listener.moves and len(wanted) > 150
