"""Lists of numbers in flags."""

from __future__ import annotations

from workbench.config import ConfigError


def numbers_in(text: str | None, example: str) -> list[float]:
    """Return the numbers between the commas of a text; none for None.

    Raises
    ------
    ConfigError
        For anything else, with an example of what to type.
    """
    try:
        return [float(part) for part in (text or "").split(",") if part.strip()]
    except ValueError as error:
        raise ConfigError(f"{example.split()[0]} {text} holds no numbers; type {example}") from error
