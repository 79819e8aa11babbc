"""Figures as a page of their own: everything is in the file, no request leaves it."""

from __future__ import annotations

import html
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from bokeh.embed import components
from bokeh.util.paths import bokehjs_path

from workbench.analysis.exporting.target import Target
from workbench.config import ConfigError
from workbench.views.palette import theme_of

Figures = Any
"""A figure, or several by their headings."""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ background: {ground}; color: {text}; font-family: system-ui, sans-serif; margin: 1.5rem; }}
h1 {{ font-size: 1.2rem; }} h2 {{ font-size: 1rem; font-weight: 600; margin: 1.5rem 0 .25rem; }}
details {{ margin: .25rem 0 0; font-size: .85rem; }} table {{ border-collapse: collapse; margin: .5rem 0; }}
caption {{ text-align: left; font-weight: 600; }} td, th {{ text-align: right; padding: 0 .75rem 0 0; }}
</style>
<script>
{library}
</script>
{script}
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


def to_html(
    figures: Figures,
    title: str = "workbench",
    theme: str = "light",
    before: str = "",
    sentences: Mapping[str, str] | None = None,
) -> str:
    """A page that shows figures, each with its numbers as a table, without a network and without a server.

    Parameters
    ----------
    figures : figure, or mapping of heading to figure
    title : str
    theme : str
        Of the page; that of the figures is their own.
    before : str
        HTML that stands above the figures.
    sentences : mapping of heading to str, optional
        What figures show.
    """
    from workbench.views import frame  # it loads the backend
    from workbench.views.described import words_html

    colours = theme_of(theme)
    named: Mapping[str, Any] = figures if isinstance(figures, Mapping) else {"": figures}
    models = {str(number): frame.rendered(figure) for number, figure in enumerate(named.values())}
    script, parts = components(models) if models else ("", {})
    body = before + "\n".join(
        (f"<h2>{html.escape(heading)}</h2>\n" if heading else "")
        + parts[str(number)]
        + words_html((sentences or {}).get(heading, ""), models[str(number)])
        for number, heading in enumerate(named)
    )
    looks = {"ground": colours.ground, "text": colours.text}
    return PAGE.format(title=html.escape(title), library=_library(), script=script, body=body, **looks)


def _library() -> str:
    """Bokeh's own script alone: whatever else is loaded here would add references to files beside the page."""
    return (Path(bokehjs_path()) / "js" / "bokeh.min.js").read_text(encoding="utf-8")


def save(figures: Figures, path: str | PathLike[str], title: str = "workbench", theme: str = "light") -> Path:
    """Write what `to_html` makes; returns the file.

    Raises
    ------
    ConfigError
        Unless the file's name ends in .html, and may be a file's.
    StorageFull
        There is no room for it; a file that was there stays.
    """
    target = Path(path)
    if target.suffix != ".html":
        raise ConfigError(f"{target} does not end in .html; type {target.with_suffix('.html')}")
    text = to_html(figures, title, theme)
    with Target(target, folder=False, force=True) as partial:
        partial.write_text(text, encoding="utf-8")
    return target
