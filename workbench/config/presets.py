"""Named starting points (ALGORITHM section 10): ``workbench train --preset NAME``."""

from __future__ import annotations

from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    "tiny-4": {"learners": 4, "rounds": 900},
    "small-8": {"learners": 8, "rounds": 600},
    "storm": {
        "learners": 8,
        "rounds": 5000,
        "grace_cap_steps": 1.5,
        "eligibility": "paced",
        "snapshot_every_s": 60.0,
        "eval_every": 100,
        "inner": {"batch": 8, "schedule": "constant"},
        "model": {"layers": 2, "width": 64, "heads": 2, "kv_heads": 1, "mlp": 128, "context": 64},
    },
}
"""Keys that differ from `RunConfig`'s defaults, by preset."""
