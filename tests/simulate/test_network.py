from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.simulate.worlds import MS, SECOND
from workbench.config import VirtualConfig
from workbench.protocol.acting import TO_LEARNER, TO_SYNCER, Acting
from workbench.protocol.faults import Fault
from workbench.protocol.messages import BULK, CONTROL
from workbench.simulate.durations import StepTimes
from workbench.simulate.network import Network


def network_of(loss: float = 0.0, bandwidth: float = 0.0, seed: int = 0, **virtual: Any) -> Network:
    return Network(StepTimes(VirtualConfig(**virtual), seed), loss, bandwidth, seed)


def test_a_message_arrives_after_the_delay() -> None:
    network = network_of(delay_s=0.02)
    number = network.open(0, 1).number
    assert network.delivery_at(5 * SECOND, number, TO_SYNCER, CONTROL, 256) == 5 * SECOND + 20 * MS


def test_messages_keep_their_order_whatever_the_jitter() -> None:
    network = network_of(delay_s=0.01, delay_jitter=2.0)
    number = network.open(0, 1).number
    sent = [i * MS for i in range(500)]
    came = [network.delivery_at(at, number, TO_SYNCER, CONTROL, 256) for at in sent]
    assert all(a <= b for a, b in pairwise(came))
    assert min(b - a for a, b in zip(sent, came, strict=True)) >= MS  # a tenth of the mean at least
    assert len({b - a for a, b in zip(sent, came, strict=True)}) > 100


def test_a_channel_carries_so_many_bytes_per_second() -> None:
    network = network_of(bandwidth=1e6, delay_s=0.001)
    number = network.open(0, 1).number
    came = [network.delivery_at(0, number, TO_LEARNER, BULK, 250_000) for _ in range(4)]
    assert came == [251 * MS, 501 * MS, 751 * MS, 1001 * MS]
    assert network.delivery_at(2 * SECOND, number, TO_LEARNER, BULK, 250_000) == 2 * SECOND + 251 * MS


def test_heartbeats_do_not_queue_behind_fragments_nor_one_direction_behind_the_other() -> None:
    network = network_of(bandwidth=1e6, delay_s=0.001)
    first, second = (network.open(m, 1).number for m in (0, 1))
    network.delivery_at(0, first, TO_SYNCER, BULK, 4_000_000)
    quick = MS + int(256 / 1e6 * SECOND)
    assert network.delivery_at(0, first, TO_SYNCER, CONTROL, 256) == quick
    assert network.delivery_at(0, first, TO_LEARNER, BULK, 256) == quick
    assert network.delivery_at(0, second, TO_SYNCER, BULK, 256) == quick


def test_losses_come_at_the_given_rate_and_depend_on_the_seed_alone() -> None:
    def lost(seed: int) -> list[bool]:
        network = network_of(loss=0.2, seed=seed)
        number = network.open(0, 1).number
        return [network.delivery_at(i, number, TO_SYNCER, CONTROL, 256) < 0 for i in range(5000)]

    assert lost(1) == lost(1) != lost(2)
    assert np.mean(lost(1)) == pytest.approx(0.2, abs=0.02)


def test_a_cut_loses_one_direction_and_cuts_may_overlap() -> None:
    network = network_of()
    number = network.open(3, 1).number

    def arrives(direction: int) -> bool:
        return network.delivery_at(0, number, direction, CONTROL, 256) >= 0

    for number_of_cut in (1, 2):
        network.acting.begin(Acting(number_of_cut, Fault("cut_up", 0, 3)))
    assert not arrives(TO_SYNCER) and arrives(TO_LEARNER)
    assert network.acting.end(3, 1) is not None
    assert network.acting.is_cut(3, TO_SYNCER) and not arrives(TO_SYNCER)
    assert network.acting.end(3, 2) is not None
    assert arrives(TO_SYNCER)
    assert network.acting.end(3, 2) is None, "one heal too many changes nothing"
    network.acting.begin(Acting(3, Fault("cut", 0, 3)))
    assert not arrives(TO_SYNCER) and not arrives(TO_LEARNER)


def test_the_next_messages_are_lost_and_those_after_them_are_not() -> None:
    network = network_of()
    number = network.open(0, 1).number
    network.acting.begin(Acting(1, Fault("lose_down", 0, 0, count=2)))
    came = [network.delivery_at(0, number, TO_LEARNER, CONTROL, 256) >= 0 for _ in range(4)]
    assert came == [False, False, True, True]
    assert network.delivery_at(0, number, TO_SYNCER, CONTROL, 256) >= 0


def test_a_delay_acts_on_one_learner_in_both_directions() -> None:
    network = network_of(delay_s=0.01)
    slow, other = (network.open(m, 1).number for m in (0, 1))
    network.acting.begin(Acting(1, Fault("delay", 0, 0, delay_ns=40 * MS)))
    for direction in (TO_SYNCER, TO_LEARNER):
        assert network.delivery_at(0, slow, direction, CONTROL, 256) == 50 * MS
        assert network.delivery_at(0, other, direction, CONTROL, 256) == 10 * MS


def test_a_narrow_link_holds_up_fragments_and_nothing_else() -> None:
    network = network_of(delay_s=0.0)
    number = network.open(0, 1).number
    network.acting.begin(Acting(1, Fault("bandwidth", 0, 0, bytes_per_s=1e6)))
    network.acting.begin(Acting(2, Fault("bandwidth", 0, 0, bytes_per_s=1e5)))
    assert network.delivery_at(0, number, TO_SYNCER, BULK, 10_000) == 100 * MS
    assert network.delivery_at(0, number, TO_SYNCER, BULK, 10_000) == 200 * MS
    assert network.delivery_at(0, number, TO_SYNCER, CONTROL, 10_000) == 0


def test_nothing_goes_through_a_connection_that_is_closed_or_never_was() -> None:
    network = network_of()
    connection = network.open(0, 1)
    assert network.open(0, 2).number == connection.number + 1
    connection.open = False
    assert network.delivery_at(0, connection.number, TO_SYNCER, CONTROL, 256) == -1
    assert network.delivery_at(0, 99, TO_SYNCER, CONTROL, 256) == -1
