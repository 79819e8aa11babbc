"""What a run was, in the words of a badge."""

from __future__ import annotations

from workbench.config import PRESETS, RunConfig, diff, preset

NAMED_MAX = 3
"""Changed keys that are named."""


def preset_words(config: RunConfig) -> str:
    """The preset of a run, and what of it was changed; empty for a run of none.

    Examples
    --------
    >>> preset_words(preset("tiny-4")), preset_words(preset("tiny-4").set({"learners": 2, "seed": 3}))
    ('preset tiny-4', 'preset tiny-4, learners = 2')
    """
    if config.preset not in PRESETS:
        return f"preset {config.preset}" if config.preset else ""
    changed = diff(preset(config.preset), config)
    named = [f"{key} = {mine}" for key, (_, mine) in changed.items() if key != "seed"]
    more = [f"{len(named) - NAMED_MAX} more changed"] if len(named) > NAMED_MAX else []
    return ", ".join([f"preset {config.preset}", *named[:NAMED_MAX], *more])
