"""Which runs are laid side by side, in which order: the first is the reference, A."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import panel as pn

from workbench.pages import style
from workbench.pages.addresses import COMPARE, RUNS_MAX, START
from workbench.pages.browser import Browser
from workbench.pages.session import Session

LISTED_MAX = 60


def named(session: Session) -> tuple[str, ...]:
    """The runs of an address, each once, in its order."""
    return tuple(dict.fromkeys(name for name in (session.address.run, *session.address.others) if name))


def left_out(names: Sequence[str]) -> list[Any]:
    """What stands above a comparison of which the address names more runs than fit."""
    if len(names) <= RUNS_MAX:
        return []
    rest = ", ".join(names[RUNS_MAX:])
    return [style.banner(f"The address names {len(names)} runs; {RUNS_MAX} stand side by side. Left out: {rest}.")]


class Choice:
    """Boxes for all runs there are, and a field for the one that the others are compared with.

    Parameters
    ----------
    session : Session
    chosen : sequence of str
        Names that are ticked at first, in order.
    """

    def __init__(self, session: Session, chosen: Sequence[str]) -> None:
        self._session, self._tab = session, Browser()
        self._names = session.site.folders.names()
        self._listed = list(dict.fromkeys([*chosen, *self._names]))[:LISTED_MAX]
        self._order = [name for name in chosen if name in self._listed]
        self.boxes: Any = pn.widgets.CheckBoxGroup(name="runs", options=self._listed, value=list(self._order), margin=4)
        self.reference: Any = style.select(name="reference (A)", options=list(self._order), width=300, margin=4)
        self.said, self._answer = style.html(""), style.html("", visible=False)
        self.boxes.param.watch(lambda change: self._ticked(change.new), "value")
        self.reference.param.watch(lambda _: self._tell(), "value")
        self._tell()

    @property
    def order(self) -> list[str]:
        """The reference, then the others as they were ticked."""
        first = [name for name in self._order if name == self.reference.value]
        return [*first, *(name for name in self._order if name not in first)]

    def _ticked(self, now: list[str]) -> None:
        kept = [name for name in self._order if name in now]
        self._order = [*kept, *(name for name in now if name not in kept)]
        before = self.reference.value
        value = before if before in self._order else next(iter(self._order), None)
        self.reference.param.update(options=list(self._order), value=value)
        self._tell()

    def _tell(self) -> None:
        letters = (f"<b>{chr(ord('A') + at)}</b> {escape(name)}" for at, name in enumerate(self.order))
        self.said.object = f'<p class="name">{" · ".join(letters)}</p>'
        self._answer.visible = False

    def _compare(self) -> None:
        order = self.order
        if not 2 <= len(order) <= RUNS_MAX:
            runs = "1 run is" if len(order) == 1 else f"{len(order)} runs are"
            text = f"{runs} chosen; choose 2 to {RUNS_MAX}."
            self._answer.param.update(object=style.banner_html(text, bad=True), visible=True)
            return
        self._tab.go(self._session.link(COMPARE, order[0], others=tuple(order[1:])))

    def parts(self) -> list[Any]:
        """Everything in its place."""
        go: Any = style.button("compare", kind="primary", margin=4, width=100)
        go.on_click(lambda _: self._compare())
        more = len(set(self._names) - set(self._listed)) + self._session.site.folders.left_out
        note = f'<p class="quiet">not shown: {more:,} older ones</p>' if more else ""
        nothing = "" if self._listed else '<p class="quiet">No run lies below the folders of this server yet.</p>'
        words = f"Choose two to six runs. The others are compared with the reference.{nothing}"
        return [
            style.header("compare", "", [("runs", self._session.link(START))]),
            style.card(
                style.html(f"<h2>Compare runs</h2><p>{words}</p>"), self.boxes, self.reference, self.said, go,
                self._answer, style.html(note),
            ),
            self._tab,
        ]  # fmt: skip
