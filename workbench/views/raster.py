"""Pictures as pixels, and several of them as a film."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from workbench.views.drawing import Box, Picture, Stroke, Text

FINER = 2
"""Pictures are drawn so much larger and then made smaller: slanted lines are smooth."""
COLOURS = 128
HATCH = 8.0
"""Distance of slanted lines [pixels]."""


def to_image(picture: Picture) -> Image.Image:
    """Draw a picture."""
    image = Image.new("RGB", (picture.width * FINER, picture.height * FINER), picture.ground)
    pen = ImageDraw.Draw(image, "RGBA")
    for shape in picture.shapes:
        if isinstance(shape, Box):
            _box(pen, shape)
        elif isinstance(shape, Stroke):
            _stroke(pen, shape)
        else:
            _text(pen, shape)
    return image.resize((picture.width, picture.height), Image.Resampling.BOX)


def film(pictures: Iterable[Picture], colours: Picture, every_s: float, path: Path) -> int:
    """Write a GIF that begins again at its end; returns the number of its pictures.

    Parameters
    ----------
    pictures : iterable of Picture
        One at least, all of one size.
    colours : Picture
        Holds every colour that they hold: so that no colour changes from one to the next.
    every_s : float
        How long each is seen [s].
    path : Path
    """
    palette = to_image(colours).quantize(COLOURS)
    drawn = [to_image(one).quantize(palette=palette, dither=Image.Dither.NONE) for one in pictures]
    drawn[0].save(
        path, format="GIF", save_all=True, append_images=drawn[1:], duration=round(every_s * 1e3), loop=0,
        optimize=False,
    )  # fmt: skip
    return len(drawn)


def _box(pen: Any, box: Box) -> None:
    corners = [
        box.x * FINER, box.y * FINER,
        max((box.x + box.width) * FINER - 1, box.x * FINER), max((box.y + box.height) * FINER - 1, box.y * FINER),
    ]  # fmt: skip
    fill, line = (_colour(name, box.opacity) for name in (box.fill, box.line))
    pen.rectangle(corners, fill=fill, outline=line, width=FINER if line else 0)
    if box.hatched:
        left, top, right, bottom = corners
        start = left - (bottom - top)
        while start < right:
            low, high = max(start, left), min(start + bottom - top, right)
            if high > low:
                pen.line([low, bottom - (low - start), high, bottom - (high - start)], (36, 41, 47, 128), FINER)
            start += HATCH * FINER


def _stroke(pen: Any, stroke: Stroke) -> None:
    points = [(x * FINER, y * FINER) for x, y in stroke.points]
    if stroke.fill:
        pen.polygon(points, fill=_colour(stroke.fill, stroke.opacity))
    if stroke.line:
        pen.line(points, _colour(stroke.line, stroke.opacity), max(1, round(stroke.width * FINER)), joint="curve")


def _text(pen: Any, text: Text) -> None:
    anchor = {"start": "ls", "middle": "ms", "end": "rs"}[text.anchor]
    pen.text(
        (text.x * FINER, text.y * FINER), text.text, fill=text.colour, font=_font(text.size), anchor=anchor,
        stroke_width=0.5 if text.bold else 0,
    )  # fmt: skip


def _colour(name: str, opacity: float) -> tuple[int, ...] | None:
    if not name:
        return None
    found = tuple(int(name[i : i + 2], 16) for i in (1, 3, 5))
    return (*found, round(255 * opacity))


@cache
def _font(size: float) -> Any:
    return ImageFont.load_default(size * FINER)
