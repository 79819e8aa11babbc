"""Compiled functions and text that all learners of one process share."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import jax
import numpy as np

from workbench.config import RunConfig
from workbench.datasets import Text, batch, check_text, heldout
from workbench.models.functional import Parameters
from workbench.training.evaluation import validation_loss
from workbench.training.flat import all_tensors, fragmentation_of, initial_weights
from workbench.training.inner import horizon_of, rate_factor
from workbench.training.step import compiled_step, fresh_state


class TrainingProgram:
    """What is the same for every learner: step, evaluation, batches and schedule.

    Compiled functions are shared by all programs of a process that have the same model and optimiser.

    Parameters
    ----------
    config : RunConfig
    text : Text

    Raises
    ------
    ConfigError
        The text is not enough for the run.

    Attributes
    ----------
    step : function
        See `workbench.training.step.compiled_step`.
    fragmentation : Fragmentation
    """

    def __init__(self, config: RunConfig, text: Text) -> None:
        check_text(text, config)
        self.config = config
        self.text = text
        self.step = compiled_step(config.model, config.inner)
        self.fragmentation = fragmentation_of(config)
        self._horizon = horizon_of(config)

    def fresh_state(self, parameters: Parameters) -> Any:
        """Optimiser state of a learner that has made no step."""
        return fresh_state(self.config.inner, parameters)

    def batch(self, learner: int, n: int, sequences: int | None = None, accumulation: int | None = None) -> np.ndarray:
        """Batch of a learner's own step n (`workbench.datasets.batch`), of the configured size unless it is given."""
        c = self.config
        return batch(
            self.text,
            c.seed,
            learner,
            n,
            sequences or c.inner.batch,
            c.model.context,
            c.data.shards,
            c.learners,
            accumulation or c.inner.accumulation,
        )

    def rate_factor(self, g: int) -> float:
        """Share of the peak learning rate at global step g."""
        return rate_factor(self.config.inner, self._horizon, g)

    @cached_property
    def heldout(self) -> np.ndarray:
        """Held-out batches (batches, batch, context + 1), uint8."""
        c = self.config
        return heldout(self.text, c.eval_batches, c.inner.batch, c.model.context)

    def evaluate(self, weights: list[np.ndarray]) -> float:
        """Validation loss [nats per byte] of flat fragments."""
        return validation_loss(self.config.model, all_tensors(weights, self.fragmentation), self.heldout)

    def warm_up(self) -> None:
        """Compile the step, or fetch it from the compile cache, by making one whose result is dropped."""
        parameters = all_tensors(initial_weights(self.config), self.fragmentation)
        jax.block_until_ready(self.step(parameters, self.fresh_state(parameters), self.batch(0, 1), np.float32(0)))
