"""Lanes and the learner grid as files: what they say is what the tape says, and what cannot be drawn is refused."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import xarray as xr
from PIL import Image

from tests.analysis.runs import FAULTS, simulated
from tests.analysis.tapes import taped
from workbench import views
from workbench.config import ConfigError
from workbench.views.drawing import Box, Picture, Shape, Stroke, Text, to_svg
from workbench.views.learner_cells import then_cells
from workbench.views.palette import DARK, LIGHT
from workbench.views.pictures import PICTURES_MAX, Film, svg_text
from workbench.views.raster import to_image
from workbench.views.signs import DRAWN, FILLED, sign
from workbench.views.sources import bands, span_s
from workbench.views.states import STATES

NAMES = {"s": "http://www.w3.org/2000/svg"}


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return taped(tmp_path_factory.mktemp("runs") / "faulty", simulated(FAULTS))


def texts(svg: str) -> list[str]:
    return [one.text or "" for one in ElementTree.fromstring(svg).iterfind(".//s:text", NAMES)]


def test_shapes_are_the_same_as_svg_and_as_pixels() -> None:
    evil = "<script>&"
    shapes: list[Shape] = [
        Box(10, 10, 20, 10, "#0072B2", said=evil), Box(40, 10, 20, 20, "#ffffff", hatched=True),
        Stroke(((0, 45), (100, 45)), "#D55E00", width=4), Text(10, 40, evil, "#000000"),
    ]  # fmt: skip
    picture = Picture(100, 50, "#e7eaee", shapes, evil)
    svg = to_svg(picture)
    assert "<script" not in svg and texts(svg) == [evil]
    pixels = np.asarray(to_image(picture))
    assert pixels.shape == (50, 100, 3)
    assert tuple(pixels[15, 20]) == (0, 0x72, 0xB2) and tuple(pixels[45, 90]) == (0xD5, 0x5E, 0)
    assert tuple(pixels[2, 2]) == (0xE7, 0xEA, 0xEE) and pixels[10:30, 40:60].std() > 20


def test_every_sign_of_a_state_can_be_drawn() -> None:
    assert set(STATES.values()) <= FILLED.keys() | DRAWN.keys()
    for one in set(STATES.values()):
        drawn = to_image(Picture(20, 20, "#ffffff", sign(one, 10, 10, 5, "#000000")))
        assert np.asarray(drawn).min() < 128, one


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_grid_says_what_the_cells_of_the_pages_say(tape: xr.DataTree, theme: str) -> None:
    shown = texts(svg_text(tape, "grid", end_s=4.0, theme=theme))
    film = Film(tape, end_s=4.0, theme=theme)
    event = int(np.searchsorted(film._until_s, 4.0, "right")) - 1
    cells = then_cells(tape.wb.at(event))
    assert len(cells) == len(tape.wb.learners)
    for one in cells:
        assert one["label"] in shown and one["word"] in shown and one["numbers"] in shown
    assert (LIGHT if theme == "light" else DARK).ground in svg_text(tape, "grid", theme=theme)


def test_a_film_has_its_length_and_its_words_change(tape: xr.DataTree, tmp_path: Path) -> None:
    _, whole_s = span_s(tape) or (0.0, 0.0)
    path = views.gif(tape, tmp_path / "grid.gif", end_s=whole_s, speed=whole_s / 2, per_second=10)
    with Image.open(path) as film:
        lengths = []
        for number in range(getattr(film, "n_frames", 1)):
            film.seek(number)
            lengths.append(film.info["duration"])
    assert len(lengths) > 5 and sum(lengths) == pytest.approx(2100, abs=110)
    made = Film(tape, 0.0, whole_s, speed=whole_s / 2, per_second=10)
    words = {shape.text for one in made.pictures() for shape in one.shapes if isinstance(shape, Text)}
    assert words >= {"training", "down"}
    assert len({one.height for one in made.whole()}) == 1


def test_lanes_name_their_processes_and_the_faults_in_their_time(tape: xr.DataTree, tmp_path: Path) -> None:
    path = views.svg(tape, tmp_path / "lanes.svg", learners=[1, 0])
    tree = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    shown = texts(path.read_text(encoding="utf-8"))
    assert [name for name in shown if name in ("syncer", "L0", "L1", "L2")] == ["syncer", "L1", "L0"]
    hovered = {one.text for one in tree.iterfind(".//s:title", NAMES)}
    struck = {band.name for band in bands(tape) if band.name.endswith(("L0", "L1"))}
    assert struck and struck <= hovered and any("steps" in str(text) for text in hovered)
    none = svg_text(tape, start_s=-2.0, end_s=-1.0)
    assert not any("L0" in str(one.text) for one in ElementTree.fromstring(none).iterfind(".//s:title", NAMES))


def test_what_cannot_be_drawn_is_refused_in_a_sentence(tape: xr.DataTree, tmp_path: Path) -> None:
    for said, ask in (
        ("does not end in .gif", lambda: views.gif(tape, tmp_path / "a.png")),
        ("no time; the run is", lambda: views.gif(tape, tmp_path / "a.gif", start_s=3, end_s=2)),
        ("give a speed of", lambda: views.gif(tape, tmp_path / "a.gif", speed=1e-4)),
        ("speed = 0", lambda: views.gif(tape, tmp_path / "a.gif", speed=0.0)),
        ("what = 'loss'; allowed: lanes, grid", lambda: views.svg(tape, tmp_path / "a.svg", what="loss")),
        ("names no learner 99", lambda: views.svg(tape, tmp_path / "a.svg", learners=[0, 99])),
        ("names a learner twice", lambda: views.svg(tape, tmp_path / "a.svg", learners=[0, 0])),
        ("a whole tape", lambda: views.svg(tape["events"].dataset, tmp_path / "a.svg")),
    ):
        with pytest.raises(ConfigError, match=said):
            ask()
    assert list(tmp_path.iterdir()) == [] and PICTURES_MAX > 1000
