"""What an address of a page says: which page, which run, where the cursor is; never what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import parse_qs, urlencode

from workbench.pages.access import TOKEN

START, LIVE, REPLAY = "start", "live", "replay"
PAGES = (START, LIVE, REPLAY)


class Address(NamedTuple):
    """Attributes
    ----------
    page : str
        One of `PAGES`.
    run : str
        Name of a run, empty for none.
    event : int
        The cursor; -1 for none, which is the end.
    """

    page: str = START
    run: str = ""
    event: int = -1

    def query(self, token: str) -> str:
        """The part of the address behind the path."""
        asked = {TOKEN: token, "page": self.page, "run": self.run, "event": self.event}
        usual = {"page": START, "run": "", "event": -1}
        return "?" + urlencode({key: value for key, value in asked.items() if value != usual.get(key)})


def address_of(arguments: Mapping[str, Sequence[bytes | str]]) -> Address:
    """Read an address; what makes no sense is left out."""
    page, run, event = (_one(arguments, key) for key in ("page", "run", "event"))
    number = int(event) if event.isascii() and event.isdecimal() and len(event) < 12 else -1
    return Address(page if page in PAGES else START, run, number)


def address_in(search: str) -> Address:
    """Read the part of an address from the question mark on."""
    return address_of(parse_qs(search.removeprefix("?"), max_num_fields=20))


def token_of(arguments: Mapping[str, Sequence[bytes | str]]) -> str:
    """The token of an address, empty for none."""
    return _one(arguments, TOKEN)


def _one(arguments: Mapping[str, Sequence[bytes | str]], key: str) -> str:
    values = arguments.get(key) or [""]
    value = values[-1]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
