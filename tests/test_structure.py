"""What the architecture promises: imports run one way, public names are exact, every operator has its tests."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import gossamer
from gossamer.ops import all_ops, module_name

SRC = Path(gossamer.__file__).parent
TESTS = Path(__file__).parent
MODULES = sorted(SRC.rglob("*.py"))

EVERYWHERE = ("arrays", "disk_cache", "limits", "log", "phases", "records", "release")
"""What stands in for slow modules of Python and NumPy, what is kept between processes, how much memory is given, times,
and the version."""

# A package may import itself and these. "schema" stands under everything.
ALLOWED = {
    "errors": set(),
    "config": set(),
    "schema": {"errors"},
    "dtypes": {"schema"},
    "quantization": {"schema", "dtypes", "errors"},
    "model": {"schema", "dtypes", "quantization", "errors", "config"},
    "planner": {"errors", "config"},
    "targets": {"errors", "config"},
    "programs": {"errors", "config", "targets"},
    "sizes": set(),
    "ahead": {"sizes"},
    "views": {"schema", "sizes"},
    "affine": {"views"},
    "codegen": {"programs", "targets", "views", "sizes", "errors", "config", "dtypes", "schema"},
    "ops": {"schema", "dtypes", "quantization", "errors", "config", "model", "views", "affine", "sizes"},
    "convert": {"quantize", "versions", "ops", "model", "quantization", "schema", "dtypes", "errors"},
    "edit": {"convert", "versions", "ops", "model", "quantization", "schema", "dtypes", "errors"},
    "compare": {
        "edit",
        "quantize",
        "convert",
        "inputs",
        "micro",
        "runtime",
        "resolver",
        "ops",
        "model",
        "quantization",
        "schema",
        "dtypes",
        "errors",
    },
    "inputs": {"runtime", "resolver", "ops", "model", "schema", "errors"},
    "batch": {"inputs", "runtime", "model", "schema", "errors", "config", "programs"},
    "quantize": {
        "inputs",
        "convert",
        "runtime",
        "planner",
        "resolver",
        "ops",
        "model",
        "quantization",
        "schema",
        "dtypes",
        "errors",
    },
    "serve": {
        "runtime",
        "resolver",
        "inputs",
        "interrupts",
        "ops",
        "model",
        "quantization",
        "schema",
        "dtypes",
        "sizes",
        "errors",
        "config",
    },
    "flex": {"convert", "quantize", "ops", "model", "schema", "dtypes", "errors", "config"},
    "resolver": {"ops", "schema", "errors"},
    "versions": {"ops", "model", "schema"},
    "delegates": {
        "ops",
        "planner",
        "model",
        "schema",
        "dtypes",
        "quantization",
        "errors",
        "config",
        "views",
        "affine",
        "ahead",
        "sizes",
        "codegen",
        "programs",
        "targets",
    },
    "micro": {"ops", "planner", "model", "schema", "dtypes", "quantization", "errors", "config"},
    "runtime": {
        "resolver",
        "delegates",
        "ops",
        "planner",
        "model",
        "schema",
        "dtypes",
        "quantization",
        "errors",
        "config",
        "sizes",
    },
    "profiling": {"runtime", "delegates", "codegen", "programs", "targets", "errors"},
    "interpreter": {"runtime", "resolver", "delegates"},
    "hardware_accelerator": set(),
    "options": {"hardware_accelerator"},
    "environment": set(),
    "tensor_buffer": {"errors"},
    "compiled_model": {
        "runtime",
        "resolver",
        "errors",
        "environment",
        "hardware_accelerator",
        "options",
        "tensor_buffer",
    },
}


def package_of(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


@cache
def import_statements(path: Path) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)]


def imports_of(path: Path) -> set[str]:
    names = set()
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif node.module:
            names |= {node.module} if node.module != "gossamer" else {f"gossamer.{a.name}" for a in node.names}
    return names


def test_imports_run_one_way() -> None:
    for path in MODULES:
        package = package_of(path)
        imported = {name.split(".")[1] for name in imports_of(path) if name.startswith("gossamer.")}
        if package in ALLOWED:
            assert imported - ALLOWED[package] - {package, *EVERYWHERE} == set(), path
        if package not in ("tools", "__main__"):
            assert "tools" not in imported, path


def module_of(path: Path) -> str:
    name = ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix("__init__").rstrip(".")
    return name or "gossamer"


def import_graph() -> dict[str, set[str]]:
    """Each module and those that it imports; ``from package import module`` is an import of the module."""
    modules = {f"gossamer.{module_of(path)}".removesuffix(".gossamer"): path for path in MODULES}
    graph = {}
    for path in modules.values():
        imported = set()
        for node in import_statements(path):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif node.module:
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                imported |= {name if name in modules else node.module for name in names}
        graph[module_of(path)] = {module_of(modules[name]) for name in imported if name in modules}
    return graph


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """The strongly connected components of more than one node."""
    reached = {}
    for start in graph:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            new = graph[waiting.pop()] - seen
            seen |= new
            waiting += new
        reached[start] = seen
    found = {frozenset(to for to in reached[start] if start in reached[to]) for start in graph}
    return {circle for circle in found if len(circle) > 1}


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d"}, "f": {"a", "g"}, "g": set()}
    assert circles(graph) == {frozenset("abc"), frozenset("de")}


def test_imports_make_no_circles() -> None:
    assert circles(import_graph()) == set()


def test_only_the_jit_makes_machine_code() -> None:
    machine = ("gossamer.codegen", "gossamer.programs", "gossamer.targets")
    for path in MODULES:
        if package_of(path) == "delegates" and path.relative_to(SRC).parts[1] != "jit":
            assert not {name for name in imports_of(path) if name.startswith(machine)}


def test_the_runtime_knows_no_delegate_by_name() -> None:
    contract = {"gossamer.delegates.delegate", "gossamer.delegates.partition"}
    for path in MODULES:
        if package_of(path) == "runtime":
            assert {name for name in imports_of(path) if name.startswith("gossamer.delegates")} <= contract


def test_llvm_stays_in_codegen() -> None:
    users = {path for path in MODULES if "llvmlite" in {name.split(".")[0] for name in imports_of(path)}}
    assert {package_of(path) for path in users} == {"codegen"}


@pytest.mark.parametrize("op", list(all_ops()), ids=lambda op: op.name)
def test_every_operator_has_its_file_its_words_and_its_tests(op: gossamer.ops.op_def.OpDef) -> None:
    stem = module_name(op.name, custom=op.custom).rpartition(".")[2]
    module = sys.modules[module_name(op.name, custom=op.custom)]
    assert module.__doc__ is not None
    assert module.__doc__.startswith(op.name)
    assert op.reference_function is not None
    assert op.prepare_function is not None
    assert (TESTS / "ops" / f"test_{stem}.py").exists()


def test_public_names() -> None:
    assert set(gossamer.__all__) == {
        "ArenaError",
        "Builder",
        "CancelledError",
        "CompileError",
        "ConvertError",
        "DeadlineExceededError",
        "Delegate",
        "DelegateError",
        "DelegateFlags",
        "DelegateKernel",
        "EditError",
        "GossamerError",
        "Interpreter",
        "InterpreterWithCustomOps",
        "InvokeError",
        "ModelError",
        "MutableOpResolver",
        "OpResolver",
        "OpResolverType",
        "OpsSet",
        "Optimize",
        "PrepareError",
        "QuantizationDebugOptions",
        "QuantizationDebugger",
        "RepresentativeDataset",
        "SignatureRunner",
        "TFLiteConverter",
        "TargetSpec",
        "UnsupportedOpError",
        "__version__",
        "custom_op",
        "diff",
        "edit",
        "flex_op",
        "load_delegate",
        "profile",
    }
    assert all(hasattr(gossamer, name) for name in gossamer.__all__)


def test_import_takes_nothing_that_a_first_interpreter_does_not_need() -> None:
    heavy = ("llvmlite", "click", "rich", "flatbuffers", "ml_dtypes", "PIL", "soundfile", "gossamer.tools")
    code = f"import sys, gossamer; print([name for name in {heavy!r} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_environment_is_read_in_one_place() -> None:
    readers = {path.name for path in MODULES if re.search(r"\b(environ|getenv)\b", path.read_text())}
    assert readers <= {"config.py"}
