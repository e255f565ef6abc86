"""Products of bfloat16, two at a time, with sums in float32: what reduced precision is computed with.

A pair of neighbours has the size of a float32, and lies in memory as one: the first in the lower half.
"""

from __future__ import annotations

from gossamer.codegen.ir import Function, Value, vector


def rounded(f: Function, low: Value, high: Value) -> Value:
    """The elements of two whole vectors of floats, one after the other, rounded to the nearest bfloat16, ties to even.

    Numbers below 2^-126 become 0.
    """
    type = vector("bfloat", 2 * low.type.lanes)
    name = f"llvm.x86.avx512bf16.cvtne2ps2bf16.{32 * low.type.lanes}"
    f.module.declare(f"declare {type} @{name}({low.type}, {low.type})")
    return f.emit(type, f"call {type} @{name}({high}, {low})")


def add_products(f: Function, x: Value, w: Value, sum: Value) -> Value:
    """The sums plus both products of every lane, rounded after each; pairs lie in floats. The CPU takes numbers below
    2^-126, operands and sums, for 0."""
    pairs = vector("bfloat", 2 * sum.type.lanes)
    name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * sum.type.lanes}"
    f.module.declare(f"declare {sum.type} @{name}({sum.type}, {pairs}, {pairs})")
    x, w = (f.emit(pairs, f"bitcast {value} to {pairs}") for value in (x, w))
    return f.emit(sum.type, f"call {sum.type} @{name}({sum}, {x}, {w})")
