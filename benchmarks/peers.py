"""The peers' own test suites, run with Gossamer's classes in the place of theirs.

    python benchmarks/peers.py --litert LITERT --tflm TFLITE_MICRO --quantizer AI_EDGE_QUANTIZER

The arguments are checkouts of those projects; a suite whose checkout is not given is left out. TensorFlow, pytest,
ai-edge-litert and what the quantizer needs must be installed. Nothing of theirs is copied or changed: a finder gives
``tflite.*`` and ``tensorflow.lite.*`` modules out of TensorFlow's wheel, and ours for the interpreter. Test models that
the projects make when they are built are made with TensorFlow in a temporary folder.

Prints what failed, with the reason where it is known (`REASONS`), and exits with 1 if a failure has none.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

LIBRARY = "needs a C++ shared library"
REASONS = {
    "testRegistererByName": f"{LIBRARY}: names a registerer in one",
    "testSparseTensorAccess": f"{LIBRARY}: names a registerer in one",
    "testRegisterGenAIOpsFailure": f"{LIBRARY}: the loader's error for one",
    "InterpreterDelegateTest": f"{LIBRARY}: a delegate",
    "testCreationCounter": f"{LIBRARY}: TensorFlow counts its interpreters there",
    "who asks for the address of a C++ interpreter": "needs a native pointer: C++ code runs the interpreter",
}
"""Why a test fails, by a part of its name or of what it raises."""


def reason_for(test: str, message: str, checkout: Path) -> str:
    """Why a test fails, as far as that is known."""
    if "FileNotFoundError" in message and str(checkout.resolve()) in message:
        return "needs a file that the checkout has not"
    return next((reason for part, reason in REASONS.items() if part in f"{test} {message}"), "")


def _alias(module: types.ModuleType, *names: str) -> None:
    for name in names:
        sys.modules[name] = module
        package, _, last = name.rpartition(".")
        if package in sys.modules:
            setattr(sys.modules[package], last, module)


class _Renamed:
    """Finds the modules of one package in the place of those of another: ``tflite.x`` is ``tensorflow.lite.x``."""

    def __init__(self, prefix: str, instead: str) -> None:
        self.prefix, self.instead = prefix, instead

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != self.prefix and not name.startswith(f"{self.prefix}."):
            return None
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return importlib.import_module(self.instead + spec.name.removeprefix(self.prefix))

    def exec_module(self, module: types.ModuleType) -> None:
        """It has been executed under its own name."""


def _put_ours_in_place() -> None:
    import gossamer.interpreter

    _alias(gossamer.interpreter, "tensorflow.lite.python.interpreter", "ai_edge_litert.interpreter")
    sys.meta_path.insert(0, _Renamed("tflite", "tensorflow.lite"))
    import ai_edge_litert

    ai_edge_litert.interpreter = gossamer.interpreter


def _test_registerer() -> types.ModuleType:
    # The stand-in for a C++ extension of the tests: a registerer that counts its calls.
    module, calls = types.ModuleType("_pywrap_test_registerer"), []

    def get_num_test_registerer_calls() -> int:
        count = len(calls)
        calls.clear()
        return count

    module.TF_TestRegisterer = calls.append  # type: ignore[attr-defined]
    module.get_num_test_registerer_calls = get_num_test_registerer_calls  # type: ignore[attr-defined]
    return module


def _made_models(source: Path, place: Path) -> None:
    # As tflite/python/testdata/BUILD makes them, and one that is in TensorFlow's repository.
    import tensorflow as tf
    from google.protobuf import text_format

    v1 = tf.compat.v1
    for name, text, inputs, quantized in (
        ("permute_float", "permute", ["input"], False),
        ("permute_uint8", "permute", ["input"], True),
        ("gather_string", "gather", ["input", "indices"], False),
        ("gather_string_0d", "gather_0d", ["input", "indices"], False),
    ):
        graph = text_format.Parse((source / f"{text}.pbtxt").read_text(), v1.GraphDef())
        frozen = place / f"{name}.pb"
        frozen.write_bytes(graph.SerializeToString())
        converter = v1.lite.TFLiteConverter.from_frozen_graph(str(frozen), inputs, ["output"])
        if quantized:
            converter.inference_type = tf.uint8
            converter.quantized_input_stats = {"input": (0.0, 1.0)}
            converter.default_ranges_stats = (0, 255)
        (place / f"{name}.tflite").write_bytes(converter.convert())

    class TwoSignatures(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([1], tf.float32, name="x")])
        def add(self, x: Any) -> Any:
            return {"result": x + 2.0}

        @tf.function(input_signature=[tf.TensorSpec([1], tf.float32, name="x")])
        def multiply(self, x: Any) -> Any:
            return {"result": x * 2.0}

    module = TwoSignatures()
    saved = str(place / "two_signatures")
    tf.saved_model.save(module, saved, {"add": module.add, "multiply": module.multiply})
    content = tf.lite.TFLiteConverter.from_saved_model(saved).convert()
    (place / "two_signatures.tflite").write_bytes(content)


def run_interpreter_test(checkout: Path, place: Path) -> Sequence[str]:
    """LiteRT's ``interpreter_test.py``."""
    _put_ours_in_place()
    import tensorflow.lite.python.lite  # noqa: F401 -- so that its names are there to be replaced
    from tensorflow.python.platform import resource_loader

    _alias(_test_registerer(), "tflite.python.testdata._pywrap_test_registerer")
    sys.modules["tflite.python.testdata"] = types.ModuleType("testdata")
    sys.modules["tflite.python.testdata"]._pywrap_test_registerer = sys.modules[  # type: ignore[attr-defined]
        "tflite.python.testdata._pywrap_test_registerer"
    ]
    tests = checkout / "tflite" / "python"
    _made_models(tests / "testdata", place)

    def find(path: str) -> str:
        made = place / Path(path).name
        return str(made if made.exists() else tests / path)

    resource_loader.get_path_to_datafile = find
    return [str(tests / "interpreter_test.py")]


def run_debugger_test(checkout: Path, place: Path) -> Sequence[str]:
    """The test of TensorFlow's ``QuantizationDebugger``, which LiteRT has too."""
    _put_ours_in_place()
    return [str(checkout / "tflite" / "tools" / "optimize" / "debugging" / "python" / "debugger_test.py")]


def run_quantizer_tests(checkout: Path, place: Path) -> Sequence[str]:
    """The tests of ai-edge-quantizer."""
    _put_ours_in_place()
    sys.path.insert(0, str(checkout))
    return [str(checkout / "ai_edge_quantizer")]


def run_micro_test(checkout: Path, place: Path) -> Sequence[str]:
    """TFLite Micro's ``runtime_test.py``."""
    import gossamer.micro.runtime

    for name, path in (("tflite_micro", checkout), ("tflite_micro.python", checkout / "python")):
        package = types.ModuleType(name)
        package.__path__ = [str(path)]
        sys.modules[name] = package
    package = types.ModuleType("tflite_micro.python.tflite_micro")
    package.__path__ = []
    sys.modules[package.__name__] = package
    _alias(gossamer.micro.runtime, "tflite_micro.python.tflite_micro.runtime")
    return [str(checkout / "python" / "tflite_micro" / "runtime_test.py")]


SUITES: dict[str, tuple[str, Callable[[Path, Path], Sequence[str]]]] = {
    "interpreter_test": ("litert", run_interpreter_test),
    "debugger_test": ("litert", run_debugger_test),
    "ai-edge-quantizer": ("quantizer", run_quantizer_tests),
    "runtime_test": ("tflm", run_micro_test),
}


class Results:
    """A pytest plugin that takes down what came of each test."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.failed: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self.failed[report.nodeid] = crash.message if crash is not None else str(report.longrepr)
        elif report.when == "call" and report.passed:
            self.passed.append(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failed[report.nodeid] = str(report.longrepr)


def run(suite: str, checkout: Path) -> int:
    """Run one suite in this process, and print what came of it. The number of failures without a reason."""
    import pytest

    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("GOSSAMER_CACHE_DIR", folder)
        files = SUITES[suite][1](checkout.resolve(), Path(folder))
        results = Results()
        options = ["-q", "--no-header", "--tb=no", "--no-summary", "-p", "no:cacheprovider", "-c", os.devnull]
        options += ["--import-mode=importlib", f"--rootdir={checkout.resolve()}"]
        os.chdir(checkout)
        pytest.main([*options, *files], plugins=[results])
    unexplained = 0
    for test, message in results.failed.items():
        reason = reason_for(test, message, checkout)
        unexplained += not reason
        print(f"  {test.rpartition('/')[2]}\n    {reason or message.strip()[-400:]}")
    passed, failed = len(results.passed), len(results.failed)
    print(f"{suite}: {passed} passed, {failed} failed, {unexplained} of them without a reason")
    return unexplained


def main() -> int:
    """The suites whose checkouts are given, each in a process of its own. The exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name in sorted({checkout for checkout, _ in SUITES.values()}):
        parser.add_argument(f"--{name}", type=Path, help="a checkout")
    parser.add_argument("--suite", choices=SUITES, help="run this one only, in this process")
    arguments = parser.parse_args()
    if arguments.suite:
        return int(run(arguments.suite, getattr(arguments, SUITES[arguments.suite][0])) > 0)
    failed = 0
    for suite, (name, _) in SUITES.items():
        checkout = getattr(arguments, name)
        if checkout is not None:
            command = [sys.executable, __file__, "--suite", suite, f"--{name}", str(checkout)]
            failed |= subprocess.run(command, check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
