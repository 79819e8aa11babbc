"""Interactive research workbench for Decoupled DiLoCo (arXiv 2604.21428).

Importing it loads no array or plotting library: each name below loads its module at first use.

Examples
--------
>>> import workbench as wb
>>> wb.preset("tiny-4").set(merge="mean").learners
4
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench import views
    from workbench.analysis.comparing.comparison import compare
    from workbench.analysis.efficiencies import efficiency_ratio
    from workbench.analysis.exporting.export import export
    from workbench.analysis.recomputed_geometry import geometry
    from workbench.config import ConfigError, RunConfig, preset, presets
    from workbench.engine.launch import Run, RunEnded, attach, launch
    from workbench.engine.resume import resume
    from workbench.replay.counterfactual.asking import what_if
    from workbench.replay.exact import replay
    from workbench.tape import TapeError, open_tape
    from workbench.tape.foreign.importing import import_logs

__version__ = "0.1.0"

__all__ = [
    "ConfigError",
    "Run",
    "RunConfig",
    "RunEnded",
    "TapeError",
    "__version__",
    "attach",
    "compare",
    "efficiency_ratio",
    "export",
    "geometry",
    "import_logs",
    "launch",
    "open_tape",
    "preset",
    "presets",
    "replay",
    "resume",
    "views",
    "what_if",
]

_HOMES = {
    "ConfigError": "workbench.config",
    "Run": "workbench.engine.launch",
    "RunConfig": "workbench.config",
    "RunEnded": "workbench.engine.launch",
    "TapeError": "workbench.tape",
    "attach": "workbench.engine.launch",
    "compare": "workbench.analysis.comparing.comparison",
    "efficiency_ratio": "workbench.analysis.efficiencies",
    "export": "workbench.analysis.exporting.export",
    "geometry": "workbench.analysis.recomputed_geometry",
    "import_logs": "workbench.tape.foreign.importing",
    "launch": "workbench.engine.launch",
    "open_tape": "workbench.tape",
    "preset": "workbench.config",
    "presets": "workbench.config",
    "replay": "workbench.replay.exact",
    "resume": "workbench.engine.resume",
    "what_if": "workbench.replay.counterfactual.asking",
}
_MODULES = ("views",)
"""Public names that are modules."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"workbench.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}; it has {', '.join(__all__)}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
