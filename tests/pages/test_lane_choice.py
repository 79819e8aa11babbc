from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.config import ConfigError
from workbench.pages.addresses import Address, address_in
from workbench.pages.lane_choice import LaneChoice, choice_in, commands, lanes_html, lateness
from workbench.pages.layouts import FORMAT, Layout, layout_of

BEHIND = {0: 0.0, 1: 3.5, 2: 1.0, 3: 3.5}


def press(choice: LaneChoice, how: str, learner: int | None = None) -> LaneChoice:
    said = {"do": "lanes", "how": how} | ({} if learner is None else {"learner": str(learner)})
    return choice.heard(said, range(4), BEHIND)


def test_lanes_are_sorted_pinned_and_hidden_and_come_back() -> None:
    choice = LaneChoice()
    assert choice.rows(range(4)) == (0, 1, 2, 3)
    late = press(choice, "late")
    assert late.rows(range(4)) == (1, 3, 2, 0)
    pinned = press(late, "pinned", 0)
    assert pinned.rows(range(4)) == (0, 1, 3, 2)
    hidden = press(press(pinned, "hidden", 3), "hidden", 0)
    assert hidden.rows(range(4)) == (1, 2) and "2 of 4 learners" in lanes_html(hidden, range(4))
    assert press(hidden, "all").rows(range(4)) == (1, 3, 2, 0)
    assert press(hidden, "number").rows(range(4)) == (1, 2)
    assert press(hidden, "idle").collapsed and not press(press(hidden, "idle"), "idle").collapsed
    assert press(press(hidden, "hidden", 3), "hidden", 0) == pinned
    assert press(choice, "nonsense") == press(choice, "hidden", 9) == choice


def test_lanes_by_lateness_say_how_late_each_is() -> None:
    late = lateness({"how": "late"}, "", BEHIND, "at event 7")
    assert late == "Sorted by versions behind at event 7, mean over fragments: L1 3.5, L3 3.5, L2 1, L0 0."
    assert lateness({"how": "pinned"}, late, {}) == late and lateness({"how": "number"}, late, BEHIND) == ""
    sorted_ = press(LaneChoice(), "late")
    assert late in lanes_html(sorted_, range(4), late=late)
    assert late not in lanes_html(press(sorted_, "number"), range(4), late=late)
    many = lateness({"how": "late"}, "", {m: float(m) for m in range(100)})
    assert many.startswith("Sorted by versions behind, mean") and many.endswith("L88 88, 88 more.")


def test_a_learner_that_is_added_gets_a_lane_below_the_others() -> None:
    assert press(LaneChoice(), "late").rows(range(6)) == (1, 3, 2, 0, 4, 5)


def test_every_button_of_the_lanes_is_a_command() -> None:
    said = [one[2] for one in commands(range(3))]
    assert all(lanes_html(LaneChoice(), range(3)).count(f'data-how="{how}"') == n
               for how, n in (("pinned", 3), ("hidden", 3), ("late", 1)))  # fmt: skip
    assert len(said) == 3 + 2 * 3 and {one["do"] for one in said} == {"lanes"}


def test_a_layout_comes_back_from_its_file() -> None:
    layout = Layout("replay", ("why",), LaneChoice((2, 0), (2,), (1,), True), "dark", "rank", "faults", "norms")
    assert layout_of(layout.to_json()) == layout
    assert layout_of(Layout("live").to_json()) == Layout("live")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no layout"),
        ("[" * 100_000, "no layout"),
        ('{"format": "other"}', "no layout"),
        (f'{{"format": "{FORMAT}", "page": "admin"}}', "page = 'admin' in this layout; allowed: 'live', 'replay'"),
        (f'{{"format": "{FORMAT}", "page": "live", "hidden": 3}}', "hidden of this layout is no list"),
        (f'{{"format": "{FORMAT}", "page": "live", "lanes": {{"order": ["a"]}}}}', "something else than learners"),
        (f'{{"format": "{FORMAT}", "page": "live", "theme": {{}}}}', "theme = "),
    ],
)
def test_what_is_no_layout_is_refused_in_a_sentence(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        layout_of(text)
    assert "\n" not in str(caught.value)


NUMBERS = st.lists(st.integers(0, 999_999), unique=True, max_size=6).map(tuple)


@given(NUMBERS, NUMBERS, NUMBERS, st.booleans())
def test_a_choice_comes_back_from_an_address(order: Any, pinned: Any, hidden: Any, collapsed: bool) -> None:
    choice = LaneChoice(order, pinned, hidden, collapsed)
    assert choice_in(choice.text) == choice
    asked = Address("replay", "a", 3, lanes=choice.text, smooth=90, depth=0, find="sent, excluded")
    assert address_in(asked.query("token")) == asked


@given(st.text(max_size=30))
def test_what_is_no_choice_is_left_out(text: str) -> None:
    assert choice_in(choice_in(text).text) == choice_in(text)
