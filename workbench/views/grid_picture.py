"""The learner grid as a picture: the cells that the pages show, of a run that goes on or of a moment of a tape."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.views.drawing import Box, Picture, Shape, Text, shortened
from workbench.views.learner_cells import Cell, cell
from workbench.views.palette import QUIET, Theme
from workbench.views.signs import sign
from workbench.views.states import STATES

LEAST, HEIGHT, GAP, HEAD = 148, 78, 8, 34
"""Of a cell: its least width, its height, the room around it; height of the line above [pixels]."""
FOOT = 10
WIDTH = 640


def grid_picture(
    cells: Sequence[Cell], theme: Theme, title: str, width: int = WIDTH, part: float | None = None
) -> Picture:
    """Draw the grid.

    Parameters
    ----------
    cells : sequence of dict
        As `workbench.views.learner_cells` makes them.
    theme : Theme
    title : str
        Stands above it.
    width : int
        [pixels]
    part : float, optional
        How much of the time that a film shows has passed, 0 to 1: a bar below the grid.
    """
    columns = max(1, min(len(cells), (width - GAP) // (LEAST + GAP)))
    rows = -(-len(cells) // columns) if cells else 0
    height = HEAD + rows * (HEIGHT + GAP) + (FOOT if part is not None else 0)
    room = (width - GAP) / columns
    shapes: list[Shape] = [Text(GAP, 22, shortened(title, width - 2 * GAP, 13), theme.text, 13, bold=True)]
    for number, one in enumerate(cells):
        x, y = GAP + number % columns * room, HEAD + number // columns * (HEIGHT + GAP)
        shapes += _cell(one, theme, x, float(y), room - GAP)
    if part is not None:
        y = height - FOOT
        shapes += [Box(GAP, y, width - 2 * GAP, 3, theme.grid), Box(GAP, y, part * (width - 2 * GAP), 3, theme.text)]
    return Picture(width, height, theme.ground, shapes, title)


def _cell(one: Cell, theme: Theme, x: float, y: float, width: float) -> list[Shape]:
    quiet, room = QUIET[theme.name], width - 22
    return [
        Box(x, y, width, HEIGHT, theme.ground, theme.faint, said=f"{one['label']} {one['word']}"),
        Box(x, y, 5, HEIGHT, one["colour"]),
        Text(x + 14, y + 19, one["label"], theme.text, 13, bold=True),
        *sign(one["sign"], x + 20, y + 34, 5, theme.text),
        Text(x + 32, y + 38, one["word"], theme.text, 13, bold=True),
        Text(x + 14, y + 54, shortened(one["numbers"], room, 11.5), quiet, 11.5),
        Text(x + 14, y + 69, shortened(one["note"], room, 11.5), quiet, 11.5),
    ]


def all_states(theme: Theme, like: Picture) -> Picture:
    """A picture of the same size with every state in it: all colours that a grid can have."""
    cells = [cell(f"L{n}", state, n, 0.0, 1.0, [], "") for n, state in enumerate(STATES)]
    return grid_picture(cells, theme, like.title, like.width, 0.5)
