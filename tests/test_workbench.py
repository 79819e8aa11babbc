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


def test_replay_can_be_called_before_and_after_its_modules_are_imported() -> None:
    code = (
        "import workbench as wb; a = wb.replay; import workbench.replay.exact; b = wb.replay; "
        "import inspect; assert callable(a) and callable(b); "
        "from workbench.tape import TapeError\n"
        "for call in (a, b):\n"
        "    try: call('no/such/run')\n"
        "    except TapeError as error: print('refused', error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.count("refused") == 2
