"""Colours: those of Okabe and Ito, which people of every colour vision tell apart, and two themes.

Colour never stands alone: states have a glyph and a word, lines a name, what came late is hatched.
"""

from __future__ import annotations

from typing import NamedTuple

from workbench.config import ConfigError

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILLION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
"""Okabe and Ito (2008), Color Universal Design."""


class Theme(NamedTuple):
    """What a figure looks like.

    Attributes
    ----------
    name : str
    ground, text, grid, faint : str
        Background, letters and axes, grid lines, and what stands behind the data.
    lines : tuple of str
        Colours of lines, in order; all stand out from the background.
    ramp : tuple of str
        From nothing to much.
    """

    name: str
    ground: str
    text: str
    grid: str
    faint: str
    lines: tuple[str, ...]
    ramp: tuple[str, ...]


LIGHT = Theme(
    "light", "#ffffff", "#24292f", "#e7eaee", "#9aa4af",
    (BLUE, ORANGE, GREEN, PURPLE, VERMILLION, SKY, "#6e7781"),
    ("#e8f2fa", "#b9d9ee", "#7fbbe0", "#3f94c8", "#0072B2", "#004a78"),
)  # fmt: skip
DARK = Theme(
    "dark", "#16191d", "#dfe4ea", "#2b3138", "#7d8792",
    (SKY, ORANGE, "#2bbd93", PURPLE, "#f07a2a", YELLOW, "#b4bcc6"),
    ("#1b3243", "#1f5375", "#2478a8", "#3d9bd1", "#7cc4ee", "#cdeaff"),
)  # fmt: skip
THEMES = {theme.name: theme for theme in (LIGHT, DARK)}
QUIET = {"light": "#57606a", "dark": "#a3adb8"}
"""Letters that are less important, by theme: still 4.5 to 1 against the ground."""

CAUSES = {
    "down": VERMILLION, "starting": ORANGE, "recovering": YELLOW, "waiting": SKY, "overhead": "#999999",
    "injected": PURPLE, "lost": "#5c5c5c",
}  # fmt: skip
"""Badput by cause; goodput is `GREEN`."""
FATES = {
    "merged": GREEN, "overwritten": SKY, "not_merged": ORANGE, "blended": BLUE, "lost": VERMILLION,
    "rolled_back": PURPLE, "local": "#999999",
}  # fmt: skip
"""Fates of tokens."""


def theme_of(name: str) -> Theme:
    """The theme of a name.

    Raises
    ------
    ConfigError
        For another name.
    """
    if name not in THEMES:
        raise ConfigError(f"theme = {name!r}; allowed: {', '.join(THEMES)}")
    return THEMES[name]


def line_colour(theme: Theme, number: int) -> str:
    """Colour of the line with a number; they repeat."""
    return theme.lines[number % len(theme.lines)]


def line_dash(theme: Theme, number: int) -> str:
    """Dashes of the line with a number: lines of one colour differ in them."""
    return ("solid", "dashed", "dotted", "dotdash")[number // len(theme.lines) % 4]
