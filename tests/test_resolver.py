"""Resolvers: exact keys, ranges, chains."""

from __future__ import annotations

import pytest

from gossamer.ops import all_ops, find_op
from gossamer.ops.op_def import OpDef, Version
from gossamer.resolver import BuiltinOpResolver, MutableOpResolver, OpResolver
from gossamer.schema import BuiltinOperator


@pytest.fixture
def op() -> OpDef:
    return OpDef("Mine", ("x",), ("y",), (Version(1, ""),), custom=True)


def test_a_range_of_versions_is_one_key_each(op: OpDef) -> None:
    resolver = MutableOpResolver()
    resolver.add_builtin(BuiltinOperator.ADD, op, 2, 4)
    found = [version for version in range(7) if resolver.find_builtin(BuiltinOperator.ADD, version) is op]
    assert found == [2, 3, 4]


def test_the_default_is_version_one(op: OpDef) -> None:
    resolver = MutableOpResolver()
    resolver.add_builtin(BuiltinOperator.ADD, op)
    resolver.add_custom("Mine", op)
    resolver.add_custom("Late", op, 3)
    assert resolver.find_builtin(BuiltinOperator.ADD, 1) is op
    assert resolver.find_builtin(BuiltinOperator.ADD, 2) is None
    assert resolver.find_custom("Mine", 1) is op
    assert resolver.find_custom("Mine", 2) is None
    assert resolver.find_custom("Late", 3) is op


def test_nothing_is_ignored_and_a_second_registration_replaces(op: OpDef) -> None:
    resolver = MutableOpResolver()
    resolver.add_builtin(BuiltinOperator.ADD, op)
    resolver.add_builtin(BuiltinOperator.ADD, None)
    assert resolver.find_builtin(BuiltinOperator.ADD, 1) is op
    other = OpDef("Other", ("x",), ("y",), (Version(1, ""),), custom=True)
    resolver.add_builtin(BuiltinOperator.ADD, other)
    assert resolver.find_builtin(BuiltinOperator.ADD, 1) is other


def test_a_chain_is_asked_last_and_in_order(op: OpDef) -> None:
    first, second = MutableOpResolver(), MutableOpResolver()
    other = OpDef("Other", ("x",), ("y",), (Version(1, ""),), custom=True)
    first.add_custom("A", op)
    second.add_custom("A", other)
    second.add_custom("B", other)
    resolver = MutableOpResolver(first)
    resolver.chain(second)
    assert resolver.find_custom("A", 1) is op
    assert resolver.find_custom("B", 1) is other
    resolver.add_custom("A", other)
    assert resolver.find_custom("A", 1) is other


def test_add_all_copies(op: OpDef) -> None:
    source, resolver = MutableOpResolver(), MutableOpResolver()
    source.add_custom("A", op)
    resolver.add_all(source)
    source.add_custom("B", op)
    assert resolver.find_custom("A", 1) is op
    assert resolver.find_custom("B", 1) is None
    resolver.add_all(BuiltinOpResolver())
    assert resolver.find_builtin(BuiltinOperator.ADD, 1) is find_op("ADD")
    with pytest.raises(TypeError, match="add_all takes"):
        resolver.add_all(OpResolver())


def test_the_builtin_resolver_has_every_operator_in_its_versions_and_no_others() -> None:
    resolver = BuiltinOpResolver()
    for op in all_ops():
        find = resolver.find_custom if op.custom else resolver.find_builtin
        key = op.name if op.custom else op.code
        assert [v for v in range(40) if find(key, v) is op] == [v.number for v in op.versions]
    assert resolver.find_builtin(BuiltinOperator.CUSTOM, 1) is None
    assert resolver.find_custom("no such op", 1) is None
    assert resolver.find_custom("__init__", 1) is None


def test_the_reference_resolver_stops_earlier() -> None:
    reference, full = BuiltinOpResolver(reference=True), BuiltinOpResolver()
    assert full.find_builtin(BuiltinOperator.ADD, 6) is not None
    assert reference.find_builtin(BuiltinOperator.ADD, 6) is None
    assert reference.find_builtin(BuiltinOperator.ADD, 5) is not None
