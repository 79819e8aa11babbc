"""What an address of a page says: which page, which runs, where the cursor is, what is chosen; never what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import parse_qs, urlencode

from workbench.pages.access import TOKEN

START, LIVE, REPLAY, COMPARE = "start", "live", "replay", "compare"
PAGES = (START, LIVE, REPLAY, COMPARE)
RUNS_MAX = 6
SHOWN = ("notable", "merges", "faults", "exclusions", "everything")
"""What a list of events may show."""
AXES = ("wall", "tokens", "rounds", "rank")
"""Timelines that a cursor may move along."""
NUMBERS = ("event", "held", "learner", "at", "low", "high", "wide", "smooth", "depth")
"""What of an address is a whole number, -1 where it says none."""
LANES_MAX, FIND_MAX = 4000, 120
FIGURES_MAX = 40
RUNS_READ_MAX, FIELDS_MAX = 60, 100
"""Runs that an address may name, and fields that it may have."""
"""Letters of a figure's name."""
UNREAD_MAX = 30
"""Letters that are told of what makes no sense."""


class Address(NamedTuple):
    """Attributes
    ----------
    page : str
        One of `PAGES`.
    run : str
        Name of a run, empty for none.
    event : int
        The cursor; -1 for none, which is the end.
    held : int
        The event whose past and future are shown; -1: that at the cursor.
    learner : int
        The chosen one; -1 for none.
    show : str
        Which events are listed, of `SHOWN`.
    axis : str
        The timeline, of `AXES`.
    figure : str
        The figure beside the lanes; empty for the usual one.
    others : tuple of str
        Further runs, of a comparison.
    at : int
        Where along the common axis a comparison's cursor stands [1/1000]; -1: at the end.
    low, high : int
        The chosen part of the run [ms from the start of rounds]; -1 for none.
    wide : int
        How much of the run the lanes show [ms]; -1: as usual.
    lanes : str
        Which lanes in which order, as `workbench.pages.lane_choice.LaneChoice.text` says it; "": all by number.
    smooth : int
        How much the figure's lines are smoothed [percent]; -1: not at all.
    depth : int
        How many direct causes and effects behind each other arrows show in the lanes; 0: nothing of past and future
        is shown there; -1: one.
    find : str
        The pattern that was searched for; empty for none.
    """

    page: str = START
    run: str = ""
    event: int = -1
    held: int = -1
    learner: int = -1
    show: str = SHOWN[0]
    axis: str = AXES[0]
    figure: str = ""
    others: tuple[str, ...] = ()
    at: int = -1
    low: int = -1
    high: int = -1
    wide: int = -1
    lanes: str = ""
    smooth: int = -1
    depth: int = -1
    find: str = ""

    @property
    def deep(self) -> int:
        """How many steps of causes and effects are shown."""
        return 1 if self.depth < 0 else self.depth

    @property
    def span_s(self) -> tuple[float, float] | None:
        """The chosen part of the run [s], None for none."""
        return (self.low / 1e3, self.high / 1e3) if 0 <= self.low < self.high else None

    def query(self, token: str) -> str:
        """The part of the address behind the path."""
        usual = Address()
        asked: dict[str, str | int | tuple[str, ...]] = {TOKEN: token}
        asked |= {key: value for key, value in self._asdict().items() if value != getattr(usual, key)}
        return "?" + urlencode(asked, doseq=True)


def address_of(arguments: Mapping[str, Sequence[bytes | str]]) -> Address:
    """Read an address; what makes no sense is left out.  A comparison takes each run that is named, in order."""
    page, show, axis = (_one(arguments, key) for key in ("page", "show", "axis"))
    numbers = {key: _number(arguments, key) for key in NUMBERS}
    run, others = _one(arguments, "run"), [_text(value) for value in arguments.get("others", ())]
    if page == COMPARE:
        run, *others = [*filter(None, map(_text, arguments.get("run", ()))), *others] or [""]
    return Address(
        page=page if page in PAGES else START,
        run=run,
        show=show if show in SHOWN else SHOWN[0],
        axis=axis if axis in AXES else AXES[0],
        figure=_one(arguments, "figure")[:FIGURES_MAX],
        others=tuple(others)[: RUNS_READ_MAX - 1],
        lanes=_one(arguments, "lanes")[:LANES_MAX],
        find=_one(arguments, "find")[:FIND_MAX],
        **(numbers | {"at": min(numbers["at"], 1000)}),
    )


def address_in(search: str) -> Address:
    """Read the part of an address from the question mark on."""
    return address_of(parse_qs(search.removeprefix("?"), max_num_fields=FIELDS_MAX))


def unread(arguments: Mapping[str, Sequence[bytes | str]], read: Address) -> tuple[str, ...]:
    """What an address says that makes no sense, as ``event = abc``.

    Examples
    --------
    >>> unread({"event": ["abc"], "axis": ["rank"]}, address_of({"event": ["abc"], "axis": ["rank"]}))
    ('event = abc',)
    """
    told = {key: _one(arguments, key) for key in Address._fields if key in arguments and key not in ("run", "others")}
    return tuple(f"{key} = {text[:UNREAD_MAX]}" for key, text in told.items() if text != str(getattr(read, key)))


def token_of(arguments: Mapping[str, Sequence[bytes | str]]) -> str:
    """The token of an address, empty for none."""
    return _one(arguments, TOKEN)


def _number(arguments: Mapping[str, Sequence[bytes | str]], key: str) -> int:
    text = _one(arguments, key)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else -1


def _one(arguments: Mapping[str, Sequence[bytes | str]], key: str) -> str:
    return _text((arguments.get(key) or [""])[-1])


def _text(value: bytes | str) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
