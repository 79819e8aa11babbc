from __future__ import annotations

import gc
import inspect
import re
import time
import weakref
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import holoviews as hv
import numpy as np
import pytest
import xarray as xr
from bokeh.models import BasicTickFormatter, NumeralTickFormatter
from bokeh.models.renderers import GlyphRenderer

from tests.analysis.runs import began, ended, joined, merged, rec, step
from tests.views.runs import arrived, dropped, faulty, long, nothing, one_of_each
from workbench import views
from workbench.analysis import ACCESSORS
from workbench.analysis.from_records import tables
from workbench.config import ConfigError
from workbench.protocol.records import Kind
from workbench.views.frame import Axis, Look, _lines
from workbench.views.palette import THEMES
from workbench.views.sources import Band, bands, span_s

FIGURES = sorted(views.FIGURES)
FROM_DATASETS = {
    "loss": "efficiency",
    "goodput": "goodput_over_time",
    "participation": "participation",
    "contributions": "participation",
    "staleness": "staleness",
    "behind": "behind",
    "tokens": "token_fates",
}


def drawn(figure: hv.Overlay) -> Any:
    """The Bokeh figure."""
    return hv.render(figure, backend="bokeh")


def addresses(page: str) -> list[str]:
    """What a page's elements fetch."""
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.extend(str(value) for name, value in attrs if name in ("src", "href", "srcset", "data"))

    Reader().feed(page)
    return found


def points(figure: Any) -> int:
    """Rows that a browser gets."""
    sources = {id(r.data_source): r.data_source for r in figure.select(GlyphRenderer)}.values()
    return sum(max((np.size(column) for column in source.data.values()), default=0) for source in sources)


@pytest.mark.parametrize("name", FIGURES)
def test_all_have_one_signature(name: str) -> None:
    given = inspect.signature(getattr(views, name)).parameters
    first, *rest = given.values()
    assert first.name == "source" and first.default is first.empty
    assert all(one.kind is one.KEYWORD_ONLY for one in rest)
    assert [one.name for one in rest[-3:]] == ["width", "height", "theme"]
    assert (given["width"].default, given["height"].default, given["theme"].default) == (None, None, "light")


@pytest.mark.parametrize("theme", sorted(THEMES))
@pytest.mark.parametrize("name", FIGURES)
def test_a_faulty_run_is_drawn_with_units_in_the_colours_of_the_theme(name: str, theme: str) -> None:
    figure = drawn(getattr(views, name)(faulty(), theme=theme, width=700, height=300))
    assert (figure.width, figure.height) == (700, 300)
    assert figure.background_fill_color == THEMES[theme].ground
    assert figure.xaxis[0].axis_label and figure.title.text
    assert points(figure) > 0
    ranges = (figure.x_range.start, figure.x_range.end, figure.y_range.start, figure.y_range.end)
    assert np.isfinite(ranges).all() and ranges[0] < ranges[1] and ranges[2] < ranges[3]


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("run", [nothing, one_of_each])
def test_almost_nothing_is_drawn_with_ranges_and_a_word(name: str, run: Any) -> None:
    made = getattr(views, name)(run())
    figure = drawn(made)
    ranges = (figure.x_range.start, figure.x_range.end, figure.y_range.start, figure.y_range.end)
    assert np.isfinite(ranges).all() and ranges[0] < ranges[1] and ranges[2] < ranges[3]
    if run is nothing:
        (word,) = made.traverse(lambda one: one, [hv.Labels])
        assert len(str(word["text"][0])) > 8


@pytest.mark.parametrize("name", sorted(FROM_DATASETS))
def test_a_dataset_draws_what_the_run_does(name: str) -> None:
    told = ACCESSORS[FROM_DATASETS[name]](faulty())
    assert points(drawn(getattr(views, name)(told))) > 0
    with pytest.raises(ConfigError, match=f"expected one of tape.wb.{FROM_DATASETS[name]}"):
        getattr(views, name)(xr.Dataset({"other": ("x", [1.0])}))


@pytest.mark.parametrize("name", sorted(set(FIGURES) - set(FROM_DATASETS)))
def test_what_needs_a_whole_tape_says_so(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"type wb.views.{name}\(tape\)"):
        getattr(views, name)(xr.Dataset())


@pytest.mark.parametrize("name", FIGURES)
def test_a_hundred_thousand_steps_stay_few_points(name: str) -> None:
    run, start = long(), time.perf_counter()
    figure = drawn(getattr(views, name)(run))
    print(f"{name}: {points(figure)} points in {time.perf_counter() - start:.2f} s")
    assert points(figure) <= 12_000


def test_faults_stand_behind_and_are_named() -> None:
    assert [band.name for band in bands(faulty())] == ["kill L1", "nan L0", "kill syncer", "stall L2", "slow L0"]
    made = views.behind(faulty())
    spans = made.traverse(lambda one: one, [hv.VSpans])[0]
    assert made.traverse(lambda one: one)[1] is spans  # the first layer: behind all others
    assert list(spans["fault"]) == [band.name for band in bands(faulty())]
    labels = [one.text for one in drawn(made).center if type(one).__name__ == "Label"]
    assert labels == list(spans["fault"])


def test_times_count_from_the_start_of_rounds() -> None:
    figure = drawn(views.loss(faulty(), x="time_s"))
    assert figure.xaxis[0].axis_label == "time since the start of rounds [s]"
    assert figure.yaxis[0].axis_label == "validation loss [nat per byte]"
    whole = span_s(faulty())
    assert whole is not None and figure.x_range.end >= whole[1], "to the end, though the last loss was before"


def test_losses_of_several_runs_are_told_apart_by_name_and_colour() -> None:
    made = views.loss({"RDA": faulty(), "mean": faulty()}, x="tokens_merged")
    curves = made.traverse(lambda one: one, [hv.Curve])
    assert [curve.label for curve in curves] == ["RDA", "mean"]
    colours = [curve.opts.get("style").kwargs["color"] for curve in curves]
    assert len(set(colours)) == 2
    assert drawn(made).legend[0].items[0].label.value == "RDA"


def test_swimlanes_show_steps_stops_faults_and_what_came_late() -> None:
    made = views.swimlanes(faulty())
    named = {one.label for one in made.traverse(lambda one: one, [hv.Rectangles, hv.Segments])}
    assert {"step", "injected", "fault", "stopped", "merge"} <= named
    assert drawn(made).yaxis[0].major_label_overrides[3] == "syncer"
    records = [began(0), joined(0), step(0, 0, 1), arrived(0, 1, 1.2), dropped(0, 1, 1.2), ended(2)]
    late = views.swimlanes(tables(records)).traverse(lambda one: one, [hv.Rectangles])[-1]
    assert late.label == "not merged" and list(late["reason"]) == ["late"]
    glyphs = [one.glyph for one in drawn(views.swimlanes(tables(records))).renderers]
    assert any(getattr(glyph, "hatch_pattern", None) == "/" for glyph in glyphs)


def test_a_part_of_a_long_run_has_boxes_again_and_arrows() -> None:
    whole, part = views.swimlanes(long()), views.swimlanes(faulty(), start_s=1.0, end_s=3.0)
    assert whole.traverse(lambda one: one, [hv.Image]) and not part.traverse(lambda one: one, [hv.Image])
    assert {"contribution", "update"} <= {one.label for one in part.traverse(lambda one: one, [hv.Segments])}
    assert drawn(part).x_range.start == 1.0


def test_goodput_and_badput_fill_the_whole() -> None:
    areas = views.goodput(faulty(), bins=20).traverse(lambda one: one, [hv.Area])
    assert areas[0].label == "goodput" and {"down", "injected"} <= {area.label for area in areas}
    top = areas[-1].dimension_values("top")
    assert np.allclose(top[top > 0], 1.0)


def test_who_is_not_in_a_merge_is_hatched_not_only_coloured() -> None:
    figure = drawn(views.contributions(faulty()))
    hatched = [one for one in figure.renderers if getattr(one.glyph, "hatch_pattern", None) == "/"]
    assert len(hatched) >= 1
    assert [figure.yaxis[0].major_label_overrides[row] for row in (2, 1, 0)] == ["L0", "L1", "L2"]


def test_waits_longer_than_the_bound_stand_out() -> None:
    steps = [step(0, t / 10, (t + 1) / 10, t + 1) for t in range(200)]
    healed = rec(Kind.LEARNER_HEALED, 0, peer=3)
    merges = [merged(t, t / 10, t, (0,)) for t in range(1, 20)] + [merged(30, 12, 20, (0,)), merged(31, 12.1, 21, (0,))]
    run = tables(sorted([began(0), joined(0), healed, *steps, *merges, ended(20)], key=lambda r: r.time_ns))
    labels = {one.label for one in views.waits(run).traverse(lambda one: one, [hv.Segments])}
    assert labels == {"wait", "longer than B"}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: views.loss(faulty(), theme="blue"), "theme = 'blue'; allowed: light, dark"),
        (lambda: views.loss(faulty(), x="steps"), "x = 'steps'; allowed: tokens_processed"),
        (lambda: views.staleness(faulty(), measure="age"), "measure = 'age'; allowed: versions"),
        (lambda: views.loss(7), "a int cannot be drawn"),
        (lambda: views.save({}, "page.txt"), "type page.html"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_what_can(call: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        call()


def test_a_page_asks_for_nothing_outside_and_escapes_its_texts(tmp_path: Path) -> None:
    name = "$$x$$ </script><script>alert(1)</script>"
    made = {"<b>loss</b>": views.loss({name: faulty(), "b": faulty()}), "lanes": views.swimlanes(faulty())}
    page = views.save(made, tmp_path / "page.html", title="a <b>").read_text(encoding="utf-8")
    assert addresses(page) == []
    assert "@import" not in page and "url(http" not in page
    assert "<b>loss</b>" not in page and "&lt;b&gt;loss" in page
    assert "<script>alert(1)" not in page and "$$x$$" not in page


def test_a_figure_that_nobody_holds_is_gone() -> None:
    from workbench.views import frame

    left = weakref.ref(frame.rendered(views.norms(faulty())))
    gc.collect()
    assert left() is None


@pytest.mark.parametrize(
    ("high", "kind"), [(0.003, BasicTickFormatter), (0.5, None), (9_999.0, None), (1e6, NumeralTickFormatter)]
)
def test_ticks_of_small_numbers_keep_their_zeros_and_those_of_large_ones_their_thousands(
    high: float, kind: Any
) -> None:
    options = Axis("loss", "loss less that of A [nat per byte]", -high / 10, high).formatter()
    assert [type(one) for one in options.values()] == ([] if kind is None else [kind])
    if kind is BasicTickFormatter:
        assert options[""].power_limit_low <= -6
    assert Axis("loss", "loss", 1e-3, high, log=True).formatter() == {}


@pytest.mark.parametrize("name", ["staleness", "contributions"])
def test_a_fault_tints_its_learners_row_alone_and_one_of_the_syncer_all_rows(name: str) -> None:
    made = getattr(views, name)(faulty())
    boxes = next(one for one in made.traverse(lambda one: one, [hv.Rectangles]) if "fault" in one.vdims)
    rows = {label: (low, high) for _, low, _, high, label in boxes.data.itertuples(index=False)}
    height = {f"L{m}": (1.5 - m, 2.5 - m) for m in range(3)}
    assert rows == {name: height[name[-2:]] for name in ("kill L1", "nan L0", "stall L2", "slow L0")}
    spans = next(iter(made.traverse(lambda one: one, [hv.VSpans])))
    assert list(spans["fault"]) == ["kill syncer"]


def test_names_of_faults_never_lie_over_each_other() -> None:
    struck = [Band(3, "slow", "slow L0", 1.0 + n / 100, 2.0) for n in range(8)]
    across = Axis("time_s", "time [s]", 0.0, 10.0)
    lines = _lines(struck, across, Look.of(640, 260, "light"))
    assert sorted(lines) == [-1] * 5 + [0, 1, 2] and lines[:3] == [0, 1, 2]
