"""All keys of a configuration with what they may be: `workbench train --keys`, a file that --config takes."""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, get_args

from workbench.config import to_toml
from workbench.config.keys import WORDS, key_types
from workbench.config.validate import CHOICES, RANGES, span

if TYPE_CHECKING:
    from workbench.config import RunConfig

WIDTH = 34
"""Characters up to where what is allowed begins, where the value leaves room."""


def listing(config: RunConfig) -> str:
    """The configuration as TOML, each key with what is allowed beside it."""
    lines, group = [], ""
    for line in to_toml(config).splitlines():
        if line.startswith("["):
            group = f"{line.strip('[]')}."
        name, is_value, _ = line.partition(" = ")
        lines.append(f"{line:<{WIDTH}} # {allowed(group + name)}" if is_value else line)
    return "\n".join(lines)


def allowed(key: str) -> str:
    """What a key may hold, in words.

    Examples
    --------
    >>> allowed("grace"), allowed("overlap"), allowed("lead"), allowed("guard_cosine")
    ('none, fixed, adaptive, all', '0 to 1000000', 'a whole number, or none', 'true or false')
    """
    kind = key_types()[key]
    also = ", or none" if NoneType in get_args(kind) else ""
    kinds = [one for one in get_args(kind) or (kind,) if one in WORDS]
    if key in CHOICES:
        return ", ".join(CHOICES[key])
    return (span(key) if key in RANGES else WORDS[kinds[0]]) + also
