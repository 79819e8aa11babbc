"""What may be done to a run from its page: faults of the chosen learner, live settings, its end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from html import escape
from typing import Any

import panel as pn

from workbench.config import ConfigError
from workbench.config.keys import parse
from workbench.config.validate import CHOICES, RANGES
from workbench.pages import commands, style
from workbench.pages.session import Session
from workbench.pages.watcher import Watcher

ACTIONS: dict[str, Callable[[int], commands.Command]] = {
    "kill": partial(commands.fault, "kill", down_s=3.0),
    "stall 3 s": partial(commands.fault, "stall", for_s=3.0),
    "slow ×3": lambda m: commands.fault("slow", m, factor=3.0, for_s=0.0),
    "cut": lambda m: commands.fault("cut", m, for_s=0.0),
    "delay 0.2 s": lambda m: commands.fault("delay", m, delay_s=0.2, for_s=0.0),
    "nan": lambda m: commands.fault("nan", m, count=1),
    "heal": commands.heal,
    "release": commands.release,
    "revive": commands.revive,
}
MEANINGS = {
    "kill": "SIGKILL; another process starts after 3 s",
    "stall 3 s": "SIGSTOP for 3 s",
    "slow ×3": "its steps take three times as long, until it is healed",
    "cut": "its link loses everything, until it is healed",
    "delay 0.2 s": "its messages take 0.2 s longer each way, until it is healed",
    "nan": "its next contribution holds NaN",
    "heal": "ends slow, cut and delay",
    "release": "lets it in again after a guard has quarantined it",
    "revive": "starts it again after it failed or was killed for good",
}
SETTINGS = ("quorum", "grace", "grace_s", "grace_gamma", "merge", "weights", "outer_rate", "lead", "inner.rate")
"""Live settings that have a field of their own, in this order."""


class Controls:
    """Parameters
    ----------
    session : Session
    watcher : Watcher
    """

    def __init__(self, session: Session, watcher: Watcher) -> None:
        self._session, self._watcher = session, watcher
        self.learner = 0
        self._asked_to_stop = False
        self._chosen = style.html("")
        self._fields: dict[str, Any] = {}
        self._shown: dict[str, str] = {}
        self._stop = style.button("stop the run", kind="danger", outline=True, margin=2)
        self._stop.on_click(self._on_stop)
        self._clicks = style.html("")
        self.choose(0)

    def panel(self) -> Any:
        """Everything, or why there is nothing to press."""
        if not self._session.may_control:
            note = "<h2>Controls</h2><p>You are looking on: acting needs the address with the control token.</p>"
            return style.card(style.html(note), self._clicks)
        buttons = [self._button(name) for name in ACTIONS]
        fields = [self._field(key) for key in SETTINGS if key in self._watcher.settings or key in ("quorum", "grace")]
        apply = style.button("apply", kind="primary", margin=(22, 4, 4, 4), width=80)
        apply.on_click(self._on_apply)
        return style.card(
            self._chosen,
            pn.FlexBox(*buttons, self._stop, gap="2px", margin=0, sizing_mode="stretch_width"),
            style.html('<h2 style="margin-top:8px">Live settings</h2>'),
            pn.FlexBox(*fields, apply, gap="4px", margin=0, sizing_mode="stretch_width"),
            self._clicks,
        )

    def choose(self, learner: int) -> None:
        """Act on another learner from now on."""
        self.learner = learner
        self._chosen.object = (
            f'<h2>Act on L{learner} <span class="quiet" style="font-weight:400">(click a cell to choose)</span></h2>'
        )

    def act(self, name: str, learner: int) -> None:
        """Do what a button says."""
        if name in ACTIONS:
            self.send(ACTIONS[name](learner))

    def send(self, command: commands.Command) -> None:
        """Hand a click to the run, unless this tab may not."""
        if not self._session.may_control:
            return
        with self._watcher.lock:
            self._watcher.commands.kept.append(command)
        self._session.site.asking.submit(_send, self._watcher, command)

    def update(self) -> None:
        """Show what has become of the clicks, and the settings in force; under the watcher's lock."""
        html = clicks_html(list(self._watcher.commands.kept))
        if html != self._clicks.object:
            self._clicks.object = html
        for key, field in self._fields.items():
            now = _text(self._watcher.settings.get(key, ""))
            if self._shown.get(key) != now and now:
                self._shown[key] = now
                field.value = now

    def _button(self, name: str) -> Any:
        button = style.button(name, margin=2, description=MEANINGS[name])
        button.on_click(lambda _: self.act(name, self.learner))
        return button

    def _field(self, key: str) -> Any:
        now = _text(self._watcher.settings.get(key, ""))
        self._shown[key] = now
        if key in CHOICES:
            options = sorted({*CHOICES[key], now} - {""}) if now else list(CHOICES[key])
            field: Any = pn.widgets.Select(name=key, options=options, value=now or options[0], width=140, margin=4)
        else:
            low, high = RANGES.get(key, (None, None))
            hint = "" if low is None else f"{low:g} to {high:g}"
            field = pn.widgets.TextInput(name=key, value=now, placeholder=hint, width=92, margin=4)
        self._fields[key] = field
        return field

    def _on_apply(self, _: Any) -> None:
        changed = {key: field.value for key, field in self._fields.items() if field.value != self._shown[key]}
        if not changed:
            if pn.state.notifications is not None:
                pn.state.notifications.info("Nothing differs from the settings in force.", duration=4000)
            return
        for key in changed:  # what is refused goes back to what is in force at the next look
            self._shown[key] = ""
        try:
            self.send(commands.change({key: parse(key, text) for key, text in changed.items()}))
        except ConfigError as error:
            refused = commands.change(changed)
            refused.refused = str(error)
            with self._watcher.lock:
                self._watcher.commands.kept.append(refused)

    def _on_stop(self, _: Any) -> None:
        if not self._asked_to_stop:
            self._asked_to_stop, self._stop.name = True, "really stop it?"
            return
        self._asked_to_stop, self._stop.name = False, "stop the run"
        self.send(commands.stop())


def _send(watcher: Watcher, command: commands.Command) -> None:
    answer, refusal = commands.send(watcher.run.path, command)
    with watcher.lock:
        if answer is None:
            command.refused = refusal
        else:
            command.answered(answer)


def clicks_html(kept: list[commands.Command]) -> str:
    """What was clicked, the newest first, with its three moments."""
    if not kept:
        return '<p class="quiet">Each click is shown here: requested, acknowledged, seen.</p>'
    rows = "".join(
        f"<tr><td>{escape(one.what)}</td><td>{one.requested}</td>"
        + (
            f'<td colspan="2">✕ refused: {escape(one.refused)}</td></tr>' if one.refused
            else f"<td>{escape(one.acknowledged) or '…'}</td><td>{escape(one.seen) or '…'}</td></tr>"
        )
        for one in reversed(kept)
    )  # fmt: skip
    return (
        '<table class="clicks"><tr><th>click</th><th>requested</th><th>acknowledged</th><th>seen</th></tr>'
        f"{rows}</table>"
    )


def _text(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
