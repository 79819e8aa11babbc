"""Persistent compile cache: a learner that starts again does not compile again."""

from __future__ import annotations

import stat
from pathlib import Path

import jax

from workbench.config import ConfigError


def enable_compile_cache(folder: Path) -> Path:
    """Keep compiled programs in a folder that only its owner may enter.

    What lies there is executed, so a folder that others may write is refused.

    Parameters
    ----------
    folder : Path
        Made, with its parents, if it is not there.

    Returns
    -------
    Path
        The folder, absolute.

    Raises
    ------
    ConfigError
        The folder belongs to somebody else, or it cannot be made private.
    """
    folder = folder.expanduser().absolute()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        mode = stat.S_IMODE(folder.stat().st_mode)
    except OSError as error:
        raise ConfigError(
            f"the compile cache {folder} cannot be made private ({error.strerror}); expected a folder of your own "
            "with mode 0700; give another"
        ) from error
    if mode != 0o700:
        raise ConfigError(f"the compile cache {folder} has mode {mode:o}; expected 700; give a folder of your own")
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return folder
