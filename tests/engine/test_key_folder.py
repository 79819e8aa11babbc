"""A folder of keys: made once, private, and what each side reads of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workbench.config import ConfigError
from workbench.engine.key_folder import client_keys, make_key_folder, server_keys


def test_every_process_has_a_pair_of_its_own_in_a_private_folder(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    assert make_key_folder(folder, 2) == ["syncer", "learner-0", "learner-1"]
    assert os.stat(folder).st_mode & 0o777 == 0o700
    assert {os.stat(path).st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    server, clients = server_keys(folder), [client_keys(folder, m) for m in range(2)]
    assert server.clients == {one.own.public for one in clients}
    assert {one.server for one in clients} == {server.own.public}
    assert len({server.own.secret, *(one.own.secret for one in clients)}) == 3


def test_keys_that_are_there_stay(tmp_path: Path) -> None:
    make_key_folder(tmp_path / "keys", 1)
    before = server_keys(tmp_path / "keys")
    assert make_key_folder(tmp_path / "keys", 2) == ["learner-1"]
    after = server_keys(tmp_path / "keys")
    assert after.own == before.own and after.clients > before.clients


def test_a_learners_machine_needs_two_files(tmp_path: Path) -> None:
    make_key_folder(tmp_path / "keys", 2)
    there = tmp_path / "there"
    there.mkdir(mode=0o700)
    for name in ("learner-1.key", "syncer.public"):
        (there / name).write_bytes((tmp_path / "keys" / name).read_bytes())
        (there / name).chmod(0o600)
    assert client_keys(there, 1) == client_keys(tmp_path / "keys", 1)
    with pytest.raises(ConfigError, match=r"learner-0\.key cannot be read"):
        client_keys(there, 0)
    with pytest.raises(ConfigError, match="no public key of a learner"):
        server_keys(there)


def test_what_others_may_read_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    make_key_folder(folder, 1)
    (folder / "learner-0.key").chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        client_keys(folder, 0)
    folder.chmod(0o755)
    for read in (lambda: server_keys(folder), lambda: client_keys(folder, 0), lambda: make_key_folder(folder, 1)):
        with pytest.raises(ConfigError, match="chmod 700"):
            read()


def test_no_folder_and_no_number_that_can_be(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="workbench keys"):
        server_keys(tmp_path / "none")
    for learners in (0, 10**6):
        with pytest.raises(ConfigError, match="1 to 4096"):
            make_key_folder(tmp_path / "keys", learners)


def test_a_key_that_is_none_is_not_shown(tmp_path: Path) -> None:
    make_key_folder(tmp_path / "keys", 1)
    (tmp_path / "keys" / "learner-0.public").write_bytes(b"secret-stuff")
    with pytest.raises(ConfigError, match="12 characters that are no key") as error:
        server_keys(tmp_path / "keys")
    assert "secret-stuff" not in str(error.value)
