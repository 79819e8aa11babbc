"""A tape of each schema version stays readable.

``python -m tests.tape.test_golden`` writes the golden tape of the present version, once per version.
"""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

import pytest

from tests.tape.examples import run_records
from workbench.tape import SCHEMA_VERSION, Input, JournalWriter, Recorder, open_tape

FOLDER = Path(__file__).parent / "golden"
TAKEN = [Input(3, 0, 1, b"first"), Input(0, 0, 2, b"\x00second")]


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
def test_the_golden_tape_gives_its_records(version: int, tmp_path: Path) -> None:
    with zipfile.ZipFile(FOLDER / f"schema-{version}.zip") as archive:
        archive.extractall(tmp_path)
    tree = open_tape(tmp_path)
    assert tree.attrs["schema_version"] == version and tree.wb.closed
    assert tree.wb.records() == run_records(rounds=3, epoch=1) and tree.wb.inputs() == TAKEN


def write() -> Path:
    """Write the golden tape of the present schema version and return its path."""
    target = FOLDER / f"schema-{SCHEMA_VERSION}.zip"
    with tempfile.TemporaryDirectory() as name:
        with JournalWriter(Path(name) / "journal", {"run_id": "golden"}) as journal, Recorder(name):
            journal.append([*run_records(rounds=3, epoch=1), *TAKEN])
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted((Path(name) / "tape").rglob("*")):
                archive.write(path, path.relative_to(name))
    return target


if __name__ == "__main__":
    print(write())
