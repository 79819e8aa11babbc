"""Whether a text is enough for a run."""

from __future__ import annotations

from workbench.config import ConfigError, RunConfig
from workbench.datasets.text import Text


def check_text(text: Text, config: RunConfig) -> None:
    """Refuse a text that the run cannot be trained or evaluated on.

    Parameters
    ----------
    text : Text
    config : RunConfig

    Raises
    ------
    ConfigError
        Less training text than one sequence per learner, less held-out text than one sequence, or, with
        ``data.shards = "file"``, a learner that would have no files or less than one sequence in them.
    """
    length = config.model.context + 1
    need = config.learners * length
    if text.train.size < need:
        raise ConfigError(
            f"the training text has {text.train.size} bytes; expected at least {need}, one sequence of {length} for "
            f"each of {config.learners} learners; give a longer text (--data PATH) or a shorter one to learn "
            f"(--set model.context=N)"
        )
    if text.heldout.size < length:
        raise ConfigError(
            f"the held-out text has {text.heldout.size} bytes; expected at least {length}, one sequence; hold out "
            f"more (--set data.holdout_every={max(2, config.data.holdout_every // 2)}) or give a longer text"
        )
    if config.data.shards == "file":
        _check_shards(text, config.learners, length)


def _check_shards(text: Text, learners: int, length: int) -> None:
    files = len(text.train.files)
    if files < learners:
        raise ConfigError(
            f"data.shards = 'file' finds {files} training files for {learners} learners; expected at least one each; "
            f"give more files or fewer learners (--set learners={max(1, files)}), or type --set data.shards=iid"
        )
    least, size = min(((m, text.shard(m, learners).size) for m in range(learners)), key=lambda pair: pair[1])
    if size < length:
        raise ConfigError(
            f"data.shards = 'file' leaves learner {least} with {size} bytes; expected at least {length}, one "
            "sequence; give more text or type --set data.shards=iid"
        )
