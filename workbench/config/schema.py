"""The run's configuration: one tree of frozen dataclasses, the only vocabulary there is.

The same key names serve TOML files, ``--set KEY=VALUE``, `RunConfig` arguments, live settings and the
tape.  Keys of a nested group are written ``group.key`` (``model.width``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.config.groups import DataConfig, InnerConfig, MachineConfig, ModelConfig, VirtualConfig


@dataclass(frozen=True)
class RunConfig:
    """Everything that defines a run.

    Attributes
    ----------
    preset : str
        Name of the preset that it came from, for the record.
    learners, rounds, period, fragments, overlap : int
        M, merges to do, H [steps], P, tau [steps].
    quorum : int
        K, learners that must be ready before a round may close.
    eligibility : str
        ``fresh``, ``step`` or ``paced`` (PROTOCOL section 3).
    grace : str
        ``none``, ``fixed``, ``adaptive`` or ``all``; with ``grace_s`` [s], ``grace_gamma`` in [0, 1]
        and ``grace_cap_steps`` [steps] (PROTOCOL section 4).
    lead : int or None
        Steps a learner may run ahead of the oldest open round; None never waits.
    anchor, anchors_kept : str, int
        ``current`` or ``base``, and how many versions the syncer keeps for ``base``.
    merge, weights, outer, outer_rate, outer_momentum : str or float
        Merge rule, weight rule, outer optimiser and its numbers.
    fold, fold_alpha, fold_at : str or float
        How and when a learner absorbs an update.
    codec : str
        ``f32`` or ``bf16`` (difference to the base version).
    fragmentation : str
        ``balanced``, ``layer``, ``tensor`` or ``strided``.
    guard_nonfinite : bool
        Refuse contributions that hold NaN or infinity.
    guard_norm : float
        Refuse contributions whose norm is above so many times the median norm of the round's others and of the
        learner's own last 8, in proportion more where they stand for more own steps; 0: never.
    guard_cosine : bool
        Refuse contributions of a learner that is flagged: cosine below -0.3 to the others' mean in 3 rounds running.
    quarantine_after : int
        Contributions in a row that are refused for what they hold until a learner is quarantined; 0: never.
    heartbeat_s, heartbeat_limit_s, pull_limit_min_s, start_limit_s, connect_limit_s : float
        Seconds.
    recovery : str
        What a new process of a run that has merged begins with: ``peer`` (parameters and moments of a healed learner,
        else moments of the newest snapshot, else fresh ones) or ``fresh`` (the first weights, no moments).
    state_limit_s : float
        How long a peer may take to give its state before another is asked, and learners theirs to a snapshot before it
        is given up [s].
    snapshot_every, snapshot_every_s : int, float
        Merges, and seconds, between two snapshots; 0: none but those that are asked for.
    snapshots_kept : int
        The newest so many stay on disk; 0: all.
    eval_every, eval_batches : int
        Merges between two evaluations (0: never; an evaluator of real processes that is late skips some), batches of
        the held-out text in one.
    seed : int
        The one seed that all randomness hangs off.
    """

    preset: str = ""
    learners: int = 4
    rounds: int = 200
    period: int = 12
    fragments: int = 12
    overlap: int = 2
    quorum: int = 1
    eligibility: str = "fresh"
    grace: str = "adaptive"
    grace_s: float = 0.0
    grace_gamma: float = 0.8
    grace_cap_steps: float = 1.5
    lead: int | None = None
    anchor: str = "current"
    anchors_kept: int = 2
    merge: str = "rda"
    weights: str = "tokens2_per_step"
    outer: str = "nesterov"
    outer_rate: float = 0.5
    outer_momentum: float = 0.5
    fold: str = "overwrite"
    fold_alpha: float = 0.5
    fold_at: str = "receipt"
    codec: str = "f32"
    fragmentation: str = "balanced"
    guard_nonfinite: bool = True
    guard_norm: float = 10.0
    guard_cosine: bool = False
    quarantine_after: int = 3
    heartbeat_s: float = 0.5
    heartbeat_limit_s: float = 2.0
    pull_limit_min_s: float = 0.25
    start_limit_s: float = 30.0
    connect_limit_s: float = 60.0
    recovery: str = "peer"
    state_limit_s: float = 30.0
    snapshot_every: int = 0
    snapshot_every_s: float = 0.0
    snapshots_kept: int = 3
    eval_every: int = 50
    eval_batches: int = 16
    seed: int = 0
    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    inner: InnerConfig = field(default_factory=InnerConfig)
    virtual: VirtualConfig = field(default_factory=VirtualConfig)
    machine: MachineConfig = field(default_factory=MachineConfig)

    def __post_init__(self) -> None:
        from workbench.config.validate import check

        check(self)

    def set(self, changes: Mapping[str, Any] | None = None, /, **values: Any) -> RunConfig:
        """Return a copy with other values, checked like any other; nested keys are dotted.

        Raises
        ------
        ConfigError
            For an unknown key, a value of the wrong type, or a configuration that cannot work.

        Examples
        --------
        >>> RunConfig().set({"model.width": 64}, merge="mean").model.width
        64
        """
        from workbench.config.load import replace

        return replace(self, {**(changes or {}), **values})
