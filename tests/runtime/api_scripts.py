"""Calls of the interpreter's API in sensible and silly orders, as `outcomes.Script`s over a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.runtime.outcomes import Api, Recorder, form

_STRINGS = [b"alpha", b"", b"gamma \xff", b"d"]


def value_for(details: dict[str, Any], seed: int, shape: tuple[int, ...] | None = None) -> Any:
    """An input of the shape and dtype that the details of a tensor give; small, so that it may be an index."""
    rng = np.random.default_rng(seed)
    shape = tuple(details["shape"]) if shape is None else shape
    dtype = np.dtype(details["dtype"])
    if dtype.kind in "SO":
        if not shape:
            return np.array(
                _STRINGS[seed % 4] or b"e"
            )  # of an object array without dimensions LiteRT takes the pointer
        return np.array([_STRINGS[(i + seed) % 4] for i in range(int(np.prod(shape)))], object).reshape(shape)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return np.asarray(rng.integers(1, 4, shape)).astype(dtype)
    return np.asarray(rng.normal(size=shape)).astype(dtype)


def look(record: Recorder, interpreter: Any, when: str, tensors: dict[int, int] | None = None) -> None:
    """All that an interpreter says of itself; of so many tensors of each subgraph, or all."""
    record(f"{when}: num_subgraphs", interpreter.num_subgraphs)
    record(f"{when}: get_input_details", interpreter.get_input_details)
    record(f"{when}: get_output_details", interpreter.get_output_details)
    for subgraph in range(interpreter.num_subgraphs()):
        last = (tensors or {}).get(subgraph)
        record(
            f"{when}: get_tensor_details({subgraph})", lambda s=subgraph, n=last: interpreter.get_tensor_details(s)[:n]
        )
    record(f"{when}: get_signature_list", interpreter.get_signature_list)
    record(f"{when}: _get_full_signature_list", interpreter._get_full_signature_list)
    record(f"{when}: _get_ops_details", interpreter._get_ops_details)


def readable(interpreter: Any, subgraph: int = 0, last: int | None = None) -> list[int]:
    """The tensors that may be read without harm: LiteRT dies of a string or resource that has no value."""
    entries = interpreter.get_tensor_details(subgraph)[:last]
    return [int(entry["index"]) for entry in entries if not _is_object(entry)]


def declared(interpreter: Any) -> dict[int, int]:
    """How many tensors each subgraph has, before operators ask for scratch tensors."""
    return {index: len(interpreter.get_tensor_details(index)) for index in range(interpreter.num_subgraphs())}


def _is_object(details: dict[str, Any]) -> bool:
    return details["dtype"] in (np.object_, np.bytes_)


def read(
    record: Recorder, interpreter: Any, when: str, values: set[int], subgraph: int = 0, last: int | None = None
) -> None:
    """Read every tensor; values are compared of those whose value is defined, of the others their form."""
    get = interpreter.get_tensor
    for index in sorted({*values, *readable(interpreter, subgraph, last)}):
        if index in values:
            record(f"{when}: get_tensor({index}, {subgraph})", get, index, subgraph)
        else:
            record(f"{when}: form of get_tensor({index}, {subgraph})", lambda i=index: form(get(i, subgraph)))


def feed(record: Recorder, interpreter: Any, when: str, seed: int) -> None:
    for position, details in enumerate(interpreter.get_input_details()):
        value = value_for(details, seed + position)
        record(f"{when}: set_tensor({details['index']})", interpreter.set_tensor, details["index"], value)


def stored(interpreter: Any) -> set[int]:
    """The tensors that have a value before anything ran: constants."""

    def has_value(index: int) -> bool:
        try:
            return bool(interpreter.get_tensor(index).size)
        except ValueError:
            return False

    return set(filter(has_value, readable(interpreter)))


def ends(interpreter: Any) -> set[int]:
    details = [*interpreter.get_input_details(), *interpreter.get_output_details()]
    return {int(entry["index"]) for entry in details}


def lifecycle(content: bytes, **how: Any) -> Callable[[Api, Recorder], None]:
    """From construction to a second answer, looking at everything on the way."""

    def script(api: Api, record: Recorder) -> None:
        interpreter = record("construct", api.open, content, **how)
        if interpreter is None:
            return
        tensors = declared(interpreter)
        look(record, interpreter, "new")
        constants = stored(interpreter)
        read(record, interpreter, "new", constants)
        record("new: reset_all_variables", interpreter.reset_all_variables)
        record("new: invoke", interpreter.invoke)
        feed(record, interpreter, "new", 0)
        record("allocate", interpreter.allocate_tensors)
        look(record, interpreter, "allocated")
        read(record, interpreter, "allocated", constants, last=tensors[0])
        record("allocate again", interpreter.allocate_tensors)
        for seed in (0, 10):
            feed(record, interpreter, f"run {seed}", seed)
            ran = record(f"run {seed}: invoke", lambda: interpreter.invoke() or "ran")
            read(
                record, interpreter, f"run {seed}", constants | ends(interpreter) if ran else constants, last=tensors[0]
            )
            look(record, interpreter, f"run {seed}", tensors)
        record("invoke again", interpreter.invoke)
        record("allocate after invoke", interpreter.allocate_tensors)
        look(record, interpreter, "allocated after invoke", tensors)
        feed(record, interpreter, "last", 20)
        record("reset_all_variables", interpreter.reset_all_variables)
        ran = record("last: invoke", lambda: interpreter.invoke() or "ran")
        read(record, interpreter, "last", constants | ends(interpreter) if ran else constants, last=tensors[0])

    return script


def everything_kept(content: bytes) -> Callable[[Api, Recorder], None]:
    """With experimental_preserve_all_tensors the value of every tensor of the file is the same."""

    def script(api: Api, record: Recorder) -> None:
        interpreter = record("construct", api.open, content, experimental_preserve_all_tensors=True)
        if interpreter is None:
            return
        tensors = set(readable(interpreter))  # scratch tensors come when it is allocated
        if record("allocate", lambda: interpreter.allocate_tensors() or "ready") is None:
            return
        for seed in (0, 10):
            feed(record, interpreter, f"run {seed}", seed)
            record(f"run {seed}: invoke", interpreter.invoke)
            written = {
                int(i) for op in interpreter._get_ops_details() for side in ("inputs", "outputs") for i in op[side]
            }
            read(record, interpreter, f"run {seed}", tensors & (written | ends(interpreter)), last=len(tensors))

    return script


def resizing(content: bytes) -> Callable[[Api, Recorder], None]:
    """Inputs larger, smaller, empty, of another rank, strict and free, forth and back."""

    def script(api: Api, record: Recorder) -> None:
        interpreter = record("construct", api.open, content)
        if interpreter is None:
            return
        shapes = [tuple(int(n) for n in entry["shape"]) for entry in interpreter.get_input_details()]
        indices = [entry["index"] for entry in interpreter.get_input_details()]
        if not shapes:
            return
        tensors = declared(interpreter)
        constants = stored(interpreter)
        changes: dict[str, list[Any]] = {
            "same": [list(shape) for shape in shapes],
            "more": [[2 * shape[0], *shape[1:]] if shape else [] for shape in shapes],
            "tuple": [tuple(shape) for shape in shapes],
            "int64": [np.array(shape, np.int64) for shape in shapes],
            "none": [[0, *shape[1:]] if shape else [] for shape in shapes],
            "rank": [[1, *shape] for shape in shapes],
            "back": [np.array(shape, np.int32) for shape in shapes],
        }
        for name, sizes in changes.items():
            for strict in (True, False):
                when = f"{name}{' strict' if strict else ''}"
                for index, size in zip(indices, sizes, strict=True):
                    record(f"{when}: resize({index})", interpreter.resize_tensor_input, index, size, strict=strict)
                look(record, interpreter, when, tensors)
                read(record, interpreter, f"{when}, not allocated", constants, last=tensors[0])
                record(f"{when}: invoke", interpreter.invoke) if name == "more" else None
                record(f"{when}: allocate", interpreter.allocate_tensors)
                look(record, interpreter, f"{when}, allocated", tensors)
                feed(record, interpreter, when, 3)
                ran = record(f"{when}: invoke", lambda: interpreter.invoke() or "ran")
                read(record, interpreter, when, constants | ends(interpreter) if ran else constants, last=tensors[0])
                look(record, interpreter, f"{when}, invoked", tensors)

    return script


def wrong_values(content: bytes) -> Callable[[Api, Recorder], None]:
    """set_tensor with everything but the right thing, and with odd right things."""

    def script(api: Api, record: Recorder) -> None:
        interpreter = record("construct", api.open, content)
        if interpreter is None:
            return
        for when in ("new", "allocated"):
            for position, details in enumerate(interpreter.get_input_details()):
                index, good = details["index"], value_for(details, position)
                values: dict[str, Any] = {
                    "float64": np.zeros(good.shape, np.float64),
                    "float16": np.zeros(good.shape, np.float16),
                    "int8": np.ones(good.shape, np.int8),
                    "uint8": np.ones(good.shape, np.uint8),
                    "int16": np.ones(good.shape, np.int16),
                    "int32": np.ones(good.shape, np.int32),
                    "int64": np.ones(good.shape, np.int64),
                    "bool": np.ones(good.shape, bool),
                    "complex64": np.ones(good.shape, np.complex64),
                    "str": np.full(good.shape, "text"),
                    "bytes": np.full(good.shape, b"bytes"),
                    "void": np.zeros(good.shape, "V4"),
                    "datetime": np.zeros(good.shape, "M8[s]"),
                    "longdouble": np.zeros(good.shape, np.longdouble),
                    "list": good.tolist(),
                    "rank + 1": good[None],
                    "rank - 1": good.reshape(-1) if good.ndim > 1 else good.reshape(-1)[:1].reshape(()),
                    "longer": np.concatenate([good, good]) if good.ndim else good,
                    "shorter": good[:0] if good.ndim else good,
                    "Fortran order": np.asfortranarray(good) if good.ndim else good,
                    "reversed": good[::-1].copy()[::-1] if good.ndim else good,
                    "read-only": np.array(good),
                    "big endian": good.astype(good.dtype.newbyteorder(">")) if good.dtype.kind in "iuf" else good,
                    "empty list": [],
                    "ragged": [[1], [1, 2]],
                    "None": None,
                    "good": good,
                }
                values["read-only"].flags.writeable = False
                for name, value in values.items():
                    record(f"{when}: set_tensor({index}, {name})", interpreter.set_tensor, index, value)
                    if not _is_object(details):
                        record(
                            f"{when}: form of get_tensor after {name}", lambda i=index: form(interpreter.get_tensor(i))
                        )
            record("allocate", interpreter.allocate_tensors)

    return script


def indices() -> dict[str, Callable[[Any], Any]]:
    """Calls with indices that are wrong, or odd."""
    calls: dict[str, Callable[[Any], Any]] = {}
    for index in (-1, -2, 99, 0.0, 1.5, "0", None, np.int32(0), np.int64(0), np.array(0), True):
        name = repr(index)
        calls |= {
            f"get_tensor({name})": lambda i, n=index: form(i.get_tensor(n)),
            f"get_tensor(0, {name})": lambda i, n=index: form(i.get_tensor(0, n)),
            f"set_tensor({name})": lambda i, n=index: i.set_tensor(n, i.get_tensor(0)),
            f"resize({name})": lambda i, n=index: i.resize_tensor_input(n, [2, 3]),
            f"resize({name}, strict)": lambda i, n=index: i.resize_tensor_input(n, [2, 3], True),
            f"tensor({name})": lambda i, n=index: i.tensor(n) and None,
            f"tensor({name})()": lambda i, n=index: form(i.tensor(n)()),
            f"_get_tensor_details({name}, 0)": lambda i, n=index: i._get_tensor_details(n, 0),
            f"get_tensor_details({name})": lambda i, n=index: i.get_tensor_details(n),
            f"_get_op_details({name})": lambda i, n=index: i._get_op_details(n),
        }
    return calls


SIZES: dict[str, Any] = {
    "negative": [-1, 3],
    "floats": [2.0, 3.0],
    "halves": [2.5, 3.0],
    "2-D": [[2, 3]],
    "scalar": 6,
    "strings": ["2", "3"],
    "letters": ["a"],
    "nothing": [],
    "None": None,
    "large": [1 << 40, 3],
    "bools": [True, True],
    "array": np.array([2, 3]),
    "uint8": np.array([2, 3], np.uint8),
    "ragged": [[2], [3, 4]],
    "other rank": [2, 3, 1],
    "other": [2, 4],
}


def fresh_each_time(content: bytes, calls: dict[str, Callable[[Any], Any]]) -> Callable[[Api, Recorder], None]:
    """Each call on an interpreter of its own, new and allocated, and what may be done after it."""

    def script(api: Api, record: Recorder) -> None:
        for name, call in calls.items():
            for when in ("new", "allocated"):
                interpreter = api.open(content)
                if when == "allocated":
                    interpreter.allocate_tensors()
                record(f"{when}: {name}", call, interpreter)
                record(f"{when}: invoke after {name}", interpreter.invoke)
                record(f"{when}: inputs after {name}", interpreter.get_input_details)
                record(f"{when}: allocate after {name}", interpreter.allocate_tensors)
                record(f"{when}: outputs after {name}", interpreter.get_output_details)
                record(f"{when}: invoke again after {name}", interpreter.invoke)

    return script


def sizes() -> dict[str, Callable[[Any], Any]]:
    """resize_tensor_input with sizes that are wrong, or odd, strict and free."""
    return {
        f"resize to {name}{' strict' if strict else ''}": lambda i, size=size, strict=strict: i.resize_tensor_input(
            0, size, strict=strict
        )
        for name, size in SIZES.items()
        for strict in (False, True)
    }


def signatures(content: bytes, mistakes: bool = True) -> Callable[[Api, Recorder], None]:
    """Every signature: details, right calls of several shapes, and every wrong one."""

    def script(api: Api, record: Recorder) -> None:
        interpreter = record("construct", api.open, content)
        if interpreter is None:
            return
        tensors = declared(interpreter)
        record("runner without a key", interpreter.get_signature_runner)
        for key in ("nope", "", 5):
            record(f"runner {key!r}", interpreter.get_signature_runner, key)
        record("SignatureRunner()", api.module.SignatureRunner)
        record("SignatureRunner(interpreter)", api.module.SignatureRunner, interpreter)
        for key in list(interpreter.get_signature_list()):
            runner = record(f"{key}: runner", interpreter.get_signature_runner, key)
            record(f"{key}: inputs", runner.get_input_details)
            record(f"{key}: outputs", runner.get_output_details)
            details = runner.get_input_details()

            def values(seed: int, details: dict[str, Any] = details) -> dict[str, Any]:
                return {name: value_for(entry, seed) for name, entry in details.items()}

            record(f"{key}: call", lambda r=runner, v=values: r(**v(0)))
            record(f"{key}: inputs after", runner.get_input_details)
            record(f"{key}: outputs after", runner.get_output_details)
            backwards = dict(reversed(values(1).items()))
            record(f"{key}: call, arguments backwards", lambda r=runner, v=backwards: r(**v))
            larger = {
                name: value_for(entry, 2, (2 * int(entry["shape"][0]), *entry["shape"][1:]))
                if len(entry["shape"])
                else value_for(entry, 2)
                for name, entry in details.items()
            }
            record(f"{key}: call larger", lambda r=runner, v=larger: r(**v))
            record(f"{key}: inputs larger", runner.get_input_details)
            record(f"{key}: call smaller again", lambda r=runner, v=values: r(**v(0)))
            record(f"{key}: no inputs", runner)
            record(f"{key}: one too many", lambda r=runner, v=values: r(**v(0), extra=np.zeros(1)))
            if not details or not mistakes:
                del runner
                continue
            first = next(iter(details))
            good = values(0)
            rest = {name: value for name, value in good.items() if name != first}
            wrong = {
                "another name": {"other": good[first]},
                "float64": {first: np.zeros(good[first].shape, np.float64)},
                "a NumPy scalar": {first: np.float32(1)},
                "another rank": {first: good[first][None]},
                "empty": {first: good[first][:0] if good[first].ndim else good[first]},
            }
            for name, value in wrong.items():
                record(f"{key}: {name}", lambda r=runner, v={**value, **rest}: r(**v))
            record(f"{key}: positional", lambda r=runner, v=good[first]: r(v))
            record(f"{key}: call after mistakes", lambda r=runner, v=values: r(**v(0)))
            del runner  # while one is held, LiteRT takes it for a view of its memory
        # Another subgraph's tensors, and the interpreter's own calls, in between.
        look(record, interpreter, "after signatures", tensors)
        for subgraph in range(interpreter.num_subgraphs()):
            read(record, interpreter, "after signatures", set(), subgraph, tensors[subgraph])
        record("allocate", interpreter.allocate_tensors)
        feed(record, interpreter, "own", 4)
        ran = record("invoke", lambda: interpreter.invoke() or "ran")
        read(record, interpreter, "own", ends(interpreter) if ran else set(), last=tensors[0])

    return script


def views(content: bytes) -> Callable[[Api, Recorder], None]:
    """What `tensor` gives, and what may be done while it is held."""

    def script(api: Api, record: Recorder) -> None:
        interpreter = record("construct", api.open, content)
        if interpreter is None:
            return

        def flags(index: int) -> Any:
            view = interpreter.tensor(index)()
            return (*form(view), bool(view.flags.c_contiguous), bool(view.flags.aligned))

        tensors = declared(interpreter)
        for when in ("new", "allocated", "invoked"):
            for index in readable(interpreter, last=tensors[0]):
                record(f"{when}: tensor({index})", lambda i=index: callable(interpreter.tensor(i)))
                record(f"{when}: tensor({index})()", flags, index)
            if when == "new":
                record("allocate", interpreter.allocate_tensors)
            elif when == "allocated":
                feed(record, interpreter, "run", 0)
                record("invoke", interpreter.invoke)
        for details in interpreter.get_input_details():
            index = details["index"]
            if _is_object(details) or not len(details["shape"]):
                continue

            def write(i: int = index, d: dict[str, Any] = details) -> Any:
                interpreter.tensor(i)()[...] = value_for(d, 7)
                return interpreter.get_tensor(i)

            record(f"write through tensor({index})", write)
            calls = {
                "invoke": interpreter.invoke,
                "allocate_tensors": interpreter.allocate_tensors,
                "resize_tensor_input": lambda i=index, d=details: interpreter.resize_tensor_input(i, d["shape"]),
                "set_tensor": lambda i=index, d=details: interpreter.set_tensor(i, value_for(d, 1)),
                "get_tensor": lambda i=index: form(interpreter.get_tensor(i)),
                "reset_all_variables": interpreter.reset_all_variables,
                "get_input_details": interpreter.get_input_details,
            }
            for name, call in calls.items():
                for held in ("view", "part", "function", "copy"):

                    def while_held(i: int = index, held: str = held, call: Callable[[], Any] = call) -> Any:
                        function = interpreter.tensor(i)
                        made = {
                            "view": lambda: function(),
                            "part": lambda: function()[:1],
                            "copy": lambda: function().copy(),
                        }
                        kept = made.get(held, lambda: function)()
                        result = call()
                        del kept
                        return result

                    record(f"{name} while a {held} of {index} is held", while_held)
        for details in interpreter.get_output_details():
            if _is_object(details):
                continue
            record(f"output {details['index']}", lambda i=details["index"]: np.array(interpreter.tensor(i)()))

    return script


def arguments(content: bytes, folder: Path) -> Callable[[Api, Recorder], None]:
    """The constructor's arguments, good and bad."""
    path = folder / "model.tflite"
    path.write_bytes(content)
    broken = folder / "broken.tflite"
    broken.write_bytes(b"\x18\0\0\0NOPE" + bytes(40))
    empty = folder / "empty.tflite"
    empty.write_bytes(b"")

    def script(api: Api, record: Recorder) -> None:
        make = api.module.Interpreter
        resolvers = api.module.OpResolverType

        def made(*positional: Any, **named: Any) -> Any:
            interpreter = make(*positional, **named)
            interpreter.allocate_tensors()
            interpreter.invoke()
            return [
                entry["name"] for entry in (*interpreter.get_input_details(), *interpreter.get_output_details())
            ], interpreter.experimental_compress_quantization_zero_points

        record("path", made, str(path))
        record("Path", made, path)
        record("path as bytes", made, str(path).encode())
        record("model_path", made, model_path=str(path))
        record("content", made, model_content=content)
        record("content second", made, None, content)
        record("empty path and content", made, model_path="", model_content=content)
        for name, kind in (
            ("bytearray", bytearray),
            ("memoryview", memoryview),
            ("list", list),
            ("str", lambda c: "x"),
        ):
            record(f"content as {name}", made, model_content=kind(content))
        record("nothing", make)
        record("both", make, str(path), content)
        record("empty content", make, model_content=b"")
        record("path and empty content", made, str(path), b"")
        record("missing", make, str(folder / "missing.tflite"))
        record("a directory", make, str(folder))
        record("broken", make, str(broken))
        record("empty file", make, str(empty))
        record("garbage", make, model_content=b"garbage")
        record("cut short", make, model_content=content[: len(content) // 2])
        record("path of a number", make, 5)
        for threads in (1, 2, 64, 0, -1, -5, True, False, 2.0, "2", np.int64(2), [1]):
            record(f"num_threads={threads!r}", made, model_content=content, num_threads=threads)
        for kind in ("AUTO", "BUILTIN", "BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"):
            record(kind, made, model_content=content, experimental_op_resolver_type=getattr(resolvers, kind))
            record(f"{kind}'s value", lambda kind=kind: getattr(resolvers, kind).value)
        for kind in (1, 3, 5, "AUTO", None):
            record(f"resolver {kind!r}", made, model_content=content, experimental_op_resolver_type=kind)
        for flag in (
            "preserve_all_tensors",
            "disable_delegate_clustering",
            "default_delegate_latest_features",
            "compress_quantization_zero_points",
            "disable_delegate_node_fusion",
            "force_delegate_node_profiling",
        ):
            record(flag, made, model_content=content, **{f"experimental_{flag}": True})
        record("delegates=[]", made, model_content=content, experimental_delegates=[])
        record("delegates=None", made, model_content=content, experimental_delegates=None)
        record("no such argument", make, model_content=content, nope=1)
        record("OpResolverType(0)", lambda: resolvers(0).name)
        record("OpResolverType(7)", resolvers, 7)
        record("OpResolverType names", lambda: [(kind.name, kind.value) for kind in resolvers])
        custom = api.module.InterpreterWithCustomOps
        record("custom ops", lambda: form(custom(model_content=content).get_tensor(1)))
        record("custom ops by a name that is not there", custom, ["TF_NoSuch"], model_content=content)
        record("custom ops by a function", lambda: custom([lambda resolver: None], model_content=content) and None)
        record("load_delegate", api.module.load_delegate, "/no/such/library.so")

        def warned(**how: Any) -> list[tuple[str, bool]]:
            import warnings

            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                make(model_content=content, **how)
            return [(w.category.__name__, "preserve_all_tensors" in str(w.message)) for w in caught]

        record("warnings", warned)
        for kind in ("AUTO", "BUILTIN", "BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"):
            how = {"experimental_op_resolver_type": getattr(resolvers, kind), "experimental_preserve_all_tensors": True}
            record(f"warnings of {kind}", warned, **how)

    return script
