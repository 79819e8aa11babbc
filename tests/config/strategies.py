"""Random valid configurations, for tests of anything that takes one."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from workbench.config.keys import key_types
from workbench.config.load import build
from workbench.config.schema import RunConfig
from workbench.config.validate import CHOICES, RANGES

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)


def _values(key: str, kind: Any) -> st.SearchStrategy[Any]:
    if key in CHOICES:
        return st.sampled_from(CHOICES[key])
    if key in RANGES:
        low, high = RANGES[key]
        return st.integers(int(low), int(high)) if kind is int else st.floats(low, high)
    if kind is bool:
        return st.booleans()
    return TEXT


@st.composite
def configs(draw: st.DrawFn) -> RunConfig:
    """Draw a configuration that `RunConfig` accepts, every key free within its range."""
    flat = {key: draw(_values(key, kind)) for key, kind in key_types().items()}
    flat["lead"] = draw(st.none() | st.integers(0, 100))
    flat["machine.threads"] = draw(st.none() | st.integers(1, 1024))
    flat["machine.cores"] = draw(st.sampled_from(("none", "spread", " ".join(["0-1,7"] * flat["learners"]))))
    flat["virtual.slow"] = tuple(draw(st.lists(st.floats(1e-3, 1e3), max_size=4)))
    flat["period"] = draw(st.integers(1, 10**6))
    flat["fragments"] = draw(st.integers(1, flat["period"]))
    flat["overlap"] = draw(st.integers(0, flat["period"] - 1))
    flat["quorum"] = draw(st.integers(1, flat["learners"]))
    flat["heartbeat_limit_s"] = draw(st.floats(max(2 * flat["heartbeat_s"], 0.05), 3600))
    flat["pull_limit_min_s"] = draw(st.floats(0.001, flat["heartbeat_limit_s"]))
    kv_heads = draw(st.integers(1, 8))
    heads = kv_heads * draw(st.integers(1, 8))
    flat.update({"model.kv_heads": kv_heads, "model.heads": heads, "model.width": 2 * heads * draw(st.integers(1, 16))})
    flat["data.path"] = draw(TEXT.filter(bool)) if flat["data.source"] == "path" else ""
    flat["virtual.trace"] = draw(TEXT.filter(bool)) if flat["virtual.step_model"] == "trace" else ""
    return build(flat)
