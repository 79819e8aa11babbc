"""What may be asked of a tape, and what kind of answer there is (DESIGN section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from workbench.algorithms.codecs import CODECS
from workbench.config import ConfigError, RunConfig, diff
from workbench.config.keys import require_key
from workbench.protocol.settings import LEARNER_KEYS, MERGE_KEYS, POLICY_KEYS
from workbench.training.inner import horizon_of

ARITHMETIC, SCHEDULE = "arithmetic", "schedule"
"""Classes of an answer: one exact run on the schedule of the tape, or virtual time from a branch on."""

ARITHMETIC_KEYS = (*(key for key in MERGE_KEYS if key != "codec"), "fold", "fold_alpha", "inner.rate")
"""They change what is computed, not when."""

START_KEYS = (
    "lead", "fold_at", "anchor", "anchors_kept", "learners", "heartbeat_s", "heartbeat_limit_s", "start_limit_s",
)  # fmt: skip
"""They change what learners do, or what no record shows: a run with another value is another from its start."""

SCHEDULE_KEYS = (*POLICY_KEYS, "codec", "rounds", *START_KEYS)
LIVE_KEYS = (*POLICY_KEYS, *MERGE_KEYS, *(key for key in LEARNER_KEYS if key in (*ARITHMETIC_KEYS, *START_KEYS)))
"""They can change from a round on."""

_WHY = {
    "model": "the weights would be others",
    "data": "the batches would be others",
    "seed": "weights and batches would be others",
    "inner": "the steps would be others",
    "fragments": "the rounds of the tape would be of other fragments",
    "fragmentation": "the rounds of the tape would be of other fragments",
    "period": "the rounds of the tape would be due at other steps",
    "overlap": "the rounds of the tape would be in flight differently",
    "virtual": "durations come from the tape",
    "machine": "durations come from the tape",
}


class Changes(NamedTuple):
    """What is asked.

    Attributes
    ----------
    config : RunConfig
        The parent's with the changes.
    values : dict
        Keys that differ, with their new values.
    kind : str
        `ARITHMETIC` or `SCHEDULE`, as far as the keys say.
    from_start : bool
        The run is another from its start.
    bytes_ratio : float
        Size of a contribution over what it was.
    """

    config: RunConfig
    values: dict[str, Any]
    kind: str
    from_start: bool
    bytes_ratio: float = 1.0

    @property
    def computes_anew(self) -> bool:
        """Whether values change where the schedule does not."""
        return any(key in ARITHMETIC_KEYS for key in self.values)


def changes_of(parent: RunConfig, wanted: Mapping[str, Any]) -> Changes:
    """Check and sort the changes of a configuration.

    Raises
    ------
    ConfigError
        An unknown key, an impossible value, or a key that no tape can answer for.
    """
    for key in wanted:
        require_key(key)
        if key not in (*ARITHMETIC_KEYS, *SCHEDULE_KEYS):
            why = _WHY.get(key.split(".")[0], "it is no part of what happened")
            raise ConfigError(
                f"what-if cannot change {key}: {why}; allowed: {', '.join(ARITHMETIC_KEYS)} (exact), "
                f"{', '.join(SCHEDULE_KEYS)} (virtual time); for {key} train another run"
            )
    config = parent.set(dict(wanted))
    values = {key: new for key, (_, new) in diff(parent, config).items()}
    _check_learners(parent, config)
    if "rounds" in values and not config.inner.horizon:  # more merges, at the learning rates of the tape
        config = config.set({"inner.horizon": horizon_of(parent)})
    ratio = _payload_bytes(config.codec) / _payload_bytes(parent.codec)
    schedule = any(key in SCHEDULE_KEYS and not (key == "codec" and ratio == 1.0) for key in values)
    kind = SCHEDULE if schedule else ARITHMETIC
    return Changes(config, values, kind, any(key in START_KEYS for key in values), ratio)


def check_live(values: Mapping[str, Any], from_round: int, last_round: int) -> None:
    """Refuse keys that cannot change from a round on, and rounds that the tape does not have.

    Raises
    ------
    ConfigError
        With the key and those that can, or the last round.
    """
    if not 1 <= from_round <= last_round:
        raise ConfigError(f"from_round = {from_round}; allowed: 1 to {last_round}, the last round that the tape opens")
    for key in values:
        if key not in LIVE_KEYS:
            raise ConfigError(
                f"what-if cannot change {key} from a round on: it holds for a whole run; allowed: "
                f"{', '.join(LIVE_KEYS)}; leave from_round out"
            )


def check_alone(values: Mapping[str, Any], faults: bool, resimulate: bool) -> None:
    """Refuse what does not go with a change from a round on.

    Raises
    ------
    ConfigError
        With what to leave out.
    """
    if resimulate:
        raise ConfigError(
            "from_round shares the tape up to a round, resimulate begins anew from the start; leave one of the two out"
        )
    if faults:
        raise ConfigError(
            "from_round says from when on settings change, but faults have times of their own; ask for changed faults "
            "without from_round"
        )
    if not values:
        raise ConfigError("from_round without a setting that changes; name one, for example quorum=2 (--set quorum=2)")


def _check_learners(parent: RunConfig, config: RunConfig) -> None:
    if config.learners > parent.learners:
        raise ConfigError(
            f"what-if cannot make learners = {config.learners}: the tape knows the durations of {parent.learners}; "
            f"allowed: 1 to {parent.learners}"
        )
    if config.learners < parent.learners and config.data.shards == "file":
        raise ConfigError(
            "what-if cannot change learners with data.shards = 'file': the shards would be others; allowed: "
            f"{parent.learners}"
        )


def _payload_bytes(codec: str) -> int:
    values = np.ones(1024, np.float32)
    return int(CODECS[codec].encode(values, values).nbytes)
