"""The syncer of a replay: merges recomputed from the contributions that the replayed learners captured."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from typing import Any, NamedTuple

import numpy as np

from workbench.algorithms.digest import digest
from workbench.algorithms.fragment_slots import slots_needed
from workbench.algorithms.fragments import Fragmentation
from workbench.algorithms.syncer_arithmetic import MergeInfo, MergeSettings, SyncerArithmetic
from workbench.algorithms.weights import WEIGHTS
from workbench.config import RunConfig
from workbench.protocol.records import SYNCER, label_of, process_of
from workbench.replay.differences import UNFIT, Findings
from workbench.replay.program import (
    Contribution,
    ContributionAcknowledged,
    FragmentCaptured,
    Merged,
    Programs,
    Restored,
    SnapshotRecorded,
    StateAdopted,
    Step,
    UpdateFolded,
)
from workbench.replay.states import States
from workbench.training.snapshot_parts import SyncerPart

Key = tuple[int, int, int, int, int]
"""(epoch, learner, fragment, round, own step n) of a contribution."""


class _Payload(NamedTuple):
    """A contribution as it left its learner; ``same`` says whether the tape has the same bytes."""

    step: FragmentCaptured
    payload: Any
    same: bool


class _Recorded(NamedTuple):
    """The syncer at a snapshot: what `ReplayedSyncer` goes back to."""

    part: SyncerPart
    versions: list[int]
    merged: dict[tuple[int, int], list[tuple[int, int]]]


class ReplayedSyncer:
    """Theta and outer state through all merges of a tape, with only those old versions that a fold still needs.

    Parameters
    ----------
    config : RunConfig
    fragmentation : Fragmentation
    initial : list of arrays (size,)
        Version 0 of each fragment.
    programs : Programs
        Says which versions will be folded and which contributions merged.
    findings : Findings

    Attributes
    ----------
    versions : list of int
        Newest merged version of each fragment.
    merges : int
        Done.
    states : States
        What learners take of each other, and of snapshots.
    """

    def __init__(
        self,
        config: RunConfig,
        fragmentation: Fragmentation,
        initial: list[np.ndarray],
        programs: Programs,
        findings: Findings,
    ) -> None:
        self.config, self.findings = config, findings
        self.arithmetic = SyncerArithmetic(
            fragmentation, initial, slot_count=slots_needed(config.anchor, config.anchors_kept)
        )
        self.versions = [0] * config.fragments
        self.merges = 0
        self.states = States(programs)
        self._cuts = programs.cuts
        self._newest = [list(self.versions)]
        own = programs.steps.get(SYNCER, ())
        self._goes_back_to = {step.number for step in own if isinstance(step, Restored)}
        self._recorded: dict[float, _Recorded] = {}
        folds = (s for steps in programs.steps.values() for s in steps if isinstance(s, UpdateFolded))
        self._folds = Counter((self.epoch_of(fold.event), fold.fragment, fold.version) for fold in folds)
        self._wanted = {self._key(merge, c) for merge in programs.merges for c in merge.contributions}
        self._thetas: dict[tuple[int, int, int], np.ndarray] = {}
        self._payloads: dict[Key, list[_Payload]] = defaultdict(list)
        self._merged: list[dict[tuple[int, int], list[tuple[int, int]]]] = [defaultdict(list)]
        for p in range(config.fragments):
            self._keep_theta(p, 0)

    @property
    def epoch(self) -> int:
        """How often the run went back to a snapshot so far."""
        return len(self._newest) - 1

    def epoch_of(self, event: int) -> int:
        """Epoch of an event: what is journalled after the run went back belongs to the next."""
        return bisect_left(self._cuts, event)

    def _key(self, merge: Merged, contribution: Contribution) -> Key:
        c = contribution
        return self.epoch_of(merge.event), c.learner, merge.fragment, merge.round, c.n

    def ready(self, process: int, step: Step) -> bool:
        """Whether the inputs of a step of any process are there."""
        if isinstance(step, Merged):
            return all(self._key(step, c) in self._payloads for c in step.contributions)
        if isinstance(step, UpdateFolded | ContributionAcknowledged):
            epoch = self.epoch_of(step.event)
            known = self._newest[epoch] if epoch <= self.epoch else [-1] * len(self.versions)
            return 0 <= step.fragment < len(known) and 0 <= step.version <= known[step.fragment]
        if isinstance(step, StateAdopted) and step.source == "peer":
            return self.states.from_peer(step.peer, step.copied) is not None
        return True

    def missing(self, step: Step) -> str:
        """What a step that is not ready waits for."""
        if isinstance(step, Merged):
            lacking = [c for c in step.contributions if self._key(step, c) not in self._payloads]
            names = ", ".join(f"{label_of(process_of(c.learner))} after own step {c.n}" for c in lacking)
            return f"nothing was captured for round {step.round} by {names}"
        if isinstance(step, StateAdopted):
            return f"nothing was copied at record {step.copied} of {label_of(max(step.peer, 0))}"
        fragment, version = getattr(step, "fragment", -1), getattr(step, "version", -1)
        if not 0 <= fragment < len(self.versions):
            return f"there are {len(self.versions)} fragments"
        return f"version {version} was not merged, the newest is {self.versions[fragment]}"

    def captured(self, learner: int, step: FragmentCaptured, payload: Any, same: bool) -> None:
        """Take a contribution, if some merge will use it."""
        key = (self.epoch_of(step.event), learner, step.fragment, step.round, step.n)
        if key in self._wanted:
            self._payloads[key].append(_Payload(step, payload, same))

    def take_theta(self, fold: UpdateFolded) -> np.ndarray:
        """Version of a fragment for one fold of it; the last fold lets it go."""
        key = self.epoch_of(fold.event), fold.fragment, fold.version
        self._folds[key] -= 1
        return self._thetas[key] if self._folds[key] else self._thetas.pop(key)

    def took(self, learner: int, step: ContributionAcknowledged, base_version: int) -> bool:
        """Whether the newest merge up to a version that holds work of a learner holds what it captured after n."""
        merged = self._merged[self.epoch_of(step.event)]
        known = [entry for entry in merged[learner, step.fragment] if entry[0] <= step.version]
        return bool(known) and known[-1][1] == step.n and known[-1][0] > base_version

    def snapshot(self, step: SnapshotRecorded) -> None:
        """Keep Theta and outer state, if the run goes back to this snapshot."""
        if step.number in self._goes_back_to:
            merged = {key: list(entries) for key, entries in self._merged[-1].items()}
            self._recorded[step.number] = _Recorded(self._part(), list(self.versions), merged)

    def _part(self) -> SyncerPart:
        places = range(len(self.versions))
        thetas = [self.arithmetic.theta(p).copy() for p in places]
        return SyncerPart(thetas, [self.arithmetic.outer_state(p) for p in places])

    def go_back(self, step: Restored) -> None:
        """Be again what a snapshot has of the syncer; another epoch begins.

        Raises
        ------
        Impossible
            Nothing was recorded for it.
        """
        found = self._recorded.get(step.number)
        if found is None:
            raise self.findings.impossible(step, SYNCER, "tape", f"nothing was recorded for snapshot {step.number:g}")
        self.versions = list(found.versions)
        self._newest.append(list(found.versions))
        self._merged.append(defaultdict(list, {key: list(entries) for key, entries in found.merged.items()}))
        for p, version in enumerate(found.versions):
            self.arithmetic.install(p, version, found.part.thetas[p], found.part.outers[p])
            self._keep_theta(p, version)
        what = "digest of the restored weights and outer state"
        self.findings.digests(step, SYNCER, "merge", what, step.digest, found.part.digest)

    def execute(self, step: Merged) -> None:
        """Merge, commit, and compare contributions, weights and results.

        Raises
        ------
        Impossible
            When the merge cannot be made as the tape has it.
        """
        try:
            self._execute(step)
        except UNFIT as error:
            raise self.findings.impossible(step, SYNCER, "merge", error) from error

    def _execute(self, step: Merged) -> None:
        p = step.fragment
        if step.version != self.versions[p] + 1:
            why = f"version {step.version} cannot follow version {self.versions[p]}"
            raise self.findings.impossible(step, SYNCER, "tape", why)
        info = self._merge(step, [self._decoded(step, contribution) for contribution in step.contributions])
        self.arithmetic.commit(p, step.version)
        self.findings.numbers(step, SYNCER, "merge", "norm of the outer gradient", step.norm, info.norm)
        self.findings.digests(step, SYNCER, "merge", "digest of the merged fragment", step.digest, info.digest)
        self.findings.digests(step, SYNCER, "merge", "digest of the outer state", step.outer_digest, info.outer_digest)
        self.versions[p] = self._newest[-1][p] = step.version
        self.merges += 1
        self._keep_theta(p, step.version)
        for contribution in step.contributions:
            self._payloads.pop(self._key(step, contribution), None)
            self._merged[-1][contribution.learner, p].append((step.version, contribution.n))

    def _merge(self, step: Merged, values: list[np.ndarray]) -> MergeInfo:
        if step.fresh_outer:
            self.arithmetic.reset_outer(step.fragment)
        return self.arithmetic.merge(
            step.fragment,
            step.version,
            [c.learner for c in step.contributions],
            values,
            [self._weight(step, c) for c in step.contributions],
            [c.base_version for c in step.contributions],
            MergeSettings(
                step.merge, step.outer, step.outer_rate, step.outer_momentum, self.config.anchor, self.config.seed
            ),
        )

    def _weight(self, step: Merged, contribution: Contribution) -> float:
        """Weight of a contribution by the run's rule, compared with the one recorded."""
        if step.weights_rule not in WEIGHTS:
            raise ValueError(f"weight rule {step.weights_rule!r} is unknown; allowed: {', '.join(WEIGHTS)}")
        age = step.version - 1 - contribution.base_version
        weight = WEIGHTS[step.weights_rule](contribution.steps, contribution.tokens, age)
        what = f"weight of {label_of(process_of(contribution.learner))}"
        self.findings.numbers(step, SYNCER, "merge", what, contribution.weight, weight)
        return weight

    def _decoded(self, step: Merged, contribution: Contribution) -> np.ndarray:
        """Parameters of a contribution as the syncer decodes them, compared with what the tape says of them."""
        found: list[tuple[_Payload, np.ndarray, int]] = []
        for sent in self._payloads[self._key(step, contribution)]:
            capture = sent.step
            values = self.arithmetic.decode(step.fragment, sent.payload, capture.codec, capture.base_version)
            found.append((sent, values, digest(values)))
        # a copy may have been sent twice for one round, once with a fault on it
        used = next((entry for entry in found if entry[2] == contribution.digest), found[0])
        self._compare(step, contribution, used[0], used[2])
        return used[1]

    def _compare(self, step: Merged, contribution: Contribution, sent: _Payload, decoded: int) -> None:
        who = label_of(process_of(contribution.learner))
        capture = sent.step
        for what, recorded, computed in (
            ("inner steps", contribution.steps, capture.steps),
            ("tokens", contribution.tokens, capture.tokens),
            ("base version", contribution.base_version, capture.base_version),
        ):
            self.findings.values(step, SYNCER, "tape", f"{what} in the contribution of {who}", recorded, computed)
        what = f"digest of the contribution of {who} as decoded"
        self.findings.digests(step, SYNCER, "wire" if sent.same else "learner", what, contribution.digest, decoded)

    def _keep_theta(self, p: int, version: int) -> None:
        if self._folds[self.epoch, p, version]:
            self._thetas[self.epoch, p, version] = self.arithmetic.theta(p).copy()
