"""What Panel has no widget for: the grid of learners, a list of events, the browser's address and keys.

Each is one component with a little script of its own; texts are set as text, never as HTML.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import panel as pn
import param

from workbench.pages.style import CARD, LINE, QUIET, TEXT
from workbench.views.palette import BLUE, GREEN

FONT = f":host {{ font-family: system-ui, sans-serif; font-size: 13px; color: {TEXT}; }}"


class Component(pn.custom.JSComponent):
    """A component that hands what its script says to ``heard``."""

    heard: Callable[[dict[str, Any]], None] | None = None

    def _handle_msg(self, data: Any) -> None:
        if self.heard is not None and isinstance(data, dict):
            self.heard(data)


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
.cell.chosen {{ outline: 2px solid {BLUE}; }}
.cell:focus-visible {{ outline: 2px solid {BLUE}; outline-offset: 1px; }}
.top {{ display: flex; justify-content: space-between; align-items: center; min-height: 24px; }}
.label {{ font-weight: 700; }}
.state {{ font-weight: 600; white-space: nowrap; }}
.numbers, .note {{ color: {QUIET}; font-size: 12px; font-variant-numeric: tabular-nums; }}
.note {{ overflow: hidden; text-overflow: ellipsis; white-space: nowrap; min-height: 15px; }}
button {{ font: inherit; font-size: 12px; padding: 1px 9px; border: 1px solid {LINE}; border-radius: 5px;
  background: #f6f8fa; cursor: pointer; }}
button:hover {{ border-color: {TEXT}; }}
@media (prefers-reduced-motion: no-preference) {{ .cell {{ transition: border-color .2s; }} }}
"""]  # fmt: skip

    _esm = """
export function render({ model, el }) {
  const grid = document.createElement("div");
  grid.className = "grid";
  el.append(grid);
  const part = (name, tag) => { const one = document.createElement(tag || "div"); one.className = name; return one; };
  const make = number => {
    const cell = part("cell");
    cell.tabIndex = 0; cell.setAttribute("role", "button");
    const top = part("top"), label = part("label", "span"), button = part("act", "button");
    top.append(label, button);
    const state = part("state"), numbers = part("numbers"), note = part("note");
    cell.append(top, state, numbers, note);
    const choose = () => model.send_msg({ choose: number });
    cell.addEventListener("click", choose);
    cell.addEventListener("keydown", e => { if (e.key === "Enter" && e.target === cell) choose(); });
    button.addEventListener("click", e => {
      e.stopPropagation(); model.send_msg({ act: button.textContent, learner: number });
    });
    return { cell, label, button, state, numbers, note };
  };
  const set = (node, text) => { if (node.textContent !== text) node.textContent = text; };
  const made = [];
  const draw = () => {
    const cells = model.cells;
    while (made.length > cells.length) made.pop().cell.remove();
    cells.forEach((data, number) => {
      if (number === made.length) { const one = make(number); made.push(one); grid.append(one.cell); }
      const one = made[number];
      set(one.label, data.label); set(one.state, data.sign + " " + data.word);
      set(one.numbers, data.numbers); set(one.note, data.note); one.note.title = data.note;
      set(one.button, data.button); one.button.style.display = data.button ? "" : "none";
      one.cell.style.borderLeftColor = data.colour;
      one.cell.dataset.state = data.word; one.cell.dataset.learner = number;
      one.cell.setAttribute("aria-label", data.label + " " + data.word);
      one.cell.classList.toggle("chosen", number === model.chosen);
    });
  };
  model.on("cells", draw); model.on("chosen", draw);
  draw();
}
"""


class EventList(Component):
    """Events below each other; of a tape each can be chosen.

    Attributes
    ----------
    rows : list of dict
        event (-1: cannot be chosen), time, who, text, rel (now, past, future, beside or "").
    """

    rows = param.List(default=[])

    _stylesheets: ClassVar[list[str]] = [FONT, f"""
.row {{ display: grid; grid-template-columns: 62px 78px 1fr; gap: 8px; padding: 2px 4px; border-top: 1px solid #eaeef2;
  line-height: 1.4; }}
.time {{ text-align: right; color: {QUIET}; font-variant-numeric: tabular-nums; }}
.text {{ overflow-wrap: anywhere; }}
.row.can {{ cursor: pointer; }} .row.can:hover {{ background: #f0f4f8; }}
.row.past {{ border-left: 4px solid {BLUE}; }} .row.future {{ border-left: 4px solid {GREEN}; }}
.row.beside {{ border-left: 4px solid transparent; color: {QUIET}; }}
.row.now {{ border-left: 4px solid {TEXT}; background: #fff4d6; font-weight: 600; }}
"""]  # fmt: skip

    _esm = """
export function render({ model, el }) {
  const list = document.createElement("div");
  el.append(list);
  const draw = () => {
    list.replaceChildren(...model.rows.map(data => {
      const row = document.createElement("div");
      row.className = "row " + data.rel;
      for (const key of ["time", "who", "text"]) {
        const cell = document.createElement("span");
        cell.className = key; cell.textContent = data[key];
        row.append(cell);
      }
      if (data.event >= 0) {
        row.classList.add("can");
        row.dataset.event = data.event;
        row.addEventListener("click", () => model.send_msg({ event: data.event }));
      }
      return row;
    }));
  };
  model.on("rows", draw);
  draw();
}
"""


class Browser(Component):
    """The address line, going back in it, and keys; keys in text fields are left alone.

    Attributes
    ----------
    address : str
        Shown in the address line without a new page; going back to an earlier one is said as ``{"search": …}``.
    to : str
        Set, the browser goes there.
    keys : list of str
        Keys that are said as ``{"key": …, "shift": …}``.
    """

    address = param.String(default="")
    to = param.String(default="")
    keys = param.List(default=[])

    _esm = """
export function render({ model, el }) {
  el.style.display = "none";
  const typing = e => e.composedPath().some(one =>
    one.tagName && (/^(INPUT|TEXTAREA|SELECT)$/.test(one.tagName) || one.isContentEditable
      || (one.tagName === "BUTTON" && e.key === " ")));
  const key = e => {
    if (!model.keys.includes(e.key) || e.ctrlKey || e.metaKey || e.altKey || typing(e)) return;
    e.preventDefault();
    model.send_msg({ key: e.key, shift: e.shiftKey });
  };
  const back = () => model.send_msg({ search: window.location.search });
  window.addEventListener("keydown", key);
  window.addEventListener("popstate", back);
  model.on("address", () => {
    if (model.address && model.address !== window.location.search) history.pushState(null, "", model.address);
  });
  model.on("to", () => { if (model.to) window.location.assign(model.to); });
  return () => { window.removeEventListener("keydown", key); window.removeEventListener("popstate", back); };
}
"""

    def go(self, to: str) -> None:
        """Leave for another page."""
        self.to = to
