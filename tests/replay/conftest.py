from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def text_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """File in which the next byte follows from the one before it."""
    path = tmp_path_factory.mktemp("text") / "counting.bin"
    path.write_bytes(np.arange(20_000, dtype=np.int64).astype(np.uint8).tobytes())
    return path
