"""Vectors of 16 float32 lanes in LLVM's code, for kernels whose lanes are part of the canonical form."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils

LANES = 16
VECTORS = 4
"""Vectors in a group, which is what a kernel holds in registers at a time."""

FLOAT32 = ir.FloatType()
INT64 = ir.IntType(64)
VECTOR = ir.VectorType(FLOAT32, LANES)


class VectorWriter:
    """Writes instructions on vectors; addresses are 64-bit integers [bytes] and need no alignment."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def load(self, address: Any, kind: Any = VECTOR) -> Any:
        """Value of type ``kind`` at ``address``."""
        return self.builder.load(self.builder.inttoptr(address, kind.as_pointer()), align=4)

    def store(self, value: Any, address: Any) -> None:
        """Put ``value`` at ``address``."""
        self.builder.store(value, self.builder.inttoptr(address, value.type.as_pointer()), align=4)

    def offset(self, address: Any, index: Any, size: int) -> Any:
        """``address`` of element ``index`` of ``size`` bytes."""
        return self.builder.add(address, self.builder.mul(index, INT64(size)))

    def part(self, address: Any, k: int) -> Any:
        """``address`` of vector ``k`` of a group."""
        return self.builder.add(address, INT64(4 * LANES * k))

    def ask_for(self, address: Any) -> None:
        """Bring the group at ``address`` into the second-level cache."""
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word])
        function = cgutils.get_or_insert_function(self.builder.module, kind, "llvm.prefetch.p0")
        for k in range(VECTORS):
            pointer = self.builder.inttoptr(self.part(address, k), cgutils.voidptr_t)
            self.builder.call(function, [pointer, word(0), word(1), word(1)])

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """A b + c, rounded once."""
        name = f"llvm.fma.v{LANES}f32"
        function = cgutils.get_or_insert_function(self.builder.module, ir.FunctionType(VECTOR, [VECTOR] * 3), name)
        return self.builder.call(function, [a, b, c])

    def splat(self, scalar: Any) -> Any:
        """Vector with ``scalar`` in every lane."""
        one = self.builder.insert_element(ir.Constant(VECTOR, ir.Undefined), scalar, ir.IntType(32)(0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return self.builder.shuffle_vector(one, ir.Constant(VECTOR, ir.Undefined), mask)
