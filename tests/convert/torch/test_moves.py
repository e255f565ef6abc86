"""Shapes, parts, copies, paddings, elements at positions, scattered updates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.convert.sources.symbolic import Symbol
from gossamer.errors import ConvertError
from tests.convert.torch.programs import Fixed, Program, check_one, same

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
U = Symbol("u0")


@pytest.mark.parametrize(
    ("target", "expected", "arguments"),
    [
        ("view.default", X.reshape(6, 4), {"size": [-1, 4]}),
        ("flatten.using_ints", X.reshape(2, 12), {"start_dim": 1}),
        ("unflatten.int", X.reshape(2, 3, 2, 2), {"dim": 2, "sizes": [2, -1]}),
        ("squeeze.dim", X, {"dim": 0}),
        ("permute.default", X.transpose(2, 0, 1), {"dims": [2, 0, -2]}),
        ("transpose.int", X.swapaxes(0, 2), {"dim0": 0, "dim1": -1}),
        ("movedim.int", np.moveaxis(X, 0, 2), {"source": 0, "destination": 2}),
        ("mT.default", X.swapaxes(1, 2), {}),
        ("select.int", X[:, -1], {"dim": 1, "index": -1}),
        ("slice.Tensor", X[:, 1:], {"dim": 1, "start": 1, "end": 2**63 - 1}),
        ("slice.Tensor", X[..., -3:-1], {"dim": 2, "start": -3, "end": -1}),
        ("slice.Tensor", X[..., ::3], {"dim": -1, "step": 3}),
        ("narrow.default", X[..., 1:3], {"dim": 2, "start": 1, "length": 2}),
        ("expand.default", np.broadcast_to(X, (5, 2, 3, 4)), {"size": [5, -1, 3, -1]}),
        ("unfold.default", np.stack([X[..., 0:2], X[..., 2:4]], 2), {"dimension": 2, "size": 2, "step": 2}),
        ("diagonal.default", np.diagonal(X, -1, 1, 2), {"offset": -1, "dim1": 1, "dim2": 2}),
        ("repeat.default", np.tile(X, (2, 1, 1, 3)), {"repeats": [2, 1, 1, 3]}),
        ("repeat_interleave.self_int", np.repeat(X, 3, 1), {"repeats": 3, "dim": 1}),
        ("flip.default", X[::-1, :, ::-1], {"dims": [0, -1]}),
        ("roll.default", np.roll(X, (1, -2), (0, 2)), {"shifts": [1, -2], "dims": [0, 2]}),
        ("roll.default", np.roll(X, 5), {"shifts": [5]}),
        ("rot90.default", np.rot90(X, 1, (0, 2)), {"k": 1, "dims": [0, 2]}),
        ("tril.default", np.tril(X, 1), {"diagonal": 1}),
        ("triu.default", np.triu(X), {}),
        ("diag_embed.default", np.stack([np.stack([np.diag(r, 1) for r in m]) for m in X]), {"offset": 1}),
        ("channel_shuffle.default", X[:, [0, 1, 2]], {"groups": 3}),
        ("constant_pad_nd.default", np.pad(X[..., 1:], [(0, 0), (2, 0), (0, 3)], constant_values=7),
         {"pad": [-1, 3, 2, 0], "value": 7.0}),
        ("reflection_pad1d.default", np.pad(X, [(0, 0), (0, 0), (2, 3)], mode="reflect"), {"padding": [2, 3]}),
        ("replication_pad1d.default", np.pad(X, [(0, 0), (0, 0), (2, 5)], mode="edge"), {"padding": [2, 5]}),
        ("pad.default", np.pad(X, [(0, 0), (0, 0), (1, 2)], mode="wrap"), {"pad": [1, 2], "mode": "circular"}),
        ("full_like.default", np.full_like(X, 3), {"fill_value": 3}),
        ("new_ones.default", np.ones((2, 2), np.float32), {"size": [2, 2]}),
    ],
)  # fmt: skip
def test_one_tensor(target: str, expected: Any, arguments: dict[str, Any]) -> None:
    given = X[None] if target == "squeeze.dim" else X
    check_one(f"aten.{target}", np.ascontiguousarray(expected), self=given, **arguments)


def test_made_of_nothing() -> None:
    for target, expected, arguments in (
        ("arange.start_step", np.arange(1, 9, 3), {"start": 1, "end": 9, "step": 3}),
        ("linspace.default", np.linspace(0, 1, 5, dtype=np.float32), {"start": 0, "end": 1, "steps": 5}),
        ("eye.m", np.eye(2, 3, dtype=np.float32), {"n": 2, "m": 3}),
        ("full.default", np.full((2, 2), True), {"size": [2, 2], "fill_value": True}),
        ("scalar_tensor.default", np.array(2.5, np.float32), {"s": 2.5}),
    ):
        p = Program()
        x = p.input("x", X)
        made = p.call(f"aten.{target}", expected, **arguments)
        p.output(made, expected)
        p.output(x, X)
        assert p.check().operators == []


def test_side_by_side() -> None:
    check_one("aten.cat.default", np.concatenate([X, X], 2), tensors=[X, X.copy()], dim=-1)
    integers = np.arange(24).reshape(2, 3, 4)
    check_one("aten.cat.default", np.concatenate([X, integers], 0).astype(np.float32), tensors=[X, integers])
    check_one("aten.stack.default", np.stack([X, X + 1], 3), tensors=[X, X + 1], dim=3)
    check_one("aten.stack.default", np.stack([X > 3, X > 5]), tensors=[X > 3, X > 5])
    check_one("aten.split.Tensor", [X[..., :3], X[..., 3:]], self=X, split_size=3, dim=2)
    check_one("aten.split_with_sizes.default", [X[:, :1], X[:, 1:]], self=X, split_sizes=[1, 2], dim=1)
    check_one("aten.unbind.int", [X[:, 0], X[:, 1], X[:, 2]], self=X, dim=1)
    column, row = np.meshgrid(np.arange(3), np.arange(4), indexing="ij")
    check_one("aten.meshgrid.indexing", [column, row], tensors=[np.arange(3), np.arange(4)], indexing="ij")


@pytest.mark.parametrize("r", [2, 3])
def test_pixels(r: int) -> None:
    x = np.random.default_rng(1).random((2, 2 * r * r, 3, 4), np.float32)
    wide = x.reshape(2, 2, r, r, 3, 4).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 3 * r, 4 * r)
    check_one("aten.pixel_shuffle.default", wide, self=x, upscale_factor=r)
    check_one("aten.pixel_unshuffle.default", x, self=wide, downscale_factor=r)


def test_windows_as_columns() -> None:
    x = np.random.default_rng(2).random((2, 3, 5, 6), np.float32)
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
    columns = seen.transpose(0, 1, 4, 5, 2, 3).reshape(2, 27, -1)
    arguments = {"kernel_size": [3, 3], "dilation": [1, 1], "padding": [1, 1], "stride": [2, 2]}
    check_one("aten.im2col.default", columns, self=x, **arguments)
    back = np.zeros((2, 3, 7, 8), np.float32)
    for n, (r, c) in enumerate(np.ndindex(3, 3)):
        back[:, :, 2 * r : 2 * r + 3, 2 * c : 2 * c + 3] += columns[:, :, n].reshape(2, 3, 3, 3)
    check_one("aten.col2im.default", back[:, :, 1:-1, 1:-1], self=columns, output_size=[5, 6], **arguments)


# -- elements at positions


def test_gathers() -> None:
    places = np.array([2, 0, 1])
    check_one("aten.index_select.default", X[:, places], self=X, dim=1, index=places)
    assert check_one("aten.embedding.default", X[0][places], weight=Fixed(X[0]), indices=places) == ["GATHER"]
    along = np.array([[[3, 0], [1, 1], [2, 3]], [[0, 0], [1, 3], [3, 2]]])
    check_one("aten.gather.default", np.take_along_axis(X, along, 2), self=X, dim=2, index=along)
    check_one("aten.gather.default", np.take_along_axis(X[:1, :2], along[:1, :2], 2), self=X, dim=2,
              index=along[:1, :2].copy())  # fmt: skip
    check_one("aten.take.default", X.reshape(-1)[along], self=X, index=along)
    check_one("aten.one_hot.default", np.eye(4, dtype=np.int64)[places], self=places, num_classes=4)


@pytest.mark.parametrize(
    "indices",
    [
        [np.array([1, -1]), None, None],
        [None, np.array([[1, -1], [0, 2]]), None],
        [np.array([1, 0]), np.array([[1], [2]]), None],
        [np.array([1, 0, 1]), None, np.array([0, -1, 2])],
        [None, np.array([1, 0]), np.array([3, 3])],
        [np.array(1), None, None],
    ],
)
def test_index_is_as_in_numpy(indices: list[Any]) -> None:
    key = tuple([slice(None) if one is None else one for one in indices])
    check_one("aten.index.Tensor", X[key], self=X, indices=indices)
    wanted = X.copy()
    wanted[key] = -1
    check_one("aten.index_put.default", wanted, self=X, indices=indices, values=np.array(-1, np.float32))
    values = np.random.default_rng(3).random(X[key].shape, np.float32)
    if len({tuple(place) for place in zip(*[np.ravel(i) for i in indices if i is not None], strict=False)}) > 1:
        np.add.at(wanted := X.copy(), key, values)
        check_one("aten.index_put.default", wanted, self=X, indices=indices, values=values, accumulate=True)


def test_masks() -> None:
    p = Program({"u0": (0, None)})
    x = p.input("x", X[0])
    mask = p.call("aten.gt.Scalar", X[0] > 4, self=x, other=4)
    p.output(p.call("aten.index.Tensor", (X[0][X[0] > 4], (U,)), self=x, indices=[mask]), X[0][X[0] > 4])
    p.output(p.call("aten.nonzero.default", (np.argwhere(X[0] > 4), (U, 2)), self=mask), np.argwhere(X[0] > 4))
    result = p.check({"x": X[1]})
    same(result.outputs["v1_0"], X[1][X[1] > 4])
    check_one("aten.index_put.default", np.where(X > 4, 0, X), self=X, indices=[X > 4], values=np.array(0, np.float32))
    source = np.arange(100, 124, dtype=np.float32)
    wanted = X.copy()
    wanted[X % 3 == 0] = source[:8]
    check_one("aten.masked_scatter.default", wanted, self=X, mask=X % 3 == 0, source=source)


@pytest.mark.parametrize("reduce", [None, "sum", "prod", "amax", "amin", "mean"])
def test_scatter(reduce: str | None) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4) + 1
    index = np.array([[0, 3], [2, 1]]) if reduce is None else np.array([[0, 0], [2, 2]])
    source = np.array([[5, -6], [7, 0.5]], np.float32)
    wanted = x.copy()
    for r, c in np.ndindex(2, 2):
        here = wanted[r, index[r, c]]
        wanted[r, index[r, c]] = {
            None: source[r, c],
            "sum": here + source[r, c],
            "mean": here + source[r, c],
            "prod": here * source[r, c],
            "amax": max(here, source[r, c]),
            "amin": min(here, source[r, c]),
        }[reduce]
    if reduce == "mean":
        wanted[0, 0] /= 3
        wanted[1, 2] /= 3
    if reduce is None:
        check_one("aten.scatter.src", wanted, self=x, dim=1, index=index, src=source)
        wanted = x.copy()
        np.put_along_axis(wanted[:2], index, 9, 1)
        check_one("aten.scatter.value", wanted, self=x, dim=1, index=index, value=9)
    else:
        check_one("aten.scatter_reduce.two", wanted, self=x, dim=1, index=index, src=source, reduce=reduce)


def test_updates_along_an_axis() -> None:
    places, rows = np.array([2, 0]), np.ones((2, 2, 4), np.float32)
    wanted = X.copy()
    wanted[:, places] += 2 * rows
    check_one("aten.index_add.default", wanted, self=X, dim=1, index=places, source=rows, alpha=2)
    wanted[:, places] = rows
    check_one("aten.index_copy.default", wanted, self=X, dim=1, index=places, source=rows)
    wanted = X.copy()
    wanted[:, 1:] = 5
    check_one("aten.slice_scatter.default", wanted, self=X, src=wanted[:, 1:].copy(), dim=1, start=1)
    wanted = X.copy()
    wanted[..., 2] = 5
    check_one("aten.select_scatter.default", wanted, self=X, src=wanted[..., 2].copy(), dim=-1, index=2)


# -- reductions and order


@pytest.mark.parametrize("axes", [None, [1], [0, -1]])
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions(axes: list[int] | None, keepdim: bool) -> None:
    x = np.random.default_rng(5).standard_normal((2, 3, 4)).astype(np.float32)
    over = {"axis": None if axes is None else tuple(axes), "keepdims": keepdim}
    given = {"dim": axes, "keepdim": keepdim}
    for name, function in {"sum": np.sum, "mean": np.mean, "amax": np.max, "amin": np.min}.items():
        check_one(f"aten.{name}.dim_IntList", np.array(function(x, **over)), self=x, **given)  # type: ignore[operator]
    check_one("aten.var.correction", np.array(x.var(ddof=1, **over)), self=x, **given)
    check_one("aten.std.correction", np.array(x.std(**over)), self=x, correction=0, **given)
    check_one("aten.any.dims", np.array((x > 1).any(**over)), self=x > 1, **given)
    check_one("aten.logsumexp.default", np.array(np.log(np.exp(x).sum(**over))), self=x, **given)
    norm = np.array((np.abs(x) ** 3).sum(**over) ** (1 / 3))
    check_one("aten.linalg_vector_norm.default", norm, self=x, ord=3, **given)


def test_integers_are_summed_as_such() -> None:
    big = np.array([2**40, 1, 2])
    check_one("aten.sum.default", np.array(big.sum()), self=big)
    check_one("aten.prod.default", np.array(24), self=np.array([2, 3, 4], np.int32))
    check_one("aten.sum.dim_IntList", np.array([2]), self=np.array([[True, True, False]]), dim=[1])


def test_positions_and_order() -> None:
    x = np.array([[3, 1, 2, 3], [0, -1, 5, 4]], np.float32)
    check_one("aten.argmax.default", x.argmax(1), self=x, dim=1)
    check_one("aten.argmax.default", np.array(x.argmax()), self=x)
    check_one("aten.min.dim", [x.min(0), x.argmin(0)], self=x, dim=0)
    check_one("aten.max.dim", [x.max(1, keepdims=True), x.argmax(1)[:, None]], self=x, dim=1, keepdim=True)
    order = np.argsort(x, 1, kind="stable")
    check_one("aten.sort.default", [np.sort(x, 1), order], self=x)
    falling = np.argsort(-x, 0, kind="stable")
    check_one("aten.sort.default", [-np.sort(-x, 0), falling], self=x, dim=0, descending=True)
    check_one("aten.topk.default", [-np.sort(-x, 1)[:, :2], np.argsort(-x, 1, kind="stable")[:, :2]], self=x, k=2)
    integers = np.array([5, -(2**40), 7])
    check_one("aten.argsort.default", np.argsort(integers), self=integers)
    check_one("aten.median.default", np.array(2, np.float32), self=x)
    check_one("aten.searchsorted.Tensor", np.array([1, 3]), sorted_sequence=np.array([1, 3, 5]), self=np.array([3, 9]))


def test_running_results() -> None:
    x = np.array([[3, 1, -2, 3, 0.5]] * 2, np.float32)
    check_one("aten.cumsum.default", np.cumsum(x, 1), self=x, dim=-1)
    check_one("aten.cumprod.default", np.cumprod(x, 1), self=x, dim=1)
    check_one("aten.cummax.default", [np.maximum.accumulate(x, 1), np.array([[0, 0, 0, 3, 3]] * 2)], self=x, dim=1)
    check_one("aten.diff.default", np.diff(x), self=x)


# -- other sizes


def test_upsample() -> None:
    x = np.random.default_rng(8).random((1, 2, 3, 4), np.float32)
    twice = x.repeat(2, 2).repeat(2, 3)
    operators = check_one("aten.upsample_nearest2d.vec", twice, input=x, output_size=None, scale_factors=[2.0, 2.0])
    assert "RESIZE_NEAREST_NEIGHBOR" in operators
    # 1.4 times 4 is 5, of which the factor, not the sizes, say where they are: floor(n / 1.4)
    check_one("aten.upsample_nearest1d.vec", x[:, 0][..., [0, 0, 1, 2, 2]], input=x[:, 0].copy(), output_size=None,
              scale_factors=[1.4])  # fmt: skip
    line = np.array([[[0, 3]]], np.float32)
    corners = np.array([[[0, 1, 2, 3]]], np.float32)
    check_one("aten.upsample_linear1d.vec", corners, input=line, output_size=[4], align_corners=True)
    centres = np.array([[[0, 0.75, 2.25, 3]]], np.float32)
    check_one("aten.upsample_linear1d.vec", centres, input=line, output_size=[4], align_corners=False)


@pytest.mark.parametrize("mode", [0, 1])
def test_grid_sample(mode: int) -> None:
    x = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    grid = np.array([[[[-1, -1], [1, 1], [0, 0], [-3, 0]]]], np.float32)
    middle = 5.5 if mode == 0 else 6.0
    expected = np.array([[[[0, 11, middle, 0]]]], np.float32)
    check_one("aten.grid_sampler.default", expected, input=x, grid=grid, interpolation_mode=mode, padding_mode=0,
              align_corners=True)  # fmt: skip


def test_embedding_bag() -> None:
    table = np.arange(12, dtype=np.float32).reshape(4, 3)
    indices, offsets = np.array([0, 2, 3, 1, 1]), np.array([0, 2, 2])
    bags = [[0, 2], [], [3, 1, 1]]
    for mode, function in enumerate([np.sum, np.mean, np.max]):
        rows = [function(table[bag], 0) if bag else np.zeros(3) for bag in bags]  # type: ignore[operator]
        check_one("aten.embedding_bag.default", [np.stack(rows).astype(np.float32), None, None, None],
                  weight=Fixed(table), indices=indices, offsets=offsets, mode=mode)  # fmt: skip


def test_what_depends_on_chance_is_refused() -> None:
    with pytest.raises(ConvertError, match="eval"):
        check_one("aten.dropout.default", X, input=X, p=0.5, train=True)
    check_one("aten.dropout.default", X, input=X, p=0.5, train=False)
    with pytest.raises(ConvertError, match="random"):
        check_one("aten.bernoulli.default", X, self=X)
