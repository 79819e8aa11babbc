from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.algorithms.merging_help import NESTEROV, advance, syncer, vectors
from workbench.algorithms.digest import digest
from workbench.algorithms.fragment_slots import FragmentSlots, allocate_slots
from workbench.algorithms.fragments import Fragmentation, TensorSpec, fragment
from workbench.algorithms.syncer_arithmetic import SyncerArithmetic


def shared(size: int, slots: int = 2) -> tuple[Fragmentation, list[FragmentSlots]]:
    """A fragmentation of one tensor and storage that outlives the arithmetic."""
    return fragment([TensorSpec("t", (size,), "float32", "matrix", 0)], 1, "tensor"), [allocate_slots(size, slots, 1)]


def test_restart_picks_the_version_that_the_journal_names() -> None:
    fragmentation, storage = shared(30)
    first = SyncerArithmetic(fragmentation, [np.ones(30, np.float32)], storage)
    infos = [advance(first, 0, vectors(seed, 2, 30)) for seed in range(3)]
    uncommitted = first.merge(0, 4, [0, 1], vectors(3, 2, 30), [1.0, 1.0], [3, 3], NESTEROV)
    for journal, info, redo in ((3, infos[2], True), (4, uncommitted, False)):
        copies = [type(s)(*(x.copy() for x in s)) for s in storage]
        again = SyncerArithmetic(fragmentation, [np.zeros(30, np.float32)], copies)
        with pytest.raises(RuntimeError, match="call restore or install first"):
            again.theta(0)
        assert not again.restore(0, 1)
        assert not again.restore(0, journal, expected_digest=1)
        assert again.restore(0, journal, info.digest)
        assert again.version(0) == journal and digest(again.theta(0)) == info.digest
        if redo:
            assert again.merge(0, 4, [0, 1], vectors(3, 2, 30), [1.0, 1.0], [3, 3], NESTEROV) == uncommitted


def test_a_merge_cut_off_half_way_leaves_the_current_slot_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    fragmentation, storage = shared(30)
    arithmetic = SyncerArithmetic(fragmentation, [np.ones(30, np.float32)], storage)
    info = advance(arithmetic, 0, vectors(0, 2, 30))

    def cut(job: Any, scratch: Any) -> None:
        job.theta_out[:10] = 99
        job.state_out[:, :10] = 99
        raise KeyboardInterrupt

    monkeypatch.setattr("workbench.algorithms.syncer_arithmetic.merge_fragment", cut)
    with pytest.raises(KeyboardInterrupt):
        advance(arithmetic, 0, vectors(1, 2, 30))
    again = SyncerArithmetic(fragmentation, [np.zeros(30, np.float32)], storage)
    assert not again.restore(0, 2)
    assert again.restore(0, 1, info.digest)


def test_snapshot_and_install_give_the_same_next_merge() -> None:
    arithmetic = syncer([np.ones(30)])
    for seed in range(3):
        advance(arithmetic, 0, vectors(seed, 2, 30))
    other = syncer([np.zeros(30)])
    other.install(0, 3, arithmetic.theta(0), arithmetic.outer_state(0))
    assert other.version(0) == 3
    assert advance(other, 0, vectors(4, 2, 30)) == advance(arithmetic, 0, vectors(4, 2, 30))


def test_slots_of_another_size_are_refused() -> None:
    fragmentation, _ = shared(30)
    with pytest.raises(ValueError, match=r"expected \(2, 30\)"):
        SyncerArithmetic(fragmentation, [np.zeros(30, np.float32)], [allocate_slots(31, 2, 1)])


def test_storage_may_be_a_mapped_file(tmp_path: Path) -> None:
    fragmentation, storage = shared(30)
    mapped = [
        type(storage[0])(
            *(np.memmap(tmp_path / f"{i}", x.dtype, "w+", shape=x.shape) for i, x in enumerate(storage[0]))
        )
    ]
    inside, outside = (SyncerArithmetic(fragmentation, [np.ones(30, np.float32)], s) for s in (mapped, storage))
    assert advance(inside, 0, vectors(0, 2, 30)) == advance(outside, 0, vectors(0, 2, 30))
    assert np.array_equal(inside.outer_state(0).vectors, outside.outer_state(0).vectors)
