"""A tape of as many events as one likes: a run in virtual time, without arithmetic, that is struck now and then."""

from __future__ import annotations

from pathlib import Path

from tests.analysis.runs import CONFIG, SECOND
from workbench.algorithms.schedule import offsets
from workbench.config import to_toml
from workbench.protocol.faults import Fault, FaultPlan
from workbench.simulate.arithmetic import Ledgered
from workbench.simulate.world import World
from workbench.tape import JournalWriter, Recorder

KINDS = ("kill", "stall", "slow", "nan", "cut")
STRUCK_EVERY_S, STRUCK_UNTIL_S = 20, 10_000
PART_S = 200


def write_long(folder: Path, events: int) -> Path:
    """Lay a tape of at least so many events."""
    config = CONFIG.set(rounds=10**6)
    folder.mkdir()
    (folder / "config.toml").write_text(to_toml(config), encoding="utf-8")
    strikes = [
        Fault(KINDS[n % len(KINDS)], at * SECOND, learner=n % config.learners, for_ns=2 * SECOND, factor=2.0)
        for n, at in enumerate(range(5, STRUCK_UNTIL_S, STRUCK_EVERY_S))
    ]
    world = World(
        config, offsets(config.fragments, config.period), Ledgered(config.fragments), FaultPlan(tuple(strikes))
    )
    laid, until_s = 0, 0
    with JournalWriter(
        folder / "journal", {"run_id": "long", "config": to_toml(config), "clock": "virtual"}
    ) as journal:
        while laid < events:
            until_s += PART_S
            world.run(until_ns=until_s * SECOND)
            assert len(world.records) > laid, world.failed
            journal.append(world.records[laid:])
            laid = len(world.records)
    with Recorder(folder) as recorder:
        recorder.drain()
    return folder
