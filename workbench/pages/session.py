"""One browser tab: what it asked for, what it may do, and the page it gets."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from html import escape
from importlib import import_module
from typing import Any, NamedTuple

import panel as pn

from workbench.config import ConfigError
from workbench.pages import looks, style
from workbench.pages.access import Role
from workbench.pages.addresses import COMPARE, LIVE, REPLAY, START, Address, address_of, token_of, unread
from workbench.pages.browser import Browser
from workbench.pages.site import Site
from workbench.tape import TapeError

pn.extension(
    notifications=True, reconnect=True, raw_css=[looks.SHEET_OF_PAGE],
    disconnect_notification="The server of this page does not answer; trying again.",
)  # fmt: skip

MAKERS = {START: "start_page", LIVE: "live_page", REPLAY: "replay_page", COMPARE: "compare_page"}
"""Module of each page; its ``make(session)`` returns what stands below the header."""


class Session(NamedTuple):
    """Attributes
    ----------
    site : Site
    role : str
        ``view`` or ``control``.
    token : str
        The token of this tab's address, for its links.
    address : Address
    unread : tuple of str
        What the address said that makes no sense.
    """

    site: Site
    role: Role
    token: str
    address: Address
    unread: tuple[str, ...] = ()

    @property
    def may_control(self) -> bool:
        """Whether buttons of this tab do something."""
        return self.role == "control"

    def link(self, page: str, run: str = "", event: int = -1, others: tuple[str, ...] = ()) -> str:
        """Address of another page, for this tab."""
        return Address(page, run, event, others=others).query(self.token)


def show(site: Site) -> Any:
    """The page of the session that is being made."""
    document: Any = pn.state.curdoc
    request = document.session_context.request
    token = token_of(request.arguments)
    area: Any = pn.state.notifications
    if area is not None:  # Panel keeps it, and the whole document with it, when everybody has left
        document.on_session_destroyed(area._server_destroy)
    role = site.access.role(token, (request.headers or {}).get("Host", ""))
    if role is None:
        return style.page(
            style.header("", "", []),
            style.banner("This page needs its token.", "The server printed it: add it as ?token=…", bad=True),
        )
    address = address_of(request.arguments)
    session = Session(site, role, token, address, unread(request.arguments, address))
    maker: Callable[[Session], Any] = import_module(f"workbench.pages.{MAKERS[session.address.page]}").make
    document.title = f"{session.address.run or 'runs'} – workbench"
    try:
        page = maker(session)
    except (ConfigError, TapeError, OSError) as error:
        return trouble(session, str(error))
    except Exception as error:
        logging.getLogger(__name__).exception("a page could not be made")
        return trouble(session, f"This page could not be made: {type(error).__name__}. The server's log says where.")
    if session.unread and address.page != REPLAY:  # which knows more of what its address may say
        page.insert(1, unread_banner(session.unread))
    return page


def unread_banner(said: Sequence[str]) -> Any:
    """What of an address was left out."""
    return style.banner(f"Not understood in the address, and left out: {', '.join(said)}.")


def trouble(session: Session, sentence: str) -> Any:
    """A page that says what is wrong, and where to go on."""
    return style.page(*trouble_parts(session, sentence, ""))


def trouble_parts(session: Session, sentence: str, badge: str) -> list[Any]:
    """What such a page holds."""
    way_on = f'<a href="{escape(session.link(START))}">Choose another run</a>'
    return [
        style.header(session.address.run, badge, [("runs", session.link(START))]),
        style.banner(sentence, way_on, bad=True, html_way_on=True),
        Browser(),
    ]
