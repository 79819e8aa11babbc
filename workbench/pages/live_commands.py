"""All that can be done on the page of a run that goes on, for the list on Ctrl+K; keys say the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.pages import lane_choice
from workbench.pages.browser import COMMANDS
from workbench.pages.controls import ACTIONS, MEANINGS
from workbench.pages.panes import Panes

SHEET = (("1 … 9", "choose L0 … L8"), ("K", "kill the chosen learner, or revive it"),
         ("F", "lanes: the whole run so far, or its last seconds"))  # fmt: skip
WORDED = ("lanes", "loss", "figure")
"""Figures of the page that have words and a table."""
KEYS = ["k", "f", *"123456789"]


def commands(learners: Sequence[int], panes: Panes, *, may: bool) -> list[list[Any]]:
    """Name, keys and what is said of each; ``may``: what acts on the run among them."""
    found: list[list[Any]] = []
    if may:
        found += [["kill the chosen learner, or revive it", "K", {"key": "k"}]]
        found += [
            [f"{name}, the chosen learner: {MEANINGS[name]}", "", {"do": "act", "name": name}] for name in ACTIONS
        ]
        found += [
            ["add a learner", "", {"do": "add"}], ["stop the run (asks once more)", "", {"do": "stop"}],
        ]  # fmt: skip
    found += [
        [f"choose L{m}", str(m + 1) if m < 9 else "", {"do": "learner", "learner": str(m)}] for m in learners
    ]  # fmt: skip
    found += [["list of events: with merges or without", "", {"do": "merges"}]]
    found += [["lanes: the whole run so far, or its last seconds", "F", {"do": "whole"}]]
    found += [[f"the numbers of the {name} as a table", "", {"do": "table", "which": name}] for name in WORDED]
    found += lane_choice.commands(learners)
    found += panes.commands()
    found += [
        ["take away PNG: pictures of the figures as they stand", "", {"do": "png"}],
        ["take away SVG: the figures as they stand", "", {"do": "svg"}],
        ["copy link: the address of this page", "", {"do": "link"}],
    ]
    return [*found, *map(list, COMMANDS)]
