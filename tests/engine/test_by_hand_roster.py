"""A run whose learners are started by hand takes one more in, and lets one go."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.hands import ByHand
from tests.engine.real_runs import Journal, of_kind, until
from workbench.cli.main import main
from workbench.engine.key_folder import client_keys
from workbench.protocol.records import Kind, process_of
from workbench.replay.exact import replay
from workbench.replay.machines import rerun_machines

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A run of one learner: a second is turned away, added, merged, outlives the syncer, and is removed."""
    place: Path = tmp_path_factory.mktemp("hand")
    hand = ByHand(place, learners=1, lead=12)
    facts: dict[str, Any] = {"run": hand.run_path, "keys": hand.keys}
    try:
        hand.learner(0, "first")
        hand.stepping(0, 1)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            assert main(["control", str(hand.run_path), "add"]) == 0
        facts["said"] = printed.getvalue()
        assert hand.state(1)["state"] == "never seen"
        stranger = hand._start("third", "learner", "--connect", hand.address, "--learner", "2")
        facts["code"], facts["line"] = stranger.ended(), stranger.last
        second = hand.learner(1, "second")
        hand.stepping(1, 1)
        journal = Journal(hand.run_path)
        until(lambda: journal.is_merged(1, 0), "it is merged")
        hand.run.kill("syncer", down_s=0.01)
        until(lambda: "takes part again" in second.said, "it is known to the next syncer too")
        hand.run.remove(1, who="test")
        facts["left"] = second.ended()
        until(lambda: hand.state(1)["state"] == "removed", "it is shown as removed")
        hand.merged(3)
        hand.syncer.interrupt()
        hand.syncer.ended()
        yield facts | {"records": journal.records()}
    finally:
        hand.close()


def test_what_to_type_for_it_is_printed_and_its_key_is_made(changed: dict[str, Any]) -> None:
    said = changed["said"]
    assert "learners [1]" in said and "workbench learner --connect tcp://127.0.0.1:" in said
    assert "--learner 1 --config" in said and f"--keys {changed['keys']}" in said
    assert client_keys(changed["keys"], 1)


def test_who_was_not_added_is_told_how_it_can_be(changed: dict[str, Any]) -> None:
    assert changed["code"] == 2
    assert "learner-2.key cannot be read" in changed["line"]


def test_it_came_by_hand_and_went_in_order(changed: dict[str, Any]) -> None:
    added = of_kind(changed["records"], Kind.LEARNER_ADDED)
    assert [(r.peer, r.detail["who"]) for r in added] == [(process_of(1), "cli")]
    joined = [r for r in of_kind(changed["records"], Kind.LEARNER_JOINED) if r.peer == process_of(1)]
    assert "pid" in joined[0].detail and changed["left"] == 0


def test_it_replays_bit_for_bit(changed: dict[str, Any]) -> None:
    report = replay(changed["run"])
    assert report.bit_exact, report.first_difference
    again = rerun_machines(changed["run"])
    assert again.equal, again.first_difference
