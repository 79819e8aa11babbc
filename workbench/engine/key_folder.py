"""The keys of a run across machines: one pair for each process, in one private folder.

``syncer.key`` and ``learner-M.key`` hold pairs, ``syncer.public`` and ``learner-M.public`` what others may know.  A
syncer needs ``syncer.key`` and lets in whoever has a ``learner-M.public`` there; a learner needs ``learner-M.key`` and
``syncer.public``, and nothing else has to be copied to its machine.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from workbench.config import ConfigError
from workbench.engine.security import ClientKeys, KeyPair, ServerKeys, checked_key, make_keys, read_keys, write_keys

SYNCER_NAME = "syncer"
LEARNERS_MAX = 4096
PUBLIC_BYTES_MAX = 256
_PUBLIC_NAME = re.compile(r"learner-\d+\.public")


def learner_name(learner: int) -> str:
    """Name of a learner's files before the dot."""
    return f"learner-{learner}"


def make_key_folder(folder: Path, learners: int) -> list[str]:
    """Make what is missing: the folder (0700), a pair (0600) for the syncer and for each learner.

    Returns
    -------
    list of str
        Names of the pairs that were made; pairs that are there stay as they are.

    Raises
    ------
    ConfigError
        Others may enter the folder, or a file in it is no key.
    """
    if not 1 <= learners <= LEARNERS_MAX:
        raise ConfigError(f"learners = {learners}: keys are made for 1 to {LEARNERS_MAX} learners")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_private(folder)
    made = []
    for name in (SYNCER_NAME, *map(learner_name, range(learners))):
        pair_path, public_path = folder / f"{name}.key", folder / f"{name}.public"
        if not pair_path.exists():
            write_keys(pair_path, make_keys())
            public_path.unlink(missing_ok=True)  # of a pair that is gone
            made.append(name)
        if not public_path.exists():
            _write_public(public_path, _pair(folder, name))
    return made


def server_keys(folder: Path) -> ServerKeys:
    """What a syncer needs of a folder: its own pair, and the public keys of all learners there.

    Raises
    ------
    ConfigError
        Something is missing, others may read it, or it is no key.
    """
    _check_private(folder)
    names = sorted(name for name in os.listdir(folder) if _PUBLIC_NAME.fullmatch(name))
    if not names:
        raise ConfigError(f"{folder} holds no public key of a learner; make keys: workbench keys {folder} --learners N")
    return ServerKeys(_pair(folder, SYNCER_NAME), frozenset(_public(folder / name) for name in names))


def client_keys(folder: Path, learner: int) -> ClientKeys:
    """What a learner needs of a folder: its own pair and the syncer's public key.

    Raises
    ------
    ConfigError
        Something is missing, others may read it, or it is no key.
    """
    _check_private(folder)
    return ClientKeys(_pair(folder, learner_name(learner)), _public(folder / f"{SYNCER_NAME}.public"))


def _check_private(folder: Path) -> None:
    try:
        found = folder.stat()
    except OSError as error:
        raise ConfigError(
            f"no keys in {folder}: {error.strerror}; make them: workbench keys {folder} --learners N"
        ) from error
    if not folder.is_dir():
        raise ConfigError(
            f"{folder} is no folder; expected one of keys, as made by: workbench keys FOLDER --learners N"
        )
    if found.st_mode & 0o077 or found.st_uid != os.getuid():
        raise ConfigError(
            f"others may enter {folder} (mode {found.st_mode & 0o777:o}); keys need a folder of your own with mode "
            f"700: chmod 700 {folder}"
        )


def _pair(folder: Path, name: str) -> KeyPair:
    path = folder / f"{name}.key"
    try:
        return read_keys(path)
    except OSError as error:
        raise ConfigError(
            f"the key {path} cannot be read: {error.strerror}; make it with `workbench keys`, or copy it from where "
            "the keys were made"
        ) from error


def _public(path: Path) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as file:
            return checked_key(file.read(PUBLIC_BYTES_MAX).strip(), str(path))
    except OSError as error:
        raise ConfigError(
            f"the public key {path} cannot be read: {error.strerror}; copy it from where the keys were made"
        ) from error


def _write_public(path: Path, keys: KeyPair) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(keys.public + b"\n")
