from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from gossamer.targets import Target, all_targets, host_target

TARGETS = all_targets()
V3 = TARGETS["avx2"].requires
V4 = TARGETS["avx512"].requires


def test_targets_are_the_files_of_the_directory() -> None:
    assert set(TARGETS) == {"amx", "avx2", "avx512", "avx512vnni", "avxvnni", "dotprod", "neon"}
    assert all(name == target.name for name, target in TARGETS.items())


@pytest.mark.parametrize(
    ("features", "name"),
    [
        (V4 | {"amx-tile"}, "avx512"),
        (V3 | {"avx512f"}, "avx2"),
        (V3, "avx2"),
        (V3 - {"fma"}, None),
        (V4 | {"avx512vnni"}, "avx512"),
        (V4 | {"avx512vnni", "avx512vbmi"}, "avx512"),
        (V4 | {"avx512vnni", "avx512vbmi", "avx512vbmi2"}, "avx512vnni"),
        (V4 | {"avx512vnni", "avx512vbmi", "avx512vbmi2", "amx-tile"}, "avx512vnni"),
        (V4 | {"avx512vnni", "avx512vbmi", "avx512vbmi2", "amx-tile", "amx-int8"}, "amx"),
        (V3 | {"avxvnni"}, "avxvnni"),
        ({"neon"}, "neon"),
        ({"neon", "dotprod"}, "dotprod"),
        ((), None),
    ],
)
def test_the_host_gets_the_widest_target_that_it_runs(
    monkeypatch: pytest.MonkeyPatch, features: frozenset[str], name: str | None
) -> None:
    monkeypatch.delenv("GOSSAMER_TARGET", raising=False)
    target = host_target(features)
    assert (target and target.name) == name


@pytest.mark.parametrize("name", ["avx2", "avx512", "avx512vnni"])
def test_the_environment_may_name_the_target(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("GOSSAMER_TARGET", name)
    assert host_target(TARGETS["amx"].requires) is TARGETS[name]


def test_the_environment_may_name_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOSSAMER_TARGET", "none")
    assert host_target(V4) is None


def test_the_environment_can_only_name_what_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOSSAMER_TARGET", "avx512vnni")
    with pytest.raises(ValueError, match=r"GOSSAMER_TARGET is 'avx512vnni', but this CPU runs avx2, avx512$"):
        host_target(V4)
    with pytest.raises(ValueError, match="but this CPU runs no target"):
        host_target(())


def test_kernels_without_tiles_are_those_of_the_base() -> None:
    for target in TARGETS.values():
        assert target.without_tiles is (TARGETS["avx512vnni"] if target.name == "amx" else target)


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_a_target_adds_instructions_to_its_base_and_nothing_else(target: Target) -> None:
    *extensions, plain = target.family()
    assert plain is target.plain is TARGETS[plain.name]
    assert not plain.dot
    assert (target in extensions) == (target.base is not None) == bool(target.dot)
    for member in extensions:
        assert member.base is not None
        added = member.requires - member.base.requires
        assert added
        assert {feature for feature in added if member.has(feature)} == added
        assert (member.vector_bits, member.registers, member.cpu, member.triple) == (
            (plain.vector_bits, plain.registers, plain.cpu, plain.triple)
        )


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_lanes(target: Target) -> None:
    assert target.lanes() * 32 == target.lanes(8) * 8 == target.vector_bits


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_tiles_fit_the_registers(target: Target) -> None:
    from importlib import import_module

    tiles = import_module(f"gossamer.targets.{target.plain.name}").TILES
    assert {"gemm", "depthwise"} <= set(tiles)
    for rows, vectors in tiles["gemm"]:
        # Accumulators and a row of the other operand; a broadcast can come from memory.
        assert rows * vectors + vectors <= target.registers
    for choices in tiles.values():
        assert len(set(choices)) == len(choices)


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_llvm_knows_the_target(target: Target, capfd: pytest.CaptureFixture[str]) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=",".join(target.features)
    )
    assert machine.triple == target.triple
    # It says so there, and goes on with another CPU, if a name is wrong.
    assert capfd.readouterr().err == ""


def test_what_llvm_may_emit_for_a_cpu_is_required_of_the_host() -> None:
    # x86-64-v4 is x86-64-v3 and five features; both are the psABI's lists.
    assert {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} == V4 - V3
    assert {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"} <= V3
