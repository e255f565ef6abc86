"""Products of matrices and what else is done with the last two axes: diagonals, bands, cross products.

Operators with a lower and an upper diagonal count diagonals from the main one, 0, upwards; several of them lie in the
rows of a matrix, the uppermost first, at the left or the right end as the alignment says.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks import products
from gossamer.convert.blocks.complex_numbers import COMPLEX, conjugate, of_parts, parts
from gossamer.convert.blocks.einsum import einsum
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.elimination import MOST_ROWS, eliminated, part
from gossamer.convert.blocks.moves import moved
from gossamer.convert.blocks.shapes import cast, reshape, sizes, transpose
from gossamer.convert.blocks.vectors import int32, per_world, size_of
from gossamer.convert.graph import Graph, Refused, Size, Value, refuse
from gossamer.convert.lowerings.tensorflow import Call, lowers
from gossamer.schema.enums import TensorType

T = TensorType

MOST_STACKED = 5
"""Dimensions of the operands of BATCH_MATMUL."""


# -- products


@lowers("MatMul", "SparseMatMul")
def mat_mul(call: Call) -> Value:
    x, y = call.values()
    exchanged = [call.attributes.bool(name, False) for name in ("transpose_a", "transpose_b")]
    return product(call.graph, x, y, exchanged[0], exchanged[1])


@lowers("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_mat_mul(call: Call) -> Value:
    x, y = call.values()
    adjoint = [call.attributes.bool(name, False) for name in ("adj_x", "adj_y")]
    if x.type in COMPLEX:
        x, y = (conjugate(call.graph, v) if adj else v for v, adj in zip((x, y), adjoint, strict=True))
    result = product(call.graph, x, y, adjoint[0], adjoint[1])
    return cast(call.graph, result, call.attributes.type("Tout")) if "Tout" in call.attributes else result


def product(graph: Graph, x: Value, y: Value, adj_x: bool = False, adj_y: bool = False) -> Value:
    """The product of matrices of any type. Integers of less than 32 bits are summed as int32, floats as float32."""
    own = x.type
    if own in COMPLEX:
        (a, b), (c, d) = parts(graph, x), parts(graph, y)
        ac, bd, ad, bc = (product(graph, *pair, adj_x, adj_y) for pair in ((a, c), (b, d), (a, d), (b, c)))
        return of_parts(graph, graph.add("SUB", ac, bd), graph.add("ADD", ad, bc))
    wide = own if own in (T.FLOAT32, T.INT32, T.INT64) else T.FLOAT32 if x.dtype.kind in "fV" else T.INT32
    x, y = cast(graph, x, wide), cast(graph, y, wide)
    if x.rank > MOST_STACKED and x.rank == y.rank and sizes(x)[:-2] == sizes(y)[:-2]:
        stacked = _product_of(sizes(x)[:-2])
        flat = [reshape(graph, value, [stacked, *sizes(value)[-2:]]) for value in (x, y)]
        result = products.matmul(graph, flat[0], flat[1], adj_x=adj_x, adj_y=adj_y)
        return cast(graph, reshape(graph, result, [*sizes(x)[:-2], *sizes(result)[-2:]]), own)
    return cast(graph, products.matmul(graph, x, y, adj_x=adj_x, adj_y=adj_y), own)


def _product_of(factors: list[int | Size]) -> int | Size:
    return size_of([math.prod(worlds) for worlds in zip(*map(per_world, factors), strict=True)])


@lowers("Einsum")
def einsum_(call: Call) -> Value:
    graph, own = call.graph, call.value(0).type
    if own in COMPLEX:
        refuse("it takes complex numbers; write it as a product of matrices")
    wide = own if own in (T.FLOAT32, T.INT32) else T.FLOAT32 if call.value(0).dtype.kind in "fV" else T.INT32
    operands = [cast(graph, x, wide) for x in call.values()]
    equation, operands = _without_diagonals(graph, call.attributes.text("equation").replace(" ", ""), operands)
    return cast(graph, einsum(graph, equation, *operands), own)


def _without_diagonals(graph: Graph, equation: str, operands: list[Value]) -> tuple[str, list[Value]]:
    """The equation with each letter once in a term: of an axis that is named twice the diagonal is taken."""
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands) or "..." in left:
        return equation, operands
    for number, term in enumerate(terms):
        for letter in sorted(set(term)):
            while term.count(letter) > 1:
                first, second = term.index(letter), term.rindex(letter)
                operands[number] = _diagonal(graph, operands[number], first, second)
                term = term[:second] + term[second + 1 :]
        terms[number] = term
    return ",".join(terms) + arrow + result, operands


def _diagonal(graph: Graph, x: Value, first: int, second: int) -> Value:
    """Elements that have the same number along two axes, along the first of them."""
    shape, size = sizes(x), x.dims[first]
    if size is None:
        refuse("it takes the diagonal of axes whose size is open; give it with --shape")
    rest = [axis for axis in range(x.rank) if axis not in (first, second)]
    moved_ = transpose(graph, x, [first, second, *rest])
    rows = reshape(graph, moved_, [size * size, *[shape[axis] for axis in rest]])
    found = graph.add("GATHER", rows, np.arange(0, size * size, size + 1, dtype=np.int32), axis=0)
    order = [0, *[n + 1 for n in range(len(rest))]]
    order.insert(first, order.pop(0))
    return transpose(graph, found, order)


@lowers("Cross")
def cross(call: Call) -> Value:
    graph, (x, y) = call.graph, call.values()

    def turned(value: Value, by: int) -> Value:
        places = np.array([(n + by) % 3 for n in range(3)], np.int32)
        return moved(graph, "GATHER", value, places, axis=value.rank - 1)

    ahead = widened(graph, "MUL", turned(x, 1), turned(y, 2))
    return widened(graph, "SUB", ahead, widened(graph, "MUL", turned(x, 2), turned(y, 1)))


# -- diagonals


class Band(NamedTuple):
    """Diagonals ``lower`` to ``upper`` of matrices with so many rows and columns.

    ``place`` is, for each element of a matrix, where it is among those of the diagonals; ``inside`` whether it is on
    one. ``width`` is the length of the longest.
    """

    lower: int
    upper: int
    rows: int
    columns: int
    align: str

    @property
    def width(self) -> int:
        return min(self.rows + min(self.upper, 0), self.columns - max(self.lower, 0))

    @property
    def inside(self) -> NDArray[np.bool_]:
        number = np.arange(self.columns) - np.arange(self.rows)[:, None]
        return (number >= self.lower) & (number <= self.upper)

    @property
    def place(self) -> NDArray[np.int32]:
        row, column = np.indices((self.rows, self.columns))
        number = column - row
        along = np.minimum(row, column) + self._offset(number)
        return np.where(self.inside, (self.upper - number) * self.width + along, 0).astype(np.int32)

    def _offset(self, number: NDArray[np.int_]) -> NDArray[np.int_]:
        """Where a diagonal begins in its row."""
        length = np.minimum(self.rows + np.minimum(number, 0), self.columns - np.maximum(number, 0))
        superior, _, inferior = self.align.partition("_")
        right = np.where(number >= 0, superior == "RIGHT", inferior == "RIGHT")
        return np.where(right, self.width - length, 0)

    @property
    def origin(self) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """For each element of the diagonals, where it is among those of a matrix, and whether it is in it at all."""
        number = np.arange(self.upper, self.lower - 1, -1)[:, None]
        along = np.arange(self.width) - self._offset(number)
        row, column = along - np.minimum(number, 0), along + np.maximum(number, 0)
        inside = (along >= 0) & (row < self.rows) & (column < self.columns)
        return np.where(inside, row * self.columns + column, 0).astype(np.int32), inside


def _band_of(call: Call, position: int) -> tuple[int, int]:
    """The lower and the upper diagonal."""
    if position >= len(call.inputs):
        return 0, 0
    found = call.constant(position, "which diagonals").reshape(-1)
    return int(found[0]), int(found[-1])


def _align(call: Call) -> str:
    return call.attributes.text("align", "RIGHT_LEFT") if call.op.endswith("V3") else "LEFT_LEFT"


def _size(x: Value, axis: int) -> int:
    size = x.dims[axis]
    return size if size is not None else refuse(f"the size of axis {axis} is open; give it with --shape")


_CARRIERS = {1: T.UINT8, 2: T.INT16, 4: T.INT32, 8: T.INT64}


def _diagonal_op(graph: Graph, op: str, *operands: Value) -> Value:
    """MATRIX_DIAG or MATRIX_SET_DIAG. Elements of a size that TFLite takes wrong go as integers with their bits."""
    own = operands[0].type
    if own in (T.FLOAT32, T.INT8, *_CARRIERS.values()):
        return graph.add(op, *operands)
    carrier = _CARRIERS[operands[0].dtype.itemsize]
    return graph.add("BITCAST", graph.add(op, *[graph.add("BITCAST", x, type=carrier) for x in operands]), type=own)


@lowers("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3", "BatchMatrixDiag")
def matrix_diag(call: Call) -> Value:
    """``(diagonal, k, num_rows, num_cols, padding_value)``, the first alone in the first version."""
    graph, x = call.graph, call.value(0)
    lower, upper = _band_of(call, 1)
    given = [int(call.constant(n, what)) if n < len(call.inputs) else -1 for n, what in ((2, "rows"), (3, "columns"))]
    padding = call.value(4) if len(call.inputs) > 4 else None
    plain = padding is None or (padding.data is not None and not padding.data.any())
    if lower == upper == 0 and plain and (given == [-1, -1] or given == [x.dims[-1]] * 2):
        return _diagonal_op(graph, "MATRIX_DIAG", x)
    width = _size(x, -1)
    least_rows, least_columns = width - min(upper, 0), width + max(lower, 0)
    rows, columns = given
    if rows < 0 and columns < 0:
        rows = columns = max(least_rows, least_columns)
    band = Band(
        lower, upper, rows if rows >= 0 else least_rows, columns if columns >= 0 else least_columns, _align(call)
    )
    fill = graph.constant(np.zeros((), x.dtype), x.type) if padding is None else padding
    return _filled(graph, x, band, fill, lower != upper)


def _filled(graph: Graph, diagonals: Value, band: Band, rest: Value, several: bool) -> Value:
    """Matrices with these diagonals, elsewhere ``rest``."""
    before = sizes(diagonals)[: -2 if several else -1]
    rows = reshape(graph, diagonals, [*before, (band.upper - band.lower + 1) * band.width])
    found = moved(graph, "GATHER", rows, band.place.reshape(-1), axis=len(before))
    found = reshape(graph, found, [*before, band.rows, band.columns])
    return moved(graph, "SELECT_V2", band.inside, found, rest, data=(1, 2))


@lowers("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3", "BatchMatrixDiagPart")
def matrix_diagpart(call: Call) -> Value:
    """``(input, k, padding_value)``, the first alone in the first version."""
    graph, x = call.graph, call.value(0)
    lower, upper = _band_of(call, 1)
    band = Band(lower, upper, _size(x, -2), _size(x, -1), _align(call))
    before = sizes(x)[:-2]
    place, inside = band.origin
    flat = reshape(graph, x, [*before, band.rows * band.columns])
    found = moved(graph, "GATHER", flat, place.reshape(-1), axis=len(before))
    found = reshape(graph, found, [*before, *(place.shape if lower != upper else place.shape[1:])])
    if inside.all():
        return found
    padding = call.value(2) if len(call.inputs) > 2 else graph.constant(np.zeros((), x.dtype), x.type)
    return moved(graph, "SELECT_V2", inside if lower != upper else inside[0], found, padding, data=(1, 2))


@lowers("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3", "BatchMatrixSetDiag")
def matrix_set_diag(call: Call) -> Value:
    graph, (x, diagonal) = call.graph, call.values(0, 2)
    lower, upper = _band_of(call, 2)
    if lower == upper == 0:
        return _diagonal_op(graph, "MATRIX_SET_DIAG", x, diagonal)
    return _filled(graph, diagonal, Band(lower, upper, _size(x, -2), _size(x, -1), _align(call)), x, lower != upper)


@lowers("MatrixBandPart", "BatchMatrixBandPart")
def matrix_bandpart(call: Call) -> Value:
    """Elements up to so many diagonals below and above the main one; all of those below or above by -1."""
    graph, x = call.graph, call.value(0)
    low, high = (int32(graph, value) for value in call.values(1, 3))
    rows, columns = (_numbers(graph, x, axis) for axis in (-2, -1))
    number = graph.add("SUB", columns, reshape(graph, rows, [rows.size(0), 1]))
    near = [
        graph.add("LESS_EQUAL", graph.add("NEG", number), _limit(graph, low)),
        graph.add("LESS_EQUAL", number, _limit(graph, high)),
    ]
    inside = graph.add("LOGICAL_AND", near[0], near[1])
    return moved(graph, "SELECT_V2", inside, x, np.zeros((), x.dtype), data=(1, 2))


def _numbers(graph: Graph, x: Value, axis: int) -> Value:
    """The numbers of the elements of an axis."""
    size = x.dims[axis]
    if size is not None:
        return graph.constant(np.arange(size, dtype=np.int32))
    axis %= x.rank
    count = graph.add("STRIDED_SLICE", graph.add("SHAPE", x), [axis], [axis + 1], [1], shrink_axis_mask=1)
    return graph.add("RANGE", 0, count, 1)


def _limit(graph: Graph, count: Value) -> Value:
    least, most = np.array(0, np.int32), np.array(np.iinfo(np.int32).max, np.int32)
    return graph.add("SELECT_V2", graph.add("LESS", count, least), most, count)


@lowers("Diag")
def diag(call: Call) -> Value:
    """[a, b] -> [a, b, a, b]."""
    graph, x = call.graph, call.value(0)
    flat = reshape(graph, x, [_product_of([1, *sizes(x)])])
    return reshape(graph, _diagonal_op(graph, "MATRIX_DIAG", flat), [*sizes(x), *sizes(x)])


@lowers("DiagPart")
def diagpart(call: Call) -> Value:
    """[a, b, a, b] -> [a, b]."""
    graph, x = call.graph, call.value(0)
    shape = x.shape[: x.rank // 2]
    count = math.prod(shape)
    flat = reshape(graph, x, [count * count])
    places = np.arange(0, count * count, count + 1, dtype=np.int32)
    return reshape(graph, moved(graph, "GATHER", flat, places, axis=0), shape)


# -- systems of equations


@lowers("MatrixInverse", "BatchMatrixInverse")
def matrix_inverse(call: Call) -> Value:
    x = call.value(0)
    count = _small(x)
    inverse, _ = eliminated(call.graph, cast(call.graph, x, T.FLOAT32), None, count)
    if call.attributes.bool("adjoint", False):
        inverse = transpose(call.graph, inverse, [*range(x.rank - 2), x.rank - 1, x.rank - 2])
    return cast(call.graph, inverse, x.type)


@lowers("MatrixSolve", "BatchMatrixSolve")
def matrix_solve(call: Call) -> Value:
    graph, (x, right) = call.graph, call.values()
    count = _small(x)
    if call.attributes.bool("adjoint", False):
        x = transpose(graph, x, [*range(x.rank - 2), x.rank - 1, x.rank - 2])
    wide = [cast(graph, value, T.FLOAT32) for value in (x, right)]
    return cast(graph, eliminated(graph, wide[0], wide[1], count)[0], right.type)


@lowers("MatrixDeterminant", "BatchMatrixDeterminant")
def matrix_determinant(call: Call) -> Value:
    x = call.value(0)
    return cast(call.graph, eliminated(call.graph, cast(call.graph, x, T.FLOAT32), None, _small(x))[1], x.type)


@lowers("LogMatrixDeterminant")
def log_matrix_determinant(call: Call) -> list[Value]:
    """The sign, and the logarithm of the size."""
    graph, x = call.graph, call.value(0)
    _, found = eliminated(graph, cast(graph, x, T.FLOAT32), None, _small(x))
    return [cast(graph, part, x.type) for part in (graph.add("SIGN", found), graph.add("LOG", graph.add("ABS", found)))]


@lowers("MatrixTriangularSolve", "BatchMatrixTriangularSolve")
def matrix_triangular_solve(call: Call) -> Value:
    """What is on the other side of the diagonal is not looked at."""
    graph, (x, right) = call.graph, call.values()
    count, lower = _small(x), call.attributes.bool("lower", True)
    keep = np.tri(count, dtype=np.bool_) if lower else np.tri(count, dtype=np.bool_).T
    matrix = graph.add("SELECT_V2", keep, cast(graph, x, T.FLOAT32), 0.0)
    if call.attributes.bool("adjoint", False):
        matrix = transpose(graph, matrix, [*range(x.rank - 2), x.rank - 1, x.rank - 2])
        lower = not lower
    rows: dict[int, Value] = {}
    wide = cast(graph, right, T.FLOAT32)
    for n in range(count) if lower else reversed(range(count)):
        row = part(graph, wide, n, None)
        for m, found in rows.items():
            row = graph.add("SUB", row, graph.add("MUL", part(graph, matrix, n, m), found))
        rows[n] = graph.add("DIV", row, part(graph, matrix, n, n))
    result = graph.add("CONCATENATION", *[rows[n] for n in range(count)], axis=right.rank - 2) if count > 1 else rows[0]
    return cast(graph, result, right.type)


@lowers("Cholesky", "BatchCholesky")
def cholesky(call: Call) -> Value:
    """Column by column: what the columns before have is taken away, and divided by the root of the diagonal."""
    graph, x = call.graph, call.value(0)
    count, left = _small(x), cast(call.graph, x, T.FLOAT32)
    columns = []
    for n in range(count):
        column = part(graph, left, None, n)
        root = graph.add("RSQRT", part(graph, left, n, n))
        column = graph.add("MUL", graph.add("MUL", column, root), (np.arange(count) >= n).astype(np.float32)[:, None])
        columns.append(column)
        if n + 1 < count:
            left = graph.add("SUB", left, graph.add("BATCH_MATMUL", column, column, adj_y=True))
    result = graph.add("CONCATENATION", *columns, axis=x.rank - 1) if count > 1 else columns[0]
    return cast(graph, result, x.type)


def _small(x: Value) -> int:
    """The number of rows of square matrices. Raises `Refused` if they are many."""
    count = _size(x, -1)
    if count > MOST_ROWS or x.type in COMPLEX:
        raise Refused(
            f"matrices of {count} rows ({x!r}); up to {MOST_ROWS} real ones can be taken apart, "
            "allow TensorFlow's operators (SELECT_TF_OPS)"
        )
    return count
