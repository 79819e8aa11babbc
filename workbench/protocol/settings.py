"""Settings by class, their revisions, and the fixed numbers of a run (PROTOCOL section 14)."""

from __future__ import annotations

from typing import Any

import msgspec

from workbench.config import ConfigError, RunConfig, flatten
from workbench.config.keys import convert, key_types, shown
from workbench.config.validate import CHOICES, RANGES

SECOND = 1_000_000_000


class Policy(msgspec.Struct, gc=False):
    """Acts at once, on waiting rounds too."""

    quorum: int
    eligibility: str
    grace: str
    grace_s: float
    grace_gamma: float
    grace_cap_steps: float
    pull_limit_min_s: float
    guard_nonfinite: bool
    guard_norm: float
    guard_cosine: bool
    quarantine_after: int


class MergeSettings(msgspec.Struct, gc=False, frozen=True):
    """Acts on rounds opened later."""

    merge: str
    weights: str
    outer: str
    outer_rate: float
    outer_momentum: float
    codec: str


class LearnerSettings(msgspec.Struct, gc=False):
    """Acts at each learner's next boundary."""

    fold: str
    fold_alpha: float
    lead: int | None
    rate_scale: float
    batch: int
    accumulation: int


class FixedSettings(msgspec.Struct, gc=False, frozen=True):
    """Refused live.  Times in nanoseconds."""

    learners: int
    rounds: int
    period: int
    offsets: tuple[int, ...]
    overlap: int
    fold_at: str
    anchor: str
    anchors_kept: int
    heartbeat_ns: int
    heartbeat_limit_ns: int
    start_limit_ns: int
    recovery: str = "peer"
    state_limit_ns: int = 30 * SECOND
    snapshot_every_ns: int = 0
    snapshot_every_merges: int = 0

    @property
    def fragments(self) -> int:
        """P."""
        return len(self.offsets)

    @property
    def in_flight_max(self) -> int:
        """Rounds that may be open at once."""
        return max(1, self.overlap)


POLICY_KEYS = Policy.__struct_fields__
MERGE_KEYS = MergeSettings.__struct_fields__
LEARNER_KEYS = ("fold", "fold_alpha", "lead", "inner.rate", "inner.batch", "inner.accumulation")
LIVE_KEYS = (*POLICY_KEYS, *MERGE_KEYS, *LEARNER_KEYS)
"""The vocabulary of live settings; everything else is fixed."""

_LEARNER_FIELD = {"inner.rate": "rate_scale", "inner.batch": "batch", "inner.accumulation": "accumulation"}


def policy_of(config: RunConfig) -> Policy:
    """Policy settings of a configuration."""
    return Policy(**{key: getattr(config, key) for key in POLICY_KEYS})


def merge_settings_of(config: RunConfig) -> MergeSettings:
    """Arithmetic settings of a configuration."""
    return MergeSettings(**{key: getattr(config, key) for key in MERGE_KEYS})


def learner_settings_of(config: RunConfig) -> LearnerSettings:
    """Learner settings of a configuration."""
    return LearnerSettings(
        config.fold, config.fold_alpha, config.lead, 1.0, config.inner.batch, config.inner.accumulation
    )


def fixed_settings_of(config: RunConfig, offsets: tuple[int, ...]) -> FixedSettings:
    """Fixed settings of a configuration with the due offsets of its fragments."""
    return FixedSettings(
        learners=config.learners,
        rounds=config.rounds,
        period=config.period,
        offsets=offsets,
        overlap=config.overlap,
        fold_at=config.fold_at,
        anchor=config.anchor,
        anchors_kept=config.anchors_kept,
        heartbeat_ns=int(config.heartbeat_s * SECOND),
        heartbeat_limit_ns=int(config.heartbeat_limit_s * SECOND),
        start_limit_ns=int(config.start_limit_s * SECOND),
        recovery=config.recovery,
        state_limit_ns=int(config.state_limit_s * SECOND),
        snapshot_every_ns=int(config.snapshot_every_s * SECOND),
        snapshot_every_merges=config.snapshot_every,
    )


class SettingsBook(msgspec.Struct):
    """The syncer's settings now, with their revision; the rounds in flight hold their own arithmetic."""

    revision: int
    policy: Policy
    merge: MergeSettings
    learner: LearnerSettings
    base_rate: float
    outer_since: int = 0
    """Revision at which the outer optimiser last changed: a fragment whose state is older starts fresh."""

    def apply(self, values: dict[str, Any], fixed: FixedSettings, learners: int | None = None) -> None:
        """Take a change as the next revision; of ``learners`` there are now, by default those that it began with.

        Raises
        ------
        ConfigError
            A key that cannot change live, an unknown key, or a value that is not possible.
        """
        checked = {key: check_live(key, value, fixed, learners) for key, value in values.items()}
        if "inner.rate" in checked and not self.base_rate > 0:
            raise ConfigError("inner.rate cannot change in a run that began with inner.rate = 0; start another run")
        merge = {}
        for key, value in checked.items():
            if key in POLICY_KEYS:
                setattr(self.policy, key, value)
            elif key in MERGE_KEYS:
                merge[key] = value
            elif key == "inner.rate":
                self.learner.rate_scale = value / self.base_rate
            else:
                setattr(self.learner, _LEARNER_FIELD.get(key, key), value)
        self.revision += 1
        if merge:
            changed = msgspec.structs.replace(self.merge, **merge)
            if changed.outer != self.merge.outer:
                self.outer_since = self.revision
            self.merge = changed

    def in_force(self) -> dict[str, Any]:
        """Every live setting by its key, as `apply` takes it."""
        learner = self.learner
        return {
            **{key: getattr(self.policy, key) for key in POLICY_KEYS},
            **{key: getattr(self.merge, key) for key in MERGE_KEYS},
            **{key: getattr(learner, _LEARNER_FIELD.get(key, key)) for key in LEARNER_KEYS if key != "inner.rate"},
            "inner.rate": learner.rate_scale * self.base_rate,
        }


def settings_book_of(config: RunConfig) -> SettingsBook:
    """The settings that a run begins with."""
    return SettingsBook(0, policy_of(config), merge_settings_of(config), learner_settings_of(config), config.inner.rate)


def require_live(key: str) -> None:
    """Raise `ConfigError`, with what is allowed, unless ``key`` may be set while a run goes on."""
    if key not in LIVE_KEYS:
        wrong = f"{key} cannot change while a run goes on" if key in key_types() else f"unknown key {shown(key)}"
        raise ConfigError(f"{wrong}; live settings: {', '.join(LIVE_KEYS)}")


def live_value(key: str, value: Any) -> Any:
    """A value in the type of a live setting; raise `ConfigError` for what no run could take."""
    require_live(key)
    return convert(key, value)


def check_live(key: str, value: Any, fixed: FixedSettings, learners: int | None = None) -> Any:
    """Return ``value`` in the type of ``key``; raise `ConfigError` unless it may be set while a run goes on."""
    value = live_value(key, value)
    if key in CHOICES and value not in CHOICES[key]:
        raise ConfigError(f"{key} = {shown(value)} is unknown; allowed: {', '.join(CHOICES[key])}")
    there = fixed.learners if learners is None else learners
    if key == "quorum" and not 1 <= value <= there:
        raise ConfigError(f"quorum = {value} with {there} learners; allowed: 1 to {there}")
    if key in RANGES:
        low, high = RANGES[key]
        if not low <= value <= high:
            raise ConfigError(f"{key} = {value!r} is out of range; allowed: {low:g} to {high:g}")
    if key == "lead" and value is not None and value < 0:
        raise ConfigError(f"lead = {value!r} is not possible; allowed: none, or a whole number of steps from 0")
    if key == "pull_limit_min_s" and value * SECOND > fixed.heartbeat_limit_ns:
        limit = f"{fixed.heartbeat_limit_ns / SECOND:g}"
        raise ConfigError(f"pull_limit_min_s = {value} is above heartbeat_limit_s = {limit}; allowed: up to {limit}")
    return value


def values_in_force(config: RunConfig, book: SettingsBook) -> dict[str, Any]:
    """All values by dotted key: those that the run began with, and over them those that were changed since."""
    learner = {"fold": book.learner.fold, "fold_alpha": book.learner.fold_alpha, "lead": book.learner.lead}
    return {**flatten(config), **msgspec.structs.asdict(book.policy), **msgspec.structs.asdict(book.merge), **learner}


def learner_values(settings: LearnerSettings) -> dict[str, Any]:
    """Learner settings as they travel in WELCOME and CHANGE."""
    return msgspec.structs.asdict(settings)
