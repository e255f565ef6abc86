"""What products of all types have in common: pixels, matrices of weights, and rows that are cut into tiles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from gossamer.codegen.commands import Build
from gossamer.codegen.expression import Expression
from gossamer.codegen.kernels.contract import (
    ContractSingle,
    ContractTiles,
    Gemm,
    Panels,
    panels_of,
)
from gossamer.codegen.kernels.groups import largest_group
from gossamer.codegen.kernels.pack import Pack
from gossamer.codegen.spec import KernelSpec
from gossamer.codegen.tiles import Tile, fewer_rows, gemm_tiles, last_vector
from gossamer.programs.program import SCRATCH, Address, Word
from gossamer.records import field, record
from gossamer.sizes import told
from gossamer.views import View, Widened

T = TypeVar("T", bound="Tiled")

BACK_AND_FORTH = 512 << 10
"""Bytes of weights from which the turns of a loop read them back and forth: what the turn before has read last is still
in the cache then, though there is no room for all.

Measured on Zen 4 (1 MB of second-level cache), a row and 1 MB of weights: 9.8 us a turn instead of 11.0; 256 KB: the
same time."""

KEPT = 21 << 10
"""Bytes of a panel that a first-level cache of 32 KB keeps from one turn to the next, beside what else a
turn reads and writes. Where panels are no larger, fewer weights are read back and forth, too.

Measured on Zen 4, bytes: an LSTM of 128 units takes 0.93 of the time, of 192 and 256 0.96, a GRU of 256 0.96."""

LEAST_KEPT = 48
"""Channels of such a panel, at least: with 32, 512 units take 1.03 times as long."""

FIRST_LEVEL = 17 << 10
"""Bytes of all panels up to which the first-level cache keeps them anyway."""

ALIGNMENT = 64
"""Of what is packed, in bytes."""


class Pixels(NamedTuple):
    """Rows of pixels whose channels lie side by side: the first element, and bytes between images, rows and columns."""

    start: Address
    strides: tuple[int, ...]

    def image(self, number: int) -> Pixels:
        """Those from an image on."""
        return self._replace(start=moved(self.start, number * self.strides[0]))


class Matrix(NamedTuple):
    """Weights, [channels, depth]: the first element, bytes between channels and between steps of depth.

    One of the two strides is that of neighbours. ``image``: bytes to the matrix of the next image; 0: they share one.
    """

    start: Address
    channels: int
    depth: int
    strides: tuple[int, int]
    is_constant: bool
    image: int = 0
    item: int = 4
    """Bytes of an element: 4, or 2 for float16, which is widened."""

    @property
    def type(self) -> Literal["f32", "f16"]:
        """Of the elements."""
        return "f32" if self.item == 4 else "f16"

    @property
    def bytes(self) -> int:
        """Of the elements of one matrix."""
        return self.item * self.channels * self.depth

    @property
    def by_depth(self) -> bool:
        """Whether the channels of a step of depth are neighbours, and not the steps of a channel."""
        return self.depth > 1 and self.strides[1] != self.item

    @property
    def is_dense(self) -> bool:
        """Whether one channel follows the other."""
        return not self.by_depth and (self.channels == 1 or self.strides[0] == self.item * self.depth)


class Product(Protocol):
    """A product with weights that may have to be prepared first."""

    weights: Matrix
    nv: int
    packed_bytes: int

    @property
    def is_ready(self) -> bool:
        """Whether they need not."""

    def prepare(self, place: Address, barrier: bool) -> None:
        """Commands that bring them into panels."""

    def multiply(self, place: Address | None, barrier: bool) -> None:
        """The command of the product, with panels at a place."""


def multiply(contractions: Sequence[Product], build: Build) -> None:
    """Commands for products that do not depend on each other."""
    places: dict[Any, int] = {}
    room = 0
    waiting = []
    for one in contractions:
        if one.is_ready:
            continue
        key = told((one.weights, one.nv))
        if key not in places:
            places[key] = room
            room += one.packed_bytes
            waiting.append(one)
    start = build.passing(room) if room else Address("")
    for one in waiting:
        one.prepare(moved(start, places[told((one.weights, one.nv))]), barrier=one is waiting[-1])
    for one in contractions:
        place = None if one.is_ready else moved(start, places[told((one.weights, one.nv))])
        one.multiply(place, barrier=one is contractions[-1])


@record
class Tiled:
    """A product for every pixel of ``shape``: images, rows, columns. What is said of it here knows no types."""

    build: Build
    epilogue: Expression
    shape: tuple[int, ...]
    a: Pixels
    c: Pixels
    residual: Pixels | None

    nv: int = field(init=False, repr=False, compare=False)
    """Vectors of channels of a tile, which make a panel of the weights."""
    panels: Panels = field(init=False, repr=False, compare=False)

    def flatten(self, across_images: bool = True) -> None:
        """Join rows and images: pixels that follow each other in all tensors are one long row."""
        strides = (self.a.strides, self.c.strides, self.residual.strides if self.residual else (0, 0, 0))
        images, rows, columns = self.shape
        self.images, self.rows, self.columns, steps = _flat(images, rows, columns, strides, across_images)
        self.a_steps, self.c_steps, self.r_steps = steps

    def elsewhere(self: T, a: Pixels, c: Pixels, residual: Pixels | None, weights: Matrix) -> T:
        """The same product of what begins elsewhere: tiles and kernels are chosen once for many."""
        other = object.__new__(type(self))
        vars(other).update(vars(self), a=a, c=c, residual=residual, weights=weights)
        return other

    def cut(self, mr: int) -> None:
        """Cut rows into tiles of so many pixels."""
        self.mr = mr
        self.row_tiles, self.rest = -(-self.columns // mr), self.columns % mr
        self.tiles = self.images * self.rows * self.row_tiles

    def choices(self, tiles: Iterable[Tile]) -> Iterator[tuple[Tile, bool]]:
        """Tiles, each with weights that may be streamed and without; no more than one if not even the smallest is at
        hand, as then none has the epilogue."""
        for number, tile in enumerate(tiles):
            if number == 1 and not self.build.has(*self._kernels(((1, 1), False))):
                return
            yield tile, True
            yield tile, False

    def _kernels(self, choice: tuple[Tile, bool]) -> Iterator[KernelSpec]:
        """The microkernels for a tile, if weights may be streamed."""
        raise NotImplementedError

    def groups(self, input: KernelSpec, words: Mapping[str, Word], row_bytes: int, most: int) -> dict[str, Word]:
        """What `ContractGroups` is told of groups of tiles, of up to ``most`` bytes: ``input`` brings each row into
        ``row_bytes``; ``words`` say what it reads."""
        build = self.build
        groups = -(-self.tiles // max(1, most // (self.mr * row_bytes)))
        return {
            "input_shape": build.block(input.arguments, a_stride=self.a_steps[2], v_stride=row_bytes, **words),
            "columns": self.columns,
            "row_bytes": row_bytes,
            "scratch": Address(SCRATCH),
            "scratch_thread": build.scratch(self.mr * row_bytes * largest_group(self.tiles, 1, groups)),
            "groups": groups,
            "most_groups": self.tiles,
        }

    def driver(self) -> KernelSpec:
        """What walks over tiles, unless weights are streamed."""
        return (ContractSingle if self.tiles == 1 else ContractTiles)(self.build.target.name)

    def panelwise(self, words: Mapping[str, Word], bytes: int) -> Mapping[str, Word]:
        """What a driver is told, so that it goes from the last panel to the first in turns that do. ``bytes``: of all
        weights."""
        build, turned = self.build, dict(words)
        if self.tiles > 1 or self.panels.rest_nv or not build.is_repeated:
            return words
        is_kept = self.nv * self.vector_bytes <= KEPT and self.panels.vectors * self.vector_bytes > FIRST_LEVEL
        if bytes < BACK_AND_FORTH and not is_kept:
            return words
        build.goes_back = bool(build.goes_back)
        for name, step in (
            ("b", "panel_bytes"),
            ("bias", "panel_bias"),
            ("zeros", "panel_bias"),
            ("c", "panel_c"),
            ("residual", "panel_residual"),
        ):
            start, stride = words.get(name), words[step]
            if build.goes_back and isinstance(start, Address) and isinstance(stride, int):
                turned |= {name: moved(start, (self.panels.whole - 1) * stride), step: -stride}
        return turned

    @property
    def vector_bytes(self) -> int:
        """Bytes of the weights of a vector of channels, in a panel."""
        raise NotImplementedError

    def is_of_turns(self, weights: Matrix) -> bool:
        """Whether a single row is multiplied by constants in every turn of a loop."""
        return self.build.is_repeated and weights.is_constant and self.images * self.rows * self.columns == 1

    def kept(self, tiles: Iterator[Tile], channels: int, lanes: int) -> Iterator[Tile]:
        """The tiles of such a row. First the largest of those that make panels which are all alike, and of which the
        first-level cache keeps one, if there is one."""
        first, vectors = next(tiles), -(-channels // lanes)
        most = min(first[1], KEPT // self.vector_bytes) if vectors * self.vector_bytes > FIRST_LEVEL else 0
        suit = (nv for nv in range(most, LEAST_KEPT // lanes - 1, -1) if vectors % nv == 0)
        yield from ((1, nv) for nv in islice(suit, 1))
        yield first
        yield from tiles

    def geometry(self, overlapping: bool) -> dict[str, Word]:
        """What drivers are told of the tensors. The last tile of a row overlaps the one before, or is smaller."""
        return {
            "a": self.a.start,
            "c": self.c.start,
            "residual": self.residual.start if self.residual else 0,
            "images": self.images,
            "rows": self.rows,
            "tiles": self.row_tiles,
            "tile_columns": self.mr,
            "large_tiles": self.row_tiles if overlapping else self.columns // self.mr,
            "last_column": max(self.columns - self.mr, 0) if overlapping else (self.row_tiles - 1) * self.mr,
            **{
                f"{name}_{way}": step
                for name, steps in (("a", self.a_steps), ("c", self.c_steps), ("residual", self.r_steps))
                for way, step in zip(("image", "row", "column"), steps, strict=True)
            },
        }

    def depth_words(self, depth: int, offsets: Sequence[int], tail: int) -> dict[str, Word]:
        """What microkernels are told of depth and rows (`gossamer.codegen.kernels.outputs.WALK`)."""
        return {
            "depth": depth,
            "taps": len(offsets),
            "tap_offsets": self.build.table(offsets),
            "a_stride": self.a_steps[2],
            "c_stride": self.c_steps[2],
            "residual_stride": self.r_steps[2],
            "tail": tail,
        }


def tile_at_hand(
    build: Build,
    columns: int,
    channels: int,
    depth: int,
    a_stride: int,
    epilogue: Expression = 0,
    conv: bool = False,
    tiles: Sequence[Tile] = (),
    evenly: bool = False,
) -> Tile:
    """The best tile whose microkernels are at hand, of ``tiles`` or those that suit a shape; ``evenly``: those of
    `fewer_rows`, too."""
    target = build.target

    def kernels(tile: Tile) -> Iterator[Gemm]:
        panels = panels_of(channels, tile[1], target.lanes())
        for mr in (tile[0], fewer_rows(target, *tile) if evenly else tile[0]):
            if panels.whole:
                yield Gemm(target.name, mr, tile[1], epilogue, conv)
            if panels.rest_nv:
                ragged, half = last_vector(target, panels.tail)
                yield Gemm(target.name, mr, panels.rest_nv, epilogue, conv, ragged, half=half)

    return build.first(chain(tiles, gemm_tiles(target, columns, channels, depth, a_stride)), kernels)


def moved(address: Address, bytes: int) -> Address:
    """So many bytes further on."""
    return Address(address.base, address.offset + bytes) if bytes else address


def rounded_up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _flat(
    images: int, rows: int, columns: int, strides: tuple[tuple[int, ...], ...], across_images: bool
) -> tuple[int, int, int, tuple[tuple[int, ...], ...]]:
    if columns == 1:
        strides = tuple((s[0], 0, s[1]) for s in strides)
        rows, columns = 1, rows
    elif rows == 1 or all(s[1] == columns * s[2] for s in strides):
        strides = tuple((s[0], 0, s[2]) for s in strides)
        rows, columns = 1, rows * columns
    if across_images and rows == 1:
        if columns == 1:
            strides = tuple((0, 0, s[0]) for s in strides)
            images, columns = 1, images
        elif images == 1 or all(s[0] == columns * s[2] for s in strides):
            strides = tuple((0, 0, s[2]) for s in strides)
            images, columns = 1, images * columns
    return images, rows, columns, strides


def tap_offsets(kernel: Sequence[int], dilation: Sequence[int], strides: Sequence[int], item: int = 4) -> list[int]:
    """The taps of a kernel [rows, columns, depth] over rows and columns of these strides.

    ``item``: bytes of an element. There is one for each element, or for each row of it, if the elements of its rows are
    adjacent.
    """
    height, width, depth = kernel
    down, across = (d * s for d, s in zip(dilation, strides, strict=True))
    if width == 1 or across == item * depth:
        return [h * down for h in range(height)]
    return [h * down + w * across for h in range(height) for w in range(width)]


def matrix(build: Build, weights: View, item: int = 4) -> Matrix:
    """Weights [channels, ...], of which everything but the channels is depth. Constants of any strides are copied."""
    channels, depth = weights.shape[0], weights.size // weights.shape[0]
    if isinstance(weights.buffer, Widened):
        weights, item = View(weights.buffer.narrow, weights.shape, weights.strides, weights.offset), 2
    rows = weights.reshape((channels, depth))
    # Bytes are packed channel by channel.
    by_depth = item > 1 and (channels == 1 or (rows is not None and rows.strides[0] == 1))
    if rows is None or (depth > 1 and rows.strides[1] != 1 and not by_depth):
        array = weights.buffer.array
        if array is None:
            raise ValueError(f"weights {list(weights.shape)} of strides {list(weights.strides)} are not constant")
        dense = np.lib.stride_tricks.as_strided(
            array.reshape(-1)[weights.offset :], weights.shape, [array.itemsize * s for s in weights.strides]
        )
        start = build.constant(np.ascontiguousarray(dense))
        return Matrix(start, channels, depth, (item * depth, item), True, item=item)
    channel, step = rows.strides
    strides = (item * channel, item * step)
    return Matrix(build.address(rows), channels, depth, strides, weights.is_constant, item=item)


def packed(build: Build, weights: Matrix, nv: int, panels: Panels, images: int = 1) -> Address:
    """Constant weights in panels, packed once for all kernels that read them so."""
    key = (weights, nv)
    known = build.packed(key)
    if known is None:
        known = build.weights(images * packed_bytes(build, weights, panels), key)
        arguments = packing(build, weights, nv, panels, known, images)
        build.pack(Pack(build.target.name, weights.by_depth, weights.type), reads=weights.bytes, **arguments)
    return known


def packing(
    build: Build, weights: Matrix, nv: int, panels: Panels, destination: Address, images: int = 1
) -> dict[str, Word]:
    """The arguments of a kernel that brings weights into panels."""
    return {
        "source": weights.start,
        "destination": destination,
        "channels": weights.channels,
        "depth": weights.depth,
        "source_row": weights.strides[1 if weights.by_depth else 0],
        "nv": nv,
        "panels": panels.whole,
        "rest_nv": panels.rest_nv,
        "images": images,
        "source_image": weights.image,
        "destination_image": packed_bytes(build, weights, panels) if weights.image else 0,
    }


def packed_bytes(build: Build, weights: Matrix, panels: Panels) -> int:
    """Of weights in panels."""
    return 4 * panels.vectors * build.target.lanes() * weights.depth
