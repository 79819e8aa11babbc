from __future__ import annotations

import pytest

from tests.tape.foreign.dialects import EVENTS_MAP
from workbench.config import ConfigError
from workbench.tape.foreign.mapping import KEYS, map_of


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("time = ", "is not TOML"),
        ('time = "t"', "lacks replica, step, sync"),
        (EVENTS_MAP.replace("tokens =", "token ="), "unknown key 'token'; nearest: tokens; allowed: time, replica"),
        (EVENTS_MAP.replace('"t"', "3"), "time = 3; expected the name of a field"),
        (EVENTS_MAP.replace('"ms"', '"min"'), "duration_unit = 'min'; allowed: s, ms, us, ns"),
        (EVENTS_MAP.replace("[step_when]", "[sync_if]"), "unknown key 'sync_if'"),
        (EVENTS_MAP.replace('event = "step"', "event = [1]"), r"step_when = {'event': \[1\]}; expected a table"),
    ],
)
def test_maps_that_cannot_be(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        map_of(text)


def test_every_key_is_documented() -> None:
    for name in map_of(EVENTS_MAP).__dataclass_fields__:
        assert name in KEYS
