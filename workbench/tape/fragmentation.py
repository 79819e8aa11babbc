"""The fragments of a recorded run, from its header alone: loads no model code."""

from __future__ import annotations

from typing import Any

from workbench.algorithms.fragments import Fragmentation, TensorSpec


def fragmentation_of_header(header: dict[str, Any], fragments: int) -> Fragmentation:
    """The fragmentation that a journal's header describes."""
    manifest = header["manifest"]
    names = sorted(manifest)
    specs = tuple(
        TensorSpec(name, tuple(manifest[name]["shape"]), manifest[name]["dtype"], manifest[name]["kind"])
        for name in names
    )
    return Fragmentation(specs, tuple(manifest[name]["fragment"] for name in names), fragments)
