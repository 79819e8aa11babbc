"""Before a page is made at all: requests without a token, or under a name that is not this server's, get 403."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NoReturn

from bokeh.server.auth_provider import AuthProvider
from tornado.web import HTTPError, RequestHandler

from workbench.pages.access import Access
from workbench.pages.addresses import token_of

ASKS_FOR_TOKEN = "needs the token that the server printed"
"""Reason of a refusal: no more is said, whether the token or the name did not fit."""


class Door(AuthProvider):
    """Asks every request for a page, and every connection of one, for its token.

    Parameters
    ----------
    access : Access
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        super().__init__()

    @property
    def get_user(self) -> Callable[[Any], Any]:
        """What a request may do."""
        return self._role

    @property
    def get_user_async(self) -> Callable[[Any], Awaitable[Any]] | None:
        """None: nothing is waited for."""
        return None

    @property
    def login_url(self) -> str | None:
        """None: there is nothing to log in to."""
        return None

    @property
    def get_login_url(self) -> Callable[[Any], str]:
        """Where to send whoever has no token: nowhere."""
        return _refuse

    @property
    def login_handler(self) -> type[RequestHandler] | None:
        """There is none."""
        return None

    @property
    def logout_url(self) -> str | None:
        """There is none."""
        return None

    @property
    def logout_handler(self) -> type[RequestHandler] | None:
        """There is none."""
        return None

    def _role(self, handler: Any) -> str | None:
        arguments: Mapping[str, list[bytes]] = handler.request.arguments
        return self._access.role(token_of(arguments), handler.request.headers.get("Host", ""))


def _refuse(handler: Any) -> NoReturn:
    raise HTTPError(403, reason=ASKS_FOR_TOKEN)
