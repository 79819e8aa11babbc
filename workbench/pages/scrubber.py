"""What is dragged: a cursor on the strip over a whole run, and a number on a scale."""

from __future__ import annotations

from typing import ClassVar

import param

from workbench.pages.looks import CARD, HAIR, LINE, PAST, QUIET, TEXT
from workbench.pages.widgets import FONT, Component, script
from workbench.views.palette import PURPLE, VERMILLION


class Scrubber(Component):
    """A strip with a handle; it says ``{"x": 0 to 1, "end": whether it was let go}``.

    Attributes
    ----------
    marks : list of dict
        ``x`` and ``to`` (0 to 1), ``kind`` (``fault`` or ``exclusion``), ``name``.
    line : list of (float, float)
        The loss: 0 to 1 along and up.
    low, high, legend : str
        What stands at the ends and between them.
    at : float
        The handle, 0 to 1.
    now, most : int
    said, label : str
        The same for those who hear the page: number, greatest number, words; what the strip is.
    """

    marks = param.List(default=[])
    line = param.List(default=[])
    low = param.String(default="")
    high = param.String(default="")
    legend = param.String(default="")
    at = param.Number(default=0.0)
    now = param.Integer(default=0)
    most = param.Integer(default=1)
    said = param.String(default="")
    label = param.String(default="cursor")

    _stylesheets: ClassVar[list[str]] = [FONT, f"""
.strip {{ position: relative; height: 46px; background: {CARD}; border: 1px solid {LINE}; border-radius: 4px;
  cursor: ew-resize; touch-action: none; }}
.strip:focus-visible {{ outline: 2px solid {PAST}; outline-offset: 2px; }}
svg {{ width: 100%; height: 100%; display: block; }}
.line {{ fill: none; stroke: {PAST}; stroke-width: 1.6; }}
.fault {{ fill: {VERMILLION}; fill-opacity: .3; }}
.exclusion {{ fill: {PURPLE}; }}
.handle {{ position: absolute; top: -4px; bottom: -4px; width: 3px; margin-left: -1.5px; background: {TEXT};
  border-radius: 2px; pointer-events: none; }}
.ends {{ display: flex; justify-content: space-between; gap: 12px; color: {QUIET}; font-size: 12px; padding-top: 3px;
  border-top: 0 solid {HAIR}; font-variant-numeric: tabular-nums; }}
"""]  # fmt: skip

    _esm = script("scrubber")


class Slide(Component):
    """A whole number on a scale from 0; it says ``{"value": …}`` when it is let go.

    Attributes
    ----------
    label : str
    now, most : int
    """

    label = param.String(default="")
    now = param.Integer(default=0)
    most = param.Integer(default=100)

    _stylesheets: ClassVar[list[str]] = [FONT, f"""
label {{ display: flex; flex-direction: column; gap: 4px; color: {TEXT}; }}
input {{ width: 100%; margin: 0; accent-color: {PAST}; }}
input:focus-visible {{ outline: 2px solid {PAST}; outline-offset: 2px; }}
"""]  # fmt: skip

    _esm = script("slide")
