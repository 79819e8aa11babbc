"""What ``tree.wb`` knows of causes: pasts, futures, cuts and chains of a tape's events."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

import numpy as np
import xarray as xr

from workbench.protocol.records import Kind, label_of
from workbench.tape.causality import Arrow, CausalIndex, Link
from workbench.tape.errors import TapeError
from workbench.tape.event_sets import Cut, EventSet
from workbench.tape.whole import whole

__all__ = ["arrows", "before", "concurrent", "cut", "direct_causes", "direct_effects", "future", "past", "path"]


ARROWS_MAX = 120
"""More hide what they are to show."""


class Chain(NamedTuple):
    """One causal chain.

    Attributes
    ----------
    links : tuple of Link
        Events from the first to the last, each with how it follows from the one before.
    lines : tuple of str
        The same for people.
    """

    links: tuple[Link, ...]
    lines: tuple[str, ...]

    @property
    def events(self) -> list[int]:
        """Indices of the events, in causal order."""
        return [link.event for link in self.links]

    def __str__(self) -> str:
        return "\n".join(self.lines)


def index_of(tree: xr.DataTree) -> CausalIndex:
    """The causal index of a tape, built at first use."""
    index: CausalIndex = tree.wb.kept(_build)
    return index


def _build(tree: xr.DataTree) -> CausalIndex:
    events = tree["events"].dataset
    columns = (events[name].values for name in ("process", "seq", "clock", "cause", "time_ns"))
    return CausalIndex(*columns)


def _kinds(tree: xr.DataTree) -> np.ndarray:
    return np.asarray(tree["events"].dataset["kind"].values)


def past(tree: xr.DataTree, event: int) -> EventSet:
    """Events that happened before an event: a prefix of every process."""
    index = index_of(tree)
    event = index.checked(event)
    stops = index.past(event)
    return index.event_set(f"past of event {event}", np.zeros_like(stops), stops)


def future(tree: xr.DataTree, event: int) -> EventSet:
    """Events that an event happened before: a suffix of every process."""
    index = index_of(tree)
    event = index.checked(event)
    return index.event_set(f"future of event {event}", index.future(event), index.lengths)


def concurrent(tree: xr.DataTree, event: int) -> EventSet:
    """Events that neither happened before an event nor after it; none of its own process."""
    index = index_of(tree)
    event = index.checked(event)
    starts, stops = index.past(event), index.future(event)
    stops[index.process[event]] = starts[index.process[event]]
    return index.event_set(f"concurrent with event {event}", starts, stops)


def before(tree: xr.DataTree, a: int, b: int) -> bool:
    """Whether event a happened before event b; neither before the other: they are concurrent, or one."""
    index = index_of(tree)
    return index.before(index.checked(a), index.checked(b))


def cut(tree: xr.DataTree, event: int | None = None, time_ns: int | None = None) -> Cut:
    """A consistent cut: closed under causes.

    Parameters
    ----------
    event : int, optional
        The smallest cut that holds this event: its past and itself.  Left out is what was recorded before it and did
        not influence it.
    time_ns : int, optional
        The greatest cut with events up to this time only, each on the clock of its own process (those of several
        machines need not agree).  Left out is what happened by then on one clock, of which a cause did not on another.

    Raises
    ------
    TapeError
        Unless exactly one of both is given.
    """
    if (event is None) == (time_ns is None):
        raise TapeError("a cut is made at one place; type cut(event=41) or cut(time_ns=2_000_000_000)")
    index = index_of(tree)
    if event is not None:
        event = index.checked(event)
        stops = index.past(event)
        stops[index.process[event]] += 1
        return index.cut(f"cut at event {event}", stops, index.recorded_before(event + 1))
    assert time_ns is not None
    asked = index.at_time(time_ns)
    return index.cut(f"cut at {time_ns * 1e-9:g} s", index.closed(asked), asked)


def direct_causes(tree: xr.DataTree, event: int) -> list[Link]:
    """What an event follows from directly.

    Returns
    -------
    list of Link
        (event, how), ascending: its predecessor on its own process; the send that its record names; and of what else
        its process had heard of, the events that are not before another of them.
    """
    index = index_of(tree)
    return index.direct_causes(index.checked(event))


def direct_effects(tree: xr.DataTree, event: int) -> list[Link]:
    """What follows from an event directly: events that have it among their `direct_causes`."""
    index = index_of(tree)
    return index.direct_effects(index.checked(event))


def arrows(tree: xr.DataTree, event: int, depth: int = 1, most: int = ARROWS_MAX) -> list[Arrow]:
    """From direct cause to direct effect around an event, so many steps deep.

    Parameters
    ----------
    tree : xarray.DataTree
    event : int
    depth : int
        1: only what the event follows from directly and what follows from it directly; 2: that of those too; …
    most : int
        At most so many, the nearest first.

    Returns
    -------
    list of Arrow
        (cause, effect, how, depth); ``depth`` is below 0 in the event's past.
    """
    index = index_of(tree)
    return list(islice(index.arrows(index.checked(event), whole(depth, "depth")), most))


def path(tree: xr.DataTree, a: int, b: int) -> Chain:
    """One causal chain from event a to event b.

    Raises
    ------
    TapeError
        When a did not happen before b.
    """
    index = index_of(tree)
    links = index.chain(index.checked(a), index.checked(b))
    kinds = tree.wb.kept(_kinds)
    lines = tuple(f"{_how(link)}event {link.event}: {_named(index, kinds, link.event)}" for link in links)
    return Chain(tuple(links), lines)


def _how(link: Link) -> str:
    return "" if link.how == "begin" else f"{link.how} → "


def _named(index: CausalIndex, kinds: np.ndarray, event: int) -> str:
    return f"{Kind(kinds[event]).name.lower()} of {label_of(int(index.process[event]))}"
