"""The causal order from clocks is the one that the messages made; checked against a closure without clocks."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tape.examples import run_records
from tests.tape.heard import index_of, listening, pasts
from workbench.protocol.records import Kind, Record
from workbench.simulate import schedules
from workbench.tape import JournalWriter, Recorder, TapeError, open_tape
from workbench.tape.causality import HEARD, MESSAGE, PROGRAM_ORDER, CausalIndex
from workbench.tape.event_sets import EventSet

RECORDS = 600
"""Records of a random run that are looked at."""


class Run(NamedTuple):
    """A random run with faults: its records, and which were before which (bit j of entry i: j before i)."""

    records: list[Record]
    pasts: list[int]
    order: CausalIndex

    def is_before(self, a: int, b: int) -> bool:
        return bool(self.pasts[b] >> a & 1)


def run_of(seed: int) -> Run:
    with listening() as heard:
        world, _ = schedules.build(schedules.draw(seed, more=False, recovery=False))  # the oracle follows no states
        world.run(until_ns=60 * 10**9, until=lambda world: len(world.records) > RECORDS)
    records = list(world.records)
    return Run(records, pasts(records, heard), index_of(records))


def of_bits(bits: int) -> list[int]:
    return [at for at in range(bits.bit_length()) if bits >> at & 1]


def ranges(run: Run, starts: object, stops: object) -> list[int]:
    events: list[int] = run.order.event_set("", starts, stops).events().tolist()
    return events


@settings(max_examples=12)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_pasts_futures_and_what_is_concurrent_are_those_of_the_closure(seed: int, data: st.DataObject) -> None:
    run = run_of(seed)
    everything = range(len(run.records))
    for event, past in enumerate(run.pasts):
        assert ranges(run, run.order.past(event) * 0, run.order.past(event)) == of_bits(past), event
    for event in data.draw(st.lists(st.sampled_from(everything), min_size=5, max_size=15)):
        after = [other for other in everything if run.is_before(event, other)]
        assert ranges(run, run.order.future(event), run.order.lengths) == after
        assert [other for other in everything if run.order.before(event, other)] == after
        between = ranges(run, run.order.past(event), run.order.future(event))
        assert set(between) - {event} == set(everything) - set(after) - set(of_bits(run.pasts[event])) - {event}


@settings(max_examples=8)
@given(seed=st.integers(0, 10_000), share=st.floats(0.05, 1.0))
def test_a_cut_at_a_time_is_the_greatest_that_holds_all_its_causes(seed: int, share: float) -> None:
    run = run_of(seed)
    time_ns = int(share * max(r.time_ns for r in run.records))
    by_then = {event for event, r in enumerate(run.records) if r.time_ns <= time_ns}
    wanted = {event for event in by_then if set(of_bits(run.pasts[event])) <= by_then}
    asked = run.order.at_time(time_ns)
    assert set(ranges(run, asked * 0, asked)) == by_then
    cut = run.order.cut("", run.order.closed(asked), asked)
    assert set(cut.events().tolist()) == wanted
    assert set(cut.left_out.events().tolist()) == by_then - wanted


@settings(max_examples=8)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_direct_causes_close_to_the_whole_past_and_effects_are_their_converse(seed: int, data: st.DataObject) -> None:
    run = run_of(seed)
    direct = [run.order.direct_causes(event) for event in range(len(run.records))]
    found: list[int] = []
    for links in direct:
        found.append(0)
        for link in links:
            found[-1] |= found[link.event] | 1 << link.event
    assert found == run.pasts
    for event in data.draw(st.lists(st.sampled_from(range(len(direct))), min_size=5, max_size=20)):
        effects = [(e, link.how) for e, links in enumerate(direct) for link in links if link.event == event]
        assert [tuple(link) for link in run.order.direct_effects(event)] == effects
    for event, r in enumerate(run.records):
        named = [link.event for link in direct[event] if link.how == MESSAGE]
        sent = [] if r.cause is None else [r.cause]
        assert [(run.records[at].process, run.records[at].seq) for at in named] == sent


@settings(max_examples=6)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_a_chain_leads_from_one_event_to_the_other_by_direct_steps(seed: int, data: st.DataObject) -> None:
    run = run_of(seed)
    for _ in range(20):
        b = data.draw(st.sampled_from([event for event, past in enumerate(run.pasts) if past]))
        a = data.draw(st.sampled_from(of_bits(run.pasts[b])))
        chain = run.order.chain(a, b)
        assert (chain[0].event, chain[-1].event) == (a, b)
        for link, following in pairwise(chain):
            same = run.records[link.event].process == run.records[following.event].process
            assert (following.how == PROGRAM_ORDER) == same
            if same:
                assert link.event < following.event
            else:
                assert (link.event, following.how) in run.order.direct_causes(following.event)


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    folder = tmp_path_factory.mktemp("causality") / "run"
    folder.mkdir()
    with JournalWriter(folder / "journal", {"run_id": "causes"}) as journal:
        journal.append(run_records(rounds=6, learners=3))
    with Recorder(folder):
        pass
    return open_tape(folder)


def first(tape: xr.DataTree, kind: Kind, **columns: int) -> int:
    events = tape.wb.events(kind)
    for name, value in columns.items():
        events = events.isel(event=events[name].values == value)
    return int(events["event"].values[0])


def test_the_tape_answers_in_events_masks_and_words(tape: xr.DataTree) -> None:
    merged = first(tape, Kind.MERGED, round=1)
    captured = first(tape, Kind.FRAGMENT_CAPTURED, round=1, process=3)
    folded = first(tape, Kind.UPDATE_FOLDED, round=1, process=4)
    past = tape.wb.past(merged)
    assert isinstance(past, EventSet)
    assert past.mask().sum() == len(past) == len(past.events())
    assert captured in past
    assert merged not in past
    assert "syncer" not in past
    assert past.first == past.events()[0]
    assert folded in tape.wb.future(captured)
    assert captured not in tape.wb.concurrent(merged)
    assert tape.wb.before(captured, merged) and not tape.wb.before(merged, captured)
    total = tape["events"].sizes["event"]
    concurrent = tape.wb.concurrent(captured)
    assert len(past) + len(tape.wb.concurrent(merged)) + len(tape.wb.future(merged)) == total - 1
    assert repr(past).startswith(f"<past of event {merged}: {len(past):,} of {total:,} events: syncer ")
    assert "L0" not in concurrent.lengths
    assert tape.wb.past(-1).events().tolist() == tape.wb.past(total - 1).events().tolist()


def test_a_chain_is_told_in_lines(tape: xr.DataTree) -> None:
    captured = first(tape, Kind.FRAGMENT_CAPTURED, round=0, process=3)
    folded = first(tape, Kind.UPDATE_FOLDED, round=0, process=4)
    chain = tape.wb.path(captured, folded)
    assert chain.events[0] == captured and chain.events[-1] == folded
    lines = str(chain).splitlines()
    assert lines[0] == f"event {captured}: fragment_captured of L0"
    assert lines[1].startswith("message → event ")
    assert lines[-1] == f"program order → event {folded}: update_folded of L1"  # its pull had told of it before
    with pytest.raises(TapeError, match=f"event {captured} happened before event {folded}"):
        tape.wb.path(folded, captured)


def test_cuts_say_what_they_leave_out(tape: xr.DataTree) -> None:
    merged = first(tape, Kind.MERGED, round=1)
    cut = tape.wb.cut(event=merged)
    assert merged in cut
    assert set(cut.events()) | set(cut.left_out.events()) == set(range(merged + 1))
    assert "left out" in repr(cut) or not len(cut.left_out)
    for link in tape.wb.direct_causes(merged):
        assert link.event in cut and link.how in (PROGRAM_ORDER, MESSAGE, HEARD)
    whole = tape.wb.cut(time_ns=10**18)
    assert len(whole) == tape["events"].sizes["event"] and not len(whole.left_out)
    assert not len(tape.wb.cut(time_ns=-1))


@pytest.mark.parametrize("arguments", [{}, {"event": 1, "time_ns": 1}])
def test_a_cut_is_made_at_one_place(tape: xr.DataTree, arguments: dict[str, int]) -> None:
    with pytest.raises(TapeError, match="a cut is made at one place"):
        tape.wb.cut(**arguments)


def test_events_that_do_not_exist_are_refused(tape: xr.DataTree) -> None:
    total = tape["events"].sizes["event"]
    with pytest.raises(TapeError, match=f"there is no event {total}; the tape has {total} events"):
        tape.wb.past(total)


def test_clocks_that_fall_and_numbers_that_do_not_rise_are_refused() -> None:
    ones, clock = np.zeros(3, np.int64), np.array([[1], [2], [3]])
    none = np.full(3, -1)
    with pytest.raises(TapeError, match="event 2: the record numbers of syncer do not rise"):
        CausalIndex(ones, np.array([1, 2, 2]), clock, none, ones)
    with pytest.raises(TapeError, match="event 1: the clock of syncer falls"):
        CausalIndex(ones, np.array([1, 2, 3]), clock[::-1], none, ones)


def test_nothing_recorded_has_an_order_too() -> None:
    nothing = np.zeros(0, np.int64)
    index = CausalIndex(nothing, nothing, np.zeros((0, 0), np.int64), nothing, nothing)
    with pytest.raises(TapeError, match="there is no event 0; the tape has 0 events"):
        index.checked(0)


def test_arrows_are_direct_steps_the_nearest_first_and_none_twice() -> None:
    run = run_of(7)
    event, deep = len(run.records) // 2, 3
    found = list(run.order.arrows(event, deep))
    direct = {(link.event, event, link.how) for link in run.order.direct_causes(event)}
    direct |= {(event, link.event, link.how) for link in run.order.direct_effects(event)}
    assert {one[:3] for one in found if abs(one.depth) == 1} == direct
    assert len({one[:2] for one in found}) == len(found)
    depths = [abs(one.depth) for one in found]
    assert depths == sorted(depths) and set(depths) == {1, 2, 3}
    for one in found:
        assert (one.cause, one.how) in run.order.direct_causes(one.effect)
        assert (one.effect == event or run.is_before(one.effect, event)) == (one.depth < 0)
        assert (one.cause == event or run.is_before(event, one.cause)) == (one.depth > 0)
