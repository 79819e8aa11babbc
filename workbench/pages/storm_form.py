"""A slider for the rate of a storm, and boxes for its kinds."""

from __future__ import annotations

from typing import Any

import panel as pn

from workbench.pages import style
from workbench.pages.scrubber import Slide
from workbench.pages.session import Session
from workbench.pages.watcher import Watcher
from workbench.protocol.live_storm import KINDS, RATE_MAX


class StormForm:
    """Parameters
    ----------
    watcher : Watcher
        Its storm goes on when this page is closed, and is the same in all tabs.
    session : Session
    """

    def __init__(self, watcher: Watcher, session: Session) -> None:
        self._watcher, self._session = watcher, session
        storm = watcher.stormer.storm
        self._rate = Slide(label="faults per minute", most=RATE_MAX, now=int(storm.rate), width=230, margin=(4, 10))
        self._rate.heard = self._slid
        self._kinds: Any = pn.widgets.CheckBoxGroup(
            name="kinds", options=list(KINDS), value=list(storm.kinds), inline=True, margin=4
        )
        self._said = style.html("")
        self._kinds.param.watch(lambda _: self._turn(self._rate.now), "value")

    def panel(self) -> Any:
        """The form."""
        return pn.Column(
            pn.FlexBox(self._rate, self._kinds, gap="2px", margin=0, sizing_mode="stretch_width"), self._said,
            margin=0, sizing_mode="stretch_width",
        )  # fmt: skip

    def update(self) -> None:
        """Show how the storm stands: it may have been turned in another tab."""
        stormer = self._watcher.stormer
        storm = stormer.storm
        if self._rate.now != int(storm.rate):
            self._rate.now = int(storm.rate)
        state = f"blows, {storm.rate:g} a minute" if storm.rate else "is calm"
        missed = f", {stormer.missed:,} found nobody" if stormer.missed else ""
        self._say(
            f"The storm {state}; {stormer.struck:,} struck{missed}. Each stands on the tape like any other fault."
        )

    def _say(self, text: str) -> None:
        html = f'<p class="quiet">{text}</p>'
        if html != self._said.object:
            self._said.object = html

    def _slid(self, said: dict[str, Any]) -> None:
        value = said.get("value")
        if isinstance(value, int | float) and 0 <= value <= RATE_MAX:
            self._turn(int(value))

    def _turn(self, rate: int) -> None:
        if self._session.may_control:
            self._watcher.stormer.turn(float(rate), tuple(self._kinds.value))
