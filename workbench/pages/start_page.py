"""The first page: watch a recorded run, start a tiny one, attach to one that goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from html import escape
from typing import Any

import panel as pn

from workbench.config import ConfigError
from workbench.pages import style
from workbench.pages.addresses import COMPARE, LIVE, REPLAY
from workbench.pages.browser import Browser
from workbench.pages.demo import DEMO
from workbench.pages.run_list import RunList
from workbench.pages.session import Session
from workbench.tape import being_written

LISTED_MAX = 40


def make(session: Session) -> Any:
    """Three cards."""
    names = session.site.folders.names()
    going = [name for name in names if _goes_on(session, name)]
    over = [name for name in names if name not in going]
    left_out = session.site.folders.left_out
    browser = Browser()
    return style.page(
        style.header("", session.role if session.may_control else "view only", [("compare", session.link(COMPARE))]),
        style.beside(
            style.column(_recorded(session, over, left_out), least=320),
            style.column(_starter(session, browser), least=280),
            style.column(_running(session, going), least=280),
        ),
        browser,
    )


def _goes_on(session: Session, name: str) -> bool:
    try:
        return being_written(session.site.folders.path(name))
    except (ConfigError, OSError):
        return False


def _recorded(session: Session, names: list[str], left_out: int) -> Any:
    said = "Every event of a run, step by step: who did what, which merge saw whom, and why."
    if DEMO.name in names and session.site.folders.path(DEMO.name) == DEMO.resolve():
        to = escape(session.link(REPLAY, DEMO.name))
        said += f' New here? <a href="{to}">Watch the demo tape</a>: 40 s, four learners, five faults.'
    if not names:
        where = escape(session.site.folders.said)
        body = f'<p class="quiet">No recorded run lies below {where} yet. Start one beside this card, or type<br>' \
               "<code>workbench train --preset tiny-4 --out runs/first</code></p>"  # fmt: skip
        return style.card(style.html(f"<h2>▸ Watch a recorded run</h2><p>{said}</p>{body}"))
    runs = _listed(session, names, lambda name: _to(session, REPLAY, name, name))
    more = max(0, len(names) - LISTED_MAX) + left_out
    note = f'<p class="quiet">not shown: {more:,} older ones; give their folder to workbench serve</p>' if more else ""
    return style.card(style.html(f"<h2>▸ Watch a recorded run</h2><p>{said}</p>"), runs.pane, style.html(note))


def _listed(session: Session, names: list[str], links: Callable[[str], str]) -> RunList:
    """The newest of some runs; what is said of them comes when the page is there."""
    rows = [(session.site.folders.path(name), links(name)) for name in names[:LISTED_MAX]]
    runs = RunList(session.site, rows)
    pn.state.onload(runs.fill)
    return runs


def _to(session: Session, page: str, name: str, text: str) -> str:
    return f'<a href="{escape(session.link(page, name))}">{escape(text)}</a>'


def _running(session: Session, names: list[str]) -> Any:
    said = "Runs that train at this moment, whoever started them."
    more = len(names) - LISTED_MAX
    note = f'<p class="quiet">not shown: {more:,}</p>' if more > 0 else ""
    heading = f"<h2>● Attach to a running one</h2><p>{said}</p>"
    if not names:
        return style.card(style.html(f'{heading}<p class="quiet">None goes on right now.</p>'))
    tape = "its tape so far"
    runs = _listed(session, names, lambda n: f"{_to(session, LIVE, n, n)} · {_to(session, REPLAY, n, tape)}")
    return style.card(style.html(heading), runs.pane, style.html(note))


def _starter(session: Session, browser: Browser) -> Any:
    tiny = session.site.tiny
    said = style.html(
        f"<h2>✚ Start a tiny run here</h2><p>{tiny.learners} learners, {tiny.rounds:,} merges, on this machine's "
        "processor. It goes on when this page is closed; kill a learner and see what happens.</p>"
    )
    if not session.may_control:
        return style.card(said, style.html('<p class="quiet">Starting needs the address with the control token.</p>'))
    answer = style.html("", visible=False)
    button = style.button("Start", kind="primary", margin=(6, 0), width=140)

    async def start(_: Any) -> None:
        button.disabled, button.name = True, "starting …"
        try:
            path = await asyncio.get_running_loop().run_in_executor(session.site.asking, session.site.launch_tiny)
        except (ConfigError, OSError) as error:
            answer.object, answer.visible = style.banner_html(str(error), bad=True), True
            button.disabled, button.name = False, "Start"
            return
        browser.go(session.link(LIVE, session.site.folders.name(path)))

    button.on_click(start)
    return style.card(said, button, answer)
