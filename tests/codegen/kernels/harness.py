"""Kernels on NumPy arrays: compiled, loaded, given argument blocks, and run in shares as threads would.

Arrays that `guarded` returns end where a page that may not be touched begins, so that a kernel that reads or writes
behind its buffers does not survive the test. Tests marked ``emulator`` run their kernels on `machine`, an emulated one.
"""

from __future__ import annotations

import ctypes
import mmap
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import pytest

from gossamer.codegen.compiler import compile_kernel
from gossamer.codegen.expression import IDENTITY, Expression
from gossamer.codegen.kernels.contract import (
    DEPTH_BLOCK,
    ContractPanels,
    ContractSingle,
    ContractState,
    ContractTiles,
    Gemm,
    panels_of,
)
from gossamer.codegen.kernels.pack import Pack
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.codegen.tiles import last_vector
from gossamer.programs import host
from gossamer.targets import Target, all_targets
from tests.codegen.emulator import DOTPROD, NEON, READ, Machine

RUNNABLE = [target for target in all_targets().values() if target.runs_on(host.cpu_features())]
EMULATED = [target for target in (NEON, DOTPROD) if target not in RUNNABLE]
PLAIN = [target for target in all_targets().values() if target.base is None]
"""Those that kernels are made for which neither multiply nor look up bytes."""


def _on(runnable: Sequence[Target], emulated: Sequence[Target]) -> Any:
    targets = [*runnable, *(pytest.param(target, marks=pytest.mark.emulator) for target in emulated)]
    return pytest.mark.parametrize("target", targets, ids=lambda target: target.name)


on_every_target = _on([target for target in RUNNABLE if target in PLAIN], [t for t in EMULATED if t in PLAIN])
on_every_extension = _on(RUNNABLE, EMULATED)

machine: Machine | None = None
"""Where kernels and arrays are; none: here."""

_copies: list[np.ndarray] = []
"""What kernels on the machine read of arrays that are not there."""


@contextmanager
def on(emulated: Machine) -> Iterator[None]:
    """Kernels and arrays are on this machine meanwhile."""
    global machine
    machine = emulated
    try:
        yield
    finally:
        machine = None
        _copies.clear()


@cache
def load(spec: KernelSpec, machine: Machine | None) -> tuple[int, Any]:
    """The address of a kernel, and what keeps it there."""
    blob = compile_kernel(spec, all_targets()[spec.isa])
    if machine is not None:
        return machine.load(blob), machine
    memory = host.ExecutableMemory.from_bytes(blob.code)
    return memory.address + blob.entry, memory


def address(spec: KernelSpec | None) -> int:
    """Where a kernel is; null for none."""
    return load(spec, machine)[0] if spec else 0


def block(layout: ArgumentBlock, **values: Any) -> np.ndarray:
    """An argument block of numbers, arrays and kernels."""
    words = layout.words(**values)
    return np.array([_word(word) for word in words], np.int64)


def _word(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return place(value)
    return address(value) if value is None or isinstance(value, KernelSpec) else int(value)


def place(array: np.ndarray) -> int:
    """Where kernels find an array. On a machine, all but guarded ones are copied, and can only be read."""
    here = array.ctypes.data
    if machine is None or machine.has(here):
        return here
    whole = array
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    copy = machine.memory(whole.nbytes, READ)
    copy[:] = np.frombuffer(whole.tobytes("A"), np.uint8)
    _copies.append(copy)
    return copy.ctypes.data + here - whole.ctypes.data


def run(spec: KernelSpec, arguments: np.ndarray, threads: int = 1) -> None:
    """Run the shares of all threads, the last one first: they do not depend on each other."""
    for tid in reversed(range(threads)):
        call(address(spec), place(arguments), tid, threads)


def call(function: int, *arguments: int) -> None:
    """Call a function of any integers."""
    if machine is None:
        ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(arguments))(function)(*arguments)
    else:
        machine.call(function, *arguments)


def guarded(array: np.ndarray) -> np.ndarray:
    """A copy that ends just before a page that cannot be touched."""
    array = np.ascontiguousarray(array)
    if machine is not None:
        copy = machine.memory(array.nbytes).view(array.dtype).reshape(array.shape)
        copy[...] = array
        return copy
    if sys.platform != "linux":
        return array.copy()
    page = mmap.PAGESIZE
    room = -(-max(array.nbytes, 1) // page) * page
    memory = mmap.mmap(-1, room + page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if _libc().mprotect(ctypes.c_void_p(start + room), ctypes.c_size_t(page), 0):
        raise OSError(ctypes.get_errno(), "mprotect")
    copy = np.frombuffer(memory, array.dtype, array.size, room - array.nbytes).reshape(array.shape)
    copy[...] = array
    return copy


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def filled(shape: Sequence[int], value: float = np.nan) -> np.ndarray:
    """A guarded array to write into."""
    return guarded(np.full(shape, value, np.float32))


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """A guarded array of normally distributed numbers."""
    return guarded(rng.standard_normal(shape).astype(np.float32))


def pack(target: Target, weights: np.ndarray, nv: int, threads: int = 1, by_depth: bool = False) -> np.ndarray:
    """Weights [channels, depth] ([depth, channels] ``by_depth``) of any type in panels of that type."""
    return pack_batch(target, weights[None], nv, threads, by_depth)[0]


def pack_batch(
    target: Target,
    weights: np.ndarray,
    nv: int,
    threads: int = 1,
    by_depth: bool = False,
    packed_type: type | None = None,
) -> np.ndarray:
    """A batch of them."""
    channels, depth = weights.shape[:0:-1] if by_depth else weights.shape[1:]
    panels = panels_of(channels, nv, target.lanes())
    dtype = np.dtype(packed_type or weights.dtype)
    packed = guarded(np.full((len(weights), panels.vectors * target.lanes() * depth), np.nan, dtype))
    names = {np.dtype(np.float32): "f32", np.dtype(np.float16): "f16"}
    spec = Pack(target.name, by_depth, names[weights.dtype], names[dtype])
    arguments = block(
        spec.arguments,
        source=weights,
        destination=packed,
        channels=channels,
        depth=depth,
        source_row=weights.strides[1],
        nv=nv,
        panels=panels.whole,
        rest_nv=panels.rest_nv,
        images=len(weights),
        source_image=weights.strides[0],
        destination_image=packed.strides[0],
    )
    run(spec, arguments, threads)
    return packed


class Product:
    """y = a b for batches of matrices: a [images, m, k], b [images, k, n], or [images, n, k] ``by_channel``."""

    def __init__(
        self, target: Target, a: np.ndarray, b: np.ndarray, y: np.ndarray, tile: tuple[int, int], by_channel: bool
    ) -> None:
        images, m, n = y.shape
        k, lanes = a.shape[2], target.lanes()
        mr, nv = min(tile[0], m), tile[1]
        panels = panels_of(n, nv, lanes)
        packed = pack_batch(target, b, nv, by_depth=not by_channel)
        ragged, half = last_vector(target, panels.tail)
        bias = guarded(np.zeros(n, np.float32))
        shape = block(
            Gemm.arguments,
            depth=k,
            taps=1,
            tap_offsets=0,
            a_stride=a.strides[1],
            c_stride=y.strides[1],
            residual_stride=0,
            tail=panels.tail,
        )
        self.spec = ContractTiles(target.name)
        self.arguments = block(
            self.spec.arguments,
            a=a,
            b=packed,
            bias=bias,
            c=y,
            residual=0,
            images=images,
            rows=1,
            tiles=-(-m // mr),
            tile_columns=mr,
            large_tiles=-(-m // mr),
            last_column=m - mr,
            a_image=a.strides[0],
            a_row=0,
            a_column=a.strides[1],
            b_image=packed.strides[0],
            c_image=y.strides[0],
            c_row=0,
            c_column=y.strides[1],
            residual_image=0,
            residual_row=0,
            residual_column=0,
            panels=panels.whole,
            panel_bytes=4 * nv * lanes * k,
            **dict.fromkeys(("panel_bias", "panel_c", "panel_residual"), 4 * nv * lanes),
            kernel=Gemm(target.name, mr, nv),
            smaller_kernel=None,
            smaller_ragged_kernel=None,
            shape=shape,
            ragged_kernel=Gemm(target.name, mr, panels.rest_nv, ragged=ragged, half=half) if panels.rest_nv else None,
            ragged_shape=shape,
        )
        self._keep = (a, packed, bias, y, shape)

    def run(self, threads: int = 1) -> None:
        """Do it."""
        run(self.spec, self.arguments, threads)


class Convolution:
    """y = epilogue(x * weights + bias) through a driver, over NHWC arrays; x has its border already.

    ``depth_block``: the elements of depth of a block, for the panel driver; none: the tile driver. ``by_tile``: how
    threads share what the panel driver does. ``evenly``: the last tiles of a row have a pixel less, so that all fit.
    ``zeros``: what takes the place of the bias if x is one pixel of zeros.
    """

    def __init__(
        self,
        target: Target,
        x: np.ndarray,
        weights: np.ndarray,
        bias: np.ndarray,
        y: np.ndarray,
        tile: tuple[int, int],
        epilogue: Expression = IDENTITY,
        residual: np.ndarray | None = None,
        stride: int = 1,
        dilation: int = 1,
        group: tuple[int, int] = (0, 0),
        depth_block: int | None = None,
        prefetch: int = 0,
        threads: int = 1,
        by_tile: bool = False,
        evenly: bool = False,
        zeros: np.ndarray | None = None,
    ) -> None:
        channels, kernel_height, kernel_width, depth = weights.shape
        mr, nv = tile
        lanes = target.lanes()
        images, rows, columns, _ = y.shape
        dense = dilation == 1 and depth == x.shape[3]
        if kernel_height == kernel_width == 1:
            offsets = [0]
        elif dense:
            offsets = [dilation * h * x.strides[1] for h in range(kernel_height)]
            depth *= kernel_width
        else:
            offsets = [
                dilation * (h * x.strides[1] + w * x.strides[2])
                for h in range(kernel_height)
                for w in range(kernel_width)
            ]
        conv = len(offsets) > 1
        if not conv and stride == 1 and x.shape[1:3] == y.shape[1:3]:
            rows, columns, images = 1, rows * columns * images, 1
        mr = min(mr, columns)
        panels = panels_of(channels, nv, lanes)
        self.packed = pack(target, weights.reshape(channels, -1), nv, threads)
        self._keep: list[Any] = [x, weights, bias, y, residual]
        y_group = y[..., group[1] : group[1] + channels]
        tiles, rest = -(-columns // mr), columns % mr
        overlap = depth_block is None
        large, smaller, end = tiles if overlap else columns // mr, rest or mr, columns - mr if overlap else columns
        if evenly:
            large, smaller, end = columns - tiles * (mr - 1), mr - 1, columns
        geometry = {
            "a": x[..., group[0] :],
            "b": self.packed,
            "bias": bias,
            "c": y_group,
            "residual": 0 if residual is None else residual,
            "images": images,
            "rows": rows,
            "tiles": tiles,
            "tile_columns": mr,
            "large_tiles": large,
            "last_column": end,
            "a_image": x.strides[0],
            "a_row": stride * x.strides[1],
            "a_column": stride * x.strides[2],
            "b_image": 0,
            "c_image": y.strides[0],
            "c_row": y.strides[1],
            "c_column": y.strides[2],
            "residual_image": 0 if residual is None else residual.strides[0],
            "residual_row": 0 if residual is None else residual.strides[1],
            "residual_column": 0 if residual is None else residual.strides[2],
            "panels": panels.whole,
            "panel_bytes": weights.itemsize * nv * lanes * depth * len(offsets),
            **dict.fromkeys(("panel_bias", "panel_c", "panel_residual"), 4 * nv * lanes),
        }
        table = self._held(np.array(offsets, np.int64))
        ragged, half = last_vector(target, panels.tail)
        kind = "f16" if weights.dtype == np.float16 else "f32"

        def shape(depth: int, taps: np.ndarray) -> np.ndarray:
            return self._held(
                block(
                    Gemm.arguments,
                    depth=depth,
                    taps=len(taps),
                    tap_offsets=taps,
                    a_stride=stride * x.strides[2],
                    c_stride=y.strides[2],
                    residual_stride=0 if residual is None else residual.strides[2],
                    tail=panels.tail,
                )
            )

        if overlap:
            both = shape(depth, table)
            geometry |= {"shape": both, "ragged_shape": both}
            for name, height in (("", mr), ("smaller_", smaller if evenly else mr)):
                last = None
                if panels.rest_nv:
                    last = Gemm(target.name, height, panels.rest_nv, epilogue, conv, ragged, half=half, weights=kind)
                kernel = Gemm(target.name, height, nv, epilogue, conv, weights=kind)
                geometry |= {f"{name}kernel": kernel, f"{name}ragged_kernel": last}
            self.kernels = [geometry["kernel"], geometry["ragged_kernel"]]
            driver = ContractSingle if tiles == rows == images == 1 else ContractTiles
            self.spec: KernelSpec = driver(target.name)
            if zeros is not None:
                self.spec = ContractState(target.name)
                geometry |= {"zeros": zeros, "empty": shape(0, table), "words": depth, "word": 0}
                geometry |= {"row": geometry["a"], "first": geometry["a"], "first_word": 0}
            self.arguments = block(self.spec.arguments, **self.spec.arguments.chosen(geometry))
            return

        assert depth_block is not None
        pieces = [
            (tap, start, min(depth_block, depth - start))
            for tap in range(len(offsets))
            for start in range(0, depth, depth_block)
        ]

        def blocks(vectors: int, is_last: bool) -> np.ndarray:
            rows = []
            for number, (tap, start, size) in enumerate(pieces):
                final = number == len(pieces) - 1
                done = epilogue if final else IDENTITY

                def kernel(height: int, done: Expression = done, number: int = number) -> Gemm:
                    accumulate = number > 0
                    return Gemm(
                        target.name,
                        height,
                        vectors,
                        done,
                        False,
                        is_last and ragged,
                        accumulate,
                        prefetch,
                        is_last and half,
                        kind,
                    )

                at = (tap * depth + start) * vectors * lanes * weights.itemsize
                rows.append(
                    block(
                        DEPTH_BLOCK,
                        kernel=kernel(mr),
                        last_kernel=kernel(smaller),
                        shape=shape(size, table[:1]),
                        a_offset=offsets[tap] + 4 * start,
                        b_offset=at,
                        next_stride=prefetch * 64 * (size // 4),
                        next_offset=size * vectors * lanes * weights.itemsize,
                    )
                )
            return self._held(np.concatenate(rows))

        self.spec = ContractPanels(target.name)
        self.arguments = block(
            self.spec.arguments,
            **geometry,
            blocks=blocks(nv, False) if panels.whole else 0,
            ragged_blocks=blocks(panels.rest_nv, True) if panels.rest_nv else 0,
            block_count=len(pieces),
            panel_tasks=1 if by_tile else images * rows * tiles,
            tile_tasks=panels.whole + (panels.rest_nv > 0) if by_tile else 1,
        )

    def run(self, threads: int = 1) -> None:
        """Do it."""
        run(self.spec, self.arguments, threads)

    def _held(self, array: np.ndarray) -> np.ndarray:
        self._keep.append(array)
        return array


def inner_loops(text: str, instruction: str) -> list[str]:
    """The blocks of assembly text that have an instruction, a pattern, and jump back to themselves."""
    loops = []
    for match in re.finditer(r"^(\.LBB\d+_\d+):(.*?)(?=^\.LBB|\Z)", text, re.S | re.M):
        label, body = match.groups()
        jumps_back = re.search(rf"\s(j\w+|b\.\w+|cbn?z|tbn?z)\s.*{re.escape(label)}$", body, re.M)
        if jumps_back and re.search(instruction, body):
            loops.append(body[: jumps_back.end()])
    return loops
