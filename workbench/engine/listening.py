"""Where the syncer of a run listens beyond its own machine, kept in the run folder for every start of it."""

from __future__ import annotations

import secrets
import shlex
import socket
from collections.abc import Sequence
from pathlib import Path

import msgspec
import zmq

from workbench.config import ConfigError
from workbench.engine.layout import write_private
from workbench.engine.security import ServerKeys, check_bind, host_and_port
from workbench.engine.sockets import bind_pair, make_context, make_socket
from workbench.protocol.messages import BULK, CONTROL

LISTENING_FILE = "listening.json"
EVERYWHERE = ("0.0.0.0", "*", "[::]")


class Listening(msgspec.Struct, frozen=True):
    """How the learners of a run come: by hand, over tcp.

    Attributes
    ----------
    address : str
        ``tcp://HOST:PORT``; port 0: a free pair of ports, the same after a restart.
    keys : str
        Folder of keys, empty for none.
    instance : str
        Tells two runs of one configuration apart, so that no learner of the first is taken into the second.
    flags : tuple of str
        What every learner is started with beside the address and its number.
    """

    address: str
    keys: str = ""
    instance: str = ""
    flags: tuple[str, ...] = ()


def new_listening(address: str, keys: Path | None = None, flags: Sequence[str] = ()) -> Listening:
    """Where a new run listens."""
    where = str(keys.resolve()) if keys is not None else ""
    return Listening(address, where, secrets.token_hex(4), tuple(flags))


def joining_line(listening: Listening, address: str, learner: int) -> str:
    """What to type for a learner, on any machine, once the syncer listens at an address."""
    words = ["workbench", "learner", "--connect", reachable(address), "--learner", str(learner), *listening.flags]
    return shlex.join(words)


def reachable(address: str) -> str:
    """The address as others can use it: this machine's name where the syncer listens on all its interfaces."""
    host, port = host_and_port(address)
    return f"tcp://{socket.gethostname()}:{port}" if host in EVERYWHERE else address


def check_listening(address: str, keys: ServerKeys | None) -> None:
    """Refuse an address that cannot be had, or that lies beyond this machine without keys.

    Raises
    ------
    ConfigError
    """
    check_bind(address, keys)
    context = make_context()
    try:
        bind_pair([make_socket(context, zmq.ROUTER, channel) for channel in (CONTROL, BULK)], address)
    finally:
        context.destroy(0)


def save_listening(run: Path, listening: Listening) -> None:
    """Keep it in a run folder."""
    write_private(run / LISTENING_FILE, msgspec.json.encode(listening))


def read_listening(run: Path) -> Listening | None:
    """Where the syncer of a run folder listens, None if its learners are of this machine.

    Raises
    ------
    ConfigError
        The file is damaged.
    """
    path = run / LISTENING_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Listening)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"{path} does not say where the syncer listens: {error}") from error
