"""Which lanes are shown, in which order: pinned ones on top, hidden ones not at all."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from workbench.pages.style import do


class LaneChoice(NamedTuple):
    """Attributes
    ----------
    order : tuple of int
        Learners from top to bottom; those that are not named follow by number.
    pinned, hidden : tuple of int
    collapsed : bool
        Whether times in which none of them does anything are drawn narrow.
    """

    order: tuple[int, ...] = ()
    pinned: tuple[int, ...] = ()
    hidden: tuple[int, ...] = ()
    collapsed: bool = False

    @property
    def text(self) -> str:
        """The choice as a part of an address: `choice_in` reads it."""
        parts = [f"{name[0]}{'.'.join(map(str, getattr(self, name)))}" for name in LISTS if getattr(self, name)]
        return "_".join([*parts, *(["c"] if self.collapsed else [])])

    def rows(self, learners: Sequence[int]) -> tuple[int, ...]:
        """Learners that have a lane, from top to bottom."""
        ordered = dict.fromkeys([*self.pinned, *self.order, *sorted(learners)])
        return tuple(m for m in ordered if m in learners and m not in self.hidden)

    def by_number(self) -> LaneChoice:
        """Sorted by number."""
        return self._replace(order=())

    def by_lateness(self, behind: Mapping[int, float]) -> LaneChoice:
        """Sorted so that those who are furthest behind now come first."""
        return self._replace(order=tuple(sorted(behind, key=lambda m: (-behind[m], m))))

    def turned(self, name: str, learner: int) -> LaneChoice:
        """With a learner pinned or hidden, or neither any more; ``name`` is ``pinned`` or ``hidden``."""
        chosen = getattr(self, name)
        others = tuple(m for m in chosen if m != learner)
        now = others if learner in chosen else (*others, learner)
        return self._replace(pinned=now) if name == "pinned" else self._replace(hidden=now)

    def heard(self, said: Mapping[str, Any], learners: Sequence[int], behind: Mapping[int, float]) -> LaneChoice:
        """What becomes of it when one of its buttons was pressed."""
        what, learner = str(said.get("how", "")), str(said.get("learner", ""))
        if what in ("pinned", "hidden") and learner.isdecimal() and int(learner) in learners:
            return self.turned(what, int(learner))
        if what == "late":
            return self.by_lateness(behind)
        ways = {
            "number": self.by_number(), "all": self._replace(pinned=(), hidden=()),
            "idle": self._replace(collapsed=not self.collapsed),
        }  # fmt: skip
        return ways.get(what, self)


LISTS = ("order", "pinned", "hidden")
_PART = re.compile(r"([oph])(\d{1,6}(?:\.\d{1,6})*)$", re.ASCII)


def choice_in(text: str) -> LaneChoice:
    """Read a part of an address; what makes no sense is left out.

    Examples
    --------
    >>> choice_in("o2.0_h1_c").rows(range(4)), choice_in("o2.0_h1_c").text, choice_in("o;x").text
    ((2, 0, 3), 'o2.0_h1_c', '')
    """
    parts = text.split("_")
    lists = {
        found[1]: tuple(dict.fromkeys(map(int, found[2].split(".")))) for found in map(_PART.match, parts) if found
    }
    return LaneChoice(lists.get("o", ()), lists.get("p", ()), lists.get("h", ()), "c" in parts)


WAYS = (
    ("number", "by number", "lanes by number"), ("late", "by lateness", "lanes by lateness, the latest first"),
    ("all", "show all", "show all lanes, pin none"),
)  # fmt: skip
"""Buttons for all lanes: what they say, their text, their meaning."""
LATE_MAX = 12
"""Learners of which is said how late they are."""
IDLE = ("idle", "collapse idle times", "collapse idle times: draw narrow what nobody with a lane does anything in")


def lateness(said: Mapping[str, Any], before: str, behind: Mapping[int, float], when: str = "") -> str:
    """By how much each learner is late where lanes were sorted by that; ``before``: what was told until now.

    Examples
    --------
    >>> lateness({"how": "late"}, "", {0: 0.0, 1: 2.25}, "at event 7")
    'Sorted by versions behind at event 7, mean over fragments: L1 2.25, L0 0.'
    """
    if said.get("how") != "late":
        return "" if said.get("how") == "number" else before
    ordered = sorted(behind, key=lambda m: (-behind[m], m))
    told = ", ".join(f"L{m} {behind[m]:.3g}" for m in ordered[:LATE_MAX])
    rest = f", {len(ordered) - LATE_MAX:,} more" if len(ordered) > LATE_MAX else ""
    return f"Sorted by versions behind{' ' * bool(when)}{when}, mean over fragments: {told}{rest}." if told else ""


def lanes_html(
    choice: LaneChoice, learners: Sequence[int], *, unfolded: bool = False, can_collapse: bool = False, late: str = ""
) -> str:
    """The buttons, folded up until they are wanted; ``late``: by how much learners are late, if that sorted them."""
    ways = "".join(do("lanes", text, meaning, how=how) for how, text, meaning in WAYS)
    if can_collapse:
        ways += do("lanes", IDLE[1], IDLE[2], pressed=choice.collapsed, how=IDLE[0])
    shown = choice.rows(learners)
    left_out = [m for m in learners if m not in shown]
    rows = "".join(_row(choice, m) for m in (*shown, *left_out))
    said = f"<b>Lanes</b>: {len(shown)} of {len(learners)} learners"
    pinned = ", ".join(f"L{m}" for m in choice.pinned if m in shown)
    sorted_by = f'<p class="quiet">{escape(late)}</p>' if late and choice.order else ""
    note, state = f", {escape(pinned)} pinned" if pinned else "", " open" if unfolded else ""
    return (
        f'<details class="lanes"{state}><summary>{said}{note}</summary><div class="dos">{ways}</div>{sorted_by}'
        f'<div class="chips">{rows}</div></details>'
    )


def _row(choice: LaneChoice, learner: int) -> str:
    def press(how: str, text: str) -> str:
        on = learner in getattr(choice, how)
        return do("lanes", text, f"{text} L{learner}", pressed=on, how=how, learner=learner)

    return f'<span class="chip"><b>L{learner}</b>{press("pinned", "pin")}{press("hidden", "hide")}</span>'


def commands(learners: Sequence[int]) -> list[list[Any]]:
    """The same for the list of commands."""
    found = [[meaning, "", {"do": "lanes", "how": how}] for how, _, meaning in WAYS]
    for how, verb in (("pinned", "pin"), ("hidden", "hide")):
        found += [[f"{verb} the lane of L{m}", "", {"do": "lanes", "how": how, "learner": str(m)}] for m in learners]
    return found
