"""Root attributes of a tape: what the run was, and how far the tape reaches."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.tape.errors import TapeError, damaged
from workbench.tape.schema import FORMAT_NAME, SCHEMA_VERSION

_NEEDED = ("run_id", "words", "rows", "journal_offset", "closed")


def root_attributes(
    header: Mapping[str, Any], *, words: list[str], journal_offset: int, rows: dict[str, int], closed: bool
) -> dict[str, Any]:
    """Attributes of the root group: the journal's header, and the tape's own.

    The header brings ``run_id``, ``config`` (TOML), ``seeds`` by name, ``code_version``, ``manifest``
    (tensor: shape, dtype, kind, fragment), ``initial_digest``, ``data_manifest`` and ``parent``.
    """
    run = {key: plain(value) for key, value in header.items() if key not in ("magic", "format")}
    return {
        "run_id": "",
        **run,
        "format": FORMAT_NAME,
        "schema_version": SCHEMA_VERSION,
        "words": list(words),
        "rows": rows,
        "journal_offset": journal_offset,
        "closed": closed,
    }


def plain(value: Any) -> Any:
    """A value as JSON can hold it: bytes as hex, numbers that JSON lacks as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def check_root(attrs: dict[str, Any], path: Path | str) -> dict[str, Any]:
    """Return the root attributes of a tape that can be read.

    Raises
    ------
    TapeError
        For a store of something else, a newer schema (both versions are named) or missing attributes.
    """
    if attrs.get("format") != FORMAT_NAME:
        raise TapeError(f"{path} holds data of something else: its root lacks format = {FORMAT_NAME!r}")
    version = attrs.get("schema_version")
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise TapeError(
            f"{path} has schema version {version}, newer than {SCHEMA_VERSION}, the newest known here; "
            "update the workbench"
        )
    missing = [name for name in _NEEDED if name not in attrs]
    if missing:
        raise damaged(path, f"its root lacks {', '.join(missing)}")
    return attrs
