"""Any fault with any of its numbers: a form that is made from the vocabulary of faults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import panel as pn

from workbench.config import ConfigError
from workbench.config.keys import shown
from workbench.pages import commands, style
from workbench.pages.clicks import Command
from workbench.protocol.faults import FAULT_KINDS, SYNCER_KINDS
from workbench.protocol.scenario import fault_of, keys_of

KINDS = tuple(kind for kind in FAULT_KINDS if kind != "late")
"""Late is for scenarios: who has started cannot start late any more."""
WIDTH = 104


class FaultForm:
    """Parameters
    ----------
    learners : sequence of int
        Whom a fault may strike.
    send : function (Command)
    aimed : function (int)
        Called with the learner that somebody aims at.
    """

    def __init__(
        self, learners: Sequence[int], send: Callable[[Command], None], aimed: Callable[[int], None] = lambda _: None
    ) -> None:
        self._send, self._learners = send, tuple(learners)
        self._kind: Any = style.select(name="fault", options=list(KINDS), value="kill", width=130, margin=4)
        self._target: Any = style.select(
            name="of", options=_named(learners), value=min(learners, default=None), width=76, margin=4
        )
        self._fields: dict[str, Any] = {}
        self._box = pn.FlexBox(gap="2px", margin=0, align_items="end", sizing_mode="stretch_width")
        self._meaning, self._off = style.html(""), ""
        self._inject: Any = style.button("inject", kind="primary", margin=4, width=80)
        self._inject.on_click(lambda _: self._on_inject())
        self._kind.param.watch(lambda _: self._show(), "value")
        self._target.param.watch(lambda _: aimed(self._target.value), "value")
        self._show()

    def panel(self) -> Any:
        """The form."""
        return pn.Column(self._box, self._meaning, margin=0, sizing_mode="stretch_width")

    def choose(self, learner: int, off: str = "") -> None:
        """Aim at another learner; ``off``: why nothing can be done to it."""
        self._target.param.update(options=_named(sorted({*self._learners, learner})), value=learner)
        self._turn(off)

    def offer(self, learners: Sequence[int], off: str = "") -> None:
        """Offer these targets; the chosen one stays, whether it has left or not."""
        if tuple(learners) != self._learners:
            self._learners, value = tuple(learners), self._target.value
            self._target.options = _named(sorted({*learners, *([] if value is None else [value])}))
        self._turn(off)

    def _turn(self, off: str) -> None:
        if off != self._off:
            self._off = off
            self._say()

    def _show(self) -> None:
        kind = self._kind.value
        self._fields = {key: _field(key, text) for key, text in usual_numbers(kind).items()}
        self._target.disabled = kind in SYNCER_KINDS
        self._box[:] = [self._kind, self._target, *self._fields.values(), self._inject]
        self._say()

    def _say(self) -> None:
        off = "" if self._kind.value in SYNCER_KINDS else self._off
        self._inject.disabled = bool(off)
        self._meaning.object = f'<p class="quiet">{escape(off) or FAULT_KINDS[self._kind.value].replace("`", "")}</p>'

    def _on_inject(self) -> None:
        kind = self._kind.value
        learner = -1 if kind in SYNCER_KINDS else self._target.value
        if learner is None:
            return  # nobody is there any more
        try:
            values = {
                key: number_of(key, field.value) for key, field in self._fields.items() if field.value.strip() != ""
            }
            asked = commands.fault(kind, learner, **values)
        except ConfigError as error:
            asked = commands.refused(commands.kind_of(kind, learner), str(error))
        self._send(asked)


def _named(learners: Sequence[int]) -> dict[str, int]:
    return {f"L{m}": m for m in learners}


def usual_numbers(kind: str) -> dict[str, str]:
    """What a kind of fault has of its own, as texts: its usual values, empty for what is drawn."""
    learner = {} if kind in SYNCER_KINDS else {"learner": 0}
    usual = fault_of({"kind": kind, **learner}, kind, 1, now=True)
    keys = [key for key in keys_of(kind) if not (key == "for_s" and "down_s" in keys_of(kind))]
    known = {
        "for_s": usual.for_ns / 1e9, "down_s": usual.for_ns / 1e9, "delay_s": usual.delay_ns / 1e9,
        "jitter_s": usual.jitter_ns / 1e9, "factor": usual.factor, "share": usual.share,
        "bytes_per_s": usual.bytes_per_s, "count": usual.count,
    }  # fmt: skip
    return {key: "false" if key == "persistent" else f"{known[key]:g}" if key in known else "" for key in keys}


def number_of(key: str, text: str) -> float | int | bool:
    """Read a field.

    Raises
    ------
    ConfigError
        It is no number.
    """
    if key == "persistent":
        return text == "true"
    try:
        return int(text) if key in ("count", "seed") else float(text)
    except ValueError:
        raise ConfigError(f"{key} = {shown(text)}; allowed: a number") from None


def _field(key: str, text: str) -> Any:
    if key == "persistent":
        return style.select(name=key, options=["false", "true"], value=text, width=WIDTH, margin=4)
    hint = "drawn" if key == "seed" else ""
    return pn.widgets.TextInput(name=key, value=text, placeholder=hint, width=WIDTH, margin=4)
