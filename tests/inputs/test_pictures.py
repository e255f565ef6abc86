"""Pictures into tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from gossamer.errors import InputError
from gossamer.inputs.pictures import Layout, Options, read_picture, to_numbers
from tests.inputs.ports import port

RAMP = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)


def saved(tmp_path: Path, image: Image.Image, name: str = "image.png") -> str:
    image.save(tmp_path / name)
    return str(tmp_path / name)


@pytest.mark.parametrize(
    ("signature", "layout"),
    [
        ((1, 224, 160, 3), Layout(224, 160, 3, (1, 2, 3))),
        ((-1, 224, 160, 1), Layout(224, 160, 1, (1, 2, 3))),
        ((1, -1, -1, 3), Layout(0, 0, 3, (1, 2, 3))),
        ((1, 3, 224, 160), Layout(224, 160, 3, (2, 3, 1))),
        ((224, 160, 3), Layout(224, 160, 3, (0, 1, 2))),
        ((1, 28, 20), Layout(28, 20, 1, (1, 2, None))),
        ((1, 3, 4, 4), Layout(4, 4, 3, (2, 3, 1))),
        ((1, 8, 8, 4), Layout(8, 8, 4, (1, 2, 3))),
        ((1, 1, 28, 28), Layout(28, 28, 1, (2, 3, 1))),
        ((-1, 28, 20), Layout(28, 20, 1, (1, 2, None))),
        ((28, 20), Layout(28, 20, 1, (0, 1, None))),
        ((4, 224, 160, 3), None),
        ((1, 640), None),
        ((640,), None),
        ((1, 49, 10, 7), None),
        ((), None),
    ],
)
def test_layouts(signature: tuple[int, ...], layout: Layout | None) -> None:
    assert Layout.of(port(*signature)) == layout


@pytest.mark.parametrize("signature", [(1, 5, 4, 3), (-1, 5, 4, 3), (1, -1, -1, 3), (1, 3, 5, 4), (5, 4, 3), (3, 5, 4)])
def test_colors_end_up_where_the_input_has_them(tmp_path: Path, signature: tuple[int, ...]) -> None:
    pixels = np.arange(60, dtype=np.uint8).reshape(5, 4, 3)
    _, values = read_picture(saved(tmp_path, Image.fromarray(pixels)), port(*signature, dtype=np.uint8), Options())
    first = len(signature) == 4
    assert values.shape == ((1,) if first else ()) + ((3, 5, 4) if signature[int(first)] == 3 else (5, 4, 3))
    plane = values[0] if first else values
    np.testing.assert_array_equal(plane if plane.shape == (5, 4, 3) else plane.transpose(1, 2, 0), pixels)


@pytest.mark.parametrize("signature", [(1, 5, 4, 1), (1, 5, 4), (-1, 5, 4), (5, 4)])
def test_grey_pictures(tmp_path: Path, signature: tuple[int, ...]) -> None:
    pixels = np.arange(20, dtype=np.uint8).reshape(5, 4)
    path = saved(tmp_path, Image.fromarray(pixels))
    _, values = read_picture(path, port(*signature, dtype=np.uint8), Options())
    assert values.shape == tuple(abs(size) for size in signature)
    np.testing.assert_array_equal(values.reshape(5, 4), pixels)
    _, values = read_picture(path, port(1, 5, 4, 3, dtype=np.uint8), Options())
    np.testing.assert_array_equal(values[0], pixels[..., None].repeat(3, -1))


def test_pixels_in_the_numbers_of_the_input() -> None:
    for dtype, scale, point, expected in (
        (np.uint8, 0.0, 0, RAMP),
        (np.uint8, 1 / 128, 128, RAMP),
        (np.int8, 0.0, 0, RAMP.astype(np.int16) - 128),
        (np.int8, 0.00784, -1, RAMP.astype(np.int16) - 128),
        (np.int32, 0.0, 0, RAMP),
        (np.float32, 0.0, 0, RAMP / 127.5 - 1),
        (np.float16, 0.0, 0, (RAMP / 127.5 - 1).astype(np.float16)),
        (np.int16, 1 / 32768, 0, np.minimum(np.rint((RAMP / 127.5 - 1) * 32768), 32767)),
        (np.bool_, 0.0, 0, RAMP >= 128),
    ):
        values = to_numbers(RAMP, port(16, 16, 1, dtype=dtype, scale=scale, zero_point=point), Options())
        assert values.dtype == dtype
        np.testing.assert_allclose(values.astype(np.float64), expected, atol=1e-6 if dtype == np.float32 else 1e-3)


def test_what_is_asked_for_beats_what_is_stored() -> None:
    stored = {0: ([0.0], [255.0])}
    float_port, int8_port = port(16, 16, 1), port(16, 16, 1, dtype=np.int8, scale=1 / 64, zero_point=0)
    np.testing.assert_allclose(to_numbers(RAMP, float_port, Options(stored=stored)), RAMP / np.float32(255))
    asked = Options(asked=([127.5], [127.5]), stored=stored)
    np.testing.assert_allclose(to_numbers(RAMP, float_port, asked), RAMP / np.float32(127.5) - 1, atol=1e-6)
    np.testing.assert_array_equal(to_numbers(RAMP, int8_port, Options(stored=stored)), np.rint(RAMP / 255 * 64))
    np.testing.assert_array_equal(to_numbers(RAMP, int8_port, asked), np.rint((RAMP / 127.5 - 1) * 64))
    # uint8 inputs take pixels, as TFLite's task library has it, unless the user says otherwise.
    uint8_port = port(16, 16, 1, dtype=np.uint8, scale=1 / 64, zero_point=64)
    np.testing.assert_array_equal(to_numbers(RAMP, uint8_port, Options(stored=stored)), RAMP)
    np.testing.assert_array_equal(to_numbers(RAMP, uint8_port, asked), np.rint((RAMP / 127.5 - 1) * 64) + 64)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
@pytest.mark.parametrize("asked", [([127.5], [127.5]), ([123.7, 116.3, 103.5], [58.4, 57.1, 57.4])])
def test_numbers_that_are_looked_up_are_those_of_each_pixel(dtype: Any, asked: Any) -> None:
    ramp = np.arange(256, dtype=np.uint8)
    pixels = np.stack([ramp, ramp[::-1], ramp ^ 90], -1)[None]
    to = port(1, 1, 256, 3, dtype=dtype, scale=0.0173, zero_point=3)
    mean, std = (np.float32(values) for values in asked)
    expected = to.quantize((pixels.astype(np.float32) - mean) / std)
    values = to_numbers(pixels, to, Options(asked=asked))
    assert values.dtype == dtype
    np.testing.assert_array_equal(values, expected)


def test_mean_and_std_for_each_channel() -> None:
    pixels = np.full((1, 2, 3), 100, np.uint8)
    values = to_numbers(pixels, port(1, 2, 3), Options(asked=([100, 50, 0], [1, 2, 4])))
    assert values.tolist() == [[[0.0, 25.0, 25.0]] * 2]
    with pytest.raises(InputError, match="mean has 2 values; the input has 3 channels, so 1 or 3"):
        to_numbers(pixels, port(1, 2, 3), Options(asked=([1, 2], [1])))


def test_letterbox_keeps_the_proportions(tmp_path: Path) -> None:
    path = saved(tmp_path, Image.new("L", (40, 20), 200))
    picture, values = read_picture(path, port(1, 16, 16, 1, dtype=np.uint8), Options(letterbox=True))
    assert np.unique(values[0, 4:12]).tolist() == [200]
    assert np.unique(np.concatenate([values[0, :4], values[0, 12:]])).tolist() == [0]
    assert (picture.left, picture.top, picture.width, picture.height) == (0, 4, 16, 8)
    assert picture.to_pixels(0.0, 0.25) == (0.0, 0.0)
    assert picture.to_pixels(1.0, 0.75) == (40.0, 20.0)
    stretched, values = read_picture(path, port(1, 16, 16, 1, dtype=np.uint8), Options())
    assert np.unique(values).tolist() == [200]
    assert stretched.to_pixels(1.0, 0.5) == (40.0, 10.0)


def test_nearest_takes_the_pixels_that_tflite_takes(tmp_path: Path) -> None:
    pixels = np.arange(49, dtype=np.uint8).reshape(7, 7)
    options = Options(resample="nearest")
    _, values = read_picture(saved(tmp_path, Image.fromarray(pixels)), port(1, 3, 5, 1, dtype=np.uint8), options)
    rows, columns = [0, 2, 4], [0, 1, 2, 4, 5]
    np.testing.assert_array_equal(values[0, :, :, 0], pixels[rows][:, columns])


def test_pictures_of_other_kinds(tmp_path: Path) -> None:
    wanted = port(1, 2, 2, 3, dtype=np.uint8)
    for name, image, expected in (
        ("clear.png", Image.new("RGBA", (2, 2), (10, 20, 30, 0)), [255, 255, 255]),
        ("solid.png", Image.new("RGBA", (2, 2), (10, 20, 30, 255)), [10, 20, 30]),
        ("bits.png", Image.new("1", (2, 2), 1), [255, 255, 255]),
        ("deep.png", Image.fromarray(np.full((2, 2), 0x8000, np.uint16)), [128, 128, 128]),
        ("table.gif", Image.new("RGB", (2, 2), (255, 0, 0)).convert("P"), [255, 0, 0]),
    ):
        _, values = read_picture(saved(tmp_path, image, name), wanted, Options())
        assert values[0, 0, 0].tolist() == expected, name


def test_cameras_that_were_held_sideways(tmp_path: Path) -> None:
    image = Image.fromarray(np.array([[0, 85], [170, 255]], np.uint8))
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees clockwise
    image.save(tmp_path / "turned.png", exif=exif)
    _, values = read_picture(str(tmp_path / "turned.png"), port(1, 2, 2, 1, dtype=np.uint8), Options())
    assert values.reshape(2, 2).tolist() == [[170, 0], [255, 85]]


def test_what_cannot_be_a_picture(tmp_path: Path) -> None:
    path = tmp_path / "broken.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\nrest")
    with pytest.raises(InputError, match=r"broken\.png: "):
        read_picture(str(path), port(1, 2, 2, 3), Options())
    path.write_bytes(b"text")
    with pytest.raises(InputError, match=r"broken\.png: not a picture that Pillow can read\."):
        read_picture(str(path), port(1, 2, 2, 3), Options())
    with pytest.raises(InputError, match=r'a picture does not fit the input "x" float32 \[1, 640\]; give a \.npy file'):
        read_picture(str(path), port(1, 640), Options())
    Image.new("L", (2, 2)).save(path)
    with pytest.raises(InputError, match=r"must be a number type"):
        read_picture(str(path), port(1, 2, 2, 1, dtype=np.complex64), Options())


def test_without_pillow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(InputError, match=r"pictures need Pillow; install gossamer\[image\]"):
        read_picture("x.png", port(1, 2, 2, 3), Options(), b"")
