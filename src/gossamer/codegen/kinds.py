"""The kinds of kernels: a record for each, with all that passes and reports need to know of it.

The commands of a kind are made by the module of its name in `gossamer.codegen.commands`. Nothing here is about a CPU:
whoever makes something else of a graph finds the same kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import prod
from typing import Any, Literal

from gossamer.codegen.expression import Expression
from gossamer.codegen.graph import Boxes, Kernel, Quantized
from gossamer.codegen.passes.rows import Rows
from gossamer.codegen.passes.turns import Turn
from gossamer.codegen.passes.winograd import Tiles
from gossamer.records import record, replace
from gossamer.views import Geometry


@record(frozen=True, eq=False)
class Window:
    """How settings say by what window the image that is operand 0 is read: ``of`` them, and them ``put`` with another.

    ``stored``: what is outside of the image is read from memory, where ``zero`` of the settings is expected; else it is
    not read.
    """

    of: Callable[[Any], Geometry]
    put: Callable[[Any, Geometry], Any]
    zero: Callable[[Any], int] = lambda settings: 0
    stored: bool = True


def _no_work(node: Kernel) -> int:
    return 0


@record(frozen=True, eq=False)
class Kind:
    """What a kind of kernel reads, writes and computes.

    ``operands`` are named as in an operator's definition: those with ``?`` may be missing, all of them, ``*`` is any
    number. Names say how one must lie: ``weights`` [O, ...] and a ``matrix`` [..., K, N] are packed, so that either
    side may have neighbours. ``settings`` are a type, or the names in a dictionary.
    """

    name: str
    operands: tuple[str, ...]
    settings: type | tuple[str, ...] = ()
    flops: Callable[[Kernel], int] = _no_work
    """Floating-point operations without the epilogue."""

    epilogue: Literal["floats", "quantized", "anything"] | None = None
    """What a map may compute with that becomes its epilogue."""
    extras: int = 0
    """Operands that the epilogue may have beyond the kind's own."""

    window: Window | None = None
    joins: Callable[[Any], Geometry | None] = lambda settings: None
    """Of its settings: the window of which taps that are neighbours in memory are read as one."""
    thins: bool = False
    """Computes every pixel by itself: of a window with larger strides, some of them."""

    lies: Literal["dense", "rows", "anywhere"] = "dense"
    """How the result may lie, and operands that lie where a copy would put them: all together, in rows of neighbours
    (of the last dimension) that are anywhere, or in elements that are."""
    row: int = 1
    """Elements of a row from which results in rows are as quick as dense ones."""
    repeats: bool = False
    """A row of an operand may be one element, over and over."""
    replaces: bool = False
    """May write where it reads: each element in the place of the one that it is computed of."""
    reduced: Callable[[Any], Sequence[int]] | None = None
    """Of its settings: the dimensions of operand 0 over which it goes with few loops."""

    shareable: bool = False
    """Operators add it to what the model says: several may ask for the same."""
    moves: Literal["from", "into"] | None = None
    """It moves a box from operand 0, or operand 0 into a larger tensor: of that no more is read or written."""
    checks: bool = False
    """It may meet a value that is a fault."""
    passing: bool = False
    """Gone when all passes have been over a graph: there are no commands."""

    def geometry(self, settings: Any) -> Geometry | None:
        """The window through which padding is read from memory, if there is one."""
        return self.window.of(settings) if self.window is not None and self.window.stored else None

    def role(self, arity: int, position: int) -> str:
        """What an operand is, of so many."""
        return "extra" if position >= arity else _role(self.operands, arity, position)

    def takes(self, node: Kernel) -> bool:
        """Whether a kernel has the operands and the settings of its kind."""
        fewest = sum(name[-1] != "?" and name[0] != "*" for name in self.operands)
        many = self.operands[-1].startswith("*")
        counted = node.arity >= fewest if many else node.arity in (fewest, len(self.operands))
        names = () if node.settings is None else node.settings
        if isinstance(self.settings, type):
            without = bool(node.regions) and node.settings is None  # a pass gives them
            return counted and (without or isinstance(node.settings, self.settings))
        needed = {name for name in self.settings if not name.endswith("?")}
        return counted and needed <= set(names) <= {name.strip("?") for name in self.settings}


@cache
def _role(names: tuple[str, ...], arity: int, position: int) -> str:
    if arity < len(names):
        names = tuple([name for name in names if not name.endswith("?")])
    return names[min(position, len(names) - 1)].strip("?*")


def kind_of(kernel: Kernel) -> Kind:
    """The record of a kernel's kind."""
    return KINDS[kernel.kind]


def geometry_of(kernel: Kernel) -> Geometry | None:
    """The window through which a kernel reads padding from memory, if it does."""
    return kind_of(kernel).geometry(kernel.settings)


def _window(kernel: Kernel) -> Window:
    window = kind_of(kernel).window
    if window is None:
        raise ValueError(f"{kernel.kind} has no window")
    return window


def window_of(kernel: Kernel) -> Geometry:
    """The window of a kernel of which it is known that it has one."""
    return _window(kernel).of(kernel.settings)


def with_window(kernel: Kernel, geometry: Geometry) -> Any:
    """The settings of a kernel with another window."""
    return _window(kernel).put(kernel.settings, geometry)


def functions_in(expression: Expression) -> int:
    """The functions of an expression; what occurs in it twice is computed once."""
    found: set[Expression] = set()

    def walk(part: Expression) -> None:
        if not isinstance(part, int) and part not in found:
            found.add(part)
            for argument in part[1:]:
                walk(argument)

    walk(expression)
    return len(found)


def _convolution(node: Kernel) -> int:
    # Weights are [O, h, w, C / groups], or of a volume [O, d, h, w, C]; the bias is one more.
    return node.y.size * (2 * prod(node.operands[1].shape[1:]) + 1)


def _elementwise(node: Kernel) -> int:
    return node.y.size


def _dot(node: Kernel) -> int:
    return 2 * node.operands[0].size


def _depthwise(node: Kernel) -> int:
    return node.y.size * (2 * prod(node.operands[1].shape[:2]) + 1)


def _matmul(node: Kernel) -> int:
    return node.y.size * (2 * node.operands[0].shape[-1] + (node.arity > 2))


def _pool(node: Kernel) -> int:
    return node.y.size * prod(window_of(node).kernel)


def _rows(node: Kernel) -> int:
    settings: Rows = node.settings
    images, rows, columns, _ = node.y.shape
    filter, project = node.operands[node.arity - 4], node.operands[node.arity - 2]
    height, width, channels = filter.shape
    flops = images * rows * columns * channels * (2 * height * width + 1 + functions_in(settings.epilogue))
    flops += node.y.size * (2 * prod(project.shape[1:]) + 1)
    if settings.expand:
        geometry, epilogue = settings.expand
        x, weights = node.operands[:2]
        height, width = x.shape[1:3] if geometry.is_pointwise else geometry.output
        each = 2 * prod(weights.shape[1:]) + 1 + functions_in(epilogue)
        flops += images * height * width * weights.shape[0] * each
    return flops


def _reduce(node: Kernel) -> int:
    return node.operands[0].size


def _reduce_after_prologue(node: Kernel) -> int:
    return node.operands[0].size * (1 + functions_in(node.settings[2]))


def _normalize(node: Kernel) -> int:
    # Of each element: for a layer the sum, less the mean, squared, the sum, less the mean, over the deviation; for the
    # others squared, the sum, over the norm.
    return (6 if node.settings.get("norm") == "layer" else 3) * node.y.size


def _local_response(node: Kernel) -> int:
    # Of each element: its square, the sum over its neighbours, times alpha, plus bias.
    neighbours: int = min(2 * max(node.settings["radius"], 0) + 1, node.y.shape[-1])
    return (neighbours + 3) * node.y.size


def _resize(node: Kernel) -> int:
    # Between two elements is a difference, a product and a sum; of four, it is that three times.
    return 9 * node.y.size if isinstance(node.settings["rows"][0], tuple) else 0


def _softmax(node: Kernel) -> int:
    # Of each element: times beta, the maximum, less the maximum, the exponential, the sum, over the sum.
    return 6 * node.y.size


def _scattered(node: Kernel) -> int:
    return 0 if node.settings["combine"] == "set" else node.operands[0].size


def _of_rows(rows: Rows) -> Geometry:
    return rows.border


def _rows_with(rows: Rows, geometry: Geometry) -> Rows:
    if rows.expand is None:
        return replace(rows, geometry=geometry)
    return replace(rows, expand=(geometry, rows.expand[1]))


_PLAIN = Window(lambda geometry: geometry, lambda _, geometry: geometry)
_QUANTIZED = Window(
    lambda quantized: quantized.geometry,
    lambda quantized, geometry: Quantized(geometry, quantized.requantization),
    lambda quantized: int(getattr(quantized.requantization, "x_zero", 0)),  # of int16 it is 0
)
_NAMED = Window(lambda settings: settings["geometry"], lambda settings, geometry: {**settings, "geometry": geometry})
_CONTRACTION = ("x", "weights", "bias")
_DEPTHWISE = ("x", "filter", "bias")

_LISTED = (
    Kind("bitcast", ("x",), ("part?",)),
    Kind("branch", ("flag", "*read")),
    Kind(
        "contract",
        (*_CONTRACTION, "scale?"),
        Geometry,
        _convolution,
        epilogue="floats",
        extras=1,
        window=_PLAIN,
        joins=_PLAIN.of,
        thins=True,
        lies="rows",
    ),
    Kind("copy", ("x",), lies="anywhere"),
    Kind("depthwise", _DEPTHWISE, Geometry, _depthwise, epilogue="floats", window=_PLAIN, lies="rows"),
    Kind("dot16", ("x", "weights"), flops=_dot),
    Kind("dynamic_parameters", ("ranges",), ("rule",), shareable=True),
    Kind("dynamic_quantize", ("x", "headers"), ("rule",), _elementwise, lies="rows", shareable=True),
    Kind("dynamic_range", ("x",), flops=_reduce, lies="rows", shareable=True),
    Kind("arg_reduce", ("x",), ("axis", "greatest"), _reduce, reduced=lambda settings: (settings["axis"],)),
    Kind("embed", ("ids", "places", "weights", "table"), ("combiner",), checks=True),
    Kind("gather", ("x", "vectors"), Boxes, lies="anywhere", moves="from", checks=True),
    Kind("hashsigns", ("seeds", "x", "weights")),
    # Zero points of images are known in a run, and differ; so images have their padding already.
    Kind(
        "hybrid",
        ("levels", "weights", "scales", "bias", "headers?"),
        ("geometry?",),
        _convolution,
        epilogue="floats",
        extras=1,
        lies="rows",
    ),
    Kind(
        "hybrid_depthwise",
        ("levels", "filter", "scales", "bias", "headers"),
        Geometry,
        _depthwise,
        epilogue="floats",
        window=_PLAIN,
        lies="rows",
    ),
    Kind("localresponse", ("x",), ("radius", "bias", "alpha"), _local_response, lies="rows"),
    Kind("loop", ("flag", "*read"), Turn),
    Kind(
        "map",
        ("x",),
        epilogue="anything",
        extras=7,
        lies="rows",
        row=16,
        repeats=True,
        replaces=True,
    ),
    Kind("matmul", ("x", "matrix", "bias?"), flops=_matmul, epilogue="floats", extras=1, lies="rows"),
    Kind("nonzero", ("x",), checks=True),
    Kind("normalize", ("x",), ("norm", "epsilon"), _normalize, lies="rows"),
    Kind("packbits", ("x",), ("bits",)),
    Kind("pad", ("x", "value"), tuple, passing=True),
    Kind("push", ("x",)),
    Kind("put", ("x", "vector"), Boxes, lies="anywhere", moves="into"),
    Kind("quantize", ("x",), flops=_elementwise, lies="rows", shareable=True),
    Kind(
        "quantized_contract",
        _CONTRACTION,
        Quantized,
        _convolution,
        epilogue="quantized",
        extras=5,
        window=_QUANTIZED,
        joins=_QUANTIZED.of,
        thins=True,
        lies="rows",
    ),
    # Pixels of fewer channels are treated together where they follow each other.
    Kind("quantized_depthwise", _DEPTHWISE, Quantized, _depthwise, window=_QUANTIZED, lies="rows", row=32),
    Kind("quantized_matmul", ("x", "matrix", "bias"), Quantized, _matmul, epilogue="quantized", extras=5, lies="rows"),
    Kind("quantized_normalize", ("x",), ("zero_point",), _normalize, lies="rows"),
    Kind(
        "quantized_product",
        ("x", "numbers"),
        ("axes",),
        _reduce,
        lies="rows",
        reduced=lambda settings: settings["axes"],
    ),
    Kind(
        "quantized_reduce",
        ("x", "scale?"),
        ("reduction", "axes"),
        _reduce,
        lies="rows",
        reduced=lambda settings: settings["axes"],
    ),
    Kind("quantized_softmax", ("x", "table", "levels"), ("log",), _softmax, lies="rows"),
    Kind(
        "quantized_window",
        ("x",),
        ("reduction", "geometry", "low", "high"),
        _pool,
        window=replace(_NAMED, stored=False),
        lies="rows",
    ),
    Kind("random", ("state",), ("algorithm",)),
    Kind(
        "reduce",
        ("x",),
        tuple,
        _reduce_after_prologue,
        epilogue="floats",
        lies="rows",
        reduced=lambda settings: settings[1],
    ),
    Kind("resize", ("x",), ("rows", "columns"), _resize, lies="rows"),
    Kind(
        "rows",
        ("x", "weights?", "bias?", "filter", "bias", "weights", "bias"),
        Rows,
        _rows,
        window=Window(_of_rows, _rows_with),
        joins=lambda rows: rows.expand[0] if rows.expand else None,
        lies="rows",
    ),
    Kind("scan", ("x",), ("axis", "exclusive", "reverse"), _reduce, lies="anywhere"),
    Kind("scatter", ("x", "places"), ("combine", "skips"), _scattered, lies="rows", checks=True),
    Kind("search", ("keys", "x"), ("rule",)),
    Kind("segments", ("x", "ids"), flops=_reduce, lies="rows", checks=True),
    Kind("softmax", ("x",), tuple, _softmax, lies="rows"),
    Kind("softmax16", ("x", "scale", "exponentials", "reciprocals"), flops=_softmax, lies="rows"),
    Kind("strassen", _CONTRACTION, Geometry, _convolution, window=_PLAIN, lies="rows"),
    Kind(
        "suppress",
        ("boxes", "scores", "score_threshold", "iou_threshold", "decay?"),
        ("repeats",),
        lies="rows",
        checks=True,
    ),
    Kind("topk", ("x",)),
    Kind("unique", ("x",)),
    Kind("unpackbits", ("x",), ("bits", "signed")),
    Kind("where", ("x",), ("sizes",)),
    Kind("conv3d", _CONTRACTION, ("stride", "dilation"), _convolution, epilogue="floats", extras=1, lies="rows"),
    Kind(
        "window",
        ("x",),
        tuple,
        _pool,
        epilogue="floats",
        window=Window(lambda settings: settings[1], lambda settings, g: (settings[0], g), stored=False),
        lies="rows",
    ),
    Kind(
        "winograd",
        _CONTRACTION,
        Tiles,
        _convolution,
        window=Window(lambda tiles: tiles.geometry, lambda tiles, geometry: replace(tiles, geometry=geometry)),
        lies="rows",
    ),
)

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _LISTED}
"""By name."""
