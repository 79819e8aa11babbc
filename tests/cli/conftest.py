"""Stand-ins for the work behind the verbs: what is tested here is the command line alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put a module of the given names in the place of another."""

    def put(module: str, **names: Any) -> None:
        fake = ModuleType(module)
        vars(fake).update(names)
        monkeypatch.setitem(sys.modules, module, fake)

    return put
