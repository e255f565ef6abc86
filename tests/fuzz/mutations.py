"""Seeded damage to a model: to its bytes, and to single fields of what it says. The same seed, the same mutant."""

from __future__ import annotations

import random
import struct
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from gossamer.errors import ModelError
from gossamer.model.model import Model
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.schema import (
    Buffer,
    BuiltinOperator,
    BuiltinOptions,
    BuiltinOptions2,
    Operator,
    OperatorCode,
    SubGraph,
    Table,
    Tensor,
    flexbuffers,
)
from gossamer.schema.fields import Field, Scalar
from tests.fuzz.sources import damaged_message
from tests.model.arbitrary import arbitrary

Path = tuple[tuple[str, int | None], ...]
"""The way from the model to a table: field names, with the position in those that are vectors."""

MEMBERS = (*BuiltinOptions.members, *BuiltinOptions2.members)
SHORT_LIVED = ("name", "description", "metadata", "metadata_buffer")


def mutant(content: bytes, seed: int) -> bytes:
    """The mutant of a model that a seed stands for: one in six by its bytes, the others by what they say."""
    rng = random.Random(seed)
    if rng.random() < 0.17:
        return damaged_bytes(content, rng)
    try:
        return damaged_model(content, rng)
    except ModelError:  # the seed itself is no model
        return damaged_bytes(content, rng)


# By bytes: the kinds of the conformance corpus.


def damaged_bytes(content: bytes, rng: random.Random) -> bytes:
    """Flipped bits, wild words, runs of zeros, copies over other places, a cut."""
    data = bytearray(content)
    size = len(data)
    if size < 16:
        return bytes(data) + rng.randbytes(rng.randrange(64))
    kind = rng.choice(("flip", "flip", "zero", "ones", "offset", "length", "swap", "copy", "word", "cut", "append"))
    if kind == "flip":
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(size)] ^= 1 << rng.randrange(8)
    elif kind in ("zero", "ones"):
        run = min(size, rng.randint(1, 64))
        at = rng.randrange(size - run + 1)
        data[at : at + run] = (b"\0" if kind == "zero" else b"\xff") * run
    elif kind in ("offset", "length"):
        most = size if kind == "offset" else 4097
        words = [at for at in range(8, size - 3, 4) if 1 <= struct.unpack_from("<I", data, at)[0] < most]
        if words:
            struct.pack_into("<I", data, rng.choice(words), _wild(size, rng))
    elif kind == "swap":
        a, b = 4 * rng.randrange(size // 4), 4 * rng.randrange(size // 4)
        data[a : a + 4], data[b : b + 4] = data[b : b + 4], data[a : a + 4]
    elif kind == "copy":
        run = min(size, 4 * rng.randint(1, 16))
        a, b = (4 * rng.randrange((size - run) // 4 + 1) for _ in range(2))
        data[a : a + run] = data[b : b + run]
    elif kind == "word":
        struct.pack_into("<I", data, 4 * rng.randrange(size // 4), _wild(size, rng))
    elif kind == "cut":
        del data[rng.randrange(size) :]
    else:
        data += rng.randbytes(rng.randint(1, 64))
    return bytes(data)


def _wild(size: int, rng: random.Random) -> int:
    extremes = (0, 1, 4, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, size, size - 1, size + 4)
    return rng.choice((*extremes, rng.getrandbits(32), rng.randrange(size))) & 0xFFFFFFFF


# By structure: one to three fields of the tables that the file stores.


def damaged_model(content: bytes, rng: random.Random) -> bytes:
    """One to three fields changed. Raises `ModelError` if the content is no model."""
    model = read_model(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        for _ in range(50):
            changed = _damage(model, rng)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    written = write_model(changed)
            except (ModelError, struct.error, OverflowError, MemoryError):
                continue  # a value that the format cannot even express
            model = read_model(written)
            break
    return bytes(model.source or content)


def _damage(model: Model, rng: random.Random) -> Model:
    if rng.random() < 0.5 and (place := _flex_operator(model, rng)) is not None:
        return _other_node_def(model, *place, rng)
    special = rng.random()
    if special < 0.08:
        return _other_operator(model, rng)
    if special < 0.16:
        return _other_wiring(model, rng)
    if special < 0.24:
        return _other_options(model, rng)
    tables = list(_tables(model))
    # Tensors outnumber the rest; each kind of table gets its share.
    kinds: dict[type[Table], list[tuple[Path, Table]]] = {}
    for path, table in tables:
        kinds.setdefault(type(table), []).append((path, table))
    weighted = [kind for kind in kinds for _ in range(_weight(kind))]
    path, table = rng.choice(kinds[rng.choice(weighted)])
    fields = [field for field in table.FIELDS if table.has(field.name)]
    absent = [field for field in table.FIELDS if not table.has(field.name)]
    if not fields or (absent and rng.random() < 0.15):
        fields = absent or fields
    fields = [field for field in fields if field.name not in SHORT_LIVED] or fields
    if not fields:
        return model
    field = rng.choice(fields)
    changed = table.replace(**{field.name: _other_value(model, table, field, rng)})
    return _replaced(model, path, changed)


def _weight(kind: type[Table]) -> int:
    if kind in (Tensor, Buffer, Operator):
        return 6
    return 5 if kind in MEMBERS else 1 if kind is Model else 2


def _tables(table: Table, path: Path = ()) -> Iterator[tuple[Path, Table]]:
    yield path, table
    for field in table.FIELDS:
        if not table.has(field.name):
            continue
        value = getattr(table, field.name)
        if field.kind in ("table", "union") and value is not None:
            yield from _tables(value, (*path, (field.name, None)))
        elif field.kind == "tables":
            for position, child in enumerate(value):
                yield from _tables(child, (*path, (field.name, position)))


def _replaced(table: Any, path: Path, changed: Table) -> Any:
    if not path:
        return changed
    (name, position), rest = path[0], path[1:]
    value = getattr(table, name)
    if position is None:
        return table.replace(**{name: _replaced(value, rest, changed)})
    children = [*value[:position], _replaced(value[position], rest, changed), *value[position + 1 :]]
    return table.replace(**{name: tuple(children)})


def _some_operator(model: Model, rng: random.Random) -> tuple[Path, Operator] | None:
    places = [
        ((("subgraphs", s), ("operators", o)), operator)
        for s, graph in enumerate(model.subgraphs)
        for o, operator in enumerate(graph.operators)
    ]
    return rng.choice(places) if places else None


def _other_operator(model: Model, rng: random.Random) -> Model:
    """Another operator, or version of it, with the operands and options of the one before."""
    if not model.operator_codes:
        return model
    number = rng.randrange(len(model.operator_codes))
    code = rng.choice([*BuiltinOperator]) if rng.random() < 0.8 else model.operator_codes[number].builtin_code
    changed = OperatorCode(
        builtin_code=code,
        deprecated_builtin_code=min(int(code), 127),
        version=rng.choice((1, 1, 1, 2, 3, 4, 5, 0, -1, 1 << 20)),
        custom_code="Mfcc",
    )
    return _replaced(model, (("operator_codes", number),), changed)


def _other_wiring(model: Model, rng: random.Random) -> Model:
    """Operators that read or write other tensors, themselves, each other; twice, or in another order."""
    place = _some_operator(model, rng)
    if place is None:
        return model
    path, operator = place
    graph: SubGraph = model.subgraphs[path[0][1] or 0]
    kind = rng.choice(("rewire", "rewire", "cycle", "twice", "shuffle", "drop", "same"))
    if kind == "rewire":
        side = rng.choice(("inputs", "outputs"))
        indices = list(getattr(operator, side))
        if indices:
            indices[rng.randrange(len(indices))] = rng.randrange(-1, max(1, len(graph.tensors)))
        return _replaced(model, path, operator.replace(**{side: tuple(indices)}))
    if kind == "cycle":
        return _replaced(model, path, operator.replace(inputs=operator.outputs, outputs=operator.inputs))
    if kind == "same":
        return _replaced(model, path, operator.replace(inputs=operator.inputs[:1] * len(operator.inputs)))
    operators = list(graph.operators)
    if kind == "twice":
        operators += rng.choices(operators, k=rng.choice((1, 1, 3, 100)))
    elif kind == "shuffle":
        rng.shuffle(operators)
    else:
        operators.remove(operator)
    return _replaced(model, path[:1], graph.replace(operators=tuple(operators)))


def _other_options(model: Model, rng: random.Random) -> Model:
    """The options of another operator, none, or wild ones of its own."""
    place = _some_operator(model, rng)
    if place is None:
        return model
    path, operator = place
    own = operator.builtin_options or operator.builtin_options_2
    kind = type(own) if own is not None and rng.random() < 0.6 else rng.choice(MEMBERS)
    options = arbitrary(kind, rng) if rng.random() < 0.9 else None
    name = "builtin_options" if kind in BuiltinOptions.codes else "builtin_options_2"
    return _replaced(
        model, path, operator.replace(builtin_options=None, builtin_options_2=None).replace(**{name: options})
    )


def _flex_operator(model: Model, rng: random.Random) -> tuple[Path, Operator] | None:
    """One of TensorFlow's operators, if the model has any."""
    if not any("Flex" in (code.custom_code or "") for code in model.operator_codes):
        return None
    place = _some_operator(model, rng)
    return place if place is not None and model.operator_name(place[1]).startswith("Flex") else None


def _other_node_def(model: Model, path: Path, operator: Operator, rng: random.Random) -> Model:
    """A Flex operator whose NodeDef says something else."""
    options = model.custom_options(operator).tobytes()
    try:
        name, content = flexbuffers.loads(options)
        raw = content.encode() if isinstance(content, str) else bytes(content)
    except (ValueError, TypeError):
        return _replaced(model, path, operator.replace(custom_options=np.frombuffer(rng.randbytes(40), np.uint8)))
    if rng.random() < 0.15:
        new = flexbuffers.dumps(rng.choice(([name], [name, 1], {"a": 1}, [name * 2, content], [name, content, name])))
    else:
        new = flexbuffers.dumps([name, flexbuffers.String(damaged_message(raw, rng))])
    return _replaced(model, path, operator.replace(custom_options=np.frombuffer(new, np.uint8)))


def _other_value(model: Model, table: Table, field: Field, rng: random.Random) -> Any:
    value = getattr(table, field.name)
    if field.kind == "scalar":
        return _number(field.of, value, rng)
    if field.kind == "enum":
        assert field.enum is not None
        members = [*field.enum]  # type: ignore[attr-defined]
        return rng.choice(members) if rng.random() < 0.85 else _number(field.of, int(value), rng)
    if field.kind == "numbers":
        return tuple(_vector(list(value), field.of, rng, bound=_bound(model, field)))
    if field.kind == "array":
        return np.array(_vector(value.tolist()[:4096], field.of, rng), field.of.dtype)
    if field.kind == "data":
        return _data(value, rng)
    if field.kind == "string":
        return rng.choice(("", value * 2, "Flex" + value, "x" * 300, value[:-1]))
    if field.kind == "strings":
        return rng.choice(((), value * 2))
    if field.kind == "table":
        return None if value is not None and rng.random() < 0.5 else arbitrary(field.of, rng)
    if field.kind == "union":
        return None if value is not None and rng.random() < 0.3 else arbitrary(rng.choice(field.of.members), rng)
    return _children(list(value), field.of, rng)


def _bound(model: Model, field: Field) -> int:
    """About how many things an index in this field may name."""
    if field.name in ("inputs", "outputs", "intermediates"):
        return max((len(graph.tensors) for graph in model.subgraphs), default=1)
    return len(model.subgraphs)


def _children(children: list[Any], cls: type[Table], rng: random.Random) -> tuple[Any, ...]:
    if not children:
        return (arbitrary(cls, rng),)
    kind, at = rng.choice(("drop", "double", "swap", "none", "new", "many")), rng.randrange(len(children))
    if kind == "drop":
        del children[at]
    elif kind == "double":
        children.insert(at, children[at])
    elif kind == "swap":
        other = rng.randrange(len(children))
        children[at], children[other] = children[other], children[at]
    elif kind == "none":
        children = []
    elif kind == "new":
        children[at] = arbitrary(cls, rng)
    else:
        children += [children[at]] * 50
    return tuple(children)


def _vector(values: list[Any], scalar: Scalar, rng: random.Random, bound: int = 4) -> list[Any]:
    kind = rng.choice(("one", "one", "one", "one", "drop", "add", "none", "double", "turn", "long", "all", "index"))
    if not values or kind == "add":
        values.insert(rng.randint(0, len(values)), _number(scalar, values[0] if values else 1, rng))
    elif kind == "one":
        at = rng.randrange(len(values))
        values[at] = _number(scalar, values[at], rng)
    elif kind == "index" and scalar.code not in "fd?":
        values[rng.randrange(len(values))] = _in_range(
            scalar, rng.choice((-1, bound, bound - 1, rng.randrange(bound + 1)))
        )
    elif kind == "drop":
        del values[rng.randrange(len(values))]
    elif kind == "none":
        values = []
    elif kind == "double":
        values = values * 2
    elif kind == "turn":
        rng.shuffle(values)
    elif kind == "long":
        values = (values * 40)[: rng.choice((5, 6, 7, 9, 33, 65))]
    else:
        values = [_number(scalar, values[0], rng)] * len(values)
    return values


def _number(scalar: Scalar, value: Any, rng: random.Random) -> Any:
    if scalar.code == "?":
        return not value
    if scalar.code in "fd":
        value = max(min(value, 1e35), -1e35)  # NaN and infinities become finite
        extremes = (0.0, -0.0, -1.0, 1e-45, 1e-30, 0.5, 2.0, 3.4e38, -3.4e38, float("inf"), float("nan"))
        return rng.choice((*extremes, -value, value * rng.choice((0.5, 2, 1000))))
    value = int(value)
    extremes = (
        0,
        0,
        1,
        -1,
        2,
        3,
        4,
        5,
        7,
        8,
        16,
        127,
        128,
        255,
        1000,
        65536,
        1 << 20,
        1 << 30,
        (1 << 31) - 1,
        -(1 << 31),
    )
    wide = (1 << 32, (1 << 63) - 1, -(1 << 63)) if scalar.size == 8 else ()
    return _in_range(scalar, rng.choice((*extremes, *wide, value + 1, value - 1, -value, value * 2, value // 2)))


def _in_range(scalar: Scalar, value: int) -> int:
    bits = 8 * scalar.size
    low = 0 if scalar.code.isupper() else -(1 << (bits - 1))
    return (value - low) % (1 << bits) + low


def _data(data: Any, rng: random.Random) -> Any:
    """A constant with an extreme number in it (an axis, an index, a size), or of another length."""
    raw = bytearray(data.tobytes())
    kind = rng.choice(("word", "word", "word", "word", "long", "float", "byte", "cut", "more", "zero", "ones", "none"))
    if kind == "none":
        raw = bytearray()
    elif kind == "more" or len(raw) < 8:
        raw += rng.randbytes(rng.choice((1, 4, 8, 16)))
    if kind in ("word", "float", "long") and len(raw) >= 8:
        size = 8 if kind == "long" else 4
        at = size * rng.randrange(len(raw) // size)
        code = {"word": "i", "float": "f", "long": "q"}[kind]
        scalar = _SCALARS[code]
        struct.pack_into(f"<{code}", raw, at, _number(scalar, struct.unpack_from(f"<{code}", raw, at)[0], rng))
    elif kind in ("word", "float") and len(raw) >= 4:
        struct.pack_into("<i", raw, 0, _number(_SCALARS["i"], struct.unpack_from("<i", raw)[0], rng))
    elif kind == "byte" and raw:
        raw[rng.randrange(len(raw))] = rng.choice((0, 1, 127, 128, 255))
    elif kind == "cut":
        del raw[rng.randrange(len(raw) + 1) :]
    elif kind in ("zero", "ones"):
        raw = bytearray((b"\0" if kind == "zero" else b"\xff") * len(raw))
    return np.frombuffer(bytes(raw), np.uint8)


_SCALARS = {"i": Scalar("i", 4), "f": Scalar("f", 4), "q": Scalar("q", 8)}
