"""Versions of the fragments in a counterfactual: kept as long as somebody needs them, compared with the parent's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from workbench.protocol.records import Kind, Record
from workbench.replay.program import Step, UpdateFolded
from workbench.simulate.numbers import Numbers

VERSIONS_KEPT = 3

Name = tuple[int, int]
"""(fragment, version)."""
Dated = tuple[int, int, int]
"""(epoch, fragment, version)."""


class Versions:
    """What was merged, and what of it will still be folded or evaluated.

    Parameters
    ----------
    records : sequence of Record
        Of the parent.
    programs : mapping of process to list of Step
        Of the parent.
    numbers : Numbers
        Of the counterfactual.
    """

    def __init__(self, records: Sequence[Record], programs: Mapping[int, list[Step]], numbers: Numbers) -> None:
        self.numbers, self.epoch = numbers, 0
        folds = (s for steps in programs.values() for s in steps if isinstance(s, UpdateFolded))
        evals = (r for r in records if r.kind == Kind.EVALUATED)
        self._folds: Counter[Dated] = Counter((records[f.event].epoch, f.fragment, f.version) for f in folds)
        self._evals: Counter[Dated] = Counter(
            (r.epoch, *name) for r in evals for name in enumerate(r.detail["versions"])
        )
        self._thetas: dict[Name, np.ndarray] = {(p, 0): flat.copy() for p, flat in enumerate(numbers.initial)}
        self._alike: dict[Name, bool] = dict.fromkeys(self._thetas, True)
        self._tokens: dict[Name, int] = dict.fromkeys(self._thetas, 0)
        merges = (r for r in records if r.kind == Kind.MERGED)
        self._recorded: dict[Dated, Record] = {(r.epoch, r.fragment, r.version): r for r in merges}
        self._recorded_tokens: dict[Name, int] = dict.fromkeys(self._thetas, 0)

    def theta(self, p: int, version: int) -> np.ndarray:
        """A version (size,) for one of its folds."""
        self._folds[self.epoch, p, version] -= 1
        return self._thetas[p, version]

    def kept(self, p: int, version: int) -> np.ndarray:
        """A version that may still be on its way to a learner; the current one where it is not kept any more."""
        found = self._thetas.get((p, version))
        return found if found is not None else self.numbers.current[p]

    def merged(self, record: Record) -> None:
        """Take note of a merge, and of whether the parent has the same bits."""
        name, before = (record.fragment, record.version), (record.fragment, record.version - 1)
        there = self._recorded.get((self.epoch, *name))
        self._alike[name] = there is not None and there.digest == record.digest
        self._tokens[name] = self._tokens[before] + record.tokens
        self._recorded_tokens[name] = self._recorded_tokens[before] + (there.tokens if there is not None else 0)

    def keep(self, p: int, version: int) -> None:
        """Keep the version that is current now if it will be folded or evaluated; let go what nobody needs."""
        self._thetas[p, version] = self.numbers.syncer.theta(p).copy()
        for name in [k for k in self._thetas if k[0] == p and k[1] <= version - VERSIONS_KEPT]:
            if self._folds[self.epoch, *name] <= 0 and self._evals[self.epoch, *name] <= 0:
                del self._thetas[name]

    def go_back(self, versions: Sequence[int]) -> None:
        """Another epoch: what was merged behind these versions is gone, they are the current ones."""
        self.epoch += 1
        for held in (self._thetas, self._alike, self._tokens, self._recorded_tokens):
            for name in [name for name in held if name[1] > versions[name[0]]]:
                del held[name]  # type: ignore[attr-defined]
        for p, version in enumerate(versions):
            self._thetas[p, version] = self.numbers.current[p].copy()

    def evaluated(self, record: Record) -> Record:
        """An evaluation anew; of weights that are the parent's it is the parent's."""
        names = list(enumerate(record.detail["versions"]))
        self._evals.subtract((self.epoch, *name) for name in names)
        if all(self._alike.get(name, False) for name in names):
            return record
        loss = self.numbers.program.evaluate([self._thetas[name] for name in names])
        if all(self._tokens[name] == self._recorded_tokens[name] for name in names):
            return msgspec.structs.replace(record, value=loss)
        sizes = self.numbers.fragmentation.sizes
        tokens = sum(size * self._tokens[name] for size, name in zip(sizes, names, strict=True)) // sum(sizes)
        return msgspec.structs.replace(record, value=loss, tokens=tokens)
