from __future__ import annotations

import subprocess
import sys

import pytest

import workbench

HEAVY = ("jax", "flax", "numpy", "numba", "xarray", "zarr", "icechunk", "rich")
PLOTTING = ("bokeh", "datashader", "holoviews", "hvplot", "matplotlib", "panel", "plotly")


def test_importing_it_loads_no_array_and_no_plotting_library() -> None:
    code = f"import sys, workbench; print([m for m in {HEAVY + PLOTTING!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_come_from_their_modules() -> None:
    from workbench.config import RunConfig

    assert workbench.RunConfig is RunConfig
    assert workbench.preset("tiny-4").learners == workbench.presets()["tiny-4"].learners
    assert set(workbench.__all__) <= set(dir(workbench))


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(AttributeError, match=r"'lunch'; it has .*RunConfig"):
        workbench.lunch  # noqa: B018
