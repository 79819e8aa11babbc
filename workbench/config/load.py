"""Building a `RunConfig`: preset, TOML file, ``--set KEY=VALUE`` and keyword arguments, in that order.

Every way in uses the same dotted keys (``learners``, ``model.width``), and each later source wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from workbench.config import toml as toml_text
from workbench.config.files import read_text
from workbench.config.keys import convert, groups, key_types, parse
from workbench.config.presets import PRESETS
from workbench.config.schema import RunConfig
from workbench.config.validate import ConfigError, value_of


def load(
    preset: str | None = None, toml: str | Path | None = None, sets: Iterable[str] = (), **overrides: Any
) -> RunConfig:
    """Build a configuration from its sources; the later of them wins.

    Parameters
    ----------
    preset : str, optional
        Starting point; without it the one that ``toml`` names, else the defaults.
    toml : path, optional
        File of keys.
    sets : iterable of str
        ``KEY=VALUE`` texts, as given to ``--set``.
    **overrides
        Keys and values; ``**{"model.width": 64}`` or ``model={"width": 64}`` for nested ones.

    Raises
    ------
    ConfigError
        For an unknown preset or key, a value of the wrong type, or a configuration that cannot work.

    Examples
    --------
    >>> load("tiny-4", sets=["grace=none"], learners=3).learners
    3
    """
    changes = _read_file(Path(toml)) if toml is not None else {}
    if preset:
        changes["preset"] = preset
    changes.update(parse_set(text) for text in sets)
    changes.update(_typed(overrides))
    return build({**preset_values(changes.get("preset", "")), **changes})


def given_keys(toml: str | Path | None = None, sets: Iterable[str] = ()) -> frozenset[str]:
    """Dotted keys that a file and ``--set`` texts name; all others have the value of a preset or the default."""
    from_file = _read_file(Path(toml)) if toml is not None else {}
    return frozenset({*from_file, *(parse_set(text)[0] for text in sets)})


def build(flat: Mapping[str, Any]) -> RunConfig:
    """Return the configuration with these dotted keys and the defaults for the rest."""
    values: dict[str, Any] = {key: value for key, value in flat.items() if "." not in key}
    for group, kind in groups().items():
        values[group] = kind(**{k.split(".", 1)[1]: v for k, v in flat.items() if k.startswith(f"{group}.")})
    return RunConfig(**values)


def parse_set(text: str) -> tuple[str, Any]:
    """Split one ``KEY=VALUE`` and return the key with its typed value.

    Raises
    ------
    ConfigError
        Without ``=``, for an unknown key, or a value of the wrong type.
    """
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"--set {text} has no value; type --set KEY=VALUE, for example --set learners=4")
    return key.strip(), parse(key.strip(), value)


def replace(config: RunConfig, changes: Mapping[str, Any]) -> RunConfig:
    """Return a copy of ``config`` with dotted keys changed; the copy is checked like any other."""
    return build({**flatten(config), **_typed(changes)})


def flatten(config: RunConfig) -> dict[str, Any]:
    """Return all values by dotted key, in the order of the dataclasses."""
    return {key: value_of(config, key) for key in key_types()}


def diff(a: RunConfig, b: RunConfig) -> dict[str, tuple[Any, Any]]:
    """Return the keys whose values differ, with the value in ``a`` and the value in ``b``."""
    return {key: (value_of(a, key), value_of(b, key)) for key in key_types() if value_of(a, key) != value_of(b, key)}


def to_toml(config: RunConfig) -> str:
    """Return the whole configuration as TOML text; `from_toml` gives it back."""
    return toml_text.write({key: convert(key, value) for key, value in flatten(config).items()})


def from_toml(text: str) -> RunConfig:
    """Return the configuration in ``text``; a preset in it is a name for the record and is not looked up.

    Raises
    ------
    ConfigError
        When the text is not TOML, or holds an unknown key or an impossible value.
    """
    return build(_typed(toml_text.read(text)))


def preset(name: str) -> RunConfig:
    """Return the configuration of a preset.

    Raises
    ------
    ConfigError
        For an unknown name, with the names there are.

    Examples
    --------
    >>> preset("tiny-4").set(merge="mean").merge
    'mean'
    """
    return load(preset=name)


def presets() -> dict[str, RunConfig]:
    """Return all presets by name."""
    return {name: preset(name) for name in PRESETS}


def preset_values(name: str) -> dict[str, Any]:
    """Return the dotted keys in which a preset differs from the defaults; none for the empty name."""
    if name and name not in PRESETS:
        raise ConfigError(f"preset = {name!r} is unknown; allowed: {', '.join(PRESETS)}")
    return _typed(PRESETS[name]) if name else {}


def _typed(values: Mapping[str, Any]) -> dict[str, Any]:
    tree = {key: vars(value) if isinstance(value, tuple(groups().values())) else value for key, value in values.items()}
    flat = toml_text.flat(tree)
    return {key: convert(key, value) for key, value in flat.items() if not (key in groups() and value == {})}


def _read_file(path: Path) -> dict[str, Any]:
    return _typed(toml_text.read(read_text(path, "the configuration"), where=str(path)))
