"""Settings that have no effect beside others: allowed, and told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from workbench.config.load import diff, flatten, preset
from workbench.config.presets import PRESETS
from workbench.config.schema import RunConfig

Values = Mapping[str, Any]


class _Idle(NamedTuple):
    """Keys, or groups of keys that end in a dot, that are idle when ``when`` holds; ``beside`` says beside what."""

    keys: tuple[str, ...]
    when: Callable[[Values], bool]
    beside: str


def _beside(key: str, *acting: Any) -> tuple[Callable[[Values], bool], str]:
    """Idle unless the key has one of the values; the text names the value that it has."""
    return (lambda values: values[key] not in acting), f"{key} = {{{key}}}"


_RULES = (
    _Idle(("grace_s",), *_beside("grace", "fixed")),
    _Idle(("grace_gamma", "grace_cap_steps"), *_beside("grace", "adaptive")),
    _Idle(("anchors_kept",), *_beside("anchor", "base")),
    _Idle(("fold_alpha",), *_beside("fold", "blend")),
    _Idle(("outer_momentum",), *_beside("outer", "nesterov")),
    _Idle(("inner.warmup", "inner.horizon", "inner.final_fraction"), *_beside("inner.schedule", "cosine")),
    _Idle(("inner.beta1", "inner.beta2", "inner.eps", "inner.decay"), *_beside("inner.optimizer", "adamw")),
    _Idle(("eval_batches",), lambda values: not values["eval_every"], "eval_every = 0"),
    _Idle(("virtual.jitter",), *_beside("virtual.step_model", "jitter", "heavy")),
    _Idle(("virtual.step_s",), *_beside("virtual.step_model", "fixed", "jitter", "heavy")),
    _Idle(("virtual.delay_jitter",), lambda values: not values["virtual.delay_s"], "virtual.delay_s = 0"),
)
_BY_CLOCK = {
    "real": _Idle(("virtual.",), lambda values: True, "--clock real"),
    "virtual": _Idle(("machine.cores", "connect_limit_s"), lambda values: True, "--clock virtual"),
}


def idle_notes(values: Values, keys: Iterable[str], clock: str) -> list[str]:
    """One line for each reason for which some of the keys have no effect.

    Parameters
    ----------
    values : mapping
        All values in force, by dotted key.
    keys : iterable of str
        Those that somebody has set.
    clock : str
        ``real`` or ``virtual``.

    Examples
    --------
    >>> idle_notes(flatten(RunConfig()), ["grace_s"], "real")
    ['grace_s has no effect with grace = adaptive']
    """
    left, notes = sorted(set(keys)), []
    for rule in (_BY_CLOCK[clock], *_RULES):
        idle = [key for key in left if rule.when(values) and _names(rule.keys, key)]
        if idle:
            left = [key for key in left if key not in idle]
            has = "has" if len(idle) == 1 else "have"
            beside = rule.beside
            for key, value in values.items():
                beside = beside.replace(f"{{{key}}}", str(value))
            notes.append(f"{', '.join(idle)} {has} no effect with {beside}")
    return notes


def _names(keys: tuple[str, ...], key: str) -> bool:
    return any(key.startswith(name) if name.endswith(".") else key == name for name in keys)


def idle_in(config: RunConfig, clock: str) -> list[str]:
    """Notes on the keys in which a configuration differs from its preset."""
    base = preset(config.preset) if config.preset in PRESETS else RunConfig()
    return idle_notes(flatten(config), diff(base, config), clock)
