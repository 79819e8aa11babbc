from __future__ import annotations

import numpy as np
import pytest

from workbench.config import ConfigError
from workbench.pages.demo import DEMO
from workbench.pages.panes import Panes
from workbench.pages.places import event_of
from workbench.pages.ranges import range_html
from workbench.pages.recording import Recording
from workbench.pages.replay_commands import KEYS, commands
from workbench.protocol.records import Kind, process_of


@pytest.fixture(scope="module")
def recording() -> Recording:
    return Recording(DEMO)


def test_places_are_found_as_people_type_them(recording: Recording) -> None:
    events = recording.tape["events"].dataset
    kinds, rounds = events["kind"].values, events["round"].values
    opened = np.flatnonzero(kinds == int(Kind.ROUND_OPENED))
    assert event_of(recording, "120") == event_of(recording, " Event #120 ") == 120
    assert event_of(recording, "12.5 s") == event_of(recording, "12500ms") == recording.at_time(12.5)
    assert event_of(recording, f"round {rounds[opened[7]]}") == opened[7]
    assert event_of(recording, "merge 3") == np.flatnonzero(kinds == int(Kind.MERGED))[3]
    assert event_of(recording, "fault 1") == recording.places("fault")[1]
    for text, said in (
        ("somewhere", "is no place; type event 120"),
        ("event 99,999,999", "there is no event 99,999,999: the last is"),
        ("merge 100000", "there is no merge 100,000: the last is 85"),
        ("round 1", "no round 1 was opened; rounds are named"),
    ):
        with pytest.raises(ConfigError, match=said):
            event_of(recording, text)


def test_the_table_of_a_part_says_what_the_tape_holds(recording: Recording) -> None:
    found = recording.tape.wb.within(5.0, 12.0)
    rows = {name: (count, mean, total) for name, count, mean, total in zip(
        *(found[name].values.tolist() for name in ("quantity", "count", "mean", "total")), strict=True
    )}  # fmt: skip
    events, steps = recording.tape["events"].dataset, recording.tape["steps"].dataset
    inside = (recording.time_s >= 5.0) & (recording.time_s < 12.0)
    kinds = events["kind"].values
    assert rows["merges"][0] == (inside & (kinds == int(Kind.MERGED))).sum()
    stepped = inside & (kinds == int(Kind.STEP_ENDED))
    assert rows["inner steps"][0] == stepped.sum() > 50
    tokens = steps["tokens"].values[np.isin(steps["event"].values, np.flatnonzero(stepped))].sum()
    assert rows["tokens processed"][2] == tokens and rows["tokens processed"][1] == pytest.approx(tokens / 7)
    assert rows["training loss"][1] == pytest.approx(events["value"].values[stepped].mean(), rel=1e-6)
    assert not any(np.isfinite(rows[f"{kind} loss"][2]) for kind in ("training", "validation")), (
        "a sum of losses is none"
    )
    assert 0 < rows["goodput (of so many learners)"][1] < 1 and rows["faults injected"][0] == 1
    html = range_html(recording.tape, 5.0, 12.0)
    assert f"{rows['merges'][0]:,}" in html and "tokens/s" in html and "nan" not in html


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # Panel 2's names, which Panel 1.9 does not know
def test_every_key_is_a_command_and_every_command_is_said_once(recording: Recording) -> None:
    panes = Panes()
    panes.card("events")
    found = commands(recording, panes)
    names = [name for name, *_ in found]
    assert len(set(names)) == len(names)
    keys = {said["key"] for _, _, said in found if "key" in said}
    assert keys | set("0123456789") == set(KEYS)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_panes_are_hidden_and_come_back() -> None:
    panes = Panes()
    cards = {name: panes.card(name) for name in ("one", "two")}
    panes.turn("one")
    assert list(panes.hidden) == ["one"] and not cards["one"].visible and cards["two"].visible
    panes.hide(("two", "unknown"))
    assert list(panes.hidden) == ["two"] and cards["one"].visible
    panes.turn("two")
    assert not panes.hidden


def test_what_is_clicked_in_a_figure_is_an_event_of_it(recording: Recording) -> None:
    events = recording.tape["events"].dataset
    process = events["process"].values
    lane = recording.picked("swimlanes", 9.0, process_of(2))
    assert process[lane] == process_of(2)
    mine = np.abs(recording.time_s[process == process_of(2)] - 9.0)
    assert abs(recording.time_s[lane] - 9.0) == mine.min()
    merges = recording.tape["merges"].dataset
    assert recording.picked("contributions", 5.7, 0) == merges["event"].values[5]
    assert recording.picked("contributions", 1e6, 0) == -1
    assert recording.picked("staleness", merges["round"].values[9] + 0.1, 0) == merges["event"].values[9]
    assert recording.picked("goodput", 12.5, 0) == recording.at_time(12.5)
