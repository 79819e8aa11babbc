"""Live settings as fields: they show what is in force, and what was changed is asked for together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel as pn

from workbench.config import ConfigError
from workbench.config.keys import parse, shown
from workbench.config.validate import CHOICES, RANGES
from workbench.pages import commands, style
from workbench.pages.clicks import Command

FIRST = ("quorum", "grace", "grace_s", "grace_gamma", "merge", "weights", "outer_rate", "lead", "inner.rate")
"""Settings that are always there, in this order; the others on request."""


class SettingsForm:
    """Parameters
    ----------
    settings : dict
        In force, by key.
    send : function (Command)
    """

    def __init__(self, settings: dict[str, Any], send: Callable[[Command], None]) -> None:
        self._send = send
        self._in_force = dict(settings)
        self._fields: dict[str, Any] = {}
        self._shown: dict[str, str] = {}
        first = [key for key in FIRST if key in settings]
        apply: Any = style.button("apply", kind="primary", margin=4, width=80)
        apply.on_click(lambda _: self._on_apply())
        every: Any = pn.widgets.Checkbox(name="all settings", margin=(10, 4))
        rest = [self._field(key) for key in settings if key not in first]
        self._more = pn.FlexBox(*rest, gap="2px", margin=0, visible=False)
        every.param.watch(lambda change: self._more.param.update(visible=change.new), "value")
        fields = [self._field(key) for key in first]
        self._box = pn.FlexBox(
            *fields, apply, every, gap="2px", margin=0, align_items="end", sizing_mode="stretch_width"
        )

    def panel(self) -> Any:
        """The fields."""
        return pn.Column(self._box, self._more, margin=0, sizing_mode="stretch_width")

    def update(self, settings: dict[str, Any]) -> None:
        """Show what is in force where that has changed."""
        self._in_force.update(settings)
        for key, field in self._fields.items():
            now = text_of(settings.get(key, ""))
            if self._shown.get(key) != now and now:
                self._shown[key] = now
                field.value = now

    def _field(self, key: str) -> Any:
        now = text_of(self._in_force.get(key, ""))
        self._shown[key] = now
        choices = ("true", "false") if isinstance(self._in_force.get(key), bool) else CHOICES.get(key)
        if choices:
            options = sorted({*choices, now} - {""})
            field: Any = style.select(
                name=key,
                options=options,
                value=now or options[0],
                width=max(104, 44 + 8 * max(map(len, options))),
                margin=4,
            )
        else:
            low, high = RANGES.get(key, (None, None))
            hint = "" if low is None else f"{low:g} to {high:g}"
            field = pn.widgets.TextInput(name=key, value=now, placeholder=hint, width=104, margin=4)
        self._fields[key] = field
        return field

    def _on_apply(self) -> None:
        changed = {key: field.value for key, field in self._fields.items() if field.value != self._shown[key]}
        if not changed:
            if pn.state.notifications is not None:
                pn.state.notifications.info("Nothing differs from the settings in force.", duration=4000)
            return
        before = {key: self._in_force.get(key) for key in changed}
        for key in changed:  # what is refused goes back to what is in force at the next look
            self._shown[key] = ""
        try:
            values = {key: parse(key, text) for key, text in changed.items()}
            self._send(commands.change(values, before))
        except ConfigError as error:
            asked = ", ".join(f"{key} = {shown(text)}" for key, text in changed.items())
            self._send(commands.refused(f"set {asked}", str(error)))


def text_of(value: Any) -> str:
    """A setting as it stands in its field."""
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
