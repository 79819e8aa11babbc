"""The syncer is killed around a merge, with real weights and outer state in its slots (PROTOCOL section 6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.simulate.worlds import MS, SECOND, config_of, finished, of_kind, world_of
from workbench.algorithms.digest import digest
from workbench.algorithms.fragment_slots import outer_digest
from workbench.config import DataConfig, InnerConfig, ModelConfig
from workbench.datasets import open_text
from workbench.protocol.faults import Fault
from workbench.protocol.records import Kind
from workbench.protocol.round_state import RoundState
from workbench.simulate.numbers import Numbers
from workbench.training import TrainingProgram, initial_weights

MODEL = ModelConfig(layers=1, width=16, heads=2, kv_heads=1, mlp=32, context=16)
INNER = InnerConfig(optimizer="sgd", rate=0.5, schedule="constant", warmup=0, decay=0.0, clip=0.0, batch=2)
SIZES: dict[str, Any] = {"learners": 2, "rounds": 16, "period": 4, "fragments": 4, "overlap": 2}


def outer_digest_of(numbers: Numbers, p: int) -> int:
    """Digest of the outer state in the current slot of a fragment."""
    found = numbers.syncer.outer_state(p)
    return outer_digest(found.rule, found.steps, [digest(vector) for vector in found.vectors])


@pytest.mark.parametrize("state", [RoundState.MERGING, RoundState.COMMITTING])
def test_the_slots_hold_after_a_kill_what_the_journal_says(state: RoundState, tmp_path: Path) -> None:
    path = tmp_path / "bytes.bin"
    path.write_bytes(np.random.default_rng(0).choice([32, 97, 101, 116], 20_000).astype(np.uint8).tobytes())
    config = config_of(model=MODEL, inner=INNER, data=DataConfig(source="path", path=str(path)), **SIZES)
    numbers = Numbers(config, TrainingProgram(config, open_text(config.data)))
    kill = Fault("kill_syncer", SECOND, for_ns=200 * MS, round_state=state)
    world = world_of(config, [kill], arithmetic=numbers)
    world.run(until=lambda w: w.syncer.life == 2)
    journal = {p: digest(part) for p, part in enumerate(initial_weights(config))}
    journal |= {r.fragment: r.digest for r in of_kind(world, Kind.MERGED)}
    assert {p: digest(part) for p, part in enumerate(numbers.current)} == journal
    merged = {r.fragment: r.detail["outer_digest"] for r in of_kind(world, Kind.MERGED)}
    assert {p: outer_digest_of(numbers, p) for p in merged} == merged
    finished(world)
    last = {r.fragment: r for r in of_kind(world, Kind.MERGED)}
    assert {p: digest(part) for p, part in enumerate(numbers.current)} == {p: r.digest for p, r in last.items()}
    assert [r.version for r in last.values()] == [4] * 4
