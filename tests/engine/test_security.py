"""Keys, their files, the list of clients, and where one may listen without."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.engine.wires import SIZES, pair, until
from workbench.config import ConfigError
from workbench.engine.security import (
    ClientKeys,
    KeyPair,
    ServerKeys,
    check_bind,
    host_and_port,
    is_loopback,
    make_keys,
    read_keys,
    write_keys,
)
from workbench.engine.wire import SyncerWire


def test_keys_are_kept_private(tmp_path: Path) -> None:
    keys, path = make_keys(), tmp_path / "key"
    write_keys(path, keys)
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert read_keys(path) == keys
    assert keys.secret.decode() not in repr(keys)
    with pytest.raises(FileExistsError):
        write_keys(path, make_keys())
    os.chmod(path, 0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        read_keys(path)


@pytest.mark.parametrize("content", [b"", b"short\nkeys\n", b"%s\n%s\n" % (make_keys().public, make_keys().secret)])
def test_a_file_without_a_pair_is_refused_and_not_shown(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    os.chmod(path, 0o600)
    with pytest.raises(ConfigError) as error:
        read_keys(path)
    assert all(word.decode() not in str(error.value) for word in content.split())


@pytest.mark.parametrize("host", ["0.0.0.0", "*", "192.168.1.5", "example.org", "[::]"])
def test_listening_beyond_this_machine_needs_keys(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(ConfigError, match="without keys"):
        SyncerWire("r", SIZES, listen=f"tcp://{host}:5555")
    check_bind(f"tcp://{host}:5555", ServerKeys(make_keys(), frozenset()))


def test_loopback_does_not() -> None:
    for host in ("127.0.0.1", "localhost", "[::1]", "127.9.9.9"):
        check_bind(f"tcp://{host}:0", None)


@pytest.mark.parametrize("address", ["127.0.0.1:5", "tcp://5", "tcp://h:x", "tcp://h:65535", "udp://h:1", "tcp://:5"])
def test_addresses_of_another_form_are_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="tcp://HOST:PORT"):
        host_and_port(address)


def test_only_clients_on_the_list_get_in() -> None:
    with pair("curve") as both:
        assert both.client is not None
        stranger = make_keys()
        wire = both.another(keys=ClientKeys(stranger, both.client.server))
        try:
            wire.connect()
            until(lambda: both.syncer.poll(1) or wire.poll(1) or wire.closed() == [-1])
            assert "not on the syncer's list" in wire.refusal
            assert both.syncer._gate is not None and both.syncer._gate.refused >= 1
            both.syncer.allow(stranger.public)
            wire.connect()
            until(lambda: both.syncer.poll(1) or wire.poll(1) or wire.opened())
            assert wire.refusal == ""
        finally:
            wire.close(0)
        both.connect()


@pytest.mark.parametrize("keys", ["none", "other_server"])
def test_a_client_without_the_right_keys_never_connects(keys: str) -> None:
    with pair("curve") as both:
        assert both.client is not None
        wrong = None if keys == "none" else ClientKeys(both.client.own, make_keys().public)
        wire = both.another(keys=wrong)
        try:
            wire.connect()
            until(lambda: both.syncer.poll(1) or wire.poll(1) or wire.closed() == [-1])
        finally:
            wire.close(0)
        both.connect()
        assert not both.gone


def test_a_list_with_a_bad_key_and_a_list_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="no key"):
        SyncerWire("r", SIZES, listen="tcp://127.0.0.1:0", keys=ServerKeys(make_keys(), frozenset([b"x"])))
    with pair("tcp") as both, pytest.raises(ConfigError, match="no keys"):
        both.syncer.allow(make_keys().public)
    assert isinstance(make_keys(), KeyPair)
