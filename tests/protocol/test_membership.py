"""PROTOCOL sections 1 and 10: joins, incarnations, losses, the machine's own stop, and whether K is possible."""

from __future__ import annotations

import msgspec

from tests.protocol.driving import MS, SECOND, Talk, begun
from tests.protocol.puppets import Puppet, book_of, fixed_of
from workbench.protocol import events as ev
from workbench.protocol import messages as msg
from workbench.protocol import restart
from workbench.protocol.actions import Append, Fail, Send
from workbench.protocol.records import Kind, learner_of

T = 2


def losses(talk: Talk) -> list[tuple[int, str]]:
    return [(learner_of(r.peer), r.reason) for r in talk.of(Kind.LEARNER_LOST)]


def joins(talk: Talk, learner: int) -> list[tuple[str, int, int]]:
    found = [r for r in talk.of(Kind.LEARNER_JOINED) if learner_of(r.peer) == learner]
    return [(r.reason, r.version, int(r.value)) for r in found]


def test_a_joiner_gets_incarnation_stamp_settings_and_its_first_step() -> None:
    talk = Talk(period=4, fragments=2).start()
    talk.state.versions = [3, 5]
    talk.join(1)
    (welcome,) = talk.to(1, msg.Welcome)
    assert (welcome.incarnation, welcome.epoch, welcome.versions) == (1, 0, [3, 5])
    assert (welcome.first_step, welcome.first_seq, welcome.rejoin) == (1, 1, False)
    assert welcome.settings["fold"] == "overwrite" and welcome.closed_below == talk.state.closed_below == welcome.t
    assert joins(talk, 1) == [("process", 1, 1)]


def test_the_incarnation_is_recorded_before_it_is_handed_out() -> None:
    talk = Talk().start()
    talk.join(0)
    talk.connections += 1
    puppet = talk.puppets[0]
    done = talk.give(ev.Received(talk.connections, puppet.join()))
    appended = next(
        i for i, a in enumerate(done) if isinstance(a, Append) and a.records[-1].kind == Kind.LEARNER_JOINED
    )
    sent = next(i for i, a in enumerate(done) if isinstance(a, Send) and isinstance(a.message, msg.Welcome))
    assert appended < sent


def test_a_join_that_is_repeated_on_its_connection_gets_the_same_incarnation() -> None:
    talk = Talk().start()
    puppet = talk.join(0)
    talk.says(0, puppet.join(), SECOND)
    assert [w.incarnation for w in talk.to(0, msg.Welcome)] == [1, 1]
    assert len({w.origin for w in talk.to(0, msg.Welcome)}) == 1, "both name the record of the joining"
    assert joins(talk, 0) == [("process", 1, 1)] and not losses(talk)
    assert talk.member(0).last_heard == talk.now


def test_another_connection_of_a_process_is_a_rejoin() -> None:
    talk = begun()
    talk.join(0)
    assert joins(talk, 0) == [("process", 1, 1), ("rejoin", 2, 1)]
    assert losses(talk) == [(0, "socket")]
    assert talk.to(0, msg.Welcome)[-1].rejoin


def test_a_rejoin_keeps_base_and_counters_a_new_process_holds_nothing() -> None:
    talk = begun()
    talk.state.versions[0] = 3
    talk.join(0)
    member = talk.member(0)
    assert (member.base, member.c_steps, member.healed) == ([0], [1], True)
    assert talk.to(0, msg.Update)[-1].version == 3, "section 7 sends what it is behind on"
    talk.join(0, number=2)
    assert (member.base, member.c_steps, member.healed, member.recent) == ([-1], [0], False, [])
    assert losses(talk)[-1] == (0, "superseded")
    assert joins(talk, 0)[-1] == ("process", 3, 2)


def test_own_steps_and_records_go_on_where_the_journal_ends() -> None:
    talk = begun()
    talk.step(0, count=4)
    seq, n = talk.puppets[0].seq, talk.puppets[0].n
    talk.puppets[0].count_step()  # made, and lost with its process: no record of it exists
    talk.join(0, number=2)
    welcome = talk.to(0, msg.Welcome)[-1]
    assert (welcome.first_step, welcome.first_seq) == (n + 1, seq + 1)


def test_last_merged_is_the_learners_not_an_incarnations() -> None:
    talk = begun()
    talk.step(0, MS, g=2)
    talk.answer(0, T)
    talk.finish_round()
    talk.join(0, number=2)
    update = talk.to(0, msg.Update)[-1]
    assert (update.last_merged, update.last_merged_step) == (1, 2)


def test_a_zombie_is_sent_away() -> None:
    talk = begun()
    zombie = talk.puppets[0]
    talk.join(0, number=2)
    done = talk.give(ev.Received(99, zombie.join()))
    (send,) = [a for a in done if isinstance(a, Send)]
    assert send.connection == 99 and isinstance(send.message, msg.End)
    assert (send.message.incarnation, send.message.reason) == (-1, "superseded")
    assert joins(talk, 0)[-1] == ("process", 2, 2), "and got no incarnation"


def test_what_a_zombie_still_sends_is_refused_whole_its_records_too() -> None:
    talk = begun()
    zombie = talk.puppets[0]
    talk.join(0, number=2)
    before, seq = len(talk.records), talk.member(0).known_seq
    zombie.count_step()
    talk.give(ev.Received(zombie.connection, zombie.metadata()))
    talk.give(ev.Received(zombie.connection, zombie.heartbeat()))
    assert len(talk.records) == before and talk.member(0).known_seq == seq
    talk.give(ev.Received(zombie.connection, zombie.fragment(T)))
    assert [(r.kind, r.reason, r.cause) for r in talk.records[before:]] == [
        (Kind.FRAGMENT_DROPPED, "incarnation", None)
    ]
    talk.give(ev.Received(zombie.connection, zombie.fragment(T, origin=1)))
    assert talk.records[-1].cause is None, "its numbers are those of other records by now"


def test_a_message_of_another_connection_is_refused_whatever_its_incarnation() -> None:
    talk = begun()
    puppet = talk.puppets[0]
    before = len(talk.records)
    puppet.count_step()
    talk.give(ev.Received(77, puppet.metadata()))
    assert len(talk.records) == before and talk.member(0).n == puppet.n - 1


def test_what_still_comes_from_a_closed_connection_brings_nobody_back() -> None:
    talk = begun()
    talk.give(ev.Disconnected(talk.puppets[0].connection))
    talk.says(0, talk.puppets[0].heartbeat())
    assert not talk.member(0).connected, "an answer would reach nobody"


def test_a_declared_lost_learner_that_still_lives_gets_another_incarnation() -> None:
    talk = begun()
    talk.pass_time(2.5, alive=(1,))
    talk.says(0, talk.puppets[0].metadata())
    welcome = talk.to(0, msg.Welcome)[-1]
    assert (welcome.incarnation, welcome.rejoin) == (2, True)
    assert joins(talk, 0)[-1] == ("rejoin", 2, 1)
    assert talk.member(0).base == [0], "it keeps parameters, moments and base"
    talk.says(0, talk.puppets[0].metadata())
    assert len(talk.to(0, msg.Welcome)) == 2, "old messages that still wait ask for no further one"


def test_a_process_that_the_supervisor_saw_end_is_not_taken_back_by_what_it_had_sent() -> None:
    talk = begun()
    dead = talk.puppets[0]
    talk.exits(0)
    talk.give(ev.Received(dead.connection, dead.metadata()))
    talk.give(ev.Received(98, dead.join()))
    assert not talk.member(0).connected and joins(talk, 0) == [("process", 1, 1)]


def test_an_exit_of_an_older_process_ends_nothing() -> None:
    talk = begun()
    talk.join(0, number=2)
    talk.exits(0, number=1)
    assert talk.member(0).connected


def test_a_closed_connection_that_was_replaced_ends_nothing() -> None:
    talk = begun()
    old = talk.puppets[0].connection
    talk.join(0)
    talk.give(ev.Disconnected(old))
    assert talk.member(0).connected


def test_a_learner_with_a_base_above_the_version_stops_the_run_with_one_line() -> None:
    talk = begun()
    talk.puppets[0].base = [7]
    done = talk.says(0, talk.puppets[0].metadata())
    (fail,) = [a for a in done if isinstance(a, Fail)]
    assert "L0 holds version 7 of fragment 0, the syncer 0" in fail.reason and "\n" not in fail.reason
    talk = begun()
    talk.puppets[1].base = [7]
    talk.join(1)
    assert [type(o) for o in talk.orders] == [Fail]


def test_healed_is_recorded_once() -> None:
    talk = begun()
    talk.step(0)
    assert [learner_of(r.peer) for r in talk.of(Kind.LEARNER_HEALED)] == [0, 1]


def test_quorum_lost_at_once_naming_who_is_missing_and_regained() -> None:
    """REPORTED Q3: M = 4, K = 3, two alive."""
    talk = begun(learners=4, quorum=3)
    talk.exits(3)
    assert not talk.of(Kind.QUORUM_LOST)
    talk.exits(1)
    (lost,) = talk.of(Kind.QUORUM_LOST)
    assert (lost.value, lost.steps, lost.detail["missing"]) == (2.0, 3, ["L1", "L3"])
    assert lost.time_ns == talk.now
    talk.join(1, number=2)
    assert [(r.value, r.steps) for r in talk.of(Kind.QUORUM_REGAINED)] == [(3.0, 3)], "a healing learner counts"


def test_before_rounds_begin_a_quorum_that_is_not_there_is_said_within_a_second() -> None:
    talk = Talk(learners=3, quorum=2, start_limit_s=60.0).start()
    talk.pass_time(5.0)
    assert not talk.of(Kind.QUORUM_LOST), "nobody has come yet: the run is starting"
    talk.join(0)
    joined = talk.now
    talk.pass_time(0.5, alive=(0,))
    assert not talk.of(Kind.QUORUM_LOST)
    talk.pass_time(4.5, alive=(0,))
    (lost,) = talk.of(Kind.QUORUM_LOST)
    assert lost.time_ns - joined <= SECOND
    assert (lost.value, lost.steps, lost.detail["missing"]) == (1.0, 2, ["L1", "L2"])
    assert not talk.of(Kind.ROUNDS_BEGAN)
    talk.join(2)
    assert [(r.value, r.time_ns) for r in talk.of(Kind.QUORUM_REGAINED)] == [(2.0, talk.now)]
    talk.join(1)
    assert len(talk.of(Kind.ROUNDS_BEGAN)) == len(talk.of(Kind.QUORUM_LOST)) == 1


def test_learners_that_come_one_after_the_other_lose_no_quorum() -> None:
    talk = Talk(learners=3, quorum=3, start_limit_s=60.0).start()
    for learner in range(3):
        talk.join(learner)
        talk.pass_time(0.3, alive=tuple(range(learner + 1)))
    assert len(talk.of(Kind.ROUNDS_BEGAN)) == 1 and not talk.of(Kind.QUORUM_LOST)


def test_quarantine_and_a_larger_quorum_can_lose_it_too() -> None:
    talk = begun(learners=2, quorum=2)
    talk.give(ev.QuarantineAsked(1, True, "page"))
    assert [r.detail["missing"] for r in talk.of(Kind.QUORUM_LOST)] == [["L1"]]
    talk.give(ev.QuarantineAsked(1, False, "page"))
    assert len(talk.of(Kind.QUORUM_REGAINED)) == 1
    talk = begun(learners=2, quorum=1)
    talk.exits(0)
    talk.give(ev.SettingsAsked({"quorum": 2}, "page"))
    assert [r.detail["missing"] for r in talk.of(Kind.QUORUM_LOST)] == [["L0"]]


def test_rounds_begin_when_all_have_joined() -> None:
    talk = Talk(learners=2).start()
    talk.join(0)
    assert not talk.state.began and not talk.state.rounds
    talk.join(1)
    assert [(r.value, r.reason) for r in talk.of(Kind.ROUNDS_BEGAN)] == [(2.0, "all")]
    assert talk.state.rounds


def test_the_syncer_ends_the_run_and_every_learner_is_told() -> None:
    talk = begun(rounds=1)
    talk.step(0, MS, g=2)
    talk.answer(0, T)
    talk.finish_round()
    assert [talk.to(m, msg.End)[0].reason for m in (0, 1)] == ["rounds", "rounds"]
    talk.says(0, talk.puppets[0].metadata(leaving=True))
    assert losses(talk) == [(0, "ended")] and not talk.of(Kind.RUN_ENDED)
    talk.says(1, talk.puppets[1].metadata(leaving=True))
    (ended,) = talk.of(Kind.RUN_ENDED)
    assert (ended.reason, ended.value) == ("rounds", 1.0)
    assert talk.give(ev.Woken(), SECOND) == []


def test_who_leaves_by_itself_is_gone_until_another_process_comes() -> None:
    talk = begun()
    talk.says(0, talk.puppets[0].metadata(leaving=True))
    assert losses(talk) == [(0, "left")] and not talk.of(Kind.RUN_ENDED)
    talk.says(0, talk.puppets[0].heartbeat())
    assert len(joins(talk, 0)) == 1, "what bulk still brings is no sign of life"
    found = restart.restore(fixed_of(talk.config), book_of(talk.config), talk.records)
    assert found.state.members[0].ended == talk.member(0).ended == 1
    talk.join(0, number=2)
    assert joins(talk, 0)[-1] == ("process", 2, 2)


def test_a_process_without_a_supervisor_says_where_it_runs_and_that_is_recorded() -> None:
    talk = Talk().start()
    identity = {"host": "far", "pid": 7, "fingerprint": {"numpy": "2"}}
    puppet = Puppet(0, 1, 1)
    talk.give(ev.Received(1, msgspec.structs.replace(puppet.join(), identity=identity)))
    assert [r.detail for r in talk.of(Kind.LEARNER_JOINED)] == [identity]
    talk.connections = 1
    talk.join(1)
    assert talk.of(Kind.LEARNER_JOINED)[-1].detail == {}


def test_who_joins_while_the_run_ends_is_told_to_leave() -> None:
    talk = begun()
    talk.give(ev.StopAsked("asked"))
    talk.connections += 1
    done = talk.give(ev.Received(talk.connections, talk.puppets[0].join()))
    ends = [a.message for a in done if isinstance(a, Send) and isinstance(a.message, msg.End)]
    assert [(e.incarnation, e.reason) for e in ends] == [(-1, "asked")]
