"""Fork from here: one thing is changed from the cursor on, and the answer is laid beside the run."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import panel as pn

from workbench.config import ConfigError
from workbench.config.keys import parse
from workbench.config.validate import CHOICES
from workbench.pages import style
from workbench.pages.addresses import COMPARE
from workbench.pages.forking import Fork, Question, page_words
from workbench.pages.recording import Recording
from workbench.pages.session import Session
from workbench.pages.settings_form import text_of
from workbench.protocol.records import label_of

KEYS = (
    "quorum", "grace", "grace_s", "grace_gamma", "eligibility", "merge", "weights", "outer", "outer_rate",
    "outer_momentum", "fold", "fold_alpha", "inner.rate", "lead", "codec",
)  # fmt: skip
"""What may be changed; every value is checked where the question is answered."""
NOTHING = "nothing"
LOOK_MS = 500
SEEDS_MAX = 5


class ForkForm:
    """Parameters
    ----------
    session : Session
    recording : Recording
    """

    def __init__(self, session: Session, recording: Recording) -> None:
        self._session, self._recording = session, recording
        self._event = 0
        self._fork: Fork | None = None
        self._refused = False
        self._callback: Any = None
        self._key: Any = style.select(name="change", options=[NOTHING, *KEYS], value=NOTHING, width=140, margin=4)
        self._text: Any = pn.widgets.TextInput(name="to", width=110, margin=4)
        self._choice: Any = style.select(name="to", options=[], width=140, margin=4, visible=False)
        struck = sorted({self._name(event) for event in recording.places("fault").tolist()})
        self._without: Any = style.select(name="without", options=[NOTHING, *struck], width=130, margin=4)
        self._seeds: Any = style.select(name="seeds", options=list(range(1, SEEDS_MAX + 1)), width=70, margin=4)
        self._button: Any = style.button("fork", kind="primary", margin=4, width=80)
        self._button.on_click(lambda _: self._ask())
        self._where, self._said = style.html(""), style.html("")
        self._key.param.watch(lambda _: self._offer(), "value")
        for field in (self._key, self._text, self._choice, self._without, self._seeds):
            field.param.watch(lambda _: self._forget(), "value")

    def panel(self) -> Any:
        """The form, or why there is none."""
        head = style.html("<h2>Fork from here</h2>")
        if not self._session.may_control:
            return style.card(head, style.html('<p class="quiet">Asking needs the address with the control token.</p>'))
        fields = [self._key, self._text, self._choice, self._without, self._seeds, self._button]
        row = pn.FlexBox(*fields, gap="2px", margin=0, align_items="end", sizing_mode="stretch_width")
        return style.card(head, self._where, row, self._said)

    def move(self, event: int) -> None:
        """The cursor stands there now."""
        if event != self._event:
            self._forget()
        self._event = event
        html = f'<p class="quiet">{escape(self._acts())} What is left out is left out of the whole run.</p>'
        if html != self._where.object:
            self._where.object = html

    def _acts(self) -> str:
        """From where on a change acts, or that it acts on nothing."""
        round_ = self._round()
        if round_ is not None:
            where = "from the start of the run" if round_ < 0 else f"from the opening of round {round_:,} on"
            return f"A change acts {where}."
        opened = self._recording.places("round")
        if not len(opened):
            return "The run opened no round: there is nothing that a change could act on."
        last = int(opened[-1])
        return (
            f"No round opens from event {self._event:,} on: there is nothing that a change could act on. Move the "
            f"cursor to event {last:,}, the opening of round {int(self._recording.column('round')[last]):,}, or before."
        )

    def _round(self) -> int | None:
        """The first round that is opened from the cursor on; -1 for the start of the run, None where none follows."""
        opened = self._recording.places("round")
        following = opened[np.searchsorted(opened, self._event) :]
        if not len(following):
            return None
        return -1 if self._event <= opened[0] else int(self._recording.column("round")[following[0]])

    def _name(self, event: int) -> str:
        said = self._recording.said(event)
        label = label_of(said.peer)
        return f"{said.reason}:{label[1:]}" if label.startswith("L") else said.reason

    def _offer(self) -> None:
        key = self._key.value
        now = text_of(self._recording.tape.wb.at(self._event).settings.get(key, ""))
        choices = [choice for choice in CHOICES.get(key, ()) if choice != now]
        self._choice.param.update(options=choices, value=next(iter(choices), None), visible=bool(choices))
        self._text.param.update(value="", placeholder=f"now {now}" if now else "", visible=not choices)

    def _forget(self) -> None:
        """A refusal holds no longer once something else is asked."""
        if self._refused:
            self._refused, self._said.object = False, ""

    def _refuse(self, sentence: str) -> None:
        self._refused, self._said.object = True, style.banner_html(page_words(sentence), bad=True)

    def _question(self) -> Question:
        """What the fields ask for; `ConfigError` where that cannot be asked from here."""
        key, round_ = self._key.value, self._round()
        without = () if self._without.value == NOTHING else (str(self._without.value),)
        if key == NOTHING:
            return Question((), -1, without, int(self._seeds.value))
        text = str(self._choice.value if self._choice.visible else self._text.value or "").strip()
        parse(key, text)
        if round_ is None:
            raise ConfigError(self._acts())
        if round_ >= 0 and without:
            raise ConfigError(
                f"{key} would change from round {round_:,} on, but {without[0]} is left out of the whole run; ask for "
                "one of both, or move the cursor to the start"
            )
        return Question(((key, text),), round_, without, int(self._seeds.value))

    def _ask(self) -> None:
        try:
            question = self._question()
            self._fork = self._session.site.fork(self._recording.path, question)
        except (ConfigError, OSError) as error:
            self._refuse(str(error))
            return
        self._refused, self._button.disabled = False, True
        self._look()
        self._callback = pn.state.add_periodic_callback(self._look, period=LOOK_MS)

    def _look(self) -> None:
        fork = self._fork
        assert fork is not None
        if not fork.over:
            done = f"merge {fork.progress}" if fork.progress else "reading the tape"
            html = style.banner_html(f"What would have been is being computed: {done}. It goes on without this page.")
        elif fork.trouble:
            self._refuse(f"There is no answer: {fork.trouble}")
            html = self._said.object
        else:
            html = self._answered(fork)
        if html != self._said.object:
            self._said.object = html
        if fork.over and self._callback is not None:
            self._callback.stop()
            self._callback, self._button.disabled = None, False

    def _answered(self, fork: Fork) -> str:
        folders, parent = self._session.site.folders, self._session.address.run
        names = tuple(folders.name(path) for path in fork.runs())
        link = self._session.link(COMPARE, parent, others=names)
        way_on = f'<a href="{escape(link)}">Lay it beside the run</a>'
        return style.banner_html(f"The answer is the run {', '.join(names)}.", way_on)
