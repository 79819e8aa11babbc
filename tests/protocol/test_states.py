"""PROTOCOL sections 11 and 13 at the syncer: whose state is asked for, damaged states, snapshots without anybody."""

from __future__ import annotations

from typing import Any

from tests.protocol.driving import SECOND, Talk, begun
from tests.protocol.puppets import Puppet
from workbench.protocol import events as ev
from workbench.protocol import messages as msg
from workbench.protocol.actions import DropSnapshot, KeepPart, WriteSnapshot
from workbench.protocol.records import Kind


def with_a_joiner(**keys: Any) -> Talk:
    """Three learners that are healed, of which L2 comes as a new process."""
    talk = begun(learners=3, recovery="peer", **keys)
    talk.state.merges = 1
    talk.join(2, number=2)
    return talk


def asked(talk: Talk) -> list[tuple[int, int]]:
    """(peer, number) of the requests for a state, in order."""
    found = [(m, o.number) for m in range(3) for o in talk.to(m, msg.CopyAsked)]
    return sorted(found, key=lambda one: one[1])


def state_of(puppet: Puppet, number: int, snapshot: bool = False, handle: int = 77) -> msg.StateCopy:
    facts = {"c_tokens": [0]} if snapshot else {}
    return msg.StateCopy(
        puppet.learner, puppet.incarnation, number, snapshot, puppet.seq, puppet.n, list(puppet.base), 5, 400,
        puppet.seq, puppet.clock, puppet.attach(), facts, handle,
    )  # fmt: skip


def marks(talk: Talk, learner: int, snapshot: int) -> None:
    puppet = talk.puppets[learner]
    for channel in (msg.CONTROL, msg.BULK):
        talk.says(
            learner,
            msg.Mark(learner, puppet.incarnation, snapshot, channel, puppet.seq, puppet.clock, puppet.attach()),
        )


def test_a_state_that_does_not_come_whole_is_asked_of_the_next_peer() -> None:
    talk = with_a_joiner()
    ((first, number),) = asked(talk)
    talk.says(first, state_of(talk.puppets[first], number, handle=-1))
    assert not talk.to(2, msg.PeerState)
    second, again = asked(talk)[-1]
    assert second == 1 - first
    talk.says(second, state_of(talk.puppets[second], again))
    (passed,) = talk.to(2, msg.PeerState)
    assert passed.handle == 77 and passed.number == again


def test_a_part_that_does_not_come_whole_gives_the_snapshot_up() -> None:
    talk = begun()
    talk.give(ev.SnapshotAsked("test"))
    marks(talk, 0, 1)
    talk.says(0, state_of(talk.puppets[0], 1, snapshot=True, handle=-1))
    (record,) = talk.of(Kind.SNAPSHOT_ABANDONED)
    assert (record.reason, record.detail) == ("damaged", {"damaged": "L0"})
    assert [o for o in talk.orders if isinstance(o, DropSnapshot)] and not talk.of(Kind.SNAPSHOT_COMPLETED)
    assert not [o for o in talk.orders if isinstance(o, KeepPart)]


def test_a_snapshot_of_which_every_learner_is_gone_is_given_up() -> None:
    talk = begun()
    talk.give(ev.SnapshotAsked("test"))
    for learner in range(2):
        assert not talk.of(Kind.SNAPSHOT_ABANDONED)
        talk.give(ev.Disconnected(talk.puppets[learner].connection))
    assert [r.reason for r in talk.of(Kind.SNAPSHOT_ABANDONED)] == ["every learner is gone"]
    assert talk.state.snapshot is None


def test_a_joiner_waits_for_the_cut_of_a_snapshot_and_not_for_the_disk() -> None:
    talk = begun(learners=3, recovery="peer")
    talk.state.merges = 1
    talk.give(ev.SnapshotAsked("test"), SECOND // 10)
    talk.join(2, number=2)
    assert not asked(talk), "a state that leaves now would be behind the cut"
    for learner in range(2):
        marks(talk, learner, 1)
        talk.says(learner, state_of(talk.puppets[learner], 1, snapshot=True, handle=learner + 50))
    assert [o for o in talk.orders if isinstance(o, WriteSnapshot)]
    assert len(asked(talk)) == 1 and not talk.of(Kind.SNAPSHOT_COMPLETED)
    talk.give(ev.SnapshotWritten(1, 9))
    assert len(talk.of(Kind.SNAPSHOT_COMPLETED)) == 1 and len(asked(talk)) == 1
