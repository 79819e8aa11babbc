"""The server of the pages: bound to loopback unless told otherwise, nothing without a token."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

from panel.io.server import get_server
from tornado.iostream import StreamClosedError
from tornado.websocket import WebSocketClosedError

from workbench.config import ConfigError
from workbench.pages.access import is_loopback
from workbench.pages.addresses import Address
from workbench.pages.door import Door
from workbench.pages.session import show
from workbench.pages.site import Site, silence_addresses

MESSAGE_BYTES_MAX = 1 << 20
"""Nothing that a page has to say is longer."""


class Pages:
    """A server that listens and does not run yet.

    Parameters
    ----------
    site : Site
    address : str
        To listen at.
    port : int
        0: any that is free.

    Attributes
    ----------
    port : int
        The one that is listened at.
    """

    def __init__(self, site: Site, address: str = "127.0.0.1", port: int = 0) -> None:
        self.site, self.address = site, address
        self.port = port or _free_port(address)
        try:
            self._server: Any = get_server(
                {"/": lambda: show(site)},
                port=self.port,
                address=address,
                websocket_origin=[f"{name}:{self.port}" for name in site.access.hosts],
                websocket_max_message_size=MESSAGE_BYTES_MAX,
                auth_provider=Door(site.access),
                title="workbench",
            )
        except OSError as error:
            raise ConfigError(
                f"cannot listen at {address}:{self.port}: {error.strerror}; give another --port"
            ) from error

    def url(self, token: str, address: Address | None = None) -> str:
        """The address to type."""
        host = "localhost" if is_loopback(self.address) else self.site.access.hosts[-1]
        return f"http://{host}:{self.port}/{(address or Address()).query(token)}"

    def run(self) -> None:
        """Serve until Ctrl-C."""
        silence_addresses()
        logging.getLogger("bokeh.server.views.ws").setLevel(logging.ERROR)  # it warns of each visitor who leaves
        self._server.io_loop.asyncio_loop.set_exception_handler(without_leavers)
        self._server.start()
        try:
            self._server.io_loop.start()
        finally:
            self._server.stop()
            self.site.close()


def without_leavers(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Handle what nobody waits for, but that somebody left while something was on its way to them."""
    if not isinstance(context.get("exception"), WebSocketClosedError | StreamClosedError):
        loop.default_exception_handler(context)


def _free_port(address: str) -> int:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        try:
            sock.bind((address, 0))
        except OSError as error:
            raise ConfigError(
                f"cannot listen at {address}: {error.strerror}; give an address of this machine"
            ) from error
        return int(sock.getsockname()[1])
