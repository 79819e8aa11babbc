"""Plain numpy forms of the rules, written from the formulas, in float64: what the compiled forms are held against."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

EPS32 = float(np.finfo(np.float32).eps)
SMALLEST = float(np.finfo(np.float32).tiny)


def mean(v: ArrayLike, w: ArrayLike) -> np.ndarray:
    """Direct average of (learner, n)."""
    v, w = np.asarray(v, np.float64), np.asarray(w, np.float64)
    return (w[:, None] * v).sum(0) / w.sum()


def rda(v: ArrayLike, w: ArrayLike) -> np.ndarray:
    """Radial-directional average of (learner, n)."""
    v, w = np.asarray(v, np.float64), np.asarray(w, np.float64)
    norms = np.sqrt((v * v).sum(1))
    phi = np.divide(v, norms[:, None], out=np.zeros_like(v), where=norms[:, None] > 0)
    direction = (w[:, None] * phi).sum(0)
    length = np.sqrt((direction * direction).sum())
    if length <= 1e-6 * w.sum():
        return mean(v, w)
    return (w * norms).sum() / w.sum() * direction / length


AGGREGATORS = {"mean": mean, "rda": rda}


def cosine_to_others(v: ArrayLike, w: ArrayLike, m: int) -> float:
    """Cosine of v_m to sum over k != m of w_k v_k."""
    v, w = np.asarray(v, np.float64), np.asarray(w, np.float64)
    others = sum(w[k] * v[k] for k in range(len(w)) if k != m)
    lengths = np.linalg.norm(v[m]) * np.linalg.norm(others)
    return float(v[m] @ others / lengths) if lengths > 0 else 0.0


def nesterov(
    theta: np.ndarray, delta: np.ndarray, b: np.ndarray, eta: float, mu: float
) -> tuple[np.ndarray, np.ndarray]:
    """(Theta, b) after one step."""
    theta, delta, b = (np.asarray(x, np.float64) for x in (theta, delta, b))
    b = mu * b + delta
    return theta - eta * (delta + mu * b), b


def bf16(x: np.ndarray) -> np.ndarray:
    """Nearest multiple of the bfloat16 spacing (8 significant bits), ties to even, for values in its normal range."""
    mantissa, exponent = np.frexp(np.asarray(x, np.float64))
    return np.ldexp(np.round(mantissa * 256) / 256, exponent)


def ulps(actual: np.ndarray, expected: np.ndarray, scale: np.ndarray | float) -> float:
    """Largest difference in float32 ulps of ``scale``, the size of what was added up; denormals count as zero."""
    difference = np.abs(np.asarray(actual, np.float64) - np.asarray(expected, np.float64))
    return float((difference / (np.maximum(np.abs(scale), SMALLEST / EPS32) * EPS32)).max(initial=0.0))
