"""States of learners on the wire: by file on one machine, in pieces across machines, never before what waits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.engine.wires import LARGE, LEARNER, SIZES, TRANSPORTS, Pair, fragment, pair, until, update, values
from workbench.algorithms.digest import digest
from workbench.engine.blocks import Descriptor
from workbench.engine.checks import check_learner_message
from workbench.engine.frames import PIECE_BYTES, FrameError, Peer
from workbench.engine.state_blocks import StateBlocks, state_view
from workbench.protocol.messages import BULK, Fragment, Heartbeat, PeerState, StateCopy, Update

NBYTES = 9 * PIECE_BYTES + 12345


def state_of(seed: int, nbytes: int = NBYTES) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, nbytes, np.uint8)


def copy_of(data: np.ndarray, number: int = 1) -> StateCopy:
    base = [0] * len(SIZES)
    return StateCopy(LEARNER, 1, number, False, 3, 4, base, digest(data), data.nbytes, 5, (1, 2), [])


def passed_on(copy: StateCopy) -> PeerState:
    return PeerState(1, copy.number, 6, copy.copied, copy.digest, copy.nbytes, 5, 2, 7, (1, 2), copy.handle)


def send_up(both: Pair, number: int, data: np.ndarray) -> None:
    assert both.learner.send(number, BULK, copy_of(data), both.learner.stage(data))


def copies(both: Pair) -> list[StateCopy]:
    return [message for _, message in both.up if isinstance(message, StateCopy)]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_state_goes_up_and_on_to_a_learner_to_the_last_byte(transport: str) -> None:
    data = state_of(1)
    with pair(transport) as both:
        number = both.connect()
        send_up(both, number, data)
        until(lambda: both.turn().up)
        until(lambda: copies(both.turn()))
        (came,) = copies(both)
        np.testing.assert_array_equal(both.syncer.payload(came.handle), data)
        assert (both.syncer.state_file(came.handle) is not None) == (transport == "mapped")
        assert both.syncer.send(number, BULK, passed_on(came))
        until(lambda: both.turn().down)
        ((_, state),) = both.down
        np.testing.assert_array_equal(both.learner.payload(state.handle), data)
        both.learner.release(state.handle)
        both.syncer.release(came.handle)
        assert not both.syncer.refused and not both.learner.refused


def test_a_file_is_gone_when_nobody_needs_it() -> None:
    with pair("mapped") as both:
        number = both.connect()
        send_up(both, number, state_of(1))
        until(lambda: both.turn().up)
        (came,) = copies(both)
        found = both.syncer.state_file(came.handle)
        assert found is not None and (both.folder.path / found.file).exists()
        both.syncer.release(came.handle)
        until(lambda: both.turn() and not (both.folder.path / found.file).exists())


def test_a_state_survives_its_connection_and_leaves_no_file() -> None:
    data = state_of(2)
    with pair("mapped") as both:
        number = both.connect()
        send_up(both, number, data)
        until(lambda: both.turn().up)
        (came,) = copies(both)
        both.syncer.disconnect(number)
        np.testing.assert_array_equal(both.syncer.payload(came.handle), data)
        assert not list(both.folder.path.glob("*.s*"))
        both.syncer.release(came.handle)


def test_what_waits_goes_before_the_pieces_of_a_state() -> None:
    data = state_of(3, 64 * PIECE_BYTES)
    with pair("tcp") as both:
        number = both.connect()
        send_up(both, number, data)
        for k in range(3):
            assert both.learner.send(number, BULK, fragment(LARGE, k), values(LARGE, k))
            assert both.syncer.send(number, BULK, update(LARGE, k + 1), values(LARGE, k))
        until(lambda: copies(both.turn()) and len(both.up) == 5)
        kinds = [type(message) for _, message in both.up]
        assert kinds == [Heartbeat, Fragment, Fragment, Fragment, StateCopy], "its records go ahead of a state"
        for k, (_, message) in enumerate(both.up[1:4]):
            np.testing.assert_array_equal(both.syncer.payload(message.handle), values(LARGE, k))
        np.testing.assert_array_equal(both.syncer.payload(both.up[4][1].handle), data)
        both.down.clear()
        assert both.syncer.send(number, BULK, passed_on(both.up[4][1]))
        assert both.syncer.send(number, BULK, update(0, 9), values(0))
        until(lambda: len(both.turn().down) >= 2)
        assert [type(message) for _, message in both.down[-2:]] == [Update, PeerState]


def test_states_follow_one_another() -> None:
    with pair("tcp") as both:
        number = both.connect()
        send_up(both, number, state_of(4))
        send_up(both, number, state_of(5))
        until(lambda: len(copies(both.turn())) == 2)
        for seed, message in zip((4, 5), copies(both), strict=True):
            np.testing.assert_array_equal(both.syncer.payload(message.handle), state_of(seed))
            both.syncer.release(message.handle)
        both.up.clear()
        send_up(both, number, state_of(6))
        until(lambda: copies(both.turn()))
        np.testing.assert_array_equal(both.syncer.payload(copies(both)[0].handle), state_of(6))


def test_a_state_of_absurd_size_is_refused_before_anything_is_allocated() -> None:
    data = state_of(1)
    message = copy_of(data)
    message.nbytes = 1 << 50
    with pytest.raises(FrameError, match="size"):
        check_learner_message(message, Peer(LEARNER, 7), SIZES)


@pytest.mark.parametrize("name", ["../secret", "l-1.s", "l-1.sx", "u-1.s1", "l-1.b", "l-1.s1/../../x"])
def test_no_other_file_is_read_for_a_state(tmp_path: Path, name: str) -> None:
    with pytest.raises(FrameError, match="reference"):
        state_view(tmp_path, Descriptor(name, 0, 1, 100))


def test_a_state_of_another_connection_is_none_of_this_one(tmp_path: Path) -> None:
    blocks = StateBlocks(tmp_path / "l-1")
    laid = blocks.put(state_of(1, 100))
    assert laid is not None
    np.testing.assert_array_equal(state_view(tmp_path, laid, "l-1"), state_of(1, 100))
    with pytest.raises(FrameError, match="reference"):
        state_view(tmp_path, laid, "l-2")
    blocks.close()
    with pytest.raises(FrameError, match="late"):
        state_view(tmp_path, laid, "l-1")
    assert blocks.put(state_of(1, 100)) is None
