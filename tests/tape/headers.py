"""A run's records under another header."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec

from workbench.tape.frames import HEADER, frame, read_header
from workbench.tape.run_folder import RunFolder


def rewrite_header(run: Path, **facts: Any) -> None:
    """Change facts in the header of a journal that nobody writes; its tape follows it anew."""
    folder = RunFolder(run)
    raw, encode = folder.journal.read_bytes(), msgspec.msgpack.encode
    header = read_header(folder.journal)
    old = frame(HEADER, encode(header))
    assert raw.startswith(old)
    folder.journal.write_bytes(frame(HEADER, encode(header | facts)) + raw[len(old) :])
    shutil.rmtree(folder.tape, ignore_errors=True)
