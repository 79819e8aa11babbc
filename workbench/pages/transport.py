"""The buttons that move a cursor over a tape: by event, round, merge or fault, playing, and a slider."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import panel as pn

from workbench.pages import style
from workbench.pages.recording import STEPS, Recording

TICK_MS = 250
SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0)
SIGNS = {"event": "event", "round": "round", "merge": "merge", "fault": "fault"}


class Transport:
    """Parameters
    ----------
    recording : Recording
    go : function (event)
        Moves the cursor.
    event : int
        Where it stands.
    """

    def __init__(self, recording: Recording, go: Callable[[Any], None], event: int) -> None:
        self._recording, self._go, self._event = recording, go, event
        self._playing: Any = None
        self._time_s = 0.0
        last = max(recording.count - 1, 1)
        self._slider: Any = pn.widgets.IntSlider(
            name="event", show_value=False, start=0, end=last, value=event, sizing_mode="stretch_width", margin=(0, 12)
        )
        self._slider.param.watch(lambda change: self._slid(change.new), "value_throttled")
        self._play: Any = style.button("▸ play", kind="primary", width=84, margin=2)
        self._play.on_click(lambda _: self.toggle())
        self._speed: Any = pn.widgets.Select(
            options={f"{speed:g}×": speed for speed in SPEEDS}, value=1.0, width=76, margin=2
        )
        self._where = style.html("")

    def panel(self) -> Any:
        """One row of buttons above the slider."""
        found = self._recording.numbers()
        buttons = []
        for by in STEPS:
            none = by in found and not found[by]
            for forward in (False, True):
                name = f"{SIGNS[by]} ▸" if forward else f"◂ {SIGNS[by]}"
                button = style.button(name, margin=2, disabled=none)
                button.on_click(partial(self._pressed, by, forward))
                buttons.append(button)
        keys = '<span class="quiet">keys: Space, ← →, Shift for rounds, Home, End</span>'
        row = pn.FlexBox(
            self._play, self._speed, *buttons, style.html(keys, sizing_mode=None), gap="2px", margin=0,
            align_items="center", sizing_mode="stretch_width",
        )  # fmt: skip
        return style.card(row, self._slider)

    def show(self, event: int, time_s: float) -> None:
        """The cursor stands there now."""
        self._event = event
        if self._playing is None:
            self._time_s = time_s
        self._slider.name = f"event {event:,} of {self._recording.count:,}, {time_s:.2f} s from the start of rounds"
        if self._slider.value != event:
            self._slider.value = event

    def _pressed(self, by: str, forward: bool, _: Any) -> None:
        self.step(by, forward)

    def step(self, by: str, forward: bool) -> None:
        """Go to the next or previous one of a kind."""
        self._go(self._recording.step(self._event, by, forward))

    def key(self, key: str, shift: bool, event: int) -> None:
        """Do what a key stands for."""
        self._event = event
        if key == " ":
            self.toggle()
        elif key in ("ArrowLeft", "ArrowRight"):
            self.step("round" if shift else "event", key == "ArrowRight")
        elif key in ("Home", "End"):
            self._go(0 if key == "Home" else self._recording.count - 1)

    def toggle(self) -> None:
        """Play, or stop playing."""
        if self._playing is not None:
            self._playing.stop()
            self._playing, self._play.name = None, "▸ play"
            return
        if self._event >= self._recording.count - 1:
            self._go(0)
            self._event = 0
        self._time_s = float(self._recording.time_s[self._event])
        self._playing = pn.state.add_periodic_callback(self._advance, period=TICK_MS)
        self._play.name = "❚❚ pause"

    def _advance(self) -> None:
        self._time_s += TICK_MS / 1e3 * self._speed.value
        event = self._recording.at_time(self._time_s)
        self._go(event)
        if event >= self._recording.count - 1:
            self.toggle()

    def _slid(self, event: int) -> None:
        if event != self._event:
            self._go(event)
