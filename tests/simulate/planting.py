"""Plant a one-line bug in a module, and take it out again."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, ModuleType
from typing import Any


def _functions(names: dict[str, Any], module: str) -> dict[str, FunctionType]:
    """Functions that a module defines, and methods of its classes, by qualified name."""
    found: dict[str, FunctionType] = {}
    for value in names.values():
        members = vars(value).values() if inspect.isclass(value) else (value,)
        for member in members:
            function = member.fget if isinstance(member, property) else member
            if isinstance(function, FunctionType) and function.__module__ == module:
                found[function.__qualname__] = function
    return found


@contextmanager
def planted(module: ModuleType, line: str, instead: str) -> Iterator[None]:
    """Give the module's functions the code of its source with one line replaced, whoever holds them."""
    source = inspect.getsource(module)
    if source.count(line) != 1:
        raise AssertionError(f"{module.__name__} holds this line {source.count(line)} times, expected once: {line!r}")
    changed: dict[str, Any] = {"__name__": module.__name__, "__file__": module.__file__}
    exec(compile(source.replace(line, instead), module.__file__ or "", "exec"), changed)
    own, other = _functions(vars(module), module.__name__), _functions(changed, module.__name__)
    before: dict[str, CodeType] = {name: function.__code__ for name, function in own.items()}
    for name, function in own.items():
        function.__code__ = other[name].__code__
    try:
        yield
    finally:
        for name, code in before.items():
            own[name].__code__ = code
