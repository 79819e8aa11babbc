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
        self.numbers = numbers
        folds = (s for steps in programs.values() for s in steps if isinstance(s, UpdateFolded))
        evals = (r for r in records if r.kind == Kind.EVALUATED)
        self._folds = Counter((fold.fragment, fold.version) for fold in folds)
        self._evals = Counter(name for r in evals for name in enumerate(r.detail["versions"]))
        self._thetas: dict[Name, np.ndarray] = {(p, 0): flat.copy() for p, flat in enumerate(numbers.initial)}
        self._alike: dict[Name, bool] = dict.fromkeys(self._thetas, True)
        self._tokens: dict[Name, int] = dict.fromkeys(self._thetas, 0)
        self._recorded: dict[Name, Record] = {(r.fragment, r.version): r for r in records if r.kind == Kind.MERGED}
        self._recorded_tokens: dict[Name, int] = dict.fromkeys(self._thetas, 0)

    def theta(self, p: int, version: int) -> np.ndarray:
        """A version (size,) for one of its folds."""
        self._folds[p, version] -= 1
        return self._thetas[p, version]

    def kept(self, p: int, version: int) -> np.ndarray:
        """A version that may still be on its way to a learner; the current one where it is not kept any more."""
        found = self._thetas.get((p, version))
        return found if found is not None else self.numbers.current[p]

    def merged(self, record: Record) -> None:
        """Take note of a merge, and of whether the parent has the same bits."""
        name, before = (record.fragment, record.version), (record.fragment, record.version - 1)
        there = self._recorded.get(name)
        self._alike[name] = there is not None and there.digest == record.digest
        self._tokens[name] = self._tokens[before] + record.tokens
        self._recorded_tokens[name] = self._recorded_tokens[before] + (there.tokens if there is not None else 0)

    def keep(self, p: int, version: int) -> None:
        """Keep the version that is current now if it will be folded or evaluated; let go what nobody needs."""
        self._thetas[p, version] = self.numbers.syncer.theta(p).copy()
        for name in [k for k in self._thetas if k[0] == p and k[1] <= version - VERSIONS_KEPT]:
            if self._folds[name] <= 0 and self._evals[name] <= 0:
                del self._thetas[name]

    def evaluated(self, record: Record) -> Record:
        """An evaluation anew; of weights that are the parent's it is the parent's."""
        names = list(enumerate(record.detail["versions"]))
        self._evals.subtract(names)
        if all(self._alike.get(name, False) for name in names):
            return record
        loss = self.numbers.program.evaluate([self._thetas[name] for name in names])
        if all(self._tokens[name] == self._recorded_tokens[name] for name in names):
            return msgspec.structs.replace(record, value=loss)
        sizes = self.numbers.fragmentation.sizes
        tokens = sum(size * self._tokens[name] for size, name in zip(sizes, names, strict=True)) // sum(sizes)
        return msgspec.structs.replace(record, value=loss, tokens=tokens)
