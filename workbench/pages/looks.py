"""Colours of the pages, light and dark, as variables of the style sheets: changed without loading a page anew.

Letters have a contrast of 4.5 to 1 at least against what is behind them; what colour says is said in words too.
"""

from __future__ import annotations

from workbench.views.palette import BLUE, DARK, GREEN, LIGHT, SKY, VERMILLION
from workbench.views.palette import QUIET as QUIET_OF

NAMES = ("text", "quiet", "line", "hair", "ground", "card", "link", "now", "hover", "past", "future", "bad", "press")
LIGHT_COLOURS = dict(zip(NAMES, (
    LIGHT.text, QUIET_OF["light"], "#d0d7de", "#eaeef2", "#f6f8fa", LIGHT.ground, "#0550ae", "#fff4d6", "#f0f4f8",
    BLUE, GREEN, VERMILLION, "#f6f8fa",
), strict=True))  # fmt: skip
DARK_COLOURS = dict(zip(NAMES, (
    DARK.text, QUIET_OF["dark"], "#3a424c", "#272d34", "#0f1215", DARK.ground, "#79b8ff", "#40351a", "#22282f",
    SKY, DARK.lines[2], DARK.lines[4], "#22282f",
), strict=True))  # fmt: skip

TEXT, QUIET, LINE, HAIR, GROUND, CARD, LINK, NOW, HOVER, PAST, FUTURE, BAD, PRESS = (
    f"var(--wb-{name})" for name in NAMES
)
"""As they stand in style sheets."""


def _variables(colours: dict[str, str], scheme: str) -> str:
    own = "; ".join(f"--wb-{name}: {colour}" for name, colour in colours.items())
    widgets = (
        f"--design-background-color: {colours['card']}; --design-background-text-color: {colours['text']}; "
        f"--design-surface-color: {colours['press']}; --design-surface-text-color: {colours['text']}; "
        f"--text-color: {colours['text']}; --background-color: {colours['card']}"
    )
    return f"{own}; {widgets}; color-scheme: {scheme};"


SHEET_OF_PAGE = f"""
:root {{ {_variables(LIGHT_COLOURS, "light")} }}
:root[data-theme="dark"] {{ {_variables(DARK_COLOURS, "dark")} }}
html, body {{ background: {GROUND}; color: {TEXT}; margin: 0; font-family: system-ui, sans-serif; }}
.wb-stale {{ position: fixed; inset: 0 0 auto; z-index: 10000; padding: 10px 14px; background: {CARD}; font-weight: 600;
  border: 2px solid {BAD}; }}
.wb-stale::before {{ content: ""; position: fixed; inset: 0; z-index: -1; background: {GROUND}; opacity: .65; }}
:root[data-stale] .notyf {{ display: none; }}
dialog.wb {{ background: {CARD}; color: {TEXT}; border: 1px solid {LINE}; border-radius: 8px; padding: 14px 20px;
  max-width: min(640px, 92vw); max-height: 84vh; overflow: auto; font-size: 14px; }}
dialog.wb::backdrop {{ background: rgba(0, 0, 0, .45); }}
dialog.wb h2 {{ font-size: 15px; margin: 0 0 8px; }}
dialog.wb table {{ border-collapse: collapse; }}
dialog.wb td {{ padding: 3px 16px 3px 0; border-top: 1px solid {HAIR}; }}
dialog.wb kbd {{ border: 1px solid {LINE}; border-radius: 4px; padding: 0 6px; background: {PRESS}; font: inherit;
  white-space: nowrap; }}
dialog.wb button {{ margin-top: 10px; font: inherit; padding: 3px 14px; border: 1px solid {LINE}; border-radius: 5px;
  background: {PRESS}; color: {TEXT}; cursor: pointer; }}
dialog.wb input {{ font: inherit; width: min(520px, 80vw); box-sizing: border-box; padding: 6px 10px; color: {TEXT};
  background: {GROUND}; border: 1px solid {QUIET}; border-radius: 5px; }}
dialog.wb :is(input, button, li):focus-visible {{ outline: 2px solid {PAST}; outline-offset: 1px; }}
dialog.wb ul.commands {{ list-style: none; margin: 8px 0 0; padding: 0; max-height: 50vh; overflow-y: auto; }}
dialog.wb ul.commands li {{ padding: 4px 10px; border-radius: 4px; cursor: pointer; display: flex; gap: 6px; }}
dialog.wb ul.commands li span {{ flex: 1; }}
dialog.wb ul.commands li[aria-selected="true"] {{ background: {NOW}; }}
dialog.wb h2:not(:first-child) {{ margin-top: 14px; }}
dialog.wb .signs {{ display: grid; grid-template-columns: 1fr 1fr; gap: 3px 16px; }}
dialog.wb .signs b {{ display: inline-block; width: 1.4em; text-align: center; }}
dialog.wb pre {{ white-space: pre-wrap; overflow-wrap: anywhere; background: {PRESS}; padding: 8px 10px; }}
"""
