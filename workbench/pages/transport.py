"""What moves a cursor over a tape: buttons, keys, playing, and a strip over the whole run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import panel as pn

from workbench.analysis.timelines import NAMES
from workbench.pages import style
from workbench.pages.addresses import AXES
from workbench.pages.overview import overview
from workbench.pages.recording import STEPS, Recording
from workbench.pages.scrubber import Scrubber

TICK_MS = 250
SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0, 1000.0)
KEYS = {"n": ("fault", True), "p": ("fault", False), ",": ("lane", False), ".": ("lane", True)}
SHEET = (
    ("Space", "play, pause"), ("← →", "previous, next event"), ("Shift ← →", "previous, next round"),
    ("[ ]", "previous, next merge"), ("P N", "previous, next fault"), ("Shift+E E", "previous, next exclusion"),
    (", .", "previous, next event on the lane of the chosen learner"), ("Home End", "first, last event"),
    ("C", "past and future of the event: show, or hide"),
    ("/", "a place, a pattern as sent, excluded, sent, or a command"), ("Shift+X X", "previous, next match"),
    ("M", "hold the event's past and future, or follow the cursor"), ("1 … 9", "choose L0 … L8; 0: nobody"),
    ("W S", "lanes: closer, further away"), ("A D", "lanes: back, forth"), ("F", "lanes: the whole run, or as usual"),
    ("R", "begin a part of the run at the cursor, end it there"), ("G", "go to an event, a time, a round, a merge"),
)  # fmt: skip


class Transport:
    """Parameters
    ----------
    recording : Recording
    go : function (event, quiet)
        Moves the cursor; quiet: Back need not come by here.
    turn : function (axis)
        Chooses a timeline.
    event : int
        Where the cursor stands.
    axis : str

    Attributes
    ----------
    span_s : (float, float) or None
        The part of the run that playing repeats [s from the start of rounds].
    """

    def __init__(
        self, recording: Recording, go: Callable[[Any, bool], None], turn: Callable[[str], None], event: int, axis: str
    ) -> None:
        self._recording, self._go, self._event, self._axis = recording, go, event, axis
        self._playing: Any = None
        self.span_s: tuple[float, float] | None = None
        self._part = 0.0
        self.strip = Scrubber(sizing_mode="stretch_width", margin=(4, 6), label="cursor on the tape")
        self.strip.heard = self._dragged
        self._play: Any = style.button("▸ play", kind="primary", width=84, margin=2)
        self._play.on_click(lambda _: self.toggle())
        self._speed: Any = style.select(
            name="speed", options={f"{speed:g}×": speed for speed in SPEEDS}, value=1.0, width=84, margin=2
        )
        self._line: Any = style.select(
            name="timeline", options={NAMES[name]: name for name in AXES}, value=axis, width=150, margin=2
        )
        self._line.param.watch(lambda change: turn(change.new), "value")
        self._where = style.html("", sizing_mode=None)
        self.show_axis(axis)

    def panel(self) -> Any:
        """Buttons above the strip."""
        found = self._recording.numbers()
        buttons = []
        for by in STEPS:
            none = by in found and not found[by]
            for forward in (False, True):
                button = style.button(f"{by} ▸" if forward else f"◂ {by}", margin=2, disabled=none)
                button.on_click(partial(self._pressed, by, forward))
                buttons.append(button)
        row = pn.FlexBox(
            self._play, self._speed, self._line, *buttons, gap="2px", margin=0, align_items="end",
            sizing_mode="stretch_width",
        )  # fmt: skip
        return style.card(row, self.strip, self._where)

    def show_axis(self, axis: str) -> None:
        """Lay the strip along an axis."""
        self._axis = axis
        found = overview(self._recording, axis)
        along = self._recording.timeline(axis)
        self.strip.param.update(**found._asdict(), at=along.part(self._event))
        if self._line.value != axis:
            self._line.value = axis

    def show(self, event: int, time_s: float) -> None:
        """The cursor stands there now."""
        self._event = event
        along = self._recording.timeline(self._axis)
        if self._playing is None:
            self._part = along.part(event)
        last = self._recording.count - 1
        said = f"event {event:,} (of 0 to {last:,}), {time_s:.2f} s from the start of rounds"
        self.strip.param.update(at=along.part(event), now=event, most=last, said=said)
        there = "" if self._axis == "wall" else f", at {along.text(float(along.values[event]))}"
        self._where.object = f'<p class="where">{said}{there}</p>'

    def _pressed(self, by: str, forward: bool, _: Any) -> None:
        self.step(by, forward)

    def step(self, by: str, forward: bool, learner: int = -1) -> None:
        """Go to the next or previous one of a kind."""
        self._go(self._recording.step(self._event, by, forward, learner), False)

    def key(self, key: str, shift: bool, event: int, learner: int) -> None:
        """Do what a key stands for."""
        self._event = event
        if key == " ":
            self.toggle()
        elif key in ("ArrowLeft", "ArrowRight"):
            self.step("round" if shift else "event", key == "ArrowRight")
        elif key in ("[", "]"):
            self.step("merge", key == "]")
        elif key == "e":
            self.step("exclusion", not shift)
        elif key in KEYS:
            self.step(*KEYS[key], learner)
        elif key in ("Home", "End"):
            self._go(0 if key == "Home" else self._recording.count - 1, False)

    def toggle(self) -> None:
        """Play, or stop playing."""
        if self._playing is not None:
            self._playing.stop()
            self._playing, self._play.name = None, "▸ play"
            self._go(self._event, False)
            return
        if self._event >= self._last():
            self._event = self._first()
            self._go(self._event, True)
        self._part = self._recording.timeline(self._axis).part(self._event)
        self._playing = pn.state.add_periodic_callback(self._advance, period=TICK_MS)
        self._play.name = "❚❚ pause"

    def _advance(self) -> None:
        """At 1× a run takes as long as it took, along whatever timeline."""
        wall = self._recording.timeline("wall")
        self._part += TICK_MS / 1e3 * self._speed.value / (wall.high - wall.low)
        event = self._recording.timeline(self._axis).event_at(min(self._part, 1.0))
        if self.span_s is not None and (event >= self._last() or event < self._first()):
            event = self._first()
            self._part = self._recording.timeline(self._axis).part(event)
        self._go(event, True)
        if event >= self._recording.count - 1:
            self.toggle()

    def _first(self) -> int:
        """Where playing begins."""
        return 0 if self.span_s is None else self._recording.at_time(self.span_s[0])

    def _last(self) -> int:
        """Where it ends, or begins again."""
        return self._recording.count - 1 if self.span_s is None else self._recording.at_time(self.span_s[1])

    def _dragged(self, said: dict[str, Any]) -> None:
        part = said.get("x")
        if isinstance(part, int | float) and 0 <= part <= 1:
            self._go(self._recording.timeline(self._axis).event_at(float(part)), not said.get("end"))
