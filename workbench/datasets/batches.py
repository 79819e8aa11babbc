"""Batches by index: no iterator, nothing to save, nothing to lose."""

from __future__ import annotations

import numpy as np

from workbench.algorithms.seeds import sub_seed
from workbench.datasets.text import Text


def batch(
    text: Text,
    seed: int,
    learner: int,
    n: int,
    batch: int,
    context: int,
    shards: str = "iid",
    learners: int = 1,
    accumulation: int = 1,
) -> np.ndarray:
    """Batch of one inner step: a pure function of (seed, learner, own step n).

    Positions come from Philox, a counter-based generator: the key is made of seed and learner, the counter is n,
    so that any batch is drawn without drawing those before it (Salmon et al., "Parallel random numbers: as easy
    as 1, 2, 3", 2011).

    Parameters
    ----------
    text : Text
    seed : int
        The run's seed.
    learner, n : int
        Who, and the own step that the batch is for.
    batch, context : int
        Sequences, and tokens that each predicts.
    shards : str
        ``iid``: from all training text; ``file``: from the learner's own files (`Text.shard`).
    learners : int
        Number of learners that the files are dealt to.
    accumulation : int
        Micro-batches.

    Returns
    -------
    array (batch, context + 1), or (accumulation, batch, context + 1) when accumulation is above 1; uint8
    """
    stream = text.train if shards == "iid" else text.shard(learner, learners)
    generator = np.random.Philox(key=sub_seed(seed, "data", learner), counter=[0, n, 0, 0])
    choices = np.uint64(stream.size - context)
    positions = (generator.random_raw(accumulation * batch) % choices).astype(np.int64)
    windows = stream.windows(positions, context + 1)
    return windows if accumulation == 1 else windows.reshape(accumulation, batch, context + 1)


def heldout(text: Text, batches: int, batch: int, context: int) -> np.ndarray:
    """Fixed set of held-out sequences, spread evenly over the held-out text.

    Parameters
    ----------
    text : Text
    batches, batch, context : int
        Batches, sequences in each, tokens that each sequence predicts.

    Returns
    -------
    array (batches, batch, context + 1), uint8
        The sequences overlap only where the held-out text is shorter than all of them.
    """
    count = batches * batch
    last = text.heldout.size - (context + 1)
    positions = np.arange(count, dtype=np.int64) * last // max(1, count - 1)
    return text.heldout.windows(positions, context + 1).reshape(batches, batch, context + 1)
