"""Settings of the whole test run; the replay of the real run comes last."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

os.environ.setdefault("JAX_PLATFORMS", "cpu")

# Shared machines make single examples slow, never wrong: only the whole test has a time limit.
settings.register_profile("workbench", deadline=None, print_blob=True)
settings.load_profile("workbench")

LAST = "test_real_run.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name == LAST)  # stable: all else keeps its order
