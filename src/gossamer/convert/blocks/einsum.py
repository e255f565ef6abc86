"""Sums of products by an equation, as ``numpy.einsum`` has them, as matrix products."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence

from gossamer.convert.blocks.indexing import product
from gossamer.convert.blocks.products import matmul
from gossamer.convert.blocks.reductions import reduce
from gossamer.convert.blocks.shapes import reshape, sizes, transpose
from gossamer.convert.graph import Graph, Value, refuse

MOST_BATCHES = 3
"""Dimensions of a BATCH_MATMUL before the two of the matrices."""


def einsum(graph: Graph, equation: str, *operands: Value) -> Value:
    """``equation`` like ``"abc,cd->abd"``, with "..." for dimensions that broadcast; operands are taken from the left
    in pairs. Raises `Refused` where an operand has a letter twice."""
    terms, result = _terms(equation.replace(" ", ""), [operand.rank for operand in operands])
    left, letters = operands[0], terms[0]
    for number, (right, term) in enumerate(zip(operands[1:], terms[1:], strict=True), 2):
        later = "".join([result, *terms[number:]])
        left, letters = _product(graph, left, letters, right, term, later)
    gone = [axis for axis, letter in enumerate(letters) if letter not in result]
    if gone:
        left = reduce(graph, "SUM", left, gone)
        letters = "".join(letter for letter in letters if letter in result)
    return transpose(graph, left, [letters.index(letter) for letter in result])


def _terms(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The letters of each operand and of the result, the dots spelled out. Raises `Refused`."""
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        refuse(f"the equation {equation!r} has {len(terms)} operands, there are {len(ranks)}")
    spare = [letter for letter in string.ascii_letters if letter not in equation]
    most = 0
    for number, (term, rank) in enumerate(zip(terms, ranks, strict=True)):
        dots = rank - len(term.replace("...", ""))
        if dots < 0 or (dots and "..." not in term):
            refuse(f"the equation {equation!r} does not fit operands of the ranks {list(ranks)}")
        most = max(most, dots)
        terms[number] = term.replace("...", "".join(spare[len(spare) - dots :]) if dots else "")
    every = "".join(spare[len(spare) - most :]) if most else ""
    if not arrow:
        joined = "".join(terms)
        once = sorted({letter for letter in joined if joined.count(letter) == 1 and letter not in every})
        result = every + "".join(once)
    else:
        result = result.replace("...", every)
    if any(len(set(term)) < len(term) for term in [*terms, result]):
        refuse(f"the equation {equation!r} takes a diagonal; only sums of products can be converted")
    return terms, result


def _product(graph: Graph, x: Value, left: str, y: Value, right: str, later: str) -> tuple[Value, str]:
    """The product of two operands, summed over the letters that nobody has later, and its letters."""
    x, left = _summed(graph, x, left, right + later)
    y, right = _summed(graph, y, right, left + later)
    batch = [letter for letter in left if letter in right and letter in later]
    inner = [letter for letter in left if letter in right and letter not in later]
    rows = [letter for letter in left if letter not in right]
    columns = [letter for letter in right if letter not in left]
    if not inner:  # nothing is summed: a product with broadcasting
        order = [*batch, *rows, *columns]
        return graph.add("MUL", _spread(graph, x, left, order), _spread(graph, y, right, order)), "".join(order)
    size = dict(zip(right, sizes(y), strict=True)) | dict(zip(left, sizes(x), strict=True))
    is_known = all(isinstance(size[letter], int) for letter in inner + columns)
    if y.data is not None and not batch and is_known and x.dtype.kind == "f":
        order = [*rows, *inner]
        x = transpose(graph, x, [left.index(letter) for letter in order])
        x = reshape(graph, x, [*[size[letter] for letter in rows], product([size[letter] for letter in inner])])
        weights = y.data.transpose([right.index(letter) for letter in [*columns, *inner]])
        weights = weights.reshape(math.prod(weights.shape[: len(columns)]), -1)
        units = graph.constant(weights, y.type, y.name)
        result = graph.add("FULLY_CONNECTED", x, units, keep_num_dims=x.rank > 2)
        result = reshape(graph, result, [size[letter] for letter in [*rows, *columns]])
        return result, "".join([*rows, *columns])
    x = transpose(graph, x, [left.index(letter) for letter in [*batch, *rows, *inner]])
    y = transpose(graph, y, [right.index(letter) for letter in [*batch, *inner, *columns]])
    stacked = (
        [size[letter] for letter in batch]
        if len(batch) <= MOST_BATCHES
        else [product([size[letter] for letter in batch])]
    )
    x = reshape(
        graph, x, [*stacked, product([size[letter] for letter in rows]), product([size[letter] for letter in inner])]
    )
    y = reshape(
        graph, y, [*stacked, product([size[letter] for letter in inner]), product([size[letter] for letter in columns])]
    )
    order = [*batch, *rows, *columns]
    result = matmul(graph, x, y)
    shape = [size[letter] for letter in order]
    return reshape(graph, result, shape, x, y), "".join(order)


def _summed(graph: Graph, x: Value, letters: str, needed: str) -> tuple[Value, str]:
    gone = [axis for axis, letter in enumerate(letters) if letter not in needed]
    kept = "".join(letter for letter in letters if letter in needed)
    return (reduce(graph, "SUM", x, gone), kept) if gone else (x, letters)


def _spread(graph: Graph, x: Value, letters: str, order: Sequence[str]) -> Value:
    """The axes in this order, with 1 for those that it has not."""
    x = transpose(graph, x, [letters.index(letter) for letter in order if letter in letters])
    has = iter(sizes(x))
    return reshape(graph, x, [next(has) if letter in letters else 1 for letter in order])
