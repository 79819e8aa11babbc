from __future__ import annotations

import re
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tests.analysis.runs import rec
from workbench.pages import commands, watcher
from workbench.pages.clicks import Commands
from workbench.pages.controls import ACTIONS, MEANINGS, Controls, clicks_html
from workbench.pages.event_words import Said, said_of, sentence, who
from workbench.pages.tails import Tail
from workbench.protocol.live_storm import Storm
from workbench.protocol.records import SUPERVISOR, SYNCER, Kind, process_of

EVIL = "<script>alert('x')</script>"


def test_a_click_goes_through_its_three_moments_even_if_its_effect_is_told_first() -> None:
    click = commands.fault("kill", 1, down_s=3.0)
    assert (click.what, click.acknowledged, click.seen) == ("kill L1 (down 3 s)", "", "")
    other = rec(Kind.FAULT_INJECTED, 1.0, SUPERVISOR, peer=process_of(1), reason="kill", detail={"fault": 6})
    mine = rec(Kind.FAULT_INJECTED, 2.0, SUPERVISOR, peer=process_of(1), reason="kill", detail={"fault": 7})
    click.note(other, 0.5)
    click.note(mine, 0.5)
    assert click.seen == ""
    click.answered({"done": "kill", "target": "L1", "fault": 7})
    assert click.acknowledged.startswith("after ") and click.seen == "on the tape at 1.50 s"


def test_a_change_of_settings_is_seen_when_somebody_acts_on_its_revision() -> None:
    click = commands.change({"quorum": 2})
    click.answered({"done": "set", "revision": 3, "round": 40, "notes": []})
    assert "revision 3, round 40" in click.acknowledged
    click.note(rec(Kind.SETTING_APPLIED, 1.0, SYNCER, setting=2, round=39), None)
    assert click.seen == ""
    click.note(rec(Kind.SETTING_APPLIED, 2.0, SYNCER, setting=3, round=41), None)
    assert click.seen == "syncer acts on it from round 41 before rounds began"


def test_a_click_that_goes_wrong_on_its_way_is_refused_and_waits_for_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(path: Any, command: Any) -> Any:
        raise OverflowError("can't serialize")

    monkeypatch.setattr(watcher, "send", broken)
    click, here = commands.stop(), SimpleNamespace(run=SimpleNamespace(path="run"), lock=threading.Lock())
    watcher.Watcher.send(here, click)  # type: ignore[arg-type]
    assert "went wrong on its way (OverflowError)" in click.refused and "OverflowError" in caplog.text
    assert "✕ refused: it went wrong" in clicks_html([click])


def test_what_was_clicked_is_told_newest_first_and_escaped() -> None:
    first, second = commands.stop(), commands.change({"merge": EVIL})
    second.refused = EVIL
    html = clicks_html([first, second])
    assert html.index("set merge") < html.index("stop the run")
    assert "<script" not in html and "✕ refused: &lt;script" in html


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # Panel 2's names, which Panel 1.9 does not know
def test_who_may_only_look_sends_nothing() -> None:
    sent: list[Any] = []
    site = SimpleNamespace(asking=SimpleNamespace(submit=lambda *call: sent.append(call)))
    clicks = Commands()
    watched: Any = SimpleNamespace(
        settings={}, lock=threading.Lock(), commands=clicks, config=SimpleNamespace(learners=2), send=None,
        stormer=SimpleNamespace(storm=Storm(2)), targets=(0, 1), status=None, going=True,
    )  # fmt: skip
    for may, count in ((False, 0), (True, 1)):
        session: Any = SimpleNamespace(may_control=may, site=site)
        Controls(session, watched).act("kill", 0)
        assert len(sent) == len(clicks.kept) == count
    assert set(ACTIONS) == set(MEANINGS)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_buttons_and_form_have_one_target_and_what_makes_no_sense_for_it_is_off() -> None:
    learners = [{"learner": m, "state": state, "connected": True, "healed": True} for m, state in enumerate(STATES)]
    watched: Any = SimpleNamespace(
        settings={}, lock=threading.Lock(), commands=Commands(), send=None, going=True,
        stormer=SimpleNamespace(storm=Storm(3), missed=0, struck=0), targets=(0,), status={"learners": learners},
    )  # fmt: skip
    session: Any = SimpleNamespace(may_control=True, site=None)
    controls = Controls(session, watched)
    heard: list[int] = []
    form, off = controls._faults, {}
    controls.heard = heard.append
    for learner in (1, 2, 0):
        controls.choose(learner)
        controls.update()
        assert (f"Act on L{learner}" in controls._acts.object, form._target.value) == (True, learner)
        off[learner] = set(re.findall(r'data-name="([^"]*)" disabled title="L', controls._acts.object))
        assert form._inject.disabled == ("kill" in off[learner])
    assert off == {1: set(ACTIONS), 2: set(ACTIONS) - {"revive", "remove"}, 0: set()}
    assert form._target.options == {"L0": 0}
    controls.choose(1)
    assert "L1 was removed: it takes part no more" in form._meaning.object
    form._target.value = 0
    assert heard[-1] == 0


STATES = ("running", "removed", "ended")


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_of_event_has_words(kind: Kind) -> None:
    said = Said(
        kind, SYNCER, peer=process_of(2), fragment=1, round=5, version=2, step=9, steps=3, value=1.5, reason="late"
    )
    assert sentence(said) and "_" not in sentence(said)
    assert who(said) in ("syncer", "L2")


@pytest.mark.parametrize(
    ("kind", "reason", "words"),
    [
        (Kind.LEARNER_LOST, "socket", "lost: its connection broke (socket)"),
        (Kind.LEARNER_LOST, "removed", "has left: somebody removed it (removed)"),
        (Kind.LEARNER_JOINED, "rejoin", "joined: back after it was lost (rejoin)"),
        (
            Kind.FRAGMENT_DROPPED,
            "pull_limit",
            "to round 9 not merged: its contribution did not come in time (pull_limit)",
        ),
        (Kind.LEARNER_STARVED, "base_behind", "most often: it had not yet folded the newest version in (base_behind)"),
        (Kind.ROUND_SKIPPED, "backlog", "skipped round 9: merging had fallen behind the learners (backlog)"),
    ],
)
def test_reasons_are_said_in_words_with_the_tapes_own_behind_them(kind: Kind, reason: str, words: str) -> None:
    assert words in sentence(Said(kind, SYNCER, peer=process_of(2), round=9, reason=reason))


def test_a_change_says_what_was_changed_and_a_refusal_what_was_refused() -> None:
    detail = {"values": {"quorum": 2, "lead": None}, "who": "page"}
    changed = rec(Kind.SETTING_CHANGED, 1.0, SYNCER, setting=3, detail=detail)
    assert sentence(said_of(changed)) == "settings changed: quorum = 2, lead = none (revision 3)"
    for key, words in (("quorum", "quorum = 9"), ("quarantined", "a release"), ("remove", "a removal")):
        value = {"quorum": 9, "quarantined": False, "remove": True}[key]
        refused = rec(Kind.SETTING_REFUSED, 1.0, SYNCER, reason="so", detail={"values": {key: value}})
        assert sentence(said_of(refused)) == f"{words} was refused: so"


def test_words_of_a_merge_name_its_learners() -> None:
    record = rec(Kind.MERGED, 1.0, SYNCER, fragment=2, round=8, version=4, detail={"learners": [0, 2]})
    assert sentence(said_of(record)) == "merged fragment 2 of L0, L2: version 4 (round 8)"


def test_a_tail_is_bounded_and_counts_what_a_slow_reader_lost() -> None:
    tail: Tail[int] = Tail(3)
    tail.add(range(2))
    assert tail.since(0) == ([0, 1], 0, 2)
    tail.add(range(2, 10))
    assert tail.since(2) == ([7, 8, 9], 5, 10)
    assert tail.since(10) == ([], 0, 10)
