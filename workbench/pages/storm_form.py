"""A slider for the rate of a storm, and boxes for its kinds."""

from __future__ import annotations

from typing import Any

import panel as pn

from workbench.pages import style
from workbench.pages.session import Session
from workbench.pages.storm import KINDS, RATE_MAX
from workbench.pages.watcher import Watcher


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
        self._rate: Any = pn.widgets.IntSlider(
            name="faults per minute", start=0, end=RATE_MAX, value=int(storm.rate), width=230, margin=(4, 10)
        )
        self._kinds: Any = pn.widgets.CheckBoxGroup(
            name="kinds", options=list(KINDS), value=list(storm.kinds), inline=True, margin=4
        )
        self._said = style.html("")
        self._rate.param.watch(lambda _: self._turn(), "value_throttled")
        self._kinds.param.watch(lambda _: self._turn(), "value")
        self._quiet = False

    def panel(self) -> Any:
        """The form."""
        return pn.Column(
            pn.FlexBox(self._rate, self._kinds, gap="2px", margin=0, sizing_mode="stretch_width"), self._said,
            margin=0, sizing_mode="stretch_width",
        )  # fmt: skip

    def update(self) -> None:
        """Show how the storm stands: it may have been turned in another tab."""
        storm = self._watcher.stormer.storm
        self._quiet = True
        if self._rate.value != int(storm.rate) and self._rate.value == self._rate.value_throttled:
            self._rate.param.update(value=int(storm.rate), value_throttled=int(storm.rate))
        self._quiet = False
        state = f"blows, {storm.rate:g} a minute" if storm.rate else "is calm"
        self._say(f"The storm {state}; {storm.count:,} faults so far. Each stands on the tape like any other fault.")

    def _say(self, text: str) -> None:
        html = f'<p class="quiet">{text}</p>'
        if html != self._said.object:
            self._said.object = html

    def _turn(self) -> None:
        if self._session.may_control and not self._quiet:
            self._watcher.stormer.turn(float(self._rate.value), tuple(self._kinds.value))
