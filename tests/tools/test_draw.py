"""Answers on pictures, by their pixels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from gossamer.inputs.pictures import Picture
from gossamer.tools._answers import Box, Detection, Keypoint, Segmentation, Tensors
from gossamer.tools._command import Failure
from gossamer.tools._draw import _free_place, draw, pascal_color
from gossamer.tools._masks import Mask
from tests.tools import models
from tests.tools.conftest import Outcome

GREY = (100, 100, 100)


def drawn(tmp_path: Path, answer: Any, size: tuple[int, int] = (200, 100), **place: float) -> np.ndarray[Any, Any]:
    where = {"left": 0, "top": 0, "width": 64, "height": 64} | place
    draw(answer, Picture("x.png", Image.new("RGB", size, GREY), 64, 64, **where), str(tmp_path / "out.png"))
    with Image.open(tmp_path / "out.png") as image:
        assert image.mode == "RGB"
        # Behind the picture there may be a legend.
        assert (image.width >= size[0], image.height >= size[1]) == (True, True)
        return np.asarray(image)[: size[1], : size[0]]


def pose(points: list[Keypoint]) -> Detection:
    return Detection([Box(0, "person", 0.9, 0, 0, 1, 1, points)], 1, 0.3, True, task="pose")


def test_the_palette_is_that_of_pascal_voc() -> None:
    assert [pascal_color(index) for index in (0, 1, 2, 3, 12, 15, 20, 255)] == [
        (0, 0, 0),
        (128, 0, 0),
        (0, 128, 0),
        (128, 128, 0),
        (64, 0, 128),
        (192, 128, 128),
        (0, 64, 128),
        (224, 224, 192),
    ]


def test_a_mask_colors_what_is_not_background(tmp_path: Path) -> None:
    mask = np.zeros((64, 64), np.int64)
    mask[32:, :32], mask[32:, 32:] = 12, 1
    pixels = drawn(tmp_path, Segmentation(mask, []))
    assert np.unique(pixels[:50].reshape(-1, 3), axis=0).tolist() == [list(GREY)]
    assert np.unique(pixels[50:, :100].reshape(-1, 3), axis=0).tolist() == [[82, 50, 114]]
    assert np.unique(pixels[50:, 100:].reshape(-1, 3), axis=0).tolist() == [[114, 50, 50]]


def test_a_mask_lies_where_the_picture_lay_in_a_letterbox(tmp_path: Path) -> None:
    mask = np.ones((64, 64), np.int64)
    mask[16:48] = 0
    pixels = drawn(tmp_path, Segmentation(mask, []), top=16, height=32)
    assert np.unique(pixels.reshape(-1, 3), axis=0).tolist() == [list(GREY)]


def test_boxes_have_the_color_of_their_class(tmp_path: Path) -> None:
    boxes = [Box(0, "cat", 0.875, 20, 30, 80, 90), Box(1, "dog", 0.5, 120, 30, 180, 90)]
    pixels = drawn(tmp_path, Detection(boxes, 2, 0.3, True))
    for left, color in ((20, pascal_color(1)), (120, pascal_color(2))):
        for y, x in ((90, left + 30), (60, left), (60, left + 60), (30, left + 60)):
            assert tuple(pixels[y, x]) == color
        assert tuple(pixels[80, left + 30]) == GREY
    # Letters nearly white on the color of the class stand above the upper left corner.
    label = pixels[18:29, 22:50]
    assert (label == pascal_color(1)).all(axis=2).any()
    assert (label > 200).all(axis=2).any()


def test_boxes_beyond_the_picture(tmp_path: Path) -> None:
    boxes = [Box(0, "cat", 1.0, -1e30, -50, 1e30, 50), Box(0, "back to front", 1.0, 90, 90, 60, 60)]
    pixels = drawn(tmp_path, Detection(boxes, 2, 0.3, True))
    assert tuple(pixels[50, 100]) == pascal_color(1)
    assert tuple(pixels[90, 75]) == pascal_color(1)


def test_a_skeleton_joins_what_is_certain(tmp_path: Path) -> None:
    points = [Keypoint("", 0.0, 0, 0)] * 17
    points[5], points[7], points[9] = (Keypoint("", 0.9, x, 50) for x in (20, 100, 180))
    pixels = drawn(tmp_path, pose(points))
    assert tuple(pixels[50, 60]) == tuple(pixels[50, 140]) == pascal_color(2)
    assert [tuple(pixels[50, x]) for x in (20, 100, 180)] == [(255, 255, 0)] * 3
    points[9] = Keypoint("", 0.2, 180, 50)
    pixels = drawn(tmp_path, pose(points))
    assert tuple(pixels[50, 140]) == tuple(pixels[50, 180]) == tuple(pixels[1, 1]) == GREY


def whole(tmp_path: Path, answer: Any, size: tuple[int, int] = (200, 100)) -> np.ndarray[Any, Any]:
    """All that is written, with what is under the picture."""
    drawn(tmp_path, answer, size)
    with Image.open(tmp_path / "out.png") as image:
        return np.asarray(image)


def has(pixels: np.ndarray[Any, Any], color: tuple[int, int, int]) -> bool:
    return bool((pixels == color).all(axis=-1).any())


def test_a_mask_has_a_legend_under_the_picture(tmp_path: Path) -> None:
    mask = np.zeros((64, 64), np.int64)
    mask[32:] = 12
    pixels = whole(tmp_path, Segmentation(mask, [(0, "background", 0.5), (12, "dog", 0.5)]))
    assert pixels.shape[1] == 200
    legend = pixels[100:]
    assert has(legend, pascal_color(12))
    assert has(legend, (0, 0, 0))  # letters
    # With more names there are more lines; a name longer than the picture makes it wider.
    many = whole(tmp_path, Segmentation(mask, [(i, f"class {i}", 0.1) for i in range(9)]))
    assert many.shape[0] > pixels.shape[0]
    assert many.shape[1] == 200
    assert whole(tmp_path, Segmentation(mask, [(12, 40 * "w", 1.0)])).shape[1] > 200


def test_masks_of_objects(tmp_path: Path) -> None:
    inside = np.ones((40, 50), bool)
    inside[:, 25:] = False
    box = Box(0, "cat", 0.875, 20, 30, 70, 70, (), Mask(100, 200, 20, 30, inside))
    pixels = whole(tmp_path, Detection([box], 1, 0.3, True))
    red, green, blue = pixels[50, 30].tolist()
    # Half of the color of the class, half of the grey.
    assert (red, green, blue) == (pytest.approx(114, abs=1), pytest.approx(50, abs=1), pytest.approx(50, abs=1))
    assert tuple(pixels[50, 44]) == pascal_color(1)  # its edge
    assert tuple(pixels[50, 55]) == GREY
    assert has(pixels[100:], pascal_color(1))
    assert len(whole(tmp_path, Detection([], 0, 0.3, True))) == 100


def test_turned_boxes_and_points(tmp_path: Path) -> None:
    corners = ((100, 10), (140, 50), (100, 90), (60, 50))
    points = [Keypoint("0", 0.9, 100, 50), Keypoint("1", 0.1, 120, 50)]
    pixels = drawn(tmp_path, Detection([Box(0, "cat", 0.875, 60, 10, 140, 90, points, None, corners)], 1, 0.3, True))
    assert tuple(pixels[30, 120]) == tuple(pixels[70, 80]) == pascal_color(1)
    assert tuple(pixels[50, 120]) == tuple(pixels[20, 130]) == GREY
    assert tuple(pixels[50, 100]) == (255, 255, 0)


def test_labels_keep_clear_of_each_other_and_of_the_edge(tmp_path: Path) -> None:
    place = (0.0, 0.0, 60.0, 12.0)
    image = Image.new("RGB", (200, 100))
    taken: list[tuple[float, float, float, float]] = []
    for _ in range(5):
        found = _free_place((60, 12), (150, 4, 190, 90), image, taken)
        assert (found[0], found[2]) == (140, 200)
        assert 0 <= found[1] < found[3] <= 100
        assert all(found[3] <= other[1] or other[3] <= found[1] for other in taken)
        taken.append(found)
    assert _free_place((60, 12), (0, 30, 190, 90), image, []) == (0, 18, 60, 30)
    # Wider than the picture: it begins at its edge.
    assert _free_place((300, 12), (50, 30, 60, 40), image, [place])[0] == 0


def test_numbers_cannot_be_drawn(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"--draw .*out\.png: only boxes, masks and poses can be drawn"):
        drawn(tmp_path, Tensors([]))


def test_a_picture_of_unknown_kind(tmp_path: Path) -> None:
    picture = Picture("x.png", Image.new("RGB", (8, 8)), 8, 8, 0, 0, 8, 8)
    with pytest.raises(Failure, match=r"out\.xyz: cannot be written \(.*\); the name should end in \.png"):
        draw(Detection([], 0, 0.3, True), picture, str(tmp_path / "out.xyz"))


def test_from_the_command_line(
    gossamer: Callable[..., Outcome], place: Callable[[str, bytes], Path], tmp_path: Path
) -> None:
    image = Image.new("RGB", (60, 40), (255, 0, 0))
    image.paste((0, 255, 0), (0, 0, 30, 40))
    image.save(tmp_path / "in.png")
    model = place("mask.tflite", models.color_mask())
    result = gossamer("run", model, tmp_path / "in.png", "--resample", "nearest", "--draw", tmp_path / "out.png")
    assert (result.code, result.err) == (0, "")
    assert f"wrote {tmp_path / 'out.png'}" in result.out
    with Image.open(tmp_path / "out.png") as result_image:
        assert result_image.height > 40
        assert result_image.getpixel((5, 5)) == (64, 128, 0)
        assert result_image.getpixel((55, 35)) == (255, 0, 0)
