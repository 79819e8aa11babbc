"""Configuration tree, its validation, its sources and the presets."""

from workbench.config.groups import DataConfig, InnerConfig, MachineConfig, ModelConfig, VirtualConfig
from workbench.config.load import diff, flatten, from_toml, load, preset, presets, to_toml
from workbench.config.presets import PRESETS
from workbench.config.schema import RunConfig
from workbench.config.validate import ConfigError

__all__ = [
    "PRESETS",
    "ConfigError",
    "DataConfig",
    "InnerConfig",
    "MachineConfig",
    "ModelConfig",
    "RunConfig",
    "VirtualConfig",
    "diff",
    "flatten",
    "from_toml",
    "load",
    "preset",
    "presets",
    "to_toml",
]
