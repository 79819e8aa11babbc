from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.replay.ordering import Stuck, linear_extension
from workbench.replay.program import SettingApplied, Step

Needs = dict[int, list[list[int]]]
"""By process: for each of its steps the processes of which one step more must have been made before."""


def programs_of(journal: list[int]) -> dict[int, list[Step]]:
    """Programs whose steps stand in the journal in this order of processes."""
    programs: dict[int, list[Step]] = {}
    for event, process in enumerate(journal):
        programs.setdefault(process, []).append(SettingApplied(event, 1.0))
    return programs


def executed(journal: list[int], order: str | int, needs: Callable[[int], int]) -> list[int]:
    """Events in the order in which they were executed; event e needs event ``needs(e)``, -1 for none."""
    done: list[int] = []

    def ready(process: int, step: Step) -> bool:
        return needs(step.event) in (-1, *done)

    for process, step in linear_extension(programs_of(journal), ready, order):
        assert ready(process, step)
        done.append(step.event)
    return done


@given(st.lists(st.integers(0, 4), max_size=40), st.integers(0, 2**32), st.integers(2, 9))
def test_every_step_is_executed_once_in_its_programs_order_when_its_inputs_are_there(
    journal: list[int], seed: int, every: int
) -> None:
    def needs(event: int) -> int:
        return event - every if event >= every and event % 2 else -1

    assert executed(journal, "journal", needs) == list(range(len(journal)))
    done = executed(journal, seed, needs)
    assert sorted(done) == list(range(len(journal)))
    for process in set(journal):
        own = [event for event in done if journal[event] == process]
        assert own == sorted(own)


def test_a_seed_gives_one_order_and_another_seed_another() -> None:
    journal = [0, 1, 2, 3] * 8
    orders = [executed(journal, seed, lambda _: -1) for seed in (1, 1, 2, 3)]
    assert orders[0] == orders[1]
    assert len({tuple(order) for order in orders}) == 3


@pytest.mark.parametrize("order", ["journal", 5])
def test_what_is_never_ready_is_named_by_its_place_in_the_journal(order: Any) -> None:
    with pytest.raises(Stuck) as stuck:
        executed([0, 1, 0, 1, 2], order, lambda event: 99 if event in (1, 2) else -1)
    assert (stuck.value.process, stuck.value.step.event) == (1, 1)
