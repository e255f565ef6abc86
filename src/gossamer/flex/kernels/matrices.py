"""Products of matrices, and their diagonals and bands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gossamer.flex.kernels import Array, Call, Shape, kernel, like_first
from gossamer.flex.kernels._checks import checked_shape, number, require_least_rank, require_rank, widened
from gossamer.flex.node import FlexNode


def _mat_mul_shape(node: FlexNode, shapes: Sequence[Shape]) -> list[Shape]:
    a, b = shapes
    if len(a) != 2 or len(b) != 2:
        raise ValueError(f"operands must be matrices, got shapes {list(a)} and {list(b)}")
    a = a[::-1] if node.attributes.bool("transpose_a") else a
    b = b[::-1] if node.attributes.bool("transpose_b") else b
    if a[1] != b[0]:
        raise ValueError(f"matrices {list(a)} and {list(b)} do not fit")
    return [(a[0], b[1])]


@kernel("MatMul", shape=_mat_mul_shape)
def mat_mul(call: Call, a: Array, b: Array) -> Array:
    """The product of two matrices, each transposed or not."""
    _mat_mul_shape(call.node, [a.shape, b.shape])
    a = a.T if call.attributes.bool("transpose_a") else a
    b = b.T if call.attributes.bool("transpose_b") else b
    product: Array = np.matmul(widened(a), widened(b))
    return product


def _batch_mat_mul_shape(node: FlexNode, shapes: Sequence[Shape]) -> list[Shape]:
    x, y = shapes
    if len(x) < 2 or len(y) < 2:
        raise ValueError(f"operands must be matrices, got shapes {list(x)} and {list(y)}")
    a = x[-2:][::-1] if node.attributes.bool("adj_x") else x[-2:]
    b = y[-2:][::-1] if node.attributes.bool("adj_y") else y[-2:]
    if a[1] != b[0]:
        raise ValueError(f"matrices {list(a)} and {list(b)} do not fit")
    if node.op == "BatchMatMul" and x[:-2] != y[:-2]:
        raise ValueError(f"batches {list(x[:-2])} and {list(y[:-2])} differ")
    return [(*np.broadcast_shapes(x[:-2], y[:-2]), a[0], b[1])]


@kernel("BatchMatMul", "BatchMatMulV2", shape=_batch_mat_mul_shape)
def batch_mat_mul(call: Call, x: Array, y: Array) -> Array:
    """Products of the matrices in the last two dimensions, each adjoint or not."""
    _batch_mat_mul_shape(call.node, [x.shape, y.shape])
    x = adjoint(x) if call.attributes.bool("adj_x") else x
    y = adjoint(y) if call.attributes.bool("adj_y") else y
    product: Array = np.matmul(widened(x), widened(y))
    return product


def adjoint(x: Array) -> Array:
    """Matrices transposed and conjugated."""
    turned = x.swapaxes(-1, -2)
    return np.conj(turned) if x.dtype.kind == "c" else turned


@kernel("Einsum")
def einsum(call: Call, inputs: list[Array]) -> Array:
    """Einstein's summation; a label may stand twice in an operand (its diagonal) and in the result."""
    equation = call.attributes.text("equation").replace(" ", "")
    call.require(equation.count("->") == 1, f"equation {equation!r} must have one '->'")
    given, result = equation.split("->")
    labels = given.split(",")
    call.require(len(labels) == len(inputs), f"equation {equation!r} is for {len(labels)} operands, got {len(inputs)}")
    sizes = _label_sizes(call, labels, inputs)
    different = "".join(dict.fromkeys(result.replace("...", "")))
    unique = ("..." if "..." in result else "") + different
    checked_shape(call, [sizes.get(label, 1) for label in different])
    wide = [widened(x) for x in inputs]
    if unique == result or sorted(unique) == sorted(result):
        found: Array = np.einsum(equation, *wide, optimize=True)
        return found
    call.require("..." not in result, f"equation {equation!r} has an ellipsis beside a label that stands twice")
    summed = np.einsum(f"{given}->{unique}", *wide, optimize=True)
    whole = np.zeros(checked_shape(call, [sizes[label] for label in result]), summed.dtype)
    indices = dict(zip(unique, np.indices(summed.shape, sparse=True), strict=True))
    whole[tuple([indices[label] for label in result])] = summed
    return whole


def _label_sizes(call: Call, labels: list[str], inputs: list[Array]) -> dict[str, int]:
    """The size of each label; NumPy would repeat an operand of size 1."""
    sizes: dict[str, int] = {}
    for text, x in zip(labels, inputs, strict=True):
        before, _, behind = text.partition("...")
        fits = len(before) + len(behind) <= x.ndim if "..." in text else len(text) == x.ndim
        call.require(fits, f"labels {text!r} do not fit shape {list(x.shape)}")
        last = x.shape[x.ndim - len(behind) :]
        for label, size in [*zip(before, x.shape, strict=False), *zip(behind, last, strict=False)]:
            known = sizes.setdefault(label, size)
            call.require(known == size, f"label {label!r} has the sizes {known} and {size}")
    return sizes


@kernel("MatrixBandPart", "BatchMatrixBandPart", shape=like_first)
def matrix_band_part(call: Call, x: Array, num_lower: Array, num_upper: Array) -> Array:
    """Zeros but for so many diagonals below and above the main one; a negative number: for all."""
    require_least_rank(call, "input", x, 2)
    rows, columns = x.shape[-2:]
    lower, upper = number(call, "num_lower", num_lower), number(call, "num_upper", num_upper)
    call.require(lower <= rows, f"num_lower must be at most {rows}, got {lower}")
    call.require(upper <= columns, f"num_upper must be at most {columns}, got {upper}")
    diagonal = np.arange(columns) - np.arange(rows)[:, None]
    kept = ((lower < 0) | (-diagonal <= lower)) & ((upper < 0) | (diagonal <= upper))
    return np.where(kept, x, np.zeros((), x.dtype))


@kernel("Diag", shape=lambda node, shapes: [(*shapes[0], *shapes[0])])
def diag(call: Call, diagonal: Array) -> Array:
    """A tensor of twice the rank with these elements where both halves of the indices are the same."""
    shape = checked_shape(call, (*diagonal.shape, *diagonal.shape))
    return np.diag(diagonal.reshape(-1)).reshape(shape)


@kernel("DiagPart", shape=lambda node, shapes: [tuple(shapes[0][: len(shapes[0]) // 2])])
def diag_part(call: Call, x: Array) -> Array:
    """The inverse."""
    half = x.ndim // 2
    call.require(
        half and x.ndim == 2 * half and x.shape[:half] == x.shape[half:],
        f"both halves of the shape must be the same, got {list(x.shape)}",
    )
    size = int(np.prod(x.shape[:half]))
    return x.reshape(size, size).diagonal().reshape(x.shape[:half])


class _Diagonals:
    """Which diagonals of matrices of these sizes: ``low`` to ``high``, and how each lies in its packed row."""

    def __init__(self, call: Call, k: Array, rows: int, columns: int) -> None:
        require_rank(call, "k", k, 0, 1)
        call.require(k.size in (1, 2), f"k must have one or two elements, got {k.size}")
        self.low, self.high = int(k.reshape(-1)[0]), int(k.reshape(-1)[-1])
        call.require(self.low <= self.high, f"k must be increasing, got {k.tolist()}")
        self.rows, self.columns = rows, columns
        for one in (self.low, self.high):
            inside = -rows < one < columns or (one == 0 and 0 in (rows, columns))
            call.require(inside, f"diagonal {one} must be in ({-rows}, {columns})")
        self.longest = min(rows + min(self.high, 0), columns - max(self.low, 0))
        self._align = call.attributes.text("align") if "align" in call.attributes else "LEFT_LEFT"

    @property
    def packed(self) -> Shape:
        """The shape of the packed diagonals of one matrix."""
        count = self.high - self.low + 1
        return (count, self.longest) if count > 1 else (self.longest,)

    def places(self) -> Iterator[tuple[int, Array, Array, slice]]:
        """Of each diagonal, from the highest: its packed row, its indices in the matrix, its part of the row."""
        upper, lower = self._align.split("_")
        for row, diagonal in enumerate(range(self.high, self.low - 1, -1)):
            length = min(self.rows + min(diagonal, 0), self.columns - max(diagonal, 0))
            right = (upper == "RIGHT" and diagonal >= 0) or (lower == "RIGHT" and diagonal <= 0)
            start = self.longest - length if right else 0
            steps = np.arange(length)
            yield row, steps + max(-diagonal, 0), steps + max(diagonal, 0), slice(start, start + length)


@kernel("MatrixDiagPart", "BatchMatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")
def matrix_diag_part(call: Call, x: Array, *settings: Array) -> Array:
    """Diagonals of matrices in packed rows, the highest first, filled up with ``padding_value``."""
    require_least_rank(call, "input", x, 2)
    k, padding = settings or (np.zeros(1, np.int32), np.zeros((), x.dtype))
    diagonals = _Diagonals(call, k, *x.shape[-2:])
    count = diagonals.high - diagonals.low + 1
    packed = np.full(checked_shape(call, (*x.shape[:-2], count, diagonals.longest)), padding.reshape(-1)[0], x.dtype)
    for row, down, across, part in diagonals.places():
        packed[..., row, part] = x[..., down, across]
    return packed.reshape(*x.shape[:-2], *diagonals.packed)


@kernel("MatrixSetDiag", "BatchMatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3", shape=like_first)
def matrix_set_diag(call: Call, x: Array, diagonal: Array, *k: Array) -> Array:
    """Matrices with other diagonals."""
    require_least_rank(call, "input", x, 2)
    diagonals = _Diagonals(call, k[0] if k else np.zeros(1, np.int32), *x.shape[-2:])
    return _with_diagonals(call, x.copy(), diagonal, diagonals)


@kernel("MatrixDiag", "BatchMatrixDiag", shape=lambda node, shapes: [(*shapes[0], shapes[0][-1])])
def matrix_diag(call: Call, diagonal: Array) -> Array:
    """Square matrices of zeros but for the main diagonal."""
    require_least_rank(call, "diagonal", diagonal, 1)
    size = diagonal.shape[-1]
    zeros = np.zeros(checked_shape(call, (*diagonal.shape, size)), diagonal.dtype)
    return _with_diagonals(call, zeros, diagonal, _Diagonals(call, np.zeros(1, np.int32), size, size))


@kernel("MatrixDiagV2", "MatrixDiagV3")
def matrix_diag_v2(
    call: Call, diagonal: Array, k: Array, num_rows: Array, num_cols: Array, padding_value: Array
) -> Array:
    """Matrices of ``padding_value`` but for the diagonals k, of the least size that holds them where that is -1."""
    require_least_rank(call, "diagonal", diagonal, 1)
    low, high = int(k.reshape(-1)[0]), int(k.reshape(-1)[-1])
    longest = diagonal.shape[-1]
    least = longest - min(high, 0), longest + max(low, 0)
    given = number(call, "num_rows", num_rows), number(call, "num_cols", num_cols)
    if given == (-1, -1):
        rows = columns = max(least)
    else:
        rows, columns = [minimum if size == -1 else size for size, minimum in zip(given, least, strict=True)]
    call.require(
        rows >= least[0] and columns >= least[1] and (rows == least[0] or columns == least[1]),
        f"{rows} rows and {columns} columns do not fit diagonals {low} to {high} of {longest} elements",
    )
    batch = diagonal.shape[:-1] if low == high else diagonal.shape[:-2]
    whole = np.full(checked_shape(call, (*batch, rows, columns)), padding_value.reshape(-1)[0], diagonal.dtype)
    return _with_diagonals(call, whole, diagonal, _Diagonals(call, k, rows, columns))


def _with_diagonals(call: Call, x: Array, diagonal: Array, diagonals: _Diagonals) -> Array:
    """Write packed diagonals into x."""
    wanted = (*x.shape[:-2], *diagonals.packed)
    call.require(diagonal.shape == wanted, f"diagonal must have shape {list(wanted)}, got {list(diagonal.shape)}")
    packed = diagonal.reshape(*x.shape[:-2], diagonals.high - diagonals.low + 1, diagonals.longest)
    for row, down, across, part in diagonals.places():
        x[..., down, across] = packed[..., row, part]
    return x
