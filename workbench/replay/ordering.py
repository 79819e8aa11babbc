"""Linear extensions of the causal order: in which order the programs of a run are executed.

A step is ready when what it reads is there; any order of ready steps gives the same bits (DESIGN section 3).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush

from workbench.replay.program import Step

Ready = Callable[[int, Step], bool]
"""(process, step) to whether its inputs are there."""

BURSTS = (1, 1, 3, 20, 100)
"""How many steps of one process a random order takes at a time: near lock-step, and far apart."""


class Stuck(Exception):
    """Steps are left and none is ready.

    Attributes
    ----------
    process, step : int, Step
        The one that stands first in the journal.
    """

    def __init__(self, process: int, step: Step) -> None:
        super().__init__(f"{step} of process {process} waits for what the tape does not hold")
        self.process, self.step = process, step


def linear_extension(programs: dict[int, list[Step]], ready: Ready, order: str | int) -> Iterator[tuple[int, Step]]:
    """Yield (process, step) so that each is ready when it is yielded; execute it before asking for the next.

    Parameters
    ----------
    programs : dict of int to list of Step
    ready : function
    order : "journal" or int
        As recorded, or a random order that hangs off this seed.

    Raises
    ------
    Stuck
        Nothing is ready.
    """
    check_order(order)
    return _random(programs, ready, random.Random(order)) if isinstance(order, int) else _journal(programs, ready)


def check_order(order: str | int) -> None:
    """Refuse what is no order.

    Raises
    ------
    ValueError
    """
    if isinstance(order, bool) or not (order == "journal" or isinstance(order, int)):
        raise ValueError(
            f"order = {order!r} is unknown; allowed: 'journal', or a whole number as the seed of a random one"
        )


def _journal(programs: dict[int, list[Step]], ready: Ready) -> Iterator[tuple[int, Step]]:
    heads = [(steps[0].event, process, 0) for process, steps in programs.items() if steps]
    heapify(heads)
    waiting: list[tuple[int, int, int]] = []
    while heads:
        event, process, at = heappop(heads)
        steps = programs[process]
        if not ready(process, steps[at]):
            waiting.append((event, process, at))
            continue
        yield process, steps[at]
        if at + 1 < len(steps):
            heappush(heads, (steps[at + 1].event, process, at + 1))
        while waiting:
            heappush(heads, waiting.pop())
    if waiting:
        _, process, at = min(waiting)
        raise Stuck(process, programs[process][at])


def _random(programs: dict[int, list[Step]], ready: Ready, rng: random.Random) -> Iterator[tuple[int, Step]]:
    heads = {process: 0 for process, steps in programs.items() if steps}
    while heads:
        able = [process for process, at in heads.items() if ready(process, programs[process][at])]
        if not able:
            process = min(heads, key=lambda process: programs[process][heads[process]].event)
            raise Stuck(process, programs[process][heads[process]])
        process = rng.choice(able)
        steps = programs[process]
        for _ in range(rng.choice(BURSTS)):
            at = heads[process]
            if not ready(process, steps[at]):
                break
            yield process, steps[at]
            if at + 1 == len(steps):
                del heads[process]
                break
            heads[process] = at + 1
