"""`matmul`: products of matrices that are both computed, or of a batch of constant ones.

Operands are [..., M, K], [..., K, N] of the same leading dimensions, and a bias [N]. Of the last two dimensions of the
second operand, one has neighbouring elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from math import prod

from gossamer.codegen.commands import Build
from gossamer.codegen.commands.contract import Contraction, contraction
from gossamer.codegen.commands.tiled import Matrix, Pixels, T, moved, multiply
from gossamer.codegen.expression import operand_count
from gossamer.codegen.graph import Kernel
from gossamer.codegen.layout import merged
from gossamer.errors import CompileError
from gossamer.sizes import settled
from gossamer.views import View

Batch = tuple[tuple[int, ...], Pixels, Pixels, Pixels | None, Matrix]
"""What `batches` says of one."""

MOST = 1024
"""Batches, each of matrices evenly apart, that are commands of their own."""


def commands(node: Kernel, build: Build) -> None:
    """Two commands, one that packs the second matrices and one that multiplies, for a batch evenly apart."""
    bias = node.operands[2]
    residual = node.extras[0] if operand_count(node.epilogue) > 1 else None

    def make(shape: tuple[int, ...], a: Pixels, c: Pixels, r: Pixels | None, weights: Matrix) -> Contraction:
        return contraction(build, node.epilogue, shape, a, c, r, weights, build.address(bias), [0])

    multiply(products(batches(node, build, residual), make), build)


def products(found: Iterable[Batch], make: Callable[..., T]) -> list[T]:
    """A product for each of the batches."""
    made: list[T] = []
    for batch in found:
        made.append(made[0].elsewhere(*batch[1:]) if made else make(*batch))
    return made


def batches(node: Kernel, build: Build, residual: View | None, item: int = 4) -> Iterator[Batch]:
    """Batches evenly apart: images, rows and columns of pixels, the first operand, the result, the residual, and the
    second operand, of elements of ``item`` bytes. Dimensions in which that is broadcast are rows of the first.
    """
    x, y = node.operands[:2]
    rows, depth = x.shape[-2:]
    columns = y.shape[-1]
    views = [x, y, node.y] + ([residual] if residual is not None else [])
    strides = [build.strides(view) for view in views]
    dimensions = merged(node.y.shape[:-2], *(s[:-2] for s in strides))
    shared = [d for d in dimensions if d[2] == 0]
    several = [d for d in dimensions if d[2] != 0]
    single = (1, *[0] * len(views))
    row = shared.pop() if shared else single
    image = several.pop() if several else shared.pop() if shared else single
    outer = shared + several
    if prod(d[0] for d in outer) > MOST:
        raise CompileError(f"a product {list(node.y.shape)} of more than {MOST} batches that are not evenly apart")
    for place in product(*(range(settled(d[0])) for d in outer)):
        starts = [
            moved(build.address(view), sum(i * d[at] for i, d in zip(place, outer, strict=True)))
            for at, view in enumerate(views, 1)
        ]
        ways = [(image[at], row[at], s[-2]) for at, s in enumerate(strides, 1)]
        yield (
            (image[0], row[0], rows),
            Pixels(starts[0], ways[0]),
            Pixels(starts[2], ways[2]),
            Pixels(starts[3], ways[3]) if residual is not None else None,
            Matrix(starts[1], columns, depth, (strides[1][-1], strides[1][-2]), y.is_constant, image[2], item),
        )
