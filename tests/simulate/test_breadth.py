"""The breadth-first search: it visits what it claims to, finds planted bugs, and drives machines as the world does."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.simulate.planting import planted
from workbench.protocol import arrivals, folding, learner, merging, outbox, restart, rounds
from workbench.simulate import breadth
from workbench.simulate.breadth import DEFAULT, LARGE, Root, Violation
from workbench.simulate.small.node import Small
from workbench.simulate.small.paths import path_text
from workbench.simulate.small.world import SmallWorld

JOINING, GRACE_AND_TIME, GRACE, MERGING, RESTARTED, LOCK_STEP = DEFAULT
ROUND_STATES = ("OPEN", "READY", "GRACE", "PULLING", "MERGING", "COMMITTING")
FAULTS = ("kill learner", "kill syncer", "lose up", "lose down")


@pytest.mark.timeout(600)
def test_every_state_of_the_default_worlds_holds_the_invariants() -> None:
    report = breadth.search()
    print(report)
    assert report.complete
    assert report.states >= 200_000
    assert report.fair_runs >= 10_000
    missed = [(fault, state) for fault in FAULTS for state in ROUND_STATES if not report.met[fault, state]]
    assert missed == [("lose down", "GRACE")], "with every answer in, nothing is on its way down in GRACE"


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_a_million_states() -> None:
    report = breadth.search(LARGE, limit=500_000)
    print(report)
    assert report.states >= 1_000_000


BUGS: dict[str, tuple[Root, ModuleType, str, str, str]] = {
    "UPDATE before commit": (
        MERGING,
        merging,
        "    core.out.append(Commit(round_.t, round_.p, version))\n",
        "    core.state.versions[round_.p] = version; updates.broadcast(core, round_.p, core.now); "
        "core.out.append(Commit(round_.t, round_.p, version))\n",
        "5: UPDATE before its commit",
    ),
    "counters not reset on fold": (
        MERGING,
        folding,
        "    state.c_steps[p], state.c_tokens[p] = counters_after(rule, state.c_steps[p], state.c_tokens[p], since)\n",
        "    pass\n",
        "7: counters differ",
    ),
    "late fragment taken": (
        GRACE_AND_TIME,
        arrivals,
        "    if round_.state >= RoundState.MERGING:\n",
        "    if False:\n",
        "a fragment of a closed round is used",
    ),
    "records acted on before they are complete": (
        MERGING,
        arrivals,
        "    if entry(message.clock, process_of(member.learner)) > member.known_seq:\n",
        "    if False:\n",
        "6: an effect before its record",
    ),
    "records counted and not journalled": (
        JOINING,
        arrivals,
        "    core.append(new)\n    for record in new:\n        if record.kind == Kind.STEP_ENDED:\n",
        "    for record in new:\n        if record.kind == Kind.STEP_ENDED:\n",
        "6: members and the journal",
    ),
    "an unacknowledged record forgotten": (
        MERGING,
        outbox,
        "        del box.unacked[: acked - box.acked]\n",
        "        del box.unacked[: acked - box.acked + 1]\n",
        "6: records kept until acknowledged",
    ),
    "merges forgotten at the syncer's restart": (
        GRACE,
        restart,
        "        _apply_merge(state, record)\n",
        "        state.rounds.pop(record.round, None)\n",
        "6: commit without its record in the journal",
    ),
    "a restart counts a learner that exited before it had joined": (
        JOINING,
        restart,
        "    elif kind == Kind.PROCESS_ENDED and learner_of(record.peer) in state.members:\n",
        "    elif kind == Kind.PROCESS_ENDED and record.peer >= FIRST_LEARNER:\n",
        "6: members and the journal",
    ),
    "a waiting learner that sends no METADATA": (
        LOCK_STEP,
        learner,
        "        core.send_metadata()\n    else:\n        core.send_heartbeat()\n",
        "        core.send_heartbeat()\n    else:\n        core.send_heartbeat()\n",
        "merged within",
    ),
}
"""Name to where the search begins, module, line, what stands in its place, and what breaks."""


@pytest.mark.parametrize("name", BUGS)
def test_planted_bug_is_found_and_its_path_replays(name: str) -> None:
    root, module, line, instead, what = BUGS[name]
    with planted(module, line, instead):
        with pytest.raises(Violation, match=what) as found:
            breadth.search([root])
        with pytest.raises(Violation, match=what) as again:
            breadth.replay(found.value.path)
    assert again.value.path == found.value.path
    assert str(found.value).endswith(f"replay: {found.value.path}")
    breadth.replay(found.value.path)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_second_pull_is_found_thirty_moves_deep() -> None:
    line = "        if member.learner in round_.here or not admission.is_clean(state, member, p, now):\n"
    instead = "        if not admission.is_clean(state, member, p, now):\n"
    with planted(rounds, line, instead), pytest.raises(Violation, match="2: pulled though its fragment is here"):
        breadth.search([MERGING])


def test_a_failing_machine_is_a_violation() -> None:
    with (
        planted(merging, "    round_.merge_at = core.now\n", "    round_.merge_at = core.later\n"),
        pytest.raises(Violation, match=r"AttributeError.*later"),
    ):
        breadth.search([GRACE])


def test_a_limit_ends_a_search_early() -> None:
    report = breadth.search([MERGING], limit=500)
    assert not report.complete
    assert 500 <= report.states < 600


def test_two_searches_visit_the_same() -> None:
    root = Root(Small(quorum=2, crashes=0, losses=1, ticks=1), (0, 1, 0, 1))
    first, second = (breadth.search([root], limit=3_000) for _ in range(2))
    assert first == second


def test_the_syncer_comes_back() -> None:
    _, moves = RESTARTED.reach(SmallWorld(RESTARTED.small))
    found = breadth.replay(path_text(RESTARTED.small, moves))
    assert found.node.crashes == 0
    assert {news[0] for news in found.node.news} == {"connected"}


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("quorum=1 start:0", "holds no bar"),
        ("speed=1 | start:0", "'speed' is no field"),
        ("quorum=one | start:0", "describes no small world"),
        ("quorum=1 | deliver:0.0.sideways.bulk", "is no move"),
        ("quorum=1 | start:0 step:0", r"move 2, step:0, is not possible there"),
        ("quorum=1 | fly:0", "move 1, fly:0, is not possible there"),
    ],
)
def test_a_line_that_is_no_path_is_refused(path: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        breadth.replay(path)
