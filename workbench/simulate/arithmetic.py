"""What the virtual-time driver asks of arithmetic, and the form that computes nothing but keeps the books."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from workbench.algorithms.poisons import AFTER_CODEC, NOT_FINITE, Poison
from workbench.protocol.actions import Adopt, CopyState, Fold, Merge, StartStep, WriteSnapshot


class StepNumbers(NamedTuple):
    """What an inner step gave."""

    loss: float
    tokens: int
    batch: int
    accumulation: int


class CaptureNumbers(NamedTuple):
    """An encoded host copy."""

    digest: int
    nbytes: int
    handle: int


class MergeNumbers(NamedTuple):
    """A merged fragment."""

    finite: bool
    digest: int
    outer_digest: int
    norm: float
    norms: list[float]
    cosines: list[float]
    digests: list[int]


class Arithmetic(Protocol):
    """Arrays of all processes of a virtual run; numbered payloads stand for them in messages."""

    def adopt(self, learner: int, source: str) -> int:
        """A learner begins with the run's first weights and fresh moments; their digest."""

    def drop(self, learner: int) -> None:
        """A learner process is gone."""

    def step(self, learner: int, order: StartStep) -> StepNumbers:
        """Make an inner step."""

    def publish(self, learner: int, fragment: int) -> None:
        """Renew the host copy of a fragment, or of all (-1)."""

    def capture(self, learner: int, fragment: int, step: int, codec: str, poison: Poison | None) -> CaptureNumbers:
        """Encode the host copy; ``poison`` acts on what goes out."""

    def poison(self, learner: int, fragment: int, poison: Poison) -> None:
        """A numeric fault acts on the learner's own fragment, not on its host copy."""

    def fold(self, learner: int, order: Fold) -> None:
        """Absorb an update."""

    def forget(self, learner: int, fragment: int, step: int) -> None:
        """A captured copy is not needed any more."""

    def update(self, fragment: int, version: int) -> tuple[int, int]:
        """Handle and size [bytes] of the current version of a fragment."""

    def looks(self, handle: int) -> tuple[bool, bool, float]:
        """Whether a payload is finite, fits its fragment, and its norm, as its receiver finds it."""

    def release(self, handle: int) -> None:
        """A payload is not needed any more."""

    def merge(self, order: Merge) -> MergeNumbers:
        """Merge into the free slot."""

    def commit(self, fragment: int, version: int) -> None:
        """Make the merged slot the current one."""

    def recover(self, versions: list[int]) -> None:
        """A restarted syncer: current is the slot that holds the journal's version."""

    def copy_state(self, learner: int, order: CopyState) -> CaptureNumbers:
        """Keep a learner's state as it is now."""

    def adopt_state(self, learner: int, order: Adopt) -> tuple[int, bool]:
        """Take a state other than the first weights; its digest, and whether it was whole."""

    def share(self, handle: int) -> int:
        """Another handle for the same payload; it outlives the first."""

    def take_snapshot(self, snapshot: int, versions: list[int]) -> None:
        """Keep Theta and outer state."""

    def keep_part(self, snapshot: int, learner: int, handle: int) -> None:
        """Keep a learner's part of a snapshot."""

    def write_snapshot(self, order: WriteSnapshot) -> tuple[int, str]:
        """Write it; its digest, or why it could not be."""

    def drop_snapshot(self, snapshot: int) -> None:
        """Forget a snapshot that was not written."""

    def go_back(self, snapshot: int) -> None:
        """Make Theta and outer state of a snapshot the current ones."""

    def facts(self, snapshot: int, learner: int) -> dict[str, Any]:
        """Counters of a learner in a snapshot."""

    def evaluate(self) -> float | None:
        """Validation loss of the committed fragments, None where nothing is computed."""


class Work(NamedTuple):
    """A contribution without numbers: whose steps, since which base, and how it would look to a guard."""

    learner: int
    fragment: int
    base_version: int
    steps: tuple[int, ...]
    finite: bool
    fits: bool = True
    foreign: bool = False
    norm: float = 1.0
    cosine: float = 1.0


_POINTS = {"flip": -1.0, "random": 0.0}


class Held(NamedTuple):
    """A learner's state without numbers: its work since the last folds, what it rests on, and the kept copies."""

    learner: int
    work: tuple[tuple[int, ...], ...]
    base: tuple[int, ...]
    kept: dict[tuple[int, int], tuple[int, ...]]
    foreign: frozenset[int]


class Ledgered:
    """No numbers: keeps, for every learner and fragment, which own steps its parameters hold.

    It knows nothing of the machines' counters, so that they can be checked against it.
    """

    def __init__(self, fragments: int, tokens: int = 512, fragment_bytes: int = 4096) -> None:
        self.fragments = fragments
        self.tokens = tokens
        self.fragment_bytes = fragment_bytes
        self.payloads: dict[int, Work | Held | tuple[int, int]] = {}
        self.foreign: set[tuple[int, int]] = set()
        self.taken: dict[int, list[int]] = {}
        self.parts: dict[tuple[int, int], Held] = {}
        self.written: dict[int, WriteSnapshot] = {}
        self.next_handle = 0
        self.work: dict[int, list[list[int]]] = {}
        self.base: dict[int, list[int]] = {}
        self.host: dict[int, list[tuple[int, ...]]] = {}
        self.kept: dict[tuple[int, int, int], tuple[int, ...]] = {}
        self.unsound: set[tuple[int, int]] = set()
        self.published_unsound: set[tuple[int, int]] = set()
        self.versions = [0] * fragments
        self.slots: list[dict[int, list[Work]]] = [{0: []} for _ in range(fragments)]

    def _keep(self, payload: Work | Held | tuple[int, int]) -> int:
        self.next_handle += 1
        self.payloads[self.next_handle] = payload
        return self.next_handle

    def adopt(self, learner: int, source: str) -> int:
        """See `Arithmetic.adopt`."""
        self.work[learner] = [[] for _ in range(self.fragments)]
        self.base[learner] = [-1] * self.fragments
        self.host[learner] = [()] * self.fragments
        for p in range(self.fragments):
            self.unsound.discard((learner, p))
            self.foreign.discard((learner, p))
        return 1

    def drop(self, learner: int) -> None:
        """See `Arithmetic.drop`."""
        self.work.pop(learner, None)
        self.kept = {key: value for key, value in self.kept.items() if key[0] != learner}

    def step(self, learner: int, order: StartStep) -> StepNumbers:
        """See `Arithmetic.step`."""
        for steps in self.work[learner]:
            steps.append(order.step)
        return StepNumbers(0.0, self.tokens, order.batch, order.accumulation)

    def publish(self, learner: int, fragment: int) -> None:
        """See `Arithmetic.publish`."""
        work, host = self.work[learner], self.host[learner]
        for p in range(self.fragments) if fragment < 0 else (fragment,):
            host[p] = tuple(work[p])
            move = self.published_unsound.add if (learner, p) in self.unsound else self.published_unsound.discard
            move((learner, p))

    def capture(self, learner: int, fragment: int, step: int, codec: str, poison: Poison | None) -> CaptureNumbers:
        """See `Arithmetic.capture`."""
        steps = self.host[learner][fragment]
        self.kept[learner, fragment, step] = steps
        kind = poison.kind if poison is not None else ""
        finite = kind not in NOT_FINITE and (learner, fragment) not in self.published_unsound
        foreign = (learner, fragment) in self.foreign
        looks = abs(poison.factor) if poison is not None and kind == "scale" else 1.0
        points = _POINTS.get(kind, 1.0) if poison is None or poison.factor >= 0 else -1.0
        work = Work(
            learner,
            fragment,
            self.base[learner][fragment],
            steps,
            finite,
            kind not in AFTER_CODEC,
            foreign,
            looks,
            points,
        )
        handle = self._keep(work)
        return CaptureNumbers(hash((learner, fragment, *steps)) & 0xFFFFFFFF, self.fragment_bytes, handle)

    def poison(self, learner: int, fragment: int, poison: Poison) -> None:
        """See `Arithmetic.poison`."""
        if poison.kind in NOT_FINITE:
            self.unsound.add((learner, fragment))

    def fold(self, learner: int, order: Fold) -> None:
        """See `Arithmetic.fold`."""
        p = order.fragment
        if order.rule == "overwrite":  # of others something that is not finite stays
            self.unsound.discard((learner, p))
            self.foreign.discard((learner, p))
        if order.rule == "delay_corrected":
            gone = set(self.kept.get((learner, p, order.reference), ())) if order.reference >= 0 else set()
            self.work[learner][p] = [n for n in self.work[learner][p] if n not in gone]
        else:
            self.work[learner][p] = []
        self.base[learner][p] = order.version

    def forget(self, learner: int, fragment: int, step: int) -> None:
        """See `Arithmetic.forget`."""
        self.kept.pop((learner, fragment, step), None)

    def update(self, fragment: int, version: int) -> tuple[int, int]:
        """See `Arithmetic.update`."""
        return self._keep((fragment, version)), self.fragment_bytes

    def looks(self, handle: int) -> tuple[bool, bool, float]:
        """See `Arithmetic.looks`."""
        payload = self.payloads[handle]
        return (payload.finite, payload.fits, payload.norm) if isinstance(payload, Work) else (True, True, 1.0)

    def release(self, handle: int) -> None:
        """See `Arithmetic.release`."""
        self.payloads.pop(handle, None)

    def merge(self, order: Merge) -> MergeNumbers:
        """See `Arithmetic.merge`."""
        used = [w for handle in order.handles if isinstance(w := self.payloads[handle], Work)]
        self.slots[order.fragment][order.version] = used
        digest = merged_digest(order.fragment, order.version, order.learners)
        cosines = [w.cosine if len(used) > 1 else 0.0 for w in used]
        return MergeNumbers(True, digest, 1, 1.0, [w.norm for w in used], cosines, [1] * len(used))

    def commit(self, fragment: int, version: int) -> None:
        """See `Arithmetic.commit`."""
        self.versions[fragment] = version
        self.slots[fragment].pop(version - 2, None)

    def recover(self, versions: list[int]) -> None:
        """See `Arithmetic.recover`."""
        self.versions = list(versions)

    def copy_state(self, learner: int, order: CopyState) -> CaptureNumbers:
        """See `Arithmetic.copy_state`."""
        work = tuple(tuple(steps) for steps in self.work[learner])
        kept = {(p, step): steps for (m, p, step), steps in self.kept.items() if m == learner}
        foreign = frozenset(p for m, p in self.foreign if m == learner)
        held = Held(learner, work, tuple(self.base[learner]), kept if order.snapshot else {}, foreign)
        return CaptureNumbers(_digest_of(held), self.fragment_bytes * self.fragments, self._keep(held))

    def adopt_state(self, learner: int, order: Adopt) -> tuple[int, bool]:
        """See `Arithmetic.adopt_state`; a peer's fragments hold its work and nothing of the learner's own."""
        if order.source == "snapshot":
            return 1, (order.snapshot, learner) in self.parts
        own = order.source == "own"
        held = self.parts.get((order.snapshot, learner)) if own else self.payloads.get(order.handle)
        if not isinstance(held, Held):
            return 0, False
        if not own:
            self.foreign.update((learner, p) for p in order.fragments)
            for p in order.fragments:
                self.work[learner][p] = []
            return _digest_of(held), _digest_of(held) == order.digest
        self.adopt(learner, "initial")
        self.work[learner] = [list(steps) for steps in held.work]
        self.base[learner] = list(held.base)
        self.kept |= {(learner, *key): steps for key, steps in held.kept.items()}
        self.foreign.update((learner, p) for p in held.foreign)
        return _digest_of(held), True

    def share(self, handle: int) -> int:
        """See `Arithmetic.share`."""
        return self._keep(self.payloads[handle]) if handle in self.payloads else handle

    def take_snapshot(self, snapshot: int, versions: list[int]) -> None:
        """See `Arithmetic.take_snapshot`."""
        self.taken[snapshot] = list(self.versions)

    def keep_part(self, snapshot: int, learner: int, handle: int) -> None:
        """See `Arithmetic.keep_part`."""
        held = self.payloads[handle]
        assert isinstance(held, Held)
        self.parts[snapshot, learner] = held

    def write_snapshot(self, order: WriteSnapshot) -> tuple[int, str]:
        """See `Arithmetic.write_snapshot`."""
        self.written[order.snapshot] = order
        return order.snapshot, ""

    def drop_snapshot(self, snapshot: int) -> None:
        """See `Arithmetic.drop_snapshot`."""
        self.taken.pop(snapshot, None)
        self.parts = {key: held for key, held in self.parts.items() if key[0] != snapshot}

    def go_back(self, snapshot: int) -> None:
        """See `Arithmetic.go_back`."""
        self.versions = list(self.taken[snapshot])

    def facts(self, snapshot: int, learner: int) -> dict[str, Any]:
        """See `Arithmetic.facts`."""
        facts: dict[str, Any] = self.written[snapshot].manifest["learners"][str(learner)]["facts"]
        return facts

    def evaluate(self) -> float | None:
        """See `Arithmetic.evaluate`."""
        return None


def merged_digest(fragment: int, version: int, learners: Sequence[int]) -> int:
    """What stands for the digest of a version that is merged of the work of these learners."""
    return hash((fragment, version, *learners)) & 0xFFFFFFFF


def _digest_of(held: Held) -> int:
    return hash((held.learner, held.work, held.base)) & 0xFFFFFFFF
