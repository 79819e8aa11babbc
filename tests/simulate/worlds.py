"""Worlds for the tests: small runs in virtual time, without numbers unless they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.algorithms.schedule import offsets
from workbench.config import RunConfig, VirtualConfig
from workbench.protocol.faults import Fault, FaultPlan
from workbench.protocol.records import Kind, Record
from workbench.simulate.arithmetic import Arithmetic, Ledgered
from workbench.simulate.world import World

SECOND = 10**9
MS = 10**6


def config_of(virtual: dict[str, Any] | None = None, **keys: Any) -> RunConfig:
    """A run without evaluations, with these numbers of virtual time."""
    return RunConfig(eval_every=0, virtual=VirtualConfig(**(virtual or {})), **keys)


def world_of(config: RunConfig, faults: Sequence[Fault] = (), arithmetic: Arithmetic | None = None) -> World:
    """A world before its first event."""
    due = offsets(config.fragments, config.period)
    return World(config, due, arithmetic or Ledgered(config.fragments), FaultPlan(tuple(faults)))


def finished(world: World, limit_s: float = 2000.0) -> World:
    """The same world after its last merge."""
    world.run(until_ns=int(limit_s * SECOND))
    assert world.finished == "rounds", (world.now / SECOND, world.finished, world.failed)
    return world


def of_kind(world: World, *kinds: Kind) -> list[Record]:
    """Records of these kinds, in journal order."""
    return [record for record in world.records if record.kind in kinds]


def contributors(world: World) -> list[list[int]]:
    """Who is in each merge."""
    return [record.detail["learners"] for record in of_kind(world, Kind.MERGED)]
