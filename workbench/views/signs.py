"""Signs of states as lines, so that a picture needs no font that has them."""

from __future__ import annotations

from math import cos, pi, sin

from workbench.views.drawing import Point, Shape, Stroke

Lines = tuple[tuple[Point, ...], ...]


def _circle(
    radius: float, x: float = 0.0, y: float = 0.0, begin: float = 0.0, end: float = 2 * pi
) -> tuple[Point, ...]:
    angles = [begin + (end - begin) * n / 20 for n in range(21)]
    return tuple((x + radius * cos(a), y + radius * sin(a)) for a in angles)


_WAVE = tuple((n / 8 - 1.0, 0.45 * sin(pi * n / 8)) for n in range(17))

FILLED: dict[str, Lines] = {
    "▸": (((-0.6, -0.9), (0.8, 0.0), (-0.6, 0.9)),),
    "…": tuple(_circle(0.2, x) for x in (-0.8, 0.0, 0.8)),
    "·": (_circle(0.25),),
}
DRAWN: dict[str, Lines] = {
    "↻": (_circle(0.8, begin=-0.3 * pi, end=1.5 * pi), ((0.05, -1.2), (0.0, -0.8), (0.45, -0.55))),
    "⊘": (_circle(0.85), ((-0.6, 0.6), (0.6, -0.6))),
    "~": (_WAVE,),
    "‖": (((-0.35, -0.9), (-0.35, 0.9)), ((0.35, -0.9), (0.35, 0.9))),
    "⇎": (
        ((-1.0, 0.0), (1.0, 0.0)), ((-0.5, -0.5), (-1.0, 0.0), (-0.5, 0.5)), ((0.5, -0.5), (1.0, 0.0), (0.5, 0.5)),
        ((-0.35, 0.9), (0.35, -0.9)),
    ),
    "✕": (((-0.75, -0.75), (0.75, 0.75)), ((-0.75, 0.75), (0.75, -0.75))),
}  # fmt: skip


def sign(which: str, x: float, y: float, size: float, colour: str) -> list[Shape]:
    """Draw a sign around a point, so far in each direction [pixels]."""

    def placed(points: tuple[Point, ...]) -> list[Point]:
        return [(x + size * px, y + size * py) for px, py in points]

    filled: list[Shape] = [Stroke(placed(points), fill=colour) for points in FILLED.get(which, ())]
    return filled + [Stroke(placed(points), line=colour, width=size / 2.8) for points in DRAWN.get(which, ())]
