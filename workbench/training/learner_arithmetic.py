"""Arithmetic of one learner: what its state machine asks for, in arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from workbench.algorithms.codecs import CODECS
from workbench.algorithms.digest import digest
from workbench.algorithms.folds import FOLDS
from workbench.algorithms.fragments import Fragmentation
from workbench.algorithms.poisons import Poison, poisoned, spoiled
from workbench.config import RunConfig
from workbench.models.functional import Parameters
from workbench.training.flat import flatten, tensors_of
from workbench.training.held_state import Held, StateArrays
from workbench.training.host_copy import HostCopy, HostViews
from workbench.training.learner_values import Captured, Incoming, StepResult
from workbench.training.program import TrainingProgram


class LearnerArithmetic:
    """Parameters, moments, host copy and captured copies of one learner.

    The training thread calls everything but `capture`, `release` and `incoming`, which the network thread may call at
    any moment, in the middle of a step too.  Moments are kept across folds.

    Parameters
    ----------
    config : RunConfig
    learner : int
        Id, 0-based: it decides the batches.
    program : TrainingProgram
        Shared by all learners of a process.
    fragmentation : Fragmentation

    Attributes
    ----------
    fragmentation : Fragmentation
    base_versions : list of int
        Version of each fragment last folded from the syncer, -1 for none.
    """

    def __init__(self, config: RunConfig, learner: int, program: TrainingProgram, fragmentation: Fragmentation) -> None:
        self.config = config
        self.learner = learner
        self.fragmentation = fragmentation
        self._program = program
        self._layouts = [fragmentation.layout(p) for p in range(config.fragments)]
        self._copies = HostCopy([layout.size for layout in self._layouts]) if jax.default_backend() != "cpu" else None
        self._views = HostViews(config.fragments)
        self._parameters: Parameters = {}
        self._state: Any = None
        self._rate = config.inner.rate
        self._n = 0
        self._bases: list[np.ndarray | None] = [None] * config.fragments
        self.base_versions = [-1] * config.fragments
        self._captured: list[dict[int, np.ndarray]] = [{} for _ in self._layouts]

    def load(self, flat_fragments: list[np.ndarray]) -> None:
        """Set all parameters, with fresh moments; no fragment has a base after this.

        Parameters
        ----------
        flat_fragments : list of arrays (size,), float32
            One per fragment; copied.
        """
        for p, flat in enumerate(flat_fragments):
            self.adopt(p, flat)
        self._parameters = dict(sorted(self._parameters.items()))
        self.reset_moments()

    def adopt(self, p: int, flat: np.ndarray) -> None:
        """Take fragment p (size,) from a peer or a snapshot: it has no base until the syncer's own is folded."""
        self._parameters |= tensors_of(flat, self._layouts[p])
        self._bases[p] = None
        self.base_versions[p] = -1
        self._captured[p].clear()

    def reset_moments(self) -> None:
        """Forget the inner optimiser's moments."""
        self._state = self._program.fresh_state(self._parameters)

    def moments(self) -> list[np.ndarray]:
        """Inner optimiser's state: its leaves, in an order that depends on model and optimiser alone; read-only."""
        return [np.asarray(leaf) for leaf in jax.tree.leaves(self._state)]

    def load_moments(self, leaves: list[np.ndarray]) -> None:
        """Set the inner optimiser's state to what `moments` gave, here or at a peer; copied.

        Raises
        ------
        ValueError
            The leaves are those of another model or optimiser.
        """
        expected, structure = jax.tree.flatten(self._program.fresh_state(self._parameters))
        have, want = [(leaf.shape, leaf.dtype) for leaf in leaves], [(leaf.shape, leaf.dtype) for leaf in expected]
        if have != want:
            raise ValueError(
                f"moments with {len(have)} arrays came; expected {len(want)} with the shapes of "
                f"inner.optimizer = {self.config.inner.optimizer!r} and this model"
            )
        self._state = jax.tree.unflatten(structure, [jnp.array(leaf, copy=True) for leaf in leaves])

    def hold(self, captured: Iterable[tuple[int, int]] | None = None) -> Held:
        """Keep what the learner is now: references, no copy.

        Parameters
        ----------
        captured : iterable of (fragment, own step), optional
            For a snapshot, the captured copies that belong to it; the bases are kept too then.

        Raises
        ------
        LookupError
            One of these copies is not kept.
        """
        moments = jax.tree.leaves(self._state)
        if captured is None:
            return Held(dict(self._parameters), moments, {}, {})
        bases = {p: base for p, base in enumerate(self._bases) if base is not None}
        return Held(dict(self._parameters), moments, bases, {(p, n): self._captured[p][n] for p, n in captured})

    def adopt_peer(self, state: StateArrays, fragments: list[int]) -> None:
        """Take a peer's moments, and its parameters of these fragments, which rest on no base then.

        Raises
        ------
        ValueError
            The state is that of another model or optimiser.
        """
        self.load_moments(state.moments)
        for p in fragments:
            self.adopt(p, state.parameters[p])

    def restore(self, state: StateArrays, n: int, base_versions: list[int]) -> None:
        """Be again what `hold` kept after own step ``n``; ``base_versions`` as they were.

        Raises
        ------
        ValueError
            The state is that of another model or optimiser.
        """
        self.load(state.parameters)
        self.load_moments(state.moments)
        self._n = n
        self._bases = [state.bases.get(p) for p in range(len(self._layouts))]
        self.base_versions = list(base_versions)
        for (p, step), values in state.captured.items():
            self._captured[p][step] = values
        self.publish()

    def set_inner(self, rate: float) -> None:
        """Set the peak learning rate; the schedule's share of it stays."""
        self._rate = rate

    def step(
        self,
        n: int,
        g: int,
        rate_scale: float = 1.0,
        batch: int | None = None,
        accumulation: int | None = None,
        meanwhile: Callable[[], object] | None = None,
    ) -> StepResult:
        """Make one inner step.

        Parameters
        ----------
        n : int
            Own step that is being made (1 for the first): which batch.
        g : int
            Global step: where on the schedule.
        rate_scale : float
            Factor on the learning rate.
        batch, accumulation : int, optional
            Sequences in a micro-batch and micro-batches, if not those of the configuration; another shape is
            compiled when it first comes.
        meanwhile : function, optional
            Called when the device has begun and Python has nothing to do but to wait for it.
        """
        inner = self.config.inner
        sequences, micro = batch or inner.batch, accumulation or inner.accumulation
        drawn = self._program.batch(self.learner, n, sequences, micro)
        rate = np.float32(self._rate * self._program.rate_factor(g) * rate_scale)
        self._parameters, self._state, loss = self._program.step(self._parameters, self._state, drawn, rate)
        self._n = n
        if meanwhile is not None:
            meanwhile()
        return StepResult(float(loss), micro * sequences * self.config.model.context, sequences, micro)

    def publish(self) -> None:
        """Copy all fragments, as they are after the last step, to the host copy."""
        for p in range(len(self._layouts)):
            self._publish(p, supersede=False)

    def publish_fragment(self, p: int) -> None:
        """Copy fragment p to the host copy; copies of it that are older can no longer be captured."""
        self._publish(p, supersede=True)

    def capture(self, p: int, n: int, codec: str, poison: Poison | None = None) -> Captured:
        """Code the published copy of a fragment and keep it for a delay-corrected fold.

        Parameters
        ----------
        p : int
        n : int
            Own step after which the copy was published.
        codec : str
            Member of `workbench.algorithms.codecs.CODECS`.
        poison : Poison, optional
            Numeric fault on what goes out, after the copy is kept; one that acts after the codec is not in the digest.

        Raises
        ------
        LookupError
            Nothing published as of that step, or no base to take the difference to.
        """
        values = (self._copies or self._views).read(p, n)
        self._captured[p][n] = values
        if poison is None:
            return self._coded(p, values, codec)
        made = self._coded(p, poisoned(values, self._bases[p], poison), codec)
        payload = spoiled(made.payload, poison)
        return made._replace(payload=payload, nbytes=payload.nbytes)

    def poison(self, p: int, poison: Poison) -> None:
        """Let a numeric fault act on the learner's own fragment p; its host copy stays as it was published."""
        layout = self._layouts[p]
        self._parameters |= tensors_of(poisoned(flatten(self._parameters, layout), self._bases[p], poison), layout)

    def release(self, p: int, upto_n: int) -> None:
        """Drop the copies of fragment p that were captured after own step ``upto_n`` or an earlier one."""
        for n in list(self._captured[p]):
            if n <= upto_n:
                self.forget(p, n)

    def forget(self, p: int, n: int) -> None:
        """Drop the copy of fragment p that was captured after own step n, if it is kept."""
        self._captured[p].pop(n, None)

    def incoming(self, p: int, theta: np.ndarray) -> Incoming:
        """Copy the syncer's fragment p, flat float32 (size,), to where a fold needs it: while the device steps."""
        own = np.array(theta, dtype=np.float32)
        return Incoming(own, tensors_of(own, self._layouts[p]))

    def fold(
        self, p: int, theta: np.ndarray | Incoming, version: int, rule: str, alpha: float, reference_step: int | None
    ) -> None:
        """Absorb the syncer's fragment, remember it as the base of p, and renew the host copy of p.

        Parameters
        ----------
        p : int
        theta : array (size,), float32, or Incoming
            Copied, unless that is done.
        version : int
            Version of p that ``theta`` is.
        rule : str
            Member of `workbench.algorithms.folds.FOLDS`.
        alpha : float
            Share of the learner's own parameters that a blend keeps.
        reference_step : int or None
            Own step n of the captured copy that a delay-corrected fold counts from; None: the base, or, if
            the syncer's fragment was never folded before, the parameters as they are.

        Raises
        ------
        LookupError
            No copy was captured after that step, or it has been released.
        """
        came = theta if isinstance(theta, Incoming) else self.incoming(p, theta)
        if rule == "overwrite":  # nothing of the learner's own is left in it
            self._parameters |= came.tensors
        else:
            now = flatten(self._parameters, self._layouts[p])
            folded = FOLDS[rule](now, came.theta, self._reference(p, now, reference_step), alpha)
            self._parameters |= tensors_of(folded, self._layouts[p])
        self._bases[p] = came.theta
        self.base_versions[p] = version
        self.publish_fragment(p)

    def weights(self) -> list[np.ndarray]:
        """Parameters as flat float32 (size,) per fragment, copied."""
        return [flatten(self._parameters, layout) for layout in self._layouts]

    def digest(self) -> int:
        """xxh3-64 of all parameters in the order of the fragments."""
        return digest(np.concatenate(self.weights()))

    def evaluate(self) -> float:
        """Validation loss of the parameters as they are [nats per byte]."""
        return self._program.evaluate(self.weights())

    def _publish(self, p: int, *, supersede: bool) -> None:
        layout = self._layouts[p]
        if self._copies is None:
            self._views.publish(p, [self._parameters[name] for name in layout.names], self._n, supersede=supersede)
        else:
            flatten(self._parameters, layout, out=self._copies.begin(p))
            self._copies.commit(p, self._n, supersede=supersede)

    def _reference(self, p: int, now: np.ndarray, step: int | None) -> np.ndarray:
        if step is not None:
            captured = self._captured[p].get(step)
            if captured is None:
                raise LookupError(
                    f"no copy of fragment {p} captured after own step {step} is kept; kept are those of steps "
                    f"{sorted(self._captured[p])}; release copies only when their contribution is settled"
                )
            return captured
        base = self._bases[p]
        return now if base is None else base

    def _coded(self, p: int, values: np.ndarray, codec: str) -> Captured:
        payload = CODECS[codec].encode(values, self._bases[p])
        return Captured(payload, digest(payload), payload.nbytes, bool(np.isfinite(values).all()))
