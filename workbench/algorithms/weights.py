"""How much a contribution counts in a merge: plain numbers in, one number out.

The rules import nothing heavy, because the syncer's machine calls them.
"""

from __future__ import annotations

from collections.abc import Callable

WeightRule = Callable[[int, int, int], float]
"""(c_steps [steps], c_tokens [tokens], age [versions]) to a weight of at least 0."""


def tokens2_per_step(c_steps: int, c_tokens: int, age: int) -> float:
    """Quantity times quality, w = c_tokens (c_tokens / c_steps) (arXiv 2604.21428).

    At a constant batch it is linear in the steps, and quadratic in the batch size.

    Parameters
    ----------
    c_steps, c_tokens, age : int
        Inner steps and tokens since the fragment was last folded; versions between the base and the merge (not used).

    Returns
    -------
    float
        0.0 where steps or tokens are 0.

    Examples
    --------
    >>> tokens2_per_step(22, 22 * 4096, 0)
    369098752.0
    """
    if c_steps <= 0 or c_tokens <= 0:
        return 0.0
    return c_tokens * c_tokens / c_steps


def tokens(c_steps: int, c_tokens: int, age: int) -> float:
    """Quantity alone, w = c_tokens; 0.0 without a step or a token."""
    return float(c_tokens) if c_steps > 0 and c_tokens > 0 else 0.0


def uniform(c_steps: int, c_tokens: int, age: int) -> float:
    """Every contributor alike, w = 1 (FedAvg's plain mean); 0.0 without a step or a token."""
    return 1.0 if c_steps > 0 and c_tokens > 0 else 0.0


WEIGHTS: dict[str, WeightRule] = {
    "tokens2_per_step": tokens2_per_step,
    "tokens": tokens,
    "uniform": uniform,
}
"""Weight rules by the name that configuration and tape use."""
