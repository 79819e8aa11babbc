"""Who may see the pages and who may act: two tokens, and the names under which this server may be asked."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from typing import Literal, NamedTuple

from workbench.config import ConfigError

Role = Literal["view", "control"]
TOKEN = "token"
"""Name of the token in an address."""
TOKEN_LETTERS_MIN, TOKEN_LETTERS_MAX = 16, 200
LOOPBACK = ("localhost", "127.0.0.1")


class Access(NamedTuple):
    """What opens the pages.

    Attributes
    ----------
    view, control : str
        Tokens: who has ``control`` may act, who has ``view`` sees the same and can press nothing.
    hosts : tuple of str
        Names without port that a request may call this server by: a page of another name that a browser was led to
        think is here gets nothing.
    """

    view: str
    control: str
    hosts: tuple[str, ...] = LOOPBACK

    def role(self, token: str, host: str) -> Role | None:
        """What a request may do; None: nothing.

        Parameters
        ----------
        token : str
            As in the address.
        host : str
            The request's Host, with or without port.
        """
        if not 0 < len(token) <= TOKEN_LETTERS_MAX or host_name(host) not in self.hosts:
            return None
        given = token.encode()
        may_control = hmac.compare_digest(given, self.control.encode())
        may_view = hmac.compare_digest(given, self.view.encode())
        return "control" if may_control else "view" if may_view else None


def new_access(view: str = "", control: str = "", hosts: tuple[str, ...] = LOOPBACK) -> Access:
    """Tokens drawn at random where none are given.

    Raises
    ------
    ConfigError
        A given token that is easily guessed, or the same twice.
    """
    access = Access(view or secrets.token_urlsafe(24), control or secrets.token_urlsafe(24), hosts)
    for name, token in (("view", access.view), ("control", access.control)):
        if not TOKEN_LETTERS_MIN <= len(token) <= TOKEN_LETTERS_MAX or not token.isascii():
            raise ConfigError(
                f"the {name} token has {len(token)} characters; "
                f"allowed: {TOKEN_LETTERS_MIN} to {TOKEN_LETTERS_MAX} of ASCII"
            )
    if access.view == access.control:
        raise ConfigError("the view token is the control token; give two different ones, or none and they are drawn")
    return access


def host_name(host: str) -> str:
    """The name in a Host header, without port and brackets, in lower case."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host if host.count(":") > 1 else host.partition(":")[0]


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach what listens there."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
