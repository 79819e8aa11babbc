"""Impossible configurations are refused when they are built, with key, values and what is allowed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from workbench.config.cores import parse_cores

if TYPE_CHECKING:
    from workbench.config.schema import RunConfig


class ConfigError(ValueError):
    """A request that cannot work: one line that says what, the values, and what is allowed."""


CHOICES: dict[str, tuple[str, ...]] = {
    "eligibility": ("fresh", "step", "paced"),
    "grace": ("none", "fixed", "adaptive", "all"),
    "anchor": ("current", "base"),
    "merge": ("mean", "rda"),
    "weights": ("tokens2_per_step", "tokens", "uniform"),
    "outer": ("nesterov", "sgd"),
    "fold": ("overwrite", "blend", "delay_corrected"),
    "fold_at": ("receipt", "due"),
    "codec": ("f32", "bf16"),
    "recovery": ("peer", "fresh"),
    "fragmentation": ("balanced", "layer", "tensor", "strided"),
    "data.source": ("stdlib", "path"),
    "data.shards": ("iid", "file"),
    "inner.optimizer": ("adamw", "sgd"),
    "inner.schedule": ("cosine", "constant"),
    "virtual.step_model": ("fixed", "jitter", "heavy", "trace"),
}
"""Words that a key may hold; a new member of a strategy table adds its name here."""

RANGES: dict[str, tuple[float, float]] = {
    "learners": (1, 4096),
    "rounds": (1, 10**9),
    "period": (1, 10**6),
    "fragments": (1, 10**6),
    "overlap": (0, 10**6),
    "quorum": (1, 4096),
    "grace_s": (0, 3600),
    "grace_gamma": (0, 1),
    "grace_cap_steps": (0, 1000),
    "anchors_kept": (1, 64),
    "outer_rate": (0, 100),
    "outer_momentum": (0, 0.9999),
    "fold_alpha": (0, 1),
    "guard_norm": (0, 10**9),
    "quarantine_after": (0, 10**9),
    "heartbeat_s": (0.01, 600),
    "heartbeat_limit_s": (0.05, 3600),
    "pull_limit_min_s": (0.001, 3600),
    "start_limit_s": (0, 86400),
    "connect_limit_s": (0.1, 86400),
    "state_limit_s": (0.1, 86400),
    "snapshot_every": (0, 10**9),
    "snapshot_every_s": (0, 10**7),
    "snapshots_kept": (0, 10**9),
    "eval_every": (0, 10**9),
    "eval_batches": (1, 10**6),
    "seed": (0, 2**63 - 1),
    "model.layers": (1, 1024),
    "model.width": (2, 65536),
    "model.heads": (1, 1024),
    "model.kv_heads": (1, 1024),
    "model.mlp": (1, 10**6),
    "model.context": (2, 10**6),
    "model.vocab": (256, 256),
    "data.holdout_every": (2, 10**6),
    "inner.rate": (0, 1e3),
    "inner.final_fraction": (0, 1),
    "inner.warmup": (0, 10**9),
    "inner.horizon": (0, 10**9),
    "inner.beta1": (0, 0.9999999),
    "inner.beta2": (0, 0.9999999),
    "inner.eps": (0, 1),
    "inner.decay": (0, 100),
    "inner.clip": (0, 1e9),
    "inner.batch": (1, 10**6),
    "inner.accumulation": (1, 10**6),
    "virtual.step_s": (1e-6, 1e5),
    "virtual.jitter": (0, 10),
    "virtual.delay_s": (0, 1e4),
    "virtual.delay_jitter": (0, 10),
    "virtual.loss": (0, 0.9),
    "virtual.bandwidth": (0, 1e15),
    "virtual.start_s": (0, 1e5),
    "virtual.merge_s": (0, 1e5),
}
"""Least and greatest value of each number, ends included."""


def span(key: str) -> str:
    """Range of a number as text, whole limits written out."""
    return " to ".join(str(limit) if isinstance(limit, int) else f"{limit:g}" for limit in RANGES[key])


def value_of(config: Any, key: str) -> Any:
    """Value of a dotted key in a configuration tree."""
    for part in key.split("."):
        config = getattr(config, part)
    return config


def check(config: RunConfig) -> None:
    """Raise `ConfigError` for the first rule that ``config`` breaks."""
    from workbench.config.keys import convert, key_types

    for key in key_types():
        convert(key, value_of(config, key))
    for key, words in CHOICES.items():
        if value_of(config, key) not in words:
            raise ConfigError(f"{key} = {value_of(config, key)!r} is unknown; allowed: {', '.join(words)}")
    for key, (low, high) in RANGES.items():
        value = value_of(config, key)
        if not math.isfinite(value) or not low <= value <= high:
            raise ConfigError(f"{key} = {value} is out of range; allowed: {span(key)}")
    _check_protocol(config)
    _check_model(config)
    _check_machine(config)


def _check_protocol(config: RunConfig) -> None:
    c = config
    if c.quorum > c.learners:
        raise ConfigError(
            f"quorum = {c.quorum} is more than learners = {c.learners}; allowed: 1 to {c.learners} "
            f"(try --set quorum={c.learners})"
        )
    if c.fragments > c.period:
        raise ConfigError(
            f"fragments = {c.fragments} is more than period = {c.period}; allowed: 1 to {c.period}, since one "
            f"fragment at most is due at a step (try --set fragments={c.period})"
        )
    if c.overlap >= c.period:
        raise ConfigError(
            f"overlap = {c.overlap} must be below period = {c.period}; allowed: 0 to {c.period - 1} "
            f"(try --set overlap={c.period - 1})"
        )
    if c.lead is not None and c.lead < 0:
        raise ConfigError(f"lead = {c.lead!r} is not possible; allowed: none, or a whole number of steps from 0")
    if c.heartbeat_s * 2 > c.heartbeat_limit_s:
        raise ConfigError(
            f"heartbeat_limit_s = {c.heartbeat_limit_s} is less than two heartbeats (heartbeat_s = {c.heartbeat_s}); "
            f"allowed: from {2 * c.heartbeat_s}"
        )
    if c.pull_limit_min_s > c.heartbeat_limit_s:
        raise ConfigError(
            f"pull_limit_min_s = {c.pull_limit_min_s} is above heartbeat_limit_s = {c.heartbeat_limit_s}; a round "
            f"would outwait a dead learner; allowed: up to {c.heartbeat_limit_s}"
        )
    if any(not 0 < x < 1e6 for x in c.virtual.slow):
        raise ConfigError(f"virtual.slow = {c.virtual.slow} must hold factors above 0, one per learner")


def _check_model(config: RunConfig) -> None:
    m = config.model
    if m.width % m.heads or (m.width // m.heads) % 2:
        raise ConfigError(
            f"model.width = {m.width} over model.heads = {m.heads} must give a whole, even head size (RoPE turns pairs)"
        )
    if m.heads % m.kv_heads:
        raise ConfigError(f"model.heads = {m.heads} must be a multiple of model.kv_heads = {m.kv_heads}")
    if config.data.source == "path" and not config.data.path:
        raise ConfigError("data.source = 'path' needs data.path (or --data PATH)")
    if config.data.source != "path" and config.data.path:
        raise ConfigError(f"data.path = {config.data.path!r} needs data.source = 'path' (or --data PATH)")
    if config.virtual.trace and config.virtual.step_model != "trace":
        raise ConfigError(f"virtual.trace = {config.virtual.trace!r} needs virtual.step_model = 'trace'")
    if config.virtual.step_model == "trace" and not config.virtual.trace:
        raise ConfigError("virtual.step_model = 'trace' needs virtual.trace, a file of durations in seconds")


def _check_machine(config: RunConfig) -> None:
    threads, text = config.machine.threads, config.machine.cores
    if threads is not None and not 1 <= threads <= 1024:
        raise ConfigError(f"machine.threads = {threads} is out of range; allowed: none, or 1 to 1024")
    try:
        lists = parse_cores(text)
    except ValueError as error:
        raise ConfigError(
            f"machine.cores = {text!r} is unknown; allowed: none, spread, apart, or one list of cores for each "
            "learner, as in '0,1 2-3'"
        ) from error
    if lists and len(lists) != config.learners:
        raise ConfigError(
            f"machine.cores = {text!r} holds {len(lists)} lists; allowed: one for each of learners = {config.learners}"
        )
