"""Who is in a merge and up to which step, who is not and why: as data and as a sentence."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from workbench.analysis.merge_round import NS, MergeRound, merge_round
from workbench.analysis.misses import Missed, absent, missed


class Taken(NamedTuple):
    """A learner that is in a merge.

    Attributes
    ----------
    learner, step, steps, tokens, base_version : int
        Its contribution: captured after own step ``step``, so many steps and tokens since ``base_version``.
    weight : float
        Its share in the merge: the weights of a merge add up to 1.
    lag_s : float
        Merge - capture [s].
    heard : int
        Its clock entry at the merge.
    captured : int
        Event of the capture, -1 where no record tells.
    """

    learner: int
    step: int
    steps: int
    tokens: int
    base_version: int
    weight: float
    lag_s: float
    heard: int
    captured: int


class Why(NamedTuple):
    """What a merge saw.

    Attributes
    ----------
    merge, event, round, fragment, version : int
        Row of /merges, its event, and what it made.
    taken : tuple of Taken
        By learner.
    missed : tuple of Missed
        By learner.
    """

    merge: int
    event: int
    round: int
    fragment: int
    version: int
    taken: tuple[Taken, ...]
    missed: tuple[Missed, ...]

    @property
    def sentence(self) -> str:
        """The whole as one sentence."""
        took = _listed([f"L{t.learner} up to {'step ' if not i else ''}{t.step}" for i, t in enumerate(self.taken)])
        begin = f"Merge {self.merge} (round {self.round}, fragment {self.fragment}) took {took or 'nobody'}"
        if not self.missed:
            return f"{begin}; it saw everybody who belonged to the run."
        return f"{begin}; it did not see {'; nor '.join(map(_clause, self.missed))}."

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        rows = {name: [row._asdict() for row in getattr(self, name)] for name in ("taken", "missed")}
        return {**self._asdict(), **rows, "sentence": self.sentence}

    def __str__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        card: str = import_module("workbench.views.why_card").why_card(self)
        return card


def why(tape: xr.DataTree, merge: int) -> Why:
    """Explain a merge: who is in it with what, who is not, why, and by how much.

    Parameters
    ----------
    tape : xarray.DataTree
    merge : int
        Row of /merges, from 0; negative counts from the end.

    Raises
    ------
    TapeError
        When there is no such merge.
    """
    found = merge_round(tape, merge)
    taken = _taken(tape, found)
    inside = {row.learner for row in taken}
    then = tape.wb.at(found.event)
    others = absent(found, (m for m in tape.wb.learners if m not in inside))
    return Why(
        found.merge, found.event, found.round, found.fragment, found.version, taken,
        tuple(missed(found, m, then) for m in others),
    )  # fmt: skip


def _taken(tape: xr.DataTree, found: MergeRound) -> tuple[Taken, ...]:
    rows, (order, merges) = tape["contributions"].dataset, tape.wb.kept(_by_merge)
    mine = order[np.searchsorted(merges, found.merge) : np.searchsorted(merges, found.merge, "right")]
    names = ("learner", "step", "c_steps", "c_tokens", "base_version", "weight", "event", "captured_ns")
    columns = [rows[name].values[mine] for name in names]
    whole = float(columns[names.index("weight")].sum()) or 1.0
    merged_ns, causes = found.time_ns(found.event), found.own["cause"]
    return tuple(
        Taken(
            learner, step, steps, tokens, base, weight / whole,
            (merged_ns - captured_ns) * NS if captured_ns >= 0 else float("nan"),
            found.heard(found.event, learner), int(causes[event]) if event != found.event else -1,
        )
        for learner, step, steps, tokens, base, weight, event, captured_ns in zip(
            *(column.tolist() for column in columns), strict=True
        )
    )  # fmt: skip


def _by_merge(tape: xr.DataTree) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Rows of /contributions by merge, within one by learner; and the merge of each."""
    rows = tape["contributions"].dataset
    merge = rows["merge"].values
    order = np.lexsort((rows["learner"].values, merge))
    return order, merge[order]


def _clause(m: Missed) -> str:
    who = f"L{m.learner}'s step {m.step}" if m.step >= 0 else f"L{m.learner}"
    under = f" ({_listed(list(m.faults))} acted on it)" if m.faults else ""
    return f"{who}: {m.said}{under}"


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
