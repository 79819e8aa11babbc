"""The inner step, evaluation, and the arithmetic of one learner; names load their module at first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.training.flat import fragmentation_of, initial_weights
    from workbench.training.learner_arithmetic import LearnerArithmetic
    from workbench.training.learner_values import Captured, StepResult
    from workbench.training.program import TrainingProgram

__all__ = ["Captured", "LearnerArithmetic", "StepResult", "TrainingProgram", "fragmentation_of", "initial_weights"]

_HOMES = {
    "Captured": "learner_values",
    "LearnerArithmetic": "learner_arithmetic",
    "StepResult": "learner_values",
    "TrainingProgram": "program",
    "fragmentation_of": "flat",
    "initial_weights": "flat",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'workbench.training' has no attribute {name!r}; it has {', '.join(__all__)}")
    value = getattr(importlib.import_module(f"workbench.training.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
