"""Pictures of shapes: SVG that is well formed, colors with their names."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from gossamer.tools._picture import Label, Line, Picture, Rectangle, brightness, legend, svg

PICTURE = Picture(
    100,
    50,
    [Rectangle(1, 2, 30, 4, "#102030", "a < b"), Line(0, 0, 9, 9, "#000000"), Label(5, 6, "x & y", "middle", True)],
)


def test_every_shape_is_an_element_and_text_is_escaped() -> None:
    root = ElementTree.fromstring(svg(PICTURE))
    tags = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert tags == ["svg", "rect", "rect", "title", "line", "text"]
    assert root[1][0].text == "a < b"
    assert root[3].text == "x & y"
    assert root[3].get("transform") == "rotate(-90 5.0 6.0)"


def test_svg_is_written_as_it_is(tmp_path: Path) -> None:
    PICTURE.write(str(tmp_path / "picture.svg"))
    assert (tmp_path / "picture.svg").read_text() == svg(PICTURE)


def test_a_legend_goes_on_in_the_next_line() -> None:
    names = {"one": "#111111", "two words": "#222222"}
    shapes, below = legend(names, 0, 1000)
    assert (below, [shape.text for shape in shapes if isinstance(shape, Label)]) == (72, ["one", "two words"])
    shapes, below = legend(names, 0, 80)
    assert (below, shapes[2].y - shapes[0].y) == (90, 18)


def test_brightness() -> None:
    assert brightness("#000000") == 0.0
    assert brightness("#00ff00") > brightness("#ff0000") > brightness("#0000ff")
