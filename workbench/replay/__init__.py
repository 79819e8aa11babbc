"""Replay: the programs of a tape executed again with the executors of the run (DESIGN section 3).

The package can be called like `workbench.replay.exact.replay`: importing any of its modules makes it the attribute
``workbench.replay``, and ``wb.replay(run)`` has to work before and after.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    """The package, which replays a run when it is called."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Replay a run: see `workbench.replay.exact.replay`."""
        from workbench.replay.exact import replay

        return replay(*arguments, **options)


sys.modules[__name__].__class__ = _CallablePackage
