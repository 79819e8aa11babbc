"""The ``config.toml`` of a run folder beside the configuration that its tape holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from workbench.config import ConfigError, diff, from_toml
from workbench.tape.run_folder import RunFolder

if TYPE_CHECKING:
    import xarray as xr


def config_difference(run: str | Path, tape: xr.DataTree) -> str | None:
    """Say whether the file ``config.toml`` of a run is no longer what the run was made with.

    The configuration that the tape holds counts everywhere; the file is for readers.

    Parameters
    ----------
    run : path
        The run folder; for a tape's own folder nothing is said.
    tape : xarray.DataTree
        The run's open tape.

    Returns
    -------
    str or None
        One line with the first key that differs and both values; None if none does, whatever the
        file's layout and comments.
    """
    folder = RunFolder(Path(run))
    recorded = tape.attrs.get("config")
    return file_difference(folder, recorded) if recorded and folder.journal.exists() else None


def file_difference(folder: RunFolder, recorded: str) -> str | None:
    """Say whether the file of a run folder is no longer what was ``recorded``, as `config_difference` does."""
    counts = "the configuration on the tape counts"
    if not folder.config.exists():
        return f"{folder.config} is missing; {counts}"
    try:
        text = folder.config.read_text(encoding="utf-8")
        if text == recorded:
            return None
        changes = diff(from_toml(recorded), from_toml(text))
    except (OSError, UnicodeDecodeError) as error:
        return f"{folder.config} cannot be read ({getattr(error, 'strerror', None) or 'it is no UTF-8 text'}); {counts}"
    except ConfigError as error:
        return f"{folder.config} is no configuration ({error}); {counts}"
    if not changes:
        return None
    key, (there, here) = next(iter(changes.items()))
    more = f" and {len(changes) - 1} more keys" if len(changes) > 1 else ""
    return f"{folder.config} was changed after the run: {key} is {here!r}, on the tape {there!r}{more}; {counts}"
