"""The look of all pages: colours, header, cards, banners; plain HTML that fetches nothing, texts escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import panel as pn

from workbench.pages.looks import BAD, CARD, HAIR, LINE, LINK, PAST, PRESS, QUIET, TEXT

SHEET = f"""
:host {{ font-family: system-ui, -apple-system, "Segoe UI", sans-serif; font-size: 14px; color: {TEXT}; }}
a {{ color: {LINK}; }}
h1 {{ font-size: 14px; margin: 0; display: inline; }}
h2 {{ font-size: 14px; font-weight: 600; margin: 0 0 6px 0; }}
p {{ margin: 4px 0; line-height: 1.45; }}
.quiet {{ color: {QUIET}; }}
.head {{ display: flex; flex-wrap: wrap; gap: 6px 16px; align-items: baseline; padding: 2px 0; }}
.head .brand {{ font-weight: 700; padding-right: 10px; }}
.head .name {{ font-weight: 600; overflow-wrap: anywhere; }}
.head .right {{ margin-left: auto; display: flex; gap: 10px; align-items: baseline; }}
.badge {{ border: 1px solid {LINE}; border-radius: 10px; padding: 0 8px; background: {CARD}; white-space: nowrap; }}
.banner {{ border: 1px solid {LINE}; border-left: 5px solid {PAST}; border-radius: 6px; background: {CARD};
  padding: 10px 14px; overflow-wrap: anywhere; }}
.banner.bad {{ border-left-color: {BAD}; }}
.vitals {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 8px; }}
.vital {{ background: {CARD}; border: 1px solid {LINE}; border-radius: 6px; padding: 7px 12px; min-height: 62px; }}
.vital .what {{ color: {QUIET}; font-size: 12px; }}
.vital .number {{ font-size: 21px; font-weight: 600; font-variant-numeric: tabular-nums; white-space: nowrap; }}
.vital .more {{ color: {QUIET}; font-size: 12px; font-variant-numeric: tabular-nums; }}
.vital.bad {{ border-color: {BAD}; box-shadow: inset 0 0 0 1px {BAD}; }}
table {{ border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; }}
th {{ text-align: left; font-weight: 400; color: {QUIET}; padding: 2px 10px 2px 0; }}
td {{ padding: 2px 10px 2px 0; vertical-align: top; border-top: 1px solid {HAIR}; }}
td[colspan] {{ overflow-wrap: anywhere; }}
td.long {{ overflow-wrap: anywhere; min-width: 8em; }}
td.told {{ min-width: 16em; }}
.runs td:first-child {{ width: 60%; overflow-wrap: anywhere; }}
.runs td:only-child {{ width: 100%; }}
.wide {{ overflow-x: auto; }}
.wide :is(th, td):first-child {{ position: sticky; left: 0; background: {CARD}; }}
.wide :is(th, td):last-child {{ padding-right: 0; }}
button.do {{ font: inherit; font-size: 13px; color: {TEXT}; background: {PRESS}; border: 1px solid {LINE};
  border-radius: 5px; padding: 1px 10px; cursor: pointer; white-space: nowrap; }}
button.do[aria-pressed="true"]::before {{ content: "✓ " / ""; }}
button.do[aria-pressed="false"] {{ color: {QUIET}; border-style: dashed; }}
.dos + .dos {{ margin-top: 6px; }}
details.lanes {{ margin-bottom: 6px; }}
.chips {{ display: flex; flex-wrap: wrap; gap: 6px 14px; margin-top: 6px; }}
.chip {{ display: inline-flex; gap: 4px; align-items: center; }}
details > summary {{ cursor: pointer; }}
details > .dos {{ margin-top: 6px; }}
summary:focus-visible {{ outline: 2px solid {PAST}; outline-offset: 1px; }}
button.do:disabled {{ opacity: .45; cursor: default; }}
.acts button.do {{ padding: 4px 11px; }}
.acts button.do[data-do="stop"] {{ border-color: {BAD}; }}
button.do:hover:enabled {{ border-color: {TEXT}; }}
button.do:focus-visible, a:focus-visible {{ outline: 2px solid {PAST}; outline-offset: 1px; }}
.dos {{ display: flex; flex-wrap: wrap; gap: 6px; align-items: center; }}
.grow {{ flex: 1 1 14em; }}
h2.next {{ margin-top: 10px; padding-top: 8px; border-top: 1px solid {HAIR}; }}
.where {{ font-variant-numeric: tabular-nums; }}
.mark {{ border: 1px solid {LINE}; border-radius: 4px; padding: 0 6px; font-size: 12px; white-space: nowrap; }}
.num {{ text-align: right; }}
.scrolled {{ max-height: 300px; overflow: auto; }}
caption {{ text-align: left; color: {QUIET}; padding: 6px 0 2px; }}
"""

CARD_STYLE = {
    "background": CARD, "border": f"1px solid {LINE}", "border-radius": "6px", "padding": "10px 14px",
    "min-width": "0",
}  # fmt: skip
SPACE = 8
SELECT = """select.bk-input:not([multiple]) { background-image: url('data:image/svg+xml;utf8,<svg version="1.1" \
viewBox="0 0 25 20" xmlns="http://www.w3.org/2000/svg"><path d="M 0,0 25,0 12.5,20 Z" fill="%23808890"/></svg>'); }"""


FOCUS = f".bk-btn:focus-visible {{ outline: 3px solid {TEXT} !important; outline-offset: 2px; }}"
"""On whatever ground a button has, the line around it stands apart."""


def html(text: str, **options: Any) -> pn.pane.HTML:
    """A pane of HTML in the look of the pages."""
    options.setdefault("sizing_mode", "stretch_width")
    return pn.pane.HTML(text, stylesheets=[SHEET], margin=0, **options)


def page(*parts: Any) -> pn.Column:
    """Parts below each other, with room around."""
    return pn.Column(*parts, sizing_mode="stretch_width", margin=(8, 14), styles={"gap": f"{SPACE}px"})


def card(*parts: Any, **options: Any) -> pn.Column:
    """A white box."""
    return pn.Column(*parts, sizing_mode="stretch_width", margin=0, styles={**CARD_STYLE, **options})


def scrolled(most: int) -> dict[str, str]:
    """Styles of what is at most so high [pixels], and scrolls beyond."""
    return {"max-height": f"{most}px", "overflow-y": "auto"}


def button(name: str, *, kind: str = "", outline: bool = False, **options: Any) -> Any:
    """A button: plain, ``primary`` or ``danger``.  Panel 1.10 has other words for the looks of buttons than 1.9."""
    words = ("color", "variant") if "variant" in pn.widgets.Button.param else ("button_type", "button_style")
    looks = {words[0]: kind} if kind else {}
    options["stylesheets"] = [FOCUS]
    if outline:  # its letters in the colour of danger are too faint on a dark ground
        looks[words[1]] = "outline"
        options["stylesheets"] += [f".bk-btn {{ color: {TEXT} !important; border-color: {BAD} !important; }}"]
    return pn.widgets.Button(name=name, **looks, **options)


def select(**options: Any) -> Any:
    """A choice of one; its mark can be seen on a dark ground too."""
    return pn.widgets.Select(stylesheets=[SELECT], **options)


def beside(*parts: Any) -> pn.FlexBox:
    """Boxes beside each other where there is room, else below each other."""
    return pn.FlexBox(*parts, gap=f"{SPACE}px", sizing_mode="stretch_width", margin=0, align_items="stretch")


def column(*parts: Any, share: int = 1, least: int = 420) -> pn.Column:
    """A column of `beside`: its share of the room, and from which width on it stands alone [pixels]."""
    styles = {"flex": f"{share} 1 {least}px", "min-width": "0", "gap": f"{SPACE}px"}
    return pn.Column(*parts, sizing_mode="stretch_width", margin=0, styles=styles)


def pair(left: Sequence[Any], right: Sequence[Any]) -> pn.FlexBox:
    """Two columns of cards, the right one somewhat wider."""
    return beside(column(*left, share=5), column(*right, share=7))


def header(name: str, badges: str | Sequence[str], links: Iterable[tuple[str, str]]) -> pn.pane.HTML:
    """What is shown, what it is, and where else one can go."""
    return html(header_html(name, [badges] if isinstance(badges, str) else badges, links))


def header_html(name: str, badges: Sequence[str], links: Iterable[tuple[str, str]]) -> str:
    """The inside of a header."""
    said = "".join(f'<span class="badge">{escape(one)}</span>' for one in badges if one)
    ways = "".join(f'<a href="{escape(to)}">{escape(text)}</a>' for text, to in links)
    return (
        f'<div class="head"><h1><span class="brand">workbench</span> <span class="name">{escape(name)}</span></h1>'
        f"{said}"
        f'<nav class="right" aria-label="pages">{ways}{do("commands", "⋯", "commands")}'
        f"{do('sheet', '?', 'keys of this page')}"
        f"{do('theme', '◐', 'dark or light')}</nav></div>"
    )


def wide(table: str, label: str) -> str:
    """A table that scrolls sideways where there is no room for it, its first column standing still."""
    return f'<div class="wide" tabindex="0" role="region" aria-label="{escape(label)}">{table}</div>'


def do(name: str, text: str, title: str = "", /, *, pressed: bool | None = None, **data: object) -> str:
    """A button in HTML: the browser component says what it is for, with its data; ``pressed``: it stays down."""
    more = "".join(f' data-{key}="{escape(str(value))}"' for key, value in data.items())
    label = f' title="{escape(title)}" aria-label="{escape(title)}"' if title else ""
    label += "" if pressed is None else f' aria-pressed="{str(pressed).lower()}"'
    return f'<button type="button" class="do" data-do="{escape(name)}"{more}{label}>{escape(text)}</button>'


def banner(sentence: str, way_on: str = "", *, bad: bool = False, html_way_on: bool = False) -> pn.pane.HTML:
    """A sentence that cannot be overlooked, and what to do next."""
    return html(banner_html(sentence, way_on if html_way_on else escape(way_on), bad=bad))


def banner_html(sentence: str, way_on: str = "", *, bad: bool = False) -> str:
    """The inside of a banner; ``way_on`` is HTML."""
    more = f'<p class="quiet">{way_on}</p>' if way_on else ""
    return f'<div class="banner{" bad" if bad else ""}" role="status"><p>{escape(sentence)}</p>{more}</div>'


def vital(what: str, number: str, more: str, meaning: str, *, bad: bool = False) -> str:
    """A number with its name, a line more, and its definition for those who hover."""
    return (
        f'<div class="vital{" bad" if bad else ""}" title="{escape(meaning)}"><div class="what">{escape(what)}</div>'
        f'<div class="number">{escape(number)}</div><div class="more">{escape(more)}</div></div>'
    )
