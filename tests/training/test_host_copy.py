"""Host copy: what a reader sees while the writer goes on."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from workbench.training.host_copy import HostCopy, HostViews


def publish(host: HostCopy, value: float, step: int, *, supersede: bool = False) -> None:
    host.begin(0)[:] = value
    host.commit(0, step, supersede=supersede)


def test_reader_sees_only_what_was_committed() -> None:
    host = HostCopy([4])
    publish(host, 1.0, step=1)
    host.begin(0)[:] = 2.0
    assert (host.read(0, 1) == 1.0).all()
    host.commit(0, 2)
    assert (host.read(0, 2) == 2.0).all()
    assert host.generation(0) == 2


def test_the_copy_before_the_last_serves_a_reader_with_older_counters() -> None:
    host = HostCopy([4])
    publish(host, 1.0, step=1)
    publish(host, 2.0, step=2)
    assert (host.read(0, 1) == 1.0).all()
    publish(host, 3.0, step=3)
    with pytest.raises(LookupError, match="published as of own step 3, not 1"):
        host.read(0, 1)


def test_a_copy_that_rests_on_a_replaced_base_is_gone() -> None:
    host = HostCopy([4])
    publish(host, 1.0, step=6)
    publish(host, 2.0, step=7)
    publish(host, 9.0, step=7, supersede=True)
    assert (host.read(0, 7) == 9.0).all()
    publish(host, 3.0, step=8)
    assert (host.read(0, 8) == 3.0).all()


def test_what_was_read_does_not_change_afterwards() -> None:
    host = HostCopy([4])
    publish(host, 1.0, step=1)
    values = host.read(0, 1)
    for step in (2, 3):
        publish(host, step, step=step)
    assert (values == 1.0).all()


def test_reader_beside_a_busy_writer_never_sees_a_mixture() -> None:
    host = HostCopy([20_000])
    publish(host, 0.0, step=0)
    done = threading.Event()

    def write() -> None:
        for step in range(1, 2000):
            buffer = host.begin(0)
            buffer[:10_000] = step
            buffer[10_000:] = step
            host.commit(0, step)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    reads = 0
    while not done.is_set():
        step = host.generation(0) - 1
        try:
            values = host.read(0, step)
        except LookupError:  # the writer was two steps ahead by then
            continue
        assert (values == step).all()
        reads += 1
    writer.join()
    assert reads > 0


def tensors(value: float) -> list[np.ndarray]:
    return [np.full((2, 3), value, np.float32), np.full(2, value, np.float32)]


def test_views_are_read_end_to_end_as_of_the_last_two_steps() -> None:
    host = HostViews(2)
    for step in (1, 2, 3):
        host.publish(1, tensors(step), step)
    assert np.array_equal(host.read(1, 3), np.full(8, 3.0, np.float32))
    assert np.array_equal(host.read(1, 2), np.full(8, 2.0, np.float32))
    for fragment, step, held in ((1, 1, 3), (0, 3, -1)):
        with pytest.raises(LookupError, match=f"published as of own step {held}, not {step}"):
            host.read(fragment, step)


def test_views_that_rest_on_a_replaced_base_are_gone() -> None:
    host = HostViews(1)
    host.publish(0, tensors(1.0), 6)
    host.publish(0, tensors(2.0), 7)
    host.publish(0, tensors(9.0), 7, supersede=True)
    assert (host.read(0, 7) == 9.0).all()
    with pytest.raises(LookupError, match="published as of own step 7, not 6"):
        host.read(0, 6)


def test_what_was_read_from_views_is_a_copy() -> None:
    host, held = HostViews(1), tensors(1.0)
    host.publish(0, held, 1)
    values = host.read(0, 1)
    values[:] = np.nan
    assert (host.read(0, 1) == 1.0).all()
