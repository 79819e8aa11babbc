"""Configuration tree, its validation and the presets."""

from workbench.config.presets import PRESETS
from workbench.config.schema import DataConfig, InnerConfig, ModelConfig, RunConfig, VirtualConfig
from workbench.config.validate import ConfigError

__all__ = ["PRESETS", "ConfigError", "DataConfig", "InnerConfig", "ModelConfig", "RunConfig", "VirtualConfig"]
