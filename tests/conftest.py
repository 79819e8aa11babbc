"""Settings of the whole test run; the replay of the real run comes last."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# As learners that share cores have it: what a real run trained is replayed here in its own environment.
os.environ.setdefault("PJRT_NPROC", "1")

# Tests press Ctrl-C; a shell that runs them in the background has them, and what they start, ignore it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Shared machines make single examples slow, never wrong: only the whole test has a time limit.
settings.register_profile("workbench", deadline=None, print_blob=True)
settings.load_profile("workbench")

LAST = "test_real_run.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name == LAST)  # stable: all else keeps its order
