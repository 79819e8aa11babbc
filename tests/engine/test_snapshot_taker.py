"""The syncer's hand in snapshots: one may begin with the news that the former lies on disk."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np

from tests.engine.real_runs import until
from workbench.algorithms.fragments import Fragmentation, TensorSpec
from workbench.algorithms.syncer_arithmetic import SyncerArithmetic
from workbench.engine.snapshot_taker import PREFIX, SnapshotTaker
from workbench.protocol.actions import TakeSnapshot, WriteSnapshot


def test_the_end_of_one_snapshot_leaves_the_next_alone(tmp_path: Path) -> None:
    fragmentation = Fragmentation((TensorSpec("weight", (4,), "float32", "vector"),), (0,), 1)
    arithmetic = SyncerArithmetic(fragmentation, [np.zeros(4, np.float32)])
    woken = threading.Event()
    taker = SnapshotTaker(arithmetic, None, tmp_path, woken.set)
    taker.take(TakeSnapshot(1, [0]))
    taker.write(WriteSnapshot(1, {}))
    orders: list[int] = []

    def ordered() -> bool:
        orders.extend(order["write_snapshot"] for order in taker.orders())
        return bool(orders)

    until(ordered, "the first is to be written")
    taker.take(TakeSnapshot(2, [0]))  # the machine begins it as soon as it hears that the first is written
    taker.drop(1)
    taker.write(WriteSnapshot(2, {}))
    orders.clear()
    until(ordered, "the second is to be written")
    assert orders == [2] and not taker.failed()
    assert not list(tmp_path.glob(f"{PREFIX}1-*")) and list(tmp_path.glob(f"{PREFIX}2-*"))
