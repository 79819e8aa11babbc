"""How a syncer receives learners that are started by hand: what they are told, and room for one more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.config import ConfigError, RunConfig
from workbench.engine.agreement import claims_of_header, first_difference
from workbench.engine.frames import Ask, Facts
from workbench.engine.key_folder import client_keys, make_key_folder, server_keys
from workbench.engine.listening import Listening
from workbench.engine.syncer_status import StatusBook
from workbench.engine.wire import SyncerWire
from workbench.protocol.rosters import next_learner
from workbench.protocol.syncer_state import SyncerState


class Reception:
    """Answers those who ask before they greet.

    Parameters
    ----------
    listening : Listening
        Where the run listens, and its keys.
    config : RunConfig
    header : mapping
        Of the journal: what learners have to agree with.
    """

    def __init__(self, listening: Listening, config: RunConfig, header: Mapping[str, Any]) -> None:
        self._keys = Path(listening.keys) if listening.keys else None
        self._run_id = f"{header['run_id']}.{listening.instance}"
        self._fingerprint: dict[str, str] = header["fingerprint"]
        self._claims = claims_of_header(config, header)

    def open(self, sizes: Sequence[int], address: str, state: SyncerState) -> SyncerWire:
        """The syncer's end of the wire, for the learners that there are.

        Raises
        ------
        ConfigError
            The address cannot be had, or the keys cannot be read.
        """
        keys = server_keys(self._keys) if self._keys is not None else None
        return SyncerWire(self._run_id, sizes, listen=address, keys=keys, learners=next_learner(state))

    def facts(self, ask: Ask, state: SyncerState, book: StatusBook, now: int) -> Facts | str:
        """What somebody is told, or why it cannot take part."""
        learners = next_learner(state)
        if not 0 <= ask.learner < learners:
            return (
                f"there is no learner {ask.learner} in this run; allowed: --learner 0 to {learners - 1}, "
                f"or {learners} after workbench control RUN add"
            )
        if ask.learner in state.removed:
            return f"learner {ask.learner} was removed from this run; no process of it is taken in any more"
        difference = first_difference(self._claims, ask.claims)
        if difference:
            return difference
        member = state.members.get(ask.learner)
        number = 1 if member is None else max(member.process_number, member.ended) + 1
        where = book.where(ask.learner) if member is not None and member.connected else ""
        return Facts(self._run_id, number, now, self._fingerprint, where)

    def make_room(self, wire: SyncerWire, state: SyncerState) -> str | None:
        """Make the key of the next learner and let it in; why that cannot be, None if it is done."""
        learner = next_learner(state)
        try:
            wire.let_in(learner, self._key_of(learner))
        except (ConfigError, OSError) as error:
            return f"no key can be made for learner {learner}: {error}"
        return None

    def _key_of(self, learner: int) -> bytes:
        """Public key of a learner, made if there is none; empty without keys."""
        if self._keys is None:
            return b""
        make_key_folder(self._keys, learner + 1)
        return client_keys(self._keys, learner).own.public
