"""``tree.wb``: cheap navigation of a tape, and the door to its analyses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial, wraps
from importlib import import_module
from inspect import Parameter, Signature, signature
from typing import Any

import numpy as np
import xarray as xr

from workbench.protocol.records import Kind, Record
from workbench.tape import restore
from workbench.tape.coordinates import described
from workbench.tape.errors import TapeError
from workbench.tape.frames import Input

ANALYSES = (
    "workbench.tape.causal_order",
    "workbench.tape.scrub",
    "workbench.tape.marks",
    "workbench.analysis",
    "workbench.replay.seeking",
)
"""Modules whose public functions (``__all__``) of a tape are methods of ``tree.wb``; imported on use."""

KindLike = Kind | int | str


@xr.register_datatree_accessor("wb")  # type: ignore[no-untyped-call]
class TapeAccessor:
    """Navigation of a tape.

    A name that is no method here is looked up among the public functions of the analysis modules and
    called with the tree: ``tree.wb.staleness()``.

    Parameters
    ----------
    tree : xarray.DataTree
        What `open_tape` returned.

    Raises
    ------
    TapeError
        When the tree is no tape.
    """

    def __init__(self, tree: xr.DataTree) -> None:
        if tree.attrs.get("format") != "workbench-tape":
            raise TapeError("this tree is no tape: open one with open_tape(PATH)")
        self._tree = tree
        self._kept: dict[Callable[[xr.DataTree], Any], Any] = {}

    def __repr__(self) -> str:
        sizes = {name: self._tree[name].dataset.sizes for name in ("events", "merges")}
        state = "closed" if self.closed else "open"
        return (
            f"<tape {self._tree.name or ''}: {sizes['merges']['merge']:,} merges, {len(self.learners)} learners, "
            f"{sizes['events']['event']:,} events, {state}>"
        )

    def _repr_html_(self) -> str:
        card: str = import_module("workbench.views.tape_card").tape_card(self._tree)
        return card

    @property
    def labels(self) -> list[str]:
        """Label of each process, by number: syncer, supervisor, evaluator, L0, …"""
        return [str(label) for label in self._tree["processes"].dataset["label"].values]

    @property
    def learners(self) -> list[int]:
        """Ids of the learners, ascending."""
        return [m for m in self._tree["processes"].dataset["learner"].values.tolist() if m >= 0]

    @property
    def words(self) -> list[str]:
        """Texts that the codes of ``reason`` and ``codec`` stand for."""
        return list(self._tree.attrs["words"])

    @property
    def closed(self) -> bool:
        """Whether the run has ended and its tape is complete."""
        return bool(self._tree.attrs["closed"])

    @property
    def clocks(self) -> str:
        """``recorded`` by the processes, or ``derived`` from what the log of another trainer proves."""
        return str(self._tree.attrs.get("clocks", "recorded"))

    @property
    def untold(self) -> dict[str, str]:
        """Tables that this tape cannot give, with the reason; empty for a run of the workbench."""
        return dict(self._tree.attrs.get("untold") or {})

    def events(self, kind: KindLike | Iterable[KindLike] | None = None) -> xr.Dataset:
        """Events, of some kinds only if asked; ``event`` keeps the index in the whole tape.

        Parameters
        ----------
        kind : Kind, int or str, or several, optional
            For example ``Kind.MERGED``, ``"merged"``.
        """
        events = self._tree["events"].dataset
        numbers = np.arange(events.sizes["event"])
        if kind is not None:
            wanted = [kind] if isinstance(kind, int | str) else list(kind)
            numbers = np.flatnonzero(np.isin(events["kind"].values, [_kind(k) for k in wanted]))
            events = events.isel(event=numbers)
        found: xr.Dataset = described(events.assign_coords(event=numbers))
        return found

    def reasons(self, dataset: xr.Dataset | xr.DataArray | None = None) -> np.ndarray[Any, Any]:
        """Reasons as texts: of all events, or of the codes in ``dataset`` (its ``reason`` if it has one)."""
        codes = self._tree["events"].dataset["reason"] if dataset is None else dataset
        if isinstance(codes, xr.Dataset):
            codes = codes["reason"]
        table = np.array([*self.words, ""], object)  # code -1, a text outside the vocabulary, is the last
        return np.asarray(table[codes.values])

    def merge_learner(self) -> xr.Dataset:
        """Dense views of the contributions: (merge x learner).

        Returns
        -------
        xarray.Dataset
            ``included`` (bool), ``weight``, ``c_steps``, ``c_tokens``, ``base_version``, ``step``,
            ``norm``, ``cosine``, ``captured_ns``, ``arrival_ns``; NaN (floats) or -1 (whole numbers)
            where a learner is not in a merge.
        """
        merges, rows = self._tree["merges"].dataset, self._tree["contributions"].dataset
        merge, learner = rows["merge"].values, rows["learner"].values
        inside = merge >= 0
        shape = (merges.sizes["merge"], max(len(self.learners), int(learner[inside].max(initial=-1)) + 1))
        data: dict[str, Any] = {"included": (("merge", "learner"), merges["included"].values.astype(bool), {})}
        for name in _DENSE:
            column = rows[name]
            fill = np.nan if column.dtype.kind == "f" else -1
            dense = np.full(shape, fill, column.dtype)
            dense[merge[inside], learner[inside]] = column.values[inside]
            data[name] = (("merge", "learner"), dense, column.attrs)
        coords = {name: ("merge", merges[name].values) for name in ("round", "fragment", "version")}
        labels = [f"L{m}" for m in range(shape[1])]
        found = xr.Dataset(data, coords={**coords, "learner": np.arange(shape[1]), "label": ("learner", labels)})
        return described(found)  # type: ignore[no-any-return]

    def records(self) -> list[Record]:
        """All records in journal order, equal to those that were journaled."""
        return restore.records(self._tree)

    def inputs(self) -> list[Input]:
        """All recorded inputs of the machines, in journal order."""
        return restore.inputs(self._tree)

    def kept(self, make: Callable[[xr.DataTree], Any]) -> Any:
        """What a function makes of the tree, made once: indices that many questions share."""
        if make not in self._kept:
            self._kept[make] = make(self._tree)
        return self._kept[make]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        found = _analyses().get(name)
        untold = self.untold.get(name) or self.untold.get(_NEEDS.get(name, ""))
        if found is not None and untold:
            return partial(_refuse, name, untold)
        if found is None:
            raise AttributeError(f"a tape has no {name!r}; it has {', '.join(sorted(self.__dir__()))}")
        return _of_tape(found, self._tree)

    def __dir__(self) -> list[str]:
        own = [name for name in vars(type(self)) if not name.startswith("_")]
        return [name for name in (*own, *_analyses()) if name not in _FOR_PROGRAMS]


_FOR_PROGRAMS = ("records", "inputs", "kept", "words", "arrows")
"""What replay, figures and pages are built on, and nobody types."""
_NEEDS = {"critical_path": "rounds"}
"""What cannot be told where something else cannot."""
_DENSE = ("weight", "c_steps", "c_tokens", "base_version", "step", "norm", "cosine", "captured_ns", "arrival_ns")


def _of_tape(function: Callable[..., Any], tree: xr.DataTree) -> Callable[..., Any]:
    """An analysis of this tape, with the function's own documentation; wrong arguments are said in a line."""
    whole = signature(function)
    own = whole.replace(parameters=list(whole.parameters.values())[1:])

    @wraps(function)
    def asked(*arguments: Any, **named: Any) -> Any:
        try:
            own.bind(*arguments, **named)
            return described(function(tree, *arguments, **named))
        except TypeError as error:
            if not arguments and not named and not _required(own):
                raise
            given = ", ".join([*map(repr, arguments), *(f"{name}={value!r}" for name, value in named.items())])
            takes = ", ".join(map(_parameter, own.parameters.values()))
            raise TypeError(f"tape.wb.{function.__name__}({given}): {error}; it takes ({takes})") from error

    asked.__signature__ = own  # type: ignore[attr-defined]
    return asked


def _required(own: Signature) -> bool:
    return any(one.default is one.empty for one in own.parameters.values())


def _parameter(one: Parameter) -> str:
    return one.name if one.default is one.empty else f"{one.name}={one.default!r}"


def _refuse(name: str, reason: str, *_: Any, **__: Any) -> Any:
    raise TapeError(f"this tape cannot tell {name}: {reason}")


def _kind(kind: KindLike) -> int:
    if isinstance(kind, int):
        return int(kind)
    try:
        return int(Kind[kind.upper()])
    except KeyError:
        known = ", ".join(k.name.lower() for k in Kind)
        raise TapeError(f"no kind of event is called {kind!r}; there are {known}") from None


def _analyses() -> dict[str, Callable[..., Any]]:
    """Public functions of the analysis modules that are installed."""
    found: dict[str, Callable[..., Any]] = {}
    for module_name in ANALYSES:
        try:
            module = import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name is None or not module_name.startswith(error.name):
                raise
            continue
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if callable(value) and not isinstance(value, type):
                found.setdefault(name, value)
    return found
