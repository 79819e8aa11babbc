"""Manifest: stable names, kinds, sizes, and no allocation."""

from __future__ import annotations

import math

import numpy as np

from workbench.config import ModelConfig
from workbench.models import initial_values, manifest


def test_default_model_has_21_tensors_and_0_43_million_parameters() -> None:
    tensors = manifest(ModelConfig())
    assert len(tensors) == 21
    assert sum(math.prod(tensor.shape) for tensor in tensors) == 434_816


def test_names_kinds_and_layers() -> None:
    tensors = {tensor.name: tensor for tensor in manifest(ModelConfig())}
    assert list(tensors) == sorted(tensors)
    assert tensors["layers.0.attention.query"].shape == (128, 128)
    assert tensors["layers.1.attention.key"].shape == (128, 64)
    kinds = {name: tensors[name].kind for name in ("embedding", "head", "norm.scale", "layers.1.mlp.gate")}
    assert kinds == {"embedding": "embedding", "head": "head", "norm.scale": "vector", "layers.1.mlp.gate": "matrix"}
    assert tensors["layers.1.mlp_norm.scale"].layer == 1
    assert tensors["head"].layer == -1
    assert {tensor.dtype for tensor in tensors.values()} == {"float32"}


def test_manifest_agrees_with_the_values() -> None:
    config = ModelConfig(layers=1, width=16, heads=2, kv_heads=1, mlp=32, context=16)
    values = initial_values(config, 0)
    assert [(tensor.name, tensor.shape) for tensor in manifest(config)] == [(n, v.shape) for n, v in values.items()]
    assert all(value.dtype == np.float32 for value in values.values())


def test_manifest_of_a_model_larger_than_memory_is_made_without_allocating_it() -> None:
    config = ModelConfig(layers=64, width=65536, heads=512, kv_heads=64, mlp=262144)
    parameters = sum(math.prod(tensor.shape) for tensor in manifest(config))
    assert parameters * 4 > 10**13
