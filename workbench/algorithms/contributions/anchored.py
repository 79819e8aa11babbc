"""The default chain: where differences are taken from, and what they weigh."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.algorithms.slots import Anchored, Contribution, ContributionInputs, Key, State
from workbench.algorithms.weights import WEIGHTS


class AnchoredConfig(NamedTuple):
    """``anchor``: ``current`` (v = Theta - theta) or ``base`` (v = base - theta); ``weights``: key of `WEIGHTS`."""

    anchor: str
    weights: str


def init(config: AnchoredConfig) -> State:
    """No memory."""
    return ()


def anchor_of(anchor: str, current: np.ndarray, base: np.ndarray) -> np.ndarray:
    """What a difference is taken from: ``current`` Theta, or the learner's ``base`` version.

    The two are different algorithms once bases are old: with ``current`` a contribution on an old base drags the
    outer steps that it missed back out, with ``base`` it brings its own progress only.

    Raises
    ------
    ValueError
        If the anchor is unknown.
    """
    if anchor not in ("current", "base"):
        raise ValueError(f"anchor {anchor!r} is unknown; allowed: current, base")
    return base if anchor == "base" else current


def apply(
    config: AnchoredConfig, state: State, inputs: ContributionInputs, key: Key
) -> tuple[Anchored, State, tuple[()]]:
    """Difference to the anchor, weighed by steps, tokens and age (ALGORITHM section 4, arXiv 2604.21428)."""
    weight = WEIGHTS[config.weights](inputs.c_steps, inputs.c_tokens, inputs.age)
    return Anchored(anchor_of(config.anchor, inputs.current, inputs.base), inputs.value, weight), state, ()


ANCHORED = Contribution(init=init, apply=apply)
