"""Resolvers: exact keys, ranges, chains."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from gossamer import Interpreter, OpResolverType, PrepareError, UnsupportedOpError, custom_op
from gossamer.micro.adders import CUSTOM_ADDERS
from gossamer.ops import all_ops, find_op
from gossamer.ops.op_def import OpDef, Version
from gossamer.resolver import BuiltinOpResolver, InstalledOpResolver, MutableOpResolver, OpResolver
from gossamer.schema import BuiltinOperator
from tests.ops.cases import Case, model_of, tensor

OFFERED = custom_op("Offered", versions=(1, 2), shape="x")(lambda x: x)

# The custom operators of LiteRT's resolvers (register.cc and register_ref.cc), each in version 1.
CUSTOM = {"NumericVerify", "Mfcc", "AudioSpectrogram", "TFLite_Detection_PostProcess", "aeq.hadamard_rotation"}
CUSTOM_REFERENCE = CUSTOM - {"aeq.hadamard_rotation"}
MICRO = {name for name in CUSTOM_ADDERS if name.startswith("Signal")} | {"TFLM_DECODE"}
"""Custom operators of TFLite Micro that models for the full runtime may have too."""


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
        released = [version.number for version in op.versions if version.since is not None]
        assert [v for v in range(40) if find(key, v) is op] == released
    assert resolver.find_builtin(BuiltinOperator.CUSTOM, 1) is None
    assert resolver.find_custom("no such op", 1) is None
    assert resolver.find_custom("__init__", 1) is None


def test_the_reference_resolver_stops_earlier() -> None:
    reference, full = BuiltinOpResolver(reference=True), BuiltinOpResolver()
    assert full.find_builtin(BuiltinOperator.ADD, 6) is not None
    assert reference.find_builtin(BuiltinOperator.ADD, 6) is None
    assert reference.find_builtin(BuiltinOperator.ADD, 5) is not None


def test_add_registers_an_operator_in_its_own_versions() -> None:
    resolver = MutableOpResolver()
    custom = OpDef("Mine", ("x",), ("y",), (Version(2, ""), Version(3, "")), custom=True)
    resolver.add(custom)
    assert [version for version in range(6) if resolver.find_custom("Mine", version) is custom] == [2, 3]
    add = find_op("ADD")
    assert add is not None
    resolver.add(add)
    assert resolver.find_builtin(BuiltinOperator.ADD, add.max_version) is add
    assert resolver.find_builtin(BuiltinOperator.ADD, add.max_version + 1) is None


def install(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    entry = EntryPoint(name, value, InstalledOpResolver.GROUP)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda *, group: [entry] if group == entry.group else [])


def test_an_installed_operator_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "Offered", "tests.test_resolver:OFFERED")
    resolver = InstalledOpResolver()
    assert [version for version in range(6) if resolver.find_custom("Offered", version) is OFFERED] == [1, 2]
    assert resolver.find_custom("Other", 1) is None
    assert resolver.find_builtin(BuiltinOperator.ADD, 1) is None


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("Other", "tests.test_resolver:OFFERED", "installed for the custom operator Other, is not its OpDef"),
        ("Offered", "tests.test_resolver:install", "is not its OpDef"),
        (
            "Offered",
            "tests.no_such_module:op",
            "tests.no_such_module:op, installed for the custom operator Offered: No",
        ),
    ],
)
def test_an_installed_operator_that_is_none(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    install(monkeypatch, name, value)
    with pytest.raises(UnsupportedOpError, match=message):
        InstalledOpResolver().find_custom(name, 1)


def test_an_interpreter_finds_installed_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "Offered", "tests.test_resolver:OFFERED")
    content = model_of(OFFERED, Case("", [tensor([1])], [tensor([1])]))
    Interpreter(model_content=content).allocate_tensors()
    Interpreter(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF).allocate_tensors()
    with pytest.raises(PrepareError, match="unresolved"):
        Interpreter(model_content=content, experimental_op_resolver_type=BuiltinOpResolver()).allocate_tensors()
    # A program's own operator of the name goes before it.
    mine = custom_op("Offered", shape="x")(lambda x: x + 1)
    Interpreter(model_content=content, custom_ops=[mine]).allocate_tensors()


@pytest.mark.parametrize(("reference", "names"), [(False, CUSTOM), (True, CUSTOM_REFERENCE)])
def test_the_custom_operators_of_tflite_and_of_tflite_micro_ship(reference: bool, names: set[str]) -> None:
    resolver = BuiltinOpResolver(reference=reference)
    found = {(op.name, v) for op in all_ops() if op.custom for v in range(9) if resolver.find_custom(op.name, v) is op}
    assert found == {(name, 1) for name in names | MICRO}
