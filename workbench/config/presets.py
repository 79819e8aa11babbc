"""Named starting points (ALGORITHM section 10): ``workbench train --preset NAME``."""

from __future__ import annotations

from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    "tiny-4": {"learners": 4, "rounds": 900},
    "small-8": {"learners": 8, "rounds": 600},
}
"""Keys that differ from `RunConfig`'s defaults, by preset."""
