"""Pictures as plain shapes, drawn the same as SVG and as pixels; texts are escaped, nothing is fetched."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

Point = tuple[float, float]
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
LETTER = 0.56
"""Mean width of a letter, of its size."""


class Box(NamedTuple):
    """A rectangle [pixels].

    Attributes
    ----------
    x, y, width, height : float
        From the upper left corner.
    fill, line : str
        Colours, "" for none.
    opacity : float
    hatched : bool
        With slanted lines: not by colour alone.
    said : str
        For those who hover.
    """

    x: float
    y: float
    width: float
    height: float
    fill: str = ""
    line: str = ""
    opacity: float = 1.0
    hatched: bool = False
    said: str = ""


class Stroke(NamedTuple):
    """A line through points, or the area within it.

    Attributes
    ----------
    points : sequence of (float, float)
        [pixels]
    line, fill : str
        Colours, "" for none.
    width : float
        [pixels]
    opacity : float
    """

    points: Sequence[Point]
    line: str = ""
    fill: str = ""
    width: float = 1.0
    opacity: float = 1.0


class Text(NamedTuple):
    """A line of letters; ``y`` is where they stand on, ``anchor`` says which end of it ``x`` is."""

    x: float
    y: float
    text: str
    colour: str
    size: float = 12.0
    bold: bool = False
    anchor: str = "start"


Shape = Box | Stroke | Text


class Picture(NamedTuple):
    """Shapes from back to front.

    Attributes
    ----------
    width, height : int
        [pixels]
    ground : str
        Colour behind everything.
    shapes : list
    title : str
        What it shows, for those who hear it.
    """

    width: int
    height: int
    ground: str
    shapes: list[Shape]
    title: str = ""


def shortened(text: str, room: float, size: float) -> str:
    """As much of a text as has room [pixels]."""
    letters = max(1, int(room / (LETTER * size)))
    return text if len(text) <= letters else text[: letters - 1] + "…"


def to_svg(picture: Picture) -> str:
    """A picture as a file of its own."""
    inner = "\n".join(_element(shape) for shape in picture.shapes)
    size = f'width="{picture.width}" height="{picture.height}" viewBox="0 0 {picture.width} {picture.height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{FONT}">\n'
        f"<title>{escape(picture.title)}</title>\n"
        '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<path d="M0 0V6" stroke="#24292f" stroke-width="1.4"/></pattern></defs>\n'
        f'<rect width="100%" height="100%" fill="{picture.ground}"/>\n{inner}\n</svg>\n'
    )


def _element(shape: Shape) -> str:
    if isinstance(shape, Text):
        bold = ' font-weight="600"' if shape.bold else ""
        anchor = "" if shape.anchor == "start" else f' text-anchor="{shape.anchor}"'
        place = f'x="{_number(shape.x)}" y="{_number(shape.y)}" font-size="{_number(shape.size)}"'
        return f'<text {place} fill="{shape.colour}"{bold}{anchor}>{escape(shape.text)}</text>'
    if isinstance(shape, Stroke):
        points = " ".join(f"{_number(x)},{_number(y)}" for x, y in shape.points)
        look = f'fill="{shape.fill or "none"}"' + (
            f' stroke="{shape.line}" stroke-width="{_number(shape.width)}"' if shape.line else ""
        )
        return f'<{"polygon" if shape.fill else "polyline"} points="{points}" {look}{_opacity(shape.opacity)}/>'
    return _rectangle(shape)


def _rectangle(box: Box) -> str:
    place = " ".join(f'{name}="{_number(getattr(box, name))}"' for name in ("x", "y", "width", "height"))
    line = f' stroke="{box.line}"' if box.line else ""
    said = f"<title>{escape(box.said)}</title>" if box.said else ""
    drawn = f'<rect {place} fill="{box.fill or "none"}"{line}{_opacity(box.opacity)}>{said}</rect>'
    return drawn + (f'<rect {place} fill="url(#hatch)" opacity="0.5"/>' if box.hatched else "")


def _opacity(value: float) -> str:
    return "" if value >= 1 else f' opacity="{value:g}"'


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
