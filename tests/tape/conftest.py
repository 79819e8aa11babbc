"""A closed tape of a few records."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tape.examples import RECORDS
from tests.tape.test_recorder import written
from workbench.tape import Input


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run whose tape is closed."""
    return written(tmp_path_factory.mktemp("closed") / "run", [*RECORDS, Input(3, 0, 1, b"in")])
