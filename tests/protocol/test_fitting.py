"""Messages with lists for another number of fragments: refused by the machine itself, recorded, without effect."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.driving import Talk, begun, book_of, fixed_of
from workbench.protocol import events as ev
from workbench.protocol import messages as msg
from workbench.protocol import restart
from workbench.protocol.actions import Append, Send
from workbench.protocol.records import Kind, process_of

LENGTHS = st.integers(0, 5)


def untouched(talk: Talk) -> dict[str, object]:
    """What the machine knows, without its own count of records and the time of its wake-ups."""
    counts = {"seq", "clock", "wake_at", "woken_at"}
    return {name: value for name, value in msgspec.to_builtins(talk.state).items() if name not in counts}


@given(LENGTHS, LENGTHS, LENGTHS)
def test_a_join_of_another_number_of_fragments_is_refused_and_changes_nothing(
    base: int, steps: int, tokens: int
) -> None:
    talk = begun(period=4, fragments=3)
    before, was = untouched(talk), len(talk.records)
    stranger = msg.Join(1, 2, 7, 7, [1] * steps, [1] * tokens, [-1] * base, True, True)
    done = talk.give(ev.Received(99, stranger))
    welcomed = [a.message for a in done if isinstance(a, Send) and isinstance(a.message, msg.Welcome)]
    if (base, steps, tokens) == (3, 3, 3):
        assert welcomed and not talk.of(Kind.MESSAGE_REFUSED)
        return
    (end,) = [a for a in done if isinstance(a, Send)]
    assert isinstance(end.message, msg.End) and (end.connection, end.message.reason) == (99, "fragments")
    assert isinstance(done[0], Append), "the record goes ahead of the answer"
    (refused,) = talk.records[was:]
    assert (refused.kind, refused.peer) == (Kind.MESSAGE_REFUSED, process_of(1))
    assert refused.reason.startswith("JOIN of another run: ") and refused.reason.endswith("the run 3 fragments")
    assert untouched(talk) == before


def test_metadata_of_another_number_of_fragments_counts_for_nothing() -> None:
    talk = begun(period=4, fragments=3)
    before = untouched(talk)
    said = msgspec.structs.replace(talk.puppets[0].metadata(), base=[0, 0], n=9, g=9)
    talk.says(0, said)
    (refused,) = talk.of(Kind.MESSAGE_REFUSED)
    assert refused.reason == "METADATA of another run: base has 2 entries, the run 3 fragments"
    assert untouched(talk) == before


@pytest.mark.parametrize("fragments", [2, 4])
def test_a_syncer_that_starts_again_knows_nothing_of_the_stranger(fragments: int) -> None:
    talk = begun(period=4, fragments=3)
    wrong = [0] * fragments
    talk.give(ev.Received(99, msg.Join(5, 1, 0, 0, wrong, wrong, wrong, False, False)))
    state = restart.restore(fixed_of(talk.config), book_of(talk.config), talk.records).state
    assert sorted(state.members) == [0, 1] and state.seq == talk.state.seq
