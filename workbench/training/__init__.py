"""The inner step, evaluation, and the arithmetic of one learner."""

from workbench.training.flat import fragmentation_of, initial_weights
from workbench.training.learner_arithmetic import Captured, LearnerArithmetic, StepResult
from workbench.training.program import TrainingProgram

__all__ = ["Captured", "LearnerArithmetic", "StepResult", "TrainingProgram", "fragmentation_of", "initial_weights"]
