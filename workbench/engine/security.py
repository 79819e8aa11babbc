"""Who may connect over tcp: CURVE keys, one pair per process, and the list of the clients that are let in.

CURVE alone lets in every client that knows the syncer's public key, and public keys are public; so the syncer answers
ZeroMQ's own question (ZAP, RFC 27) for each handshake from its list.  Keys lie in files of mode 0600 and stand in no
configuration, log or tape.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import zmq
from zmq.utils import z85

from workbench.config import ConfigError

ZAP_ADDRESS = "inproc://zeromq.zap.01"
ZAP_DOMAIN = b"workbench"
KEY_CHARACTERS = 40


class KeyPair(NamedTuple):
    """A CURVE key pair, both in Z85 (40 characters)."""

    public: bytes
    secret: bytes

    def __repr__(self) -> str:
        return f"KeyPair(public={self.public!r}, secret=…)"


class ServerKeys(NamedTuple):
    """The syncer's own pair and the public keys of the learners that may connect."""

    own: KeyPair
    clients: frozenset[bytes]


class ClientKeys(NamedTuple):
    """A learner's own pair and the syncer's public key."""

    own: KeyPair
    server: bytes


def make_keys() -> KeyPair:
    """A fresh pair."""
    return KeyPair(*zmq.curve_keypair())


def write_keys(path: Path, keys: KeyPair) -> None:
    """Write a pair, mode 0600 from the first byte on; a file that is there is not overwritten (`FileExistsError`)."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(b"%s\n%s\n" % keys)


def read_keys(path: Path) -> KeyPair:
    """Read what `write_keys` wrote.

    Raises
    ------
    ConfigError
        If others may read the file, or it holds no key pair.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        lines = file.read(256).split()
    if mode & 0o077:
        raise ConfigError(f"others may read {path} (mode {mode & 0o777:o}); keys need 600: chmod 600 {path}")
    if len(lines) != 2:
        raise ConfigError(f"{path} holds {len(lines)} lines; expected the public and the secret key of a pair")
    keys = KeyPair(checked_key(lines[0], str(path)), checked_key(lines[1], str(path)))
    if zmq.curve_public(keys.secret) != keys.public:
        raise ConfigError(f"the two keys in {path} are no pair; make another with make_keys and write_keys")
    return keys


def checked_key(key: bytes, where: str) -> bytes:
    """The key, if it is one: 40 characters of Z85; `ConfigError` else, which does not show it."""
    try:
        if len(key) == KEY_CHARACTERS and len(z85.decode(key)) == 32:
            return key
    except (KeyError, ValueError):
        pass
    raise ConfigError(f"{where}: {len(key)} characters that are no key; expected {KEY_CHARACTERS} of Z85")


def host_and_port(address: str) -> tuple[str, int]:
    """Host and port of ``tcp://HOST:PORT``; `ConfigError` if it is not of that form."""
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    if not address.startswith("tcp://") or not host or not port.isdecimal() or int(port) > 65534:
        raise ConfigError(f"address {address!r}; expected tcp://HOST:PORT with a port of at most 65534")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches ``host``; names other than ``localhost`` count as reachable from outside."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_bind(address: str, keys: ServerKeys | None) -> None:
    """Refuse to listen beyond this machine without keys.

    Raises
    ------
    ConfigError
    """
    host, port = host_and_port(address)
    if keys is None and not is_loopback(host):
        raise ConfigError(
            f"listening on {address} without keys would let in anybody; give keys, or listen on tcp://127.0.0.1:{port}"
        )


def secure_server(socket: zmq.Socket[Any], keys: ServerKeys) -> None:
    """Make a socket a CURVE server that asks the `Gate` for each client."""
    socket.curve_secretkey = keys.own.secret
    socket.curve_publickey = keys.own.public
    socket.curve_server = True
    socket.zap_domain = ZAP_DOMAIN


def secure_client(socket: zmq.Socket[Any], keys: ClientKeys) -> None:
    """Make a socket a CURVE client of one server."""
    socket.curve_secretkey = keys.own.secret
    socket.curve_publickey = keys.own.public
    socket.curve_serverkey = keys.server


class Gate:
    """Answers the handshakes of a context's sockets from a list of public keys.

    Must exist before the first socket is bound: without an answering end every client is let in.

    Attributes
    ----------
    socket : zmq.Socket
        To poll; `answer` when it is readable.
    refused : int
        Handshakes turned away.
    last_address : str
        Whence the last of them came.
    """

    def __init__(self, context: zmq.Context[Any], clients: Iterable[bytes]) -> None:
        self._allowed = {z85.decode(checked_key(key, "client key")) for key in clients}
        self.socket = context.socket(zmq.ROUTER)
        self.socket.linger = 0
        self.socket.bind(ZAP_ADDRESS)
        self.refused = 0
        self.last_address = ""

    def allow(self, key: bytes) -> None:
        """Let in one more client."""
        self._allowed.add(z85.decode(checked_key(key, "client key")))

    def answer(self) -> None:
        """Answer all handshakes that wait."""
        while True:
            try:
                parts = self.socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            route, (version, request, domain, address, _, mechanism, *credentials) = parts[:2], parts[2:]
            good = domain == ZAP_DOMAIN and mechanism == b"CURVE" and credentials[:1] != [] and version == b"1.0"
            good = good and credentials[0] in self._allowed
            if not good:
                self.refused += 1
                self.last_address = address.decode("utf-8", "replace")[:100]
            status = (b"200", b"OK") if good else (b"400", b"key not on the list")
            self.socket.send_multipart([*route, b"1.0", request, *status, b"", b""])
