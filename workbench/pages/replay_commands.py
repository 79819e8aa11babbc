"""All that can be done on a page of a tape, for the list on Ctrl+K; keys say the same."""

from __future__ import annotations

from typing import Any

from workbench.pages import lane_choice, share
from workbench.pages.addresses import AXES, SHOWN
from workbench.pages.browser import COMMANDS
from workbench.pages.panes import Panes
from workbench.pages.recording import Recording
from workbench.pages.replay_drawing import COURSES, DEPTHS, SMOOTHINGS, WORDED

STEPS = (
    ("play, pause", "Space", " ", False), ("previous event", "←", "ArrowLeft", False),
    ("next event", "→", "ArrowRight", False), ("previous round", "Shift ←", "ArrowLeft", True),
    ("next round", "Shift →", "ArrowRight", True), ("previous merge", "[", "[", False), ("next merge", "]", "]", False),
    ("previous fault", "P", "p", False), ("next fault", "N", "n", False),
    ("previous exclusion", "Shift+E", "e", True), ("next exclusion", "E", "e", False),
    ("previous event on the lane of the chosen learner", ",", ",", False),
    ("next event on the lane of the chosen learner", ".", ".", False),
    ("first event", "Home", "Home", False), ("last event", "End", "End", False),
    ("hold the event's past and future, or follow the cursor", "M", "m", False),
    ("begin a part of the run at the cursor, or end it there", "R", "r", False),
    ("past and future of the event: show, or hide", "C", "c", False),
    ("next match of the pattern", "X", "x", False), ("previous match of the pattern", "Shift+X", "x", True),
    ("lanes: closer", "W", "w", False), ("lanes: further away", "S", "s", False),
    ("lanes: back", "A", "a", False), ("lanes: forth", "D", "d", False),
    ("lanes: the whole run, or as usual", "F", "f", False),
)  # fmt: skip
"""Name, keys as they are shown, key as it is said, whether with Shift."""
KEYS = [*dict.fromkeys(key for _, _, key, _ in STEPS), *"0123456789"]


def commands(recording: Recording, panes: Panes) -> list[list[Any]]:
    """Name, keys and what is said of each."""
    learners = recording.tape.wb.learners
    found: list[list[Any]] = [[name, keys, {"key": key, "shift": shift}] for name, keys, key, shift in STEPS]
    found += [[f"choose L{m}", str(m + 1) if m < 9 else "", {"do": "learner", "learner": str(m)}] for m in learners]
    found += [[f"figure: {name.replace('_', ' ')}", "", {"do": "choose", "figure": name}] for name in COURSES]
    found += [[f"list: {name}", "", {"do": "choose", "show": name}] for name in SHOWN]
    found += [[f"timeline: {name}", "", {"do": "choose", "axis": name}] for name in AXES]
    found += [[f"the numbers of the {name} as a table", "", {"do": "table", "which": name}] for name in WORDED]
    found += [[f"arrows: {name}", "", {"do": "choose", "depth": str(deep)}] for name, deep in DEPTHS.items()]
    found += [[f"smoothing: {name}", "", {"do": "choose", "smooth": str(much)}] for name, much in SMOOTHINGS.items()]
    found += [["search for a pattern: sent, excluded, sent", "", {"do": "find", "text": "sent, excluded, sent"}]]
    found += [["choose no part of the run", "", {"do": "range", "how": "clear"}]]
    found += lane_choice.commands(learners)
    found += [[lane_choice.IDLE[2], "", {"do": "lanes", "how": lane_choice.IDLE[0]}]]
    found += panes.commands()
    return [*found, *share.commands(), *map(list, COMMANDS)]
