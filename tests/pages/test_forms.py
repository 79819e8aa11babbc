from __future__ import annotations

from typing import Any

import pytest

from workbench.config import ConfigError
from workbench.pages import commands
from workbench.pages.clicks import Commands
from workbench.pages.fault_form import KINDS, FaultForm, number_of, usual_numbers
from workbench.pages.forking import Question, sentence_of
from workbench.pages.settings_form import SettingsForm, text_of
from workbench.protocol.faults import FAULT_KINDS, SYNCER_KINDS
from workbench.protocol.scenario import fault_of, keys_of


@pytest.mark.parametrize("kind", KINDS)
def test_the_form_of_a_fault_asks_for_its_own_numbers_and_its_usual_values_are_taken(kind: str) -> None:
    fields = usual_numbers(kind)
    assert set(fields) <= set(keys_of(kind)) and set(keys_of(kind)) - set(fields) <= {"for_s"}
    learner = {} if kind in SYNCER_KINDS else {"learner": 0}
    usual = fault_of({"kind": kind, **learner}, kind, 1, now=True)
    values = {key: number_of(key, text) for key, text in fields.items() if text}
    assert fault_of({"kind": kind, **learner, **values}, kind, 1, now=True) == usual
    assert set(KINDS) | {"late"} == set(FAULT_KINDS)


def test_what_is_no_number_is_refused_in_a_sentence() -> None:
    for key, text in (("count", "1.5"), ("factor", "much"), ("seed", "-")):
        with pytest.raises(ConfigError, match=f"{key} = .*; allowed: a number"):
            number_of(key, text)


def test_a_fault_says_the_numbers_that_it_acts_with_also_those_that_nobody_gave() -> None:
    asked = {
        "bandwidth L0 (for 3 s, 1,000,000 bytes/s)": ("bandwidth", {}),
        "slow L0 (until healed, factor 2)": ("slow", {"for_s": 0.0, "factor": 2.0}),
        "delay L0 (for 3 s, 0.2 s longer, give or take 0.1 s)": ("delay", {"jitter_s": 0.1}),
        "kill L0 (down 3 s)": ("kill", {}),
        "kill L0 (for good)": ("kill", {"down_s": 0.0}),
        "nan L0 (count 1)": ("nan", {}),
    }
    assert [commands.fault(kind, 0, **values).what for kind, values in asked.values()] == list(asked)
    with pytest.raises(ConfigError, match=r"slow: factor = 0.5; allowed: a number from 1 to 1e\+09"):
        commands.fault("slow", 0, factor=0.5)
    with pytest.raises(ConfigError, match=r"lose_up: count = a whole number of more digits .*; allowed"):
        commands.fault("lose_up", 0, count=10**5000)


def test_a_change_is_undone_once_by_what_held_before() -> None:
    clicks = Commands()
    change = commands.change({"merge": "mean", "lead": 3}, {"merge": "rda", "lead": None})
    slow, kill = commands.fault("slow", 1, factor=2.0), commands.fault("kill", 0)
    for one in (change, slow, kill):
        clicks.add(one)
    assert [one.number for one in clicks.kept] == [0, 1, 2]
    assert clicks.inverse("0") is None  # not acknowledged yet
    for one in (change, slow, kill):
        one.answered({"revision": 4, "round": 9, "fault": 1})
    undone = clicks.inverse("0")
    assert undone is not None and undone.request["values"] == {"merge": "rda", "lead": None}
    assert clicks.inverse("0") is None and clicks.inverse("2") is None and clicks.inverse("x") is None
    healed = clicks.inverse("1")
    assert healed is not None and healed.request == {"verb": "heal", "target": 1}
    undone.answered({"revision": 5, "round": 12})
    assert undone.inverse is not None and undone.inverse().request["values"] == {"merge": "mean", "lead": 3}


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # Panel 2's names, which Panel 1.9 does not know
def test_a_choice_is_wide_enough_for_its_longest_word() -> None:
    form = SettingsForm({"weights": "uniform", "guard_nonfinite": True}, lambda command: None)
    assert form._fields["weights"].width >= 8 * len("tokens2_per_step") + 40
    assert form._fields["guard_nonfinite"].width < 144


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_what_no_message_can_carry_is_refused_in_the_forms() -> None:
    sent: list[Any] = []
    settings = SettingsForm({"quorum": 2}, sent.append)
    for typed in ("99999999999999999999", "9" * 5000, "\udcff"):
        settings._fields["quorum"].value = typed
        settings._on_apply()
    faults = FaultForm((0, 1), sent.append)
    faults._kind.value = "lose_up"
    for typed in ("9" * 400, "nan"):
        faults._fields["count"].value = typed
        faults._on_inject()
    faults._kind.value = "slow"
    for typed in ("1e400", "nan", "inf"):
        faults._fields["factor"].value = typed
        faults._on_inject()
    assert [one.refused.partition("; ")[2] for one in sent[:3]] == ["allowed: 1 to 4096"] * 3
    assert sent[0].refused == "quorum = 99999999999999999999 is out of range; allowed: 1 to 4096"
    assert all("allowed: a " in one.refused and len(one.refused) < 200 for one in sent[3:]) and len(sent) == 8


def test_settings_read_as_they_are_typed() -> None:
    assert [text_of(value) for value in (None, True, 0.5, 3, "rda")] == ["none", "true", "0.5", "3", "rda"]


def test_a_question_is_asked_as_on_the_command_line() -> None:
    asked = Question((("quorum", "3"), ("grace", "none")), 216, ("kill:2",), 4)
    assert asked.arguments() == [
        "--set=quorum=3", "--set=grace=none", "--without=kill:2", "--from-round=216", "--seeds=4",
    ]  # fmt: skip
    assert Question(without=("nan",), from_round=7).arguments() == ["--without=nan", "--seeds=1"]


def test_the_line_that_says_what_is_wrong_is_found() -> None:
    assert sentence_of(["merges", "workbench: quorum = 9 with 4 learners; allowed: 1 to 4", ""]).startswith(
        "quorum = 9"
    )
    assert sentence_of(["killed"]) == "killed" and sentence_of([]) == ""
