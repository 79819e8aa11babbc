"""Panes of a page that can be hidden, and the card that says which are shown and saves that as a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from workbench.pages import style


class Panes:
    """Cards by name; hidden ones come back."""

    def __init__(self) -> None:
        self._cards: dict[str, Any] = {}
        self._said = style.html("")

    def card(self, name: str, *parts: Any) -> Any:
        """A card of this name."""
        self._cards[name] = style.card(*parts)
        self._show()
        return self._cards[name]

    def keep(self, name: str, pane: Any) -> Any:
        """Let something that is a card already be hidden under a name."""
        self._cards[name] = pane
        self._show()
        return pane

    @property
    def hidden(self) -> tuple[str, ...]:
        """Those that are not shown."""
        return tuple(name for name, card in self._cards.items() if not card.visible)

    def hide(self, names: Iterable[str]) -> None:
        """Hide these, and show all others."""
        hidden = set(names)
        for name, card in self._cards.items():
            if card.visible == (name in hidden):
                card.visible = name not in hidden
        self._show()

    def turn(self, name: str) -> None:
        """Hide one, or show it again."""
        if name in self._cards:
            self.hide({*self.hidden} ^ {name})

    def panel(self) -> Any:
        """The card with their buttons."""
        return style.card(self._said)

    def commands(self) -> list[list[Any]]:
        """The same for the list of commands."""
        files = [["save the layout as a file", "", {"do": "layout"}], ["load a layout from a file", "", {"do": "load"}]]
        return [[f"show or hide: {name}", "", {"do": "pane", "name": name}] for name in self._cards] + files

    def _show(self) -> None:
        made = "".join(
            style.do("pane", name, f"show {name}", pressed=card.visible, name=name)
            for name, card in self._cards.items()
        )
        files = style.do("layout", "save", "save: this layout as a file") + style.do(
            "load", "load", "load: a layout from a file"
        )
        self._said.object = f'<h2>Layout</h2><div class="dos">{made}</div><div class="dos">{files}</div>'
