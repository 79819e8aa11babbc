"""Groups of keys that a run's configuration is made of: model, data, inner optimiser, virtual time, machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelConfig:
    """Sizes of the decoder (ALGORITHM section 10 measured the defaults).

    Attributes
    ----------
    layers, width, heads, kv_heads, mlp : int
        Blocks, model dimension, query heads, key/value heads, hidden size of the gated MLP.
    context : int
        Tokens per sequence.
    vocab : int
        256 for bytes.
    """

    layers: int = 2
    width: int = 128
    heads: int = 4
    kv_heads: int = 2
    mlp: int = 352
    context: int = 64
    vocab: int = 256


@dataclass(frozen=True)
class DataConfig:
    """Where the text comes from and how it is dealt out.

    Attributes
    ----------
    source : str
        ``stdlib`` (the Python standard library's text, tests left out) or ``path``.
    path : str
        File or folder of the user's own text, with ``source = "path"``.
    shards : str
        ``iid`` (every learner draws from all training text) or ``file`` (each has files of its own).
    holdout_every : int
        Every n-th file, by hash of its name, is held out for validation.
    """

    source: str = "stdlib"
    path: str = ""
    shards: str = "iid"
    holdout_every: int = 20


@dataclass(frozen=True)
class InnerConfig:
    """Inner optimiser of a learner; the schedule is driven by the global step g.

    Attributes
    ----------
    optimizer : str
        ``adamw`` or ``sgd``.
    rate, final_fraction : float
        Peak learning rate, and the share of it left at the end of the cosine.
    schedule : str
        ``cosine`` (with warm-up) or ``constant``.
    warmup, horizon : int
        Global steps; horizon 0 means the run's own length.
    beta1, beta2, eps, decay, clip : float
        AdamW's numbers; decay acts on matrices; clip is the global norm, 0 for none.
    batch, accumulation : int
        Sequences per micro-batch, micro-batches per step.
    """

    optimizer: str = "adamw"
    rate: float = 3e-3
    final_fraction: float = 0.1
    schedule: str = "cosine"
    warmup: int = 30
    horizon: int = 0
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-8
    decay: float = 0.1
    clip: float = 1.0
    batch: int = 8
    accumulation: int = 1


@dataclass(frozen=True)
class VirtualConfig:
    """What virtual time models (clock = virtual only).  Durations in seconds.

    Attributes
    ----------
    step_s : float
        Mean duration of an inner step.
    step_model : str
        ``fixed``, ``jitter`` (Gaussian, ``jitter`` of the mean), ``heavy`` (log-normal with that
        coefficient of variation) or ``trace`` (a file of durations).
    jitter : float
        Coefficient of variation.
    slow : tuple of float
        Factor per learner (``(1, 1, 1.22)``), the rest 1.
    trace : str
        File with one duration [s] per line, or ``learner,duration`` lines; repeated when it ends.
    delay_s, delay_jitter, loss : float
        One-way delay of a message, its coefficient of variation, share of messages lost.
    bandwidth : float
        Bytes per second of each link and direction; 0 is unlimited.
    start_s, merge_s : float
        From the start of a process to its first message; one merge.
    """

    step_s: float = 0.1
    step_model: str = "jitter"
    jitter: float = 0.1
    slow: tuple[float, ...] = ()
    trace: str = ""
    delay_s: float = 0.001
    delay_jitter: float = 0.0
    loss: float = 0.0
    bandwidth: float = 0.0
    start_s: float = 0.5
    merge_s: float = 0.002


@dataclass(frozen=True)
class MachineConfig:
    """What of the machine a learner may use.

    Attributes
    ----------
    threads : int or None
        Threads of the CPU device in each learner, given to it as ``PJRT_NPROC``, which is part of the fingerprint.
        None, with clock = real: the cores that the run may use over the learners, 1 at least, unless ``PJRT_NPROC``
        is set; with clock = virtual: one for each core, as JAX does.
    cores : str
        With clock = real: ``none`` (nothing is pinned), ``spread`` (the cores are dealt out), ``apart`` (each
        learner steps on cores of its own, one for each thread, and all else keeps to the cores left), or a list for
        each learner, as in ``0,1 2-3``.
    """

    threads: int | None = None
    cores: str = "none"
