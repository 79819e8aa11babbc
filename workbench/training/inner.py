"""Inner optimisers and the learning rate of a global step."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import optax

from workbench.config import InnerConfig, RunConfig


def horizon_of(config: RunConfig) -> int:
    """Global steps over which the cosine falls: ``inner.horizon``, or the run's own length if that is 0.

    ``rounds`` merges, ``fragments`` of them in every ``period`` steps, take ``rounds * period / fragments`` steps.
    """
    return config.inner.horizon or math.ceil(config.rounds * config.period / config.fragments)


def rate_factor(inner: InnerConfig, horizon: int, g: int) -> float:
    """Share of the peak learning rate at a global step.

    ``constant``: 1.  ``cosine``: ``g / warmup`` up to ``warmup``, then
    ``f + (1 - f) (1 + cos(pi x)) / 2`` with ``x = (g - warmup) / (horizon - warmup)`` up to 1 and f the
    ``final_fraction`` (Loshchilov and Hutter, "SGDR", arXiv 1608.03983).

    Parameters
    ----------
    inner : InnerConfig
    horizon : int
        Global step at which the cosine has reached ``final_fraction``.
    g : int
        Global step, 1 for the first.
    """
    if inner.schedule == "constant":
        return 1.0
    if g < inner.warmup:
        return g / inner.warmup
    progress = min(1.0, (g - inner.warmup) / max(1, horizon - inner.warmup))
    return inner.final_fraction + (1.0 - inner.final_fraction) * 0.5 * (1.0 + math.cos(math.pi * progress))


def adamw(inner: InnerConfig) -> optax.GradientTransformation:
    """Adam's direction with decay on matrices; the step is ``p -= rate (m^ / (sqrt(v^) + eps) + decay p)``.

    References
    ----------
    Loshchilov and Hutter, "Decoupled Weight Decay Regularization", arXiv 1711.05101.
    """
    return optax.chain(
        _clip(inner),
        optax.scale_by_adam(b1=inner.beta1, b2=inner.beta2, eps=inner.eps),
        optax.add_decayed_weights(inner.decay, mask=is_matrix),
    )


def sgd(inner: InnerConfig) -> optax.GradientTransformation:
    """Plain gradient descent, ``p -= rate * gradient``: no momentum, no decay; clipped unless ``clip = 0``."""
    return _clip(inner)


INNER_OPTIMIZERS: dict[str, Callable[[InnerConfig], optax.GradientTransformation]] = {"adamw": adamw, "sgd": sgd}
"""Transformations from gradients to directions, before the learning rate; chosen by ``inner.optimizer``."""


def inner_optimizer(inner: InnerConfig) -> optax.GradientTransformation:
    """Transformation that ``inner.optimizer`` names."""
    return INNER_OPTIMIZERS[inner.optimizer](inner)


def is_matrix(parameters: dict[str, jax.Array]) -> dict[str, bool]:
    """Mask of the tensors that decay: those of two or more dimensions."""
    return {name: value.ndim >= 2 for name, value in parameters.items()}


def _clip(inner: InnerConfig) -> optax.GradientTransformation:
    return optax.clip_by_global_norm(inner.clip) if inner.clip > 0 else optax.identity()
