"""A figure in words and numbers: what it shows, and a table of what is drawn, for those who do not see it."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from bokeh.models.renderers import GlyphRenderer

from workbench import views
from workbench.views.thin import evenly

ROWS_MAX = 40
"""Of a layer; of more so many, evenly spread."""
HIDDEN = ("index", "level_0")


def caption(name: str) -> str:
    """What a figure shows, a sentence."""
    told = (getattr(views, name).__doc__ or "").strip().splitlines()
    return told[0] if told else ""


def figure_table_html(figure: Any) -> str:
    """A table for each layer that has rows."""
    labels = {id(one): item.label.value for legend in figure.legend for item in legend.items for one in item.renderers}
    seen: set[int] = set()
    parts = []
    for renderer in figure.select(GlyphRenderer):
        source = renderer.data_source
        columns = {name: np.asarray(values) for name, values in source.data.items() if name not in HIDDEN}
        columns = {name: values for name, values in columns.items() if values.ndim == 1 and values.dtype != object}
        if id(source) not in seen and columns and len(next(iter(columns.values()))):
            seen.add(id(source))
            parts.append(_table(str(labels.get(id(renderer), "")), columns))
    none = '<p class="quiet">Nothing of it is rows; the CSV export holds its numbers.</p>'
    return "".join(part for part in parts if part) or none


def _table(label: str, columns: dict[str, Any]) -> str:
    count = min(len(values) for values in columns.values())
    kept = evenly(count, ROWS_MAX).tolist()
    heads = "".join(f"<th scope='col'>{escape(name.replace('_', ' '))}</th>" for name in columns)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(_text(values[row]))}</td>' for values in columns.values())}</tr>" for row in kept
    )
    more = f", not shown: {count - len(kept):,} between these" if count > len(kept) else ""
    return f"<table><caption>{escape(label or 'rows')}{more}</caption><tr>{heads}</tr>{rows}</table>"


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.4g}" if np.isfinite(value) else "–"
    return str(value)
