"""A figure in words and numbers: what it shows, and a table of what is drawn, for those who do not see it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from bokeh.models.renderers import GlyphRenderer

from workbench import views
from workbench.views.thin import evenly

ROWS_MAX = 40
"""Of a layer; of more so many, evenly spread."""
HEIGHTS = ("low", "high", "rows", "bottom", "top")
LANE_HIDDEN = (*HEIGHTS, "colour", "alpha", "middle")
LANE_NAMES = {"time_s": "from [s]", "until_s": "to [s]", "left": "from [s]", "right": "to [s]"}
HIDDEN = ("index", "level_0")


def caption(name: str) -> str:
    """What a figure shows, a sentence."""
    told = (getattr(views, name).__doc__ or "").strip().splitlines()
    return told[0] if told else ""


def figure_table_html(figure: Any, lanes: Sequence[str] = ()) -> str:
    """A table for each layer that has rows; ``lanes``: names of the heights 0, 1, … of a figure that has lanes."""
    labels = {id(one): item.label.value for legend in figure.legend for item in legend.items for one in item.renderers}
    seen: set[int] = set()
    parts = []
    for renderer in (one for one in figure.renderers if isinstance(one, GlyphRenderer)):
        source: Any = renderer.data_source
        if "image" in source.data and id(source) not in seen:
            seen.add(id(source))
            parts += [_image(np.asarray(one, float), _names(figure, lanes)) for one in source.data["image"]]
            continue
        columns = {name: np.asarray(values) for name, values in source.data.items() if name not in HIDDEN}
        columns = {name: values for name, values in columns.items() if values.ndim == 1 and values.dtype != object}
        if id(source) not in seen and columns and len(next(iter(columns.values()))):
            seen.add(id(source))
            label = str(labels.get(id(renderer), "")) or (_words(columns) if lanes else "rows")
            columns = _with_lanes(columns, lanes) if lanes else columns
            parts.append(_table(label, columns) if label else "")
    none = '<p class="quiet">Nothing of it is rows; the CSV export holds its numbers.</p>'
    return "".join(part for part in parts if part) or none


def _words(columns: dict[str, Any]) -> str:
    """What a layer without a name writes; "" for one that writes nothing, as heads of arrows."""
    return ", ".join(f"{name}, by name" for name, values in columns.items() if values.dtype.kind in "US")


def _names(figure: Any, lanes: Sequence[str]) -> dict[int, str]:
    """Names of the rows of an image: those of the lanes, or those that the axis writes."""
    if lanes:
        return dict(enumerate(lanes))
    written = [axis.major_label_overrides for axis in figure.left if axis.major_label_overrides]
    return {round(at): str(text) for at, text in (written[0] if written else {}).items()}


def _image(image: Any, names: dict[int, str]) -> str:
    """A line for each row of an image that holds something, the uppermost first."""
    rows = []
    for number, values in reversed(list(enumerate(image))):
        there = values[np.isfinite(values)] if values.ndim == 1 else values[:0]
        if len(there):
            told = (len(there), there.min(), there.mean(), there.max())
            rows.append((names.get(number, str(number)), *map(_text, told)))
    head = "".join(f"<th scope='col'>{name}</th>" for name in ("row", "cells", "least", "mean", "most"))
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>each row of the picture</caption><tr>{head}</tr>{body}</table>" if rows else ""


def _with_lanes(columns: dict[str, Any], lanes: Sequence[str]) -> dict[str, Any]:
    """Names of lanes instead of heights, and times in words."""
    ends = [columns[name] for name in HEIGHTS if name in columns]
    heights = [values for values in ends if np.issubdtype(values.dtype, np.number)]
    kept = {LANE_NAMES.get(name, name): values for name, values in columns.items() if name not in LANE_HIDDEN}
    if not heights:
        return kept
    rows = np.rint(np.mean(heights, 0)).astype(int).clip(0, len(lanes) - 1)
    return {"lane": np.array([lanes[row] for row in rows.tolist()]), **kept}


def _table(label: str, columns: dict[str, Any]) -> str:
    count = min(len(values) for values in columns.values())
    kept = evenly(count, ROWS_MAX).tolist()
    heads = "".join(f"<th scope='col'>{escape(name.replace('_', ' '))}</th>" for name in columns)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(_text(values[row]))}</td>' for values in columns.values())}</tr>" for row in kept
    )
    more = f", not shown: {count - len(kept):,} between these" if count > len(kept) else ""
    return f"<table><caption>{escape(label)}{more}</caption><tr>{heads}</tr>{rows}</table>"


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.4g}" if np.isfinite(value) else "–"
    return str(value)
