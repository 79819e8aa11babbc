"""What Panel has no widget for: the grid of learners, a list of events.

Each is one component with a little script of its own; texts are set as text, never as HTML.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import panel as pn
import param

from workbench.pages.looks import CARD, FUTURE, HAIR, HOVER, LINE, NOW, PAST, PRESS, QUIET, TEXT

FONT = f":host {{ font-family: system-ui, sans-serif; font-size: 13px; color: {TEXT}; }}"

SCRIPTS = Path(__file__).parent / "scripts"


def script(name: str) -> str:
    """The script of a component."""
    return (SCRIPTS / f"{name}.js").read_text(encoding="utf-8")


class Component(pn.custom.JSComponent):
    """A component that hands what its script says to ``heard``."""

    heard: Callable[[dict[str, Any]], None] | None = None

    def _handle_msg(self, data: Any) -> None:
        if self.heard is None or not isinstance(data, dict):
            return
        document: Any = pn.state.curdoc
        if document is None:
            self.heard(data)
        else:  # under the document's lock, which figures need
            document.add_next_tick_callback(partial(self.heard, data))


class LearnerGrid(Component):
    """A cell for each learner: colour, sign and word of its state, its numbers, one button.

    Attributes
    ----------
    cells : list of dict
        label, sign, word, colour, numbers, note, button (its text, "" for none).
    chosen : int
        The learner that is looked at, -1 for none.
    """

    cells = param.List(default=[])
    chosen = param.Integer(default=-1)

    _stylesheets: ClassVar[list[str]] = [FONT, f"""
.grid {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(148px, 1fr)); gap: 8px; }}
.cell {{ background: {CARD}; border: 1px solid {LINE}; border-left: 5px solid gray; border-radius: 6px;
  padding: 6px 9px; cursor: pointer; min-height: 74px; text-align: left; }}
.cell.chosen {{ outline: 2px solid {PAST}; }}
.top {{ display: flex; justify-content: space-between; align-items: center; min-height: 24px; }}
.state {{ font-weight: 600; white-space: nowrap; }}
.numbers, .note {{ color: {QUIET}; font-size: 12px; font-variant-numeric: tabular-nums; }}
.note {{ overflow: hidden; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2;
  min-height: 15px; }}
button {{ font: inherit; font-size: 12px; padding: 1px 9px; border: 1px solid {LINE}; border-radius: 5px;
  background: {PRESS}; color: {TEXT}; cursor: pointer; }}
button:hover {{ border-color: {TEXT}; }}
button:focus-visible {{ outline: 2px solid {PAST}; outline-offset: 1px; }}
button.label {{ font-size: inherit; font-weight: 700; border: 0; background: none; padding: 0; }}
@media (prefers-reduced-motion: no-preference) {{ .cell {{ transition: border-color .2s; }} }}
"""]  # fmt: skip

    _esm = script("grid")


class EventList(Component):
    """Events below each other; of a tape each can be chosen.

    Attributes
    ----------
    rows : list of dict
        event (-1: cannot be chosen), time, who, text, rel (now, past, future, beside or ""), at (whether the cursor
        stands there).
    label : str
    """

    rows = param.List(default=[])
    label = param.String(default="events")

    _stylesheets: ClassVar[list[str]] = [FONT, f"""
.row {{ display: grid; grid-template-columns: 62px 78px 1fr; gap: 8px; padding: 2px 4px; border-top: 1px solid {HAIR};
  line-height: 1.4; }}
.time {{ text-align: right; color: {QUIET}; font-variant-numeric: tabular-nums; }}
.row.signed {{ grid-template-columns: 14px 62px 78px 1fr; }}
.sign {{ color: {QUIET}; text-align: center; }}
.text {{ overflow-wrap: anywhere; }}
button {{ font: inherit; border: 0; background: none; padding: 0; cursor: pointer; }}
button:focus-visible, [role=list]:focus-visible {{ outline: 2px solid {PAST}; }}
.row.can {{ cursor: pointer; }} .row.can:hover {{ background: {HOVER}; }}
.row.past {{ border-left: 4px solid {PAST}; }} .row.future {{ border-left: 4px solid {FUTURE}; }}
.row.beside {{ border-left: 4px solid transparent; color: {QUIET}; }}
.row.now {{ border-left: 4px solid {TEXT}; }}
.row.at {{ background: {NOW}; }} .row.at > * {{ color: {TEXT}; }}
"""]  # fmt: skip

    _esm = script("events")
