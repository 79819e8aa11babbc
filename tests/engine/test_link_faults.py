"""The filter at each end of a link, on a clock of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.engine import wires
from tests.engine.wires import LEARNER, fragment, metadata, pair, update, values
from workbench.engine.link_faults import HELD_MAX, LinkFilter, told
from workbench.protocol.acting import TO_LEARNER, TO_SYNCER, Acting
from workbench.protocol.faults import Fault
from workbench.protocol.messages import BULK, Beat, Heartbeat

MS = 1_000_000


class Payloads:
    """Stands for a wire: keeps payloads, and what was released of them."""

    def __init__(self) -> None:
        self.released: list[int] = []

    def payload(self, handle: int) -> np.ndarray:
        return np.zeros(250, np.float32)

    def release(self, handle: int) -> None:
        self.released.append(handle)


@pytest.fixture
def wire() -> Payloads:
    return Payloads()


def up(wire: Payloads, *faults: Fault) -> LinkFilter:
    """The syncer's end, with faults numbered from 1."""
    return tell(LinkFilter(TO_SYNCER, wire), *faults)


def down(wire: Payloads, *faults: Fault) -> LinkFilter:
    """The learner's end."""
    return tell(LinkFilter(TO_LEARNER, wire, LEARNER), *faults)


def tell(end: LinkFilter, *faults: Fault) -> LinkFilter:
    end.take(told(LEARNER, [Acting(number, fault) for number, fault in enumerate(faults, 1)]))
    return end


def of(kind: str, **keys: Any) -> Fault:
    return Fault(kind, 0, LEARNER, **keys)


def sent(handle: int, number: int = 5) -> Any:
    return fragment(number=number, handle=handle)


def heartbeat(learner: int = LEARNER) -> Heartbeat:
    return Heartbeat(learner, 1, (), [])


def updated(handle: int, version: int, p: int = 0) -> Any:
    made = update(p, version)
    made.handle = handle
    return made


def test_without_faults_everything_passes_as_it_came(wire: Payloads) -> None:
    came = [(1, metadata()), (2, sent(7))]
    assert up(wire).passing(0, came) is came


def test_what_is_lost_gives_its_block_back_and_others_are_spared(wire: Payloads) -> None:
    end = up(wire, of("cut_up"))
    other = heartbeat(LEARNER + 1)
    assert end.passing(0, [(1, sent(7)), (2, other), (1, metadata()), (1, sent(-1))]) == [(2, other)]
    assert wire.released == [7]
    assert down(wire, of("cut_up")).passing(0, [(1, updated(8, 1))]) != []
    assert down(wire, of("cut_down")).passing(0, [(1, updated(9, 1))]) == []
    assert wire.released == [7, 9]


def test_a_learner_that_connects_anew_stays_cut(wire: Payloads) -> None:
    end = up(wire, of("cut"))
    assert [end.passing(0, [(number, heartbeat())]) for number in (1, 2)] == [[], []]
    assert down(wire, of("cut_up")).is_cut()
    tell(end)
    assert len(end.passing(0, [(2, heartbeat())])) == 1


def test_messages_that_are_late_keep_their_order_by_connection_and_channel(wire: Payloads) -> None:
    end = up(wire, of("delay", delay_ns=50 * MS, jitter_ns=40 * MS, seed=1))
    came: dict[int, int] = {}
    for now in range(600):
        sent_now = [(1, metadata(now // 10))] if now < 300 and now % 10 == 0 else []
        for _, message in end.passing(now * MS, sent_now):
            came[message.n] = now - 10 * message.n
    assert list(came) == list(range(30)), "all of them, in order"
    assert all(10 <= late <= 91 for late in came.values())
    assert len(set(came.values())) > 5
    assert end.next_at == -1


def test_messages_under_way_arrive_after_their_fault_is_over(wire: Payloads) -> None:
    end = down(wire, of("delay", delay_ns=50 * MS))
    message = Beat(1, 5, 2, ())
    assert end.passing(0, [(1, message)]) == []
    tell(end)
    assert end.passing(10 * MS, [(1, message)]) == []  # in order: not before the one that is late
    assert end.passing(50 * MS, []) == [(1, message)] * 2


def test_a_narrow_link_holds_up_fragments_and_no_heartbeat(wire: Payloads) -> None:
    end = up(wire, of("bandwidth", bytes_per_s=10_000))  # 1000 bytes: 100 ms
    beat = heartbeat()
    assert end.passing(0, [(1, sent(1)), (1, sent(2)), (1, beat)]) == [(1, beat)]
    assert end.next_at == 100 * MS
    assert [m.handle for _, m in end.passing(100 * MS, [])] == [1]
    assert [m.handle for _, m in end.passing(200 * MS, [])] == [2]
    assert wire.released == []


def test_at_a_narrow_link_the_newest_update_of_a_fragment_takes_the_place_of_the_one_that_waits(wire: Payloads) -> None:
    end = down(wire, of("bandwidth", bytes_per_s=10_000))
    end.passing(0, [(1, updated(1, 1)), (1, updated(2, 1, 1)), (1, updated(3, 2)), (2, updated(4, 3))])
    assert wire.released == [1, 3]
    passed = end.passing(1000 * MS, [])
    assert [(number, m.fragment, m.version) for number, m in passed] == [(2, 0, 3), (1, 1, 1)]


def test_at_a_narrow_link_no_more_waits_than_a_sender_would_keep(wire: Payloads) -> None:
    end = up(wire, of("bandwidth", bytes_per_s=1))
    end.passing(0, [(1, sent(handle)) for handle in range(1, HELD_MAX + 4)])
    assert wire.released == [HELD_MAX + 1, HELD_MAX + 2, HELD_MAX + 3]


def test_the_end_of_a_count_is_told_once(wire: Payloads) -> None:
    end = up(wire, of("lose_up", count=2))
    passed = end.passing(0, [(1, metadata(n)) for n in range(4)])
    assert [m.n for _, m in passed] == [2, 3]
    assert end.used_up() == [1] and end.used_up() == []


@pytest.fixture(params=["mapped", "tcp"])
def both(request: pytest.FixtureRequest) -> Iterator[wires.Pair]:
    with pair(request.param) as made:
        yield made


def test_blocks_of_lost_fragments_are_free_again(both: wires.Pair) -> None:
    """More fragments are lost than there are slots in mapped memory, and the next ones still go through."""
    connection = both.connect()
    end = tell(LinkFilter(TO_SYNCER, both.syncer), of("lose_up", count=20))
    passed: list[Any] = []
    for number in range(24):
        assert both.learner.send(connection, BULK, fragment(number=number), values(0, number))
        wires.until(lambda: both.turn().up)
        passed += end.passing(0, both.up)
        both.up = []
    assert [m.round for _, m in passed] == list(range(20, 24))
    for _, message in passed:
        np.testing.assert_array_equal(both.syncer.payload(message.handle), values(0, message.round))
    used = both.learner._captures.used
    assert used <= 4, "only what passed is still in use"
    assert len(both.syncer._connections.payloads) == 4
