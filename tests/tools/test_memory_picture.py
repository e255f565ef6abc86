from __future__ import annotations

from xml.etree import ElementTree

from gossamer.planner.greedy import GreedyMemoryPlanner
from gossamer.planner.planner import Plan
from gossamer.tools._memory_picture import Drawn, memory_picture
from gossamer.tools._picture import Label, Line, Picture, Rectangle, svg
from tests.planner.buffers import planned

PLAN = planned(GreedyMemoryPlanner(), [(4096, 0, 1), (2048, 1, 2), (3072, 2, 2)])
BUFFERS = {0: Drawn("x", "input"), 1: Drawn("y<1>", "CONV_2D"), 2: Drawn("work", "scratch")}
STEPS = {1: "CONV_2D (node 0)", 2: "ADD (node 1)"}


def boxes(picture: Picture) -> list[Rectangle]:
    return [shape for shape in picture.shapes if isinstance(shape, Rectangle) and shape.tip]


def texts(picture: Picture) -> list[str]:
    return [shape.text for shape in picture.shapes if isinstance(shape, Label)]


def test_a_box_is_as_wide_as_a_buffer_lives_and_as_high_as_it_is_large() -> None:
    picture = memory_picture(PLAN, BUFFERS, STEPS, "title")
    assert [box.tip for box in boxes(picture)] == [
        "x: 4,096 bytes at 0",
        "y<1>: 2,048 bytes at 4,096",
        "work: 3,072 bytes at 0",
    ]
    x, y, work = boxes(picture)
    # 60 pixels for each of three steps, 420 for 6144 bytes, and a pixel between neighbours.
    assert [(box.x - 74, box.width, box.height) for box in (x, y, work)] == [
        (0, 119, 279),
        (60, 119, 139),
        (120, 59, 209),
    ]
    assert x.y + x.height == work.y + work.height
    assert y.y + y.height + 1 == x.y


def test_labels() -> None:
    said = texts(memory_picture(PLAN, BUFFERS, STEPS, "title"))
    assert said[0] == "title"
    assert said[1:4] == ["input", "CONV_2D", "scratch"]
    assert [text for text in said if text.endswith("KiB")] == ["1 KiB", "2 KiB", "3 KiB", "4 KiB", "5 KiB", "6 KiB"]
    assert said[-3:] == ["inputs", "CONV_2D (node 0)", "ADD (node 1)"]
    assert "6,144 bytes, all alive at once" in said


def test_what_is_alive_at_once_has_a_line_of_its_own_where_it_is_less() -> None:
    wasteful = Plan("head", 8192, PLAN.placements)
    picture = memory_picture(wasteful, BUFFERS, STEPS, "title")
    assert {"8,192 bytes", "6,144 bytes are alive at once"} <= set(texts(picture))
    assert sum(isinstance(shape, Line) and shape.color == "#c00000" for shape in picture.shapes) == 2


def test_an_svg_is_well_formed_and_escapes_names() -> None:
    text = svg(memory_picture(PLAN, BUFFERS, STEPS, "a & b"))
    root = ElementTree.fromstring(text)
    titles = [element.text for element in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles[1] == "y<1>: 2,048 bytes at 4,096"
    assert next(root.iter("{http://www.w3.org/2000/svg}text")).text == "a & b"


def test_many_steps_and_no_buffers() -> None:
    rows = [(16, step, step + 1) for step in range(2000)]
    plan = planned(GreedyMemoryPlanner(), rows)
    picture = memory_picture(plan, {i: Drawn("", "ADD") for i in range(2000)}, {}, "")
    assert picture.width == 8092
    empty = memory_picture(planned(GreedyMemoryPlanner(), []), {}, {}, "nothing")
    assert boxes(empty) == []
