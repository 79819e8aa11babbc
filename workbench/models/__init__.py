"""Flax models that learners train, and their manifests."""

from workbench.models.decoder import Decoder, build, cross_entropy, initial_values
from workbench.models.manifest import manifest

__all__ = ["Decoder", "build", "cross_entropy", "initial_values", "manifest"]
