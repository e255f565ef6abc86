from __future__ import annotations

import pytest

from gossamer.codegen.kernels.contract import Gemm
from gossamer.codegen.kernels.depthwise import DepthwiseRow
from gossamer.codegen.tiles import (
    cut_evenly,
    cut_in_two,
    depthwise_block,
    depthwise_tile,
    fewer_rows,
    gemm_tile,
    proposals,
    quantized_tile,
    quantized_winograd_group,
    strassen_group,
    strassen_tile,
    winograd_group,
)
from gossamer.targets import Target, all_targets

AVX512, AVX2 = all_targets()["avx512"], all_targets()["avx2"]


@pytest.mark.parametrize(("columns", "channels", "depth", "tile"), [
    (12544, 64, 256, (6, 4)),
    (12544, 96, 16, (9, 3)),
    (49, 160, 960, (7, 2)),
    (14, 64, 384, (14, 2)),
    (7, 512, 2048, (7, 3)),
    (10, 64, 100, (5, 4)),
    (3, 64, 100, (3, 4)),
    (1, 1000, 100, (1, 8)),
    (1, 20, 100, (1, 2)),
])  # fmt: skip
def test_the_tile_that_wastes_least_wins(columns: int, channels: int, depth: int, tile: tuple[int, int]) -> None:
    assert gemm_tile(AVX512, columns, channels, depth) == tile


def test_rows_that_share_lines_of_the_cache_are_fewer() -> None:
    assert gemm_tile(AVX512, 196, 256, 960, a_stride=4 * 960)[0] == 14
    assert gemm_tile(AVX512, 196, 256, 1024, a_stride=4 * 1024)[0] <= 9


def test_16_registers() -> None:
    assert gemm_tile(AVX2, 12544, 64, 256) == (6, 2)
    assert gemm_tile(AVX2, 12544, 24, 256) == (4, 3)


def test_smaller_tiles() -> None:
    assert [fewer_rows(AVX2, *tile) for tile in ((6, 2), (5, 2), (4, 3), (10, 1), (1, 4))] == [5, 4, 3, 10, 1]
    assert strassen_tile(AVX2, 49, 2, 256, 256, 4224) == (6, 2)
    assert gemm_tile(AVX2, 49, 256, 256, 4224) == (5, 2)
    assert gemm_tile(AVX2, 49, 256, 256, 4224, evenly=True) == (6, 2)


def test_one_column_is_not_left_alone() -> None:
    assert [cut_in_two(columns, 4) for columns in (8, 7, 14, 13, 49, 9)] == [
        (2, 0),
        (1, 3),
        (3, 2),
        (1, 3),
        (10, 3),
        (0, 3),
    ]
    assert cut_in_two(5, 4) == (1, 1)  # of which no tiles of three can be made
    assert [cut_in_two(columns, 3) for columns in (4, 7)] == [(0, 2), (1, 2)]
    assert cut_in_two(5, 2) == (2, 1)


def test_rows_are_cut_into_tiles() -> None:
    assert cut_evenly(AVX2, 49, 6, 2, True) == cut_evenly(AVX2, 49, 6, 2, False) == (4, 5, 49)
    assert cut_evenly(AVX2, 14, 4, 3, True) == (2, 3, 14)
    assert cut_evenly(AVX2, 12, 4, 3, True) == (3, 4, 8)  # all fit
    assert cut_evenly(AVX2, 15, 10, 1, True) == (2, 10, 5)  # the last one overlaps
    assert cut_evenly(AVX2, 15, 10, 1, False) == (1, 5, 15)
    assert cut_evenly(AVX2, 7, 6, 2, False) == (1, 1, 7)  # too few for a tile of six and one of five
    assert cut_evenly(AVX2, 3, 4, 2, False) == (0, 3, 3)


@pytest.mark.parametrize(("tiles", "channels", "group"), [(196, 64, 28), (49, 128, 10), (16, 256, 8), (1, 64, 1)])
def test_groups_of_winograd_tiles(tiles: int, channels: int, group: int) -> None:
    assert winograd_group(AVX512, 36, tiles, channels, channels) == group


@pytest.mark.parametrize(("tiles", "bytes", "group"), [(64, 2688, 22), (16, 5376, 8), (4, 10752, 4), (9, 1 << 20, 1)])
def test_groups_of_winograd_tiles_of_bytes_are_even(tiles: int, bytes: int, group: int) -> None:
    assert quantized_winograd_group(tiles, bytes) == group


@pytest.mark.parametrize(
    ("pairs", "depth", "channels", "group", "tile"),
    [
        (98, 256, 256, 49, (6, 4)),
        (98, 512, 128, 49, (7, 3)),
        (64, 128, 512, 64, (4, 4)),
        (64, 128, 128, 64, (4, 4)),
        (25, 1024, 256, 25, (5, 4)),
        (392, 256, 64, 56, (14, 2)),
    ],
)
def test_groups_of_pairs_of_pixels(pairs: int, depth: int, channels: int, group: int, tile: tuple[int, int]) -> None:
    assert strassen_group(AVX512, pairs, depth, channels, 8 * depth) == group
    assert strassen_tile(AVX512, group, -(-pairs // group), channels, depth, 8 * depth) == tile


def test_tiles_of_products_of_seven_have_few_rows() -> None:
    assert strassen_tile(AVX512, 56, 7, 64, 256, 2048) == (14, 2)
    assert strassen_tile(AVX512, 56, 7, 64, 256, 2048, 8) == (7, 2)


@pytest.mark.parametrize("target", all_targets().values(), ids=lambda target: target.name)
def test_all_that_is_proposed_can_be_had(target: Target) -> None:
    for mr, nv in proposals(target, "gemm"):
        Gemm(target.name, mr, nv).emit(target)
    for pixels, _ in proposals(target, "depthwise"):
        DepthwiseRow(target.name, pixels, ("relu6", 0), (5, 5, 1)).emit(target)


@pytest.mark.parametrize(("columns", "pixels"), [(1, 1), (3, 3), (7, 7), (10, 5), (13, 7), (16, 4), (19, 4), (112, 7)])
def test_pixels_of_a_depthwise_row(columns: int, pixels: int) -> None:
    assert depthwise_tile(AVX512, columns) == depthwise_tile(AVX2, columns) == pixels


@pytest.mark.parametrize(("channels", "rows", "block"), [
    (512, 14, 64),
    (672, 14, 64),
    (144, 14, 48),
    (75, 7, 48),
    (12, 7, 16),
    (256, 28, 64),
    (144, 56, 144),
])  # fmt: skip
def test_channels_of_small_images_are_filtered_block_by_block(channels: int, rows: int, block: int) -> None:
    assert depthwise_block(channels, 4 * rows * rows * channels) == block


@pytest.mark.parametrize(("columns", "channels", "steps"), [(49, 160, 240), (49, 960, 40), (196, 64, 96)])
def test_vectors_of_four_sums_take_tiles_with_the_fewest_instructions(columns: int, channels: int, steps: int) -> None:
    mr, nv = quantized_tile(all_targets()["dotprod"], columns, channels, steps)
    assert mr * nv >= 16
    mr, nv = gemm_tile(all_targets()["neon"], columns, channels, 4 * steps)
    assert mr * nv >= 16
