"""The page of ``gossamer report`` in a real Chromium: what a reader clicks, types and sees."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.inputs.samples import samples_from
from gossamer.model.writer import write_model
from gossamer.tools._report.data import describe
from gossamer.tools._report.page import library, page
from tests.tools import models

pytestmark = pytest.mark.browser

WAIT = 60_000
"""Milliseconds after which something is taken for hanging."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The Chromium of the system, without a window."""
    from playwright.sync_api import sync_playwright

    place = shutil.which("chromium") or shutil.which("chromium-browser")
    if place is None:
        pytest.skip("there is no Chromium")
    with sync_playwright() as play:
        # Its sandbox needs rights that root in a container does not have; the page is our own.
        browser = play.chromium.launch(executable_path=place, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Open the report on a model; at the end nothing has gone wrong in it, and it has asked for nothing."""
    wrong: list[str] = []
    contexts = []

    def show(data: dict[str, Any], scheme: str = "light", part: str = "") -> Any:
        path = tmp_path / "report.html"
        path.write_text(page(data, library()), encoding="utf-8")
        context = chromium.new_context(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
        contexts.append(context)
        context.set_default_timeout(WAIT)
        tab = context.new_page()
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
        tab.on("request", lambda asked: None if asked.url.startswith("file:") else wrong.append(asked.url))
        tab.goto(path.as_uri() + (f"#{part}" if part else ""))
        tab.wait_for_selector("[data-ready]", state="attached")
        if part:
            tab.wait_for_selector(f"#part-{part}")
        return tab

    yield show
    for context in contexts:
        context.close()
    assert wrong == []


def described(place: Path, model: bytes, **more: Any) -> dict[str, Any]:
    path = place / "m.tflite"
    path.write_bytes(model)
    return describe(str(path), **more)


def network(operators: int = 40) -> bytes:
    """Blocks of a convolution, a gate beside it and a sum over both and what came before."""
    build = gossamer.Builder()
    x = build.input("picture", (1, 8, 8, 4))
    weights = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 1, 1, 4)
    for number in range(operators // 4):
        name = f"block{number}"
        strides = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
        y = build.add("CONV_2D", x, weights, np.zeros(4, np.float32), name=f"{name}/conv", **strides)
        gate = build.add("LOGISTIC", x, name=f"{name}/gate")
        x = build.add("ADD", x, build.add("MUL", y, gate, name=f"{name}/gated"), name=f"{name}/sum")
    build.output("scores", x)
    return write_model(build.finish())


def chosen(tab: Any) -> str:
    """What the details speak of."""
    text: str = tab.inner_text("#details h2")
    return text


def click(tab: Any, box: int) -> None:
    tab.mouse.click(*tab.evaluate("box => report.where(box)", box))


def test_every_part_opens_in_both_schemes(opened: Callable[..., Any], tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", np.linspace(-1, 1, 2 * 256, dtype=np.float32).reshape(2, 8, 8, 4))
    (tmp_path / "m.tflite").write_bytes(network())
    samples = samples_from(str(tmp_path / "data.npy"), str(tmp_path / "m.tflite"))
    data = described(tmp_path, network(), samples=samples)
    for scheme in ("light", "dark"):
        tab = opened(data, scheme)
        assert tab.evaluate("document.documentElement.dataset.theme") == scheme
        assert tab.inner_text("h1") == "m.tflite"
        assert "40" in tab.inner_text("#part-summary .cards")
        for part in ("graph", "memory", "profile", "roofline", "tensors", "versions", "micro"):
            tab.click(f"#tab-{part}")
            tab.wait_for_selector(f"#part-{part}")
            assert tab.locator("section:visible").count() == 1
        tab.click("#tab-graph")
        assert len(tab.screenshot()) > 10_000
        assert tab.evaluate("performance.timing.domInteractive - performance.timing.navigationStart") > 0


def test_a_click_shows_an_operator(opened: Callable[..., Any], tmp_path: Path) -> None:
    tab = opened(described(tmp_path, network()), part="graph")
    tab.wait_for_selector("#graph-canvas[data-scale]")
    assert chosen(tab) == "Click an operator"
    click(tab, 1)
    assert chosen(tab) == "CONV_2D 0"
    details = tab.inner_text("#details")
    for text in ("stride_w", "SAME", "block0/conv", "float32 1x8x8x4", "picture"):
        assert text in details
    click(tab, 2)
    assert chosen(tab) == "LOGISTIC 1"
    tab.mouse.click(15, 780)
    assert chosen(tab) == "Click an operator"


def test_search_and_filter(opened: Callable[..., Any], tmp_path: Path) -> None:
    tab = opened(described(tmp_path, network()), part="graph")
    tab.wait_for_selector("#graph-canvas[data-shown='42']", state="attached")  # with input and output
    tab.keyboard.press("/")
    tab.keyboard.type("block3/ga")
    assert tab.locator("#results button").count() == 3  # the gate, MUL, which takes it, and ADD, which takes that
    tab.wait_for_selector("#graph-canvas[data-shown='3']", state="attached")
    tab.keyboard.press("Enter")
    assert chosen(tab) == "LOGISTIC 13"
    assert tab.evaluate("document.activeElement.id") == "graph-canvas"
    tab.keyboard.press("Escape")
    tab.wait_for_selector("#graph-canvas[data-shown='42']", state="attached")
    tab.fill("#search", "no such name")
    assert "nothing has this name" in tab.inner_text("#results")
    tab.fill("#search", "")
    tab.click("#legend button:has-text('CONV_2D')")
    tab.wait_for_selector("#graph-canvas[data-shown='32']", state="attached")
    tab.select_option("#by", "delegate")
    tab.wait_for_selector("#graph-canvas[data-shown='42']", state="attached")


def test_keys_lead_through_the_graph(opened: Callable[..., Any], tmp_path: Path) -> None:
    data = described(tmp_path, network())
    tab = opened(data, part="graph")
    tab.focus("#graph-canvas")
    above, *below = data["subgraphs"][0]["boxes"][:3]
    first, second = sorted(below, key=lambda box: box["x"])
    left, right = (f"{box['title']} {box['operator']}" for box in (first, second))
    near, back = (left, "ArrowLeft") if above["x"] - first["x"] < second["x"] - above["x"] else (right, "ArrowRight")
    steps = [
        ("ArrowDown", "input"), ("ArrowDown", near), ("ArrowRight", right), ("ArrowLeft", left), (back, near),
        ("ArrowDown", "MUL 2"), ("ArrowDown", "ADD 3"), ("ArrowUp", "MUL 2"), ("Tab", "ADD 3"), ("Shift+Tab", "MUL 2"),
    ]  # fmt: skip
    for key, title in steps:
        tab.keyboard.press(key)
        assert chosen(tab) == title, key
    before = float(tab.get_attribute("#graph-canvas", "data-scale"))
    tab.keyboard.press("+")
    tab.wait_for_function("before => +document.getElementById('graph-canvas').dataset.scale > before", arg=before)
    tab.keyboard.press("0")
    tab.wait_for_function("before => +document.getElementById('graph-canvas').dataset.scale < before", arg=before)
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "details"
    tab.keyboard.press("Escape")
    tab.keyboard.press("Escape")
    assert chosen(tab) == "Click an operator"
    tab.keyboard.press("3")
    tab.wait_for_selector("#part-memory")
    tab.keyboard.press("t")
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_wheel_zooms(opened: Callable[..., Any], tmp_path: Path) -> None:
    tab = opened(described(tmp_path, network()), part="graph")
    tab.wait_for_selector("#graph-canvas[data-scale]")
    before = float(tab.get_attribute("#graph-canvas", "data-scale"))
    tab.mouse.move(400, 400)
    tab.mouse.wheel(0, -300)
    tab.wait_for_function("before => +document.getElementById('graph-canvas').dataset.scale > before", arg=before)


def test_tables_lead_to_the_graph(opened: Callable[..., Any], tmp_path: Path) -> None:
    tab = opened(described(tmp_path, network()), part="memory")
    tab.click("#part-memory table >> nth=0 >> tr >> nth=2")
    assert tab.inner_text("#part-memory tr.chosen td").startswith("TFLite Micro, greedy")
    tab.click("#part-memory tr.link:has-text('block')")
    tab.wait_for_selector("#part-graph")
    tab.wait_for_function("document.querySelector('#details h2').textContent !== 'Click an operator'")


def test_tensors_are_filtered_and_have_histograms(opened: Callable[..., Any], tmp_path: Path) -> None:
    tab = opened(described(tmp_path, network()), part="tensors")
    tab.fill("#filter", "gate")
    assert tab.locator("#part-tensors tbody tr").count() == 20  # of gate and of gated
    tab.fill("#filter", "constant")
    tab.click("#part-tensors tbody tr >> nth=0")
    tab.wait_for_selector("#histogram:visible")
    assert "16 values" in tab.inner_text("#part-tensors")


def test_a_model_that_cannot_run_is_shown(opened: Callable[..., Any], tmp_path: Path) -> None:
    from gossamer.schema import AddOptions, TensorType
    from tests.runtime.graphs import ModelMaker

    make = ModelMaker()
    x, y = make.tensor((2, 3), name="<img src=x onerror=alert(1)>"), make.tensor((5,), name="y")
    other = make.constant(np.zeros(5), np.float32, TensorType.FLOAT32)
    make.op("ADD", [x, other], [y], AddOptions())
    make.io([x], [y])
    tab = opened(described(tmp_path, make.model()))
    assert "cannot be allocated" in tab.inner_text("#part-summary")
    for part in ("graph", "memory", "profile", "roofline", "tensors", "versions", "micro"):
        tab.click(f"#tab-{part}")
        tab.wait_for_selector(f"#part-{part}")


def test_a_model_without_operators(opened: Callable[..., Any], tmp_path: Path) -> None:
    tab = opened(described(tmp_path, models.echo((1, 2))), part="graph")
    tab.wait_for_selector("#graph-canvas[data-shown='2']", state="attached")


def test_two_thousand_operators(opened: Callable[..., Any], tmp_path: Path) -> None:
    """Only what is in sight has its text drawn, however much there is."""
    tab = opened(described(tmp_path, network(2000)), part="graph")
    tab.wait_for_selector("#graph-canvas[data-shown='2002']", state="attached")
    tab.fill("#search", "block498/sum")
    tab.press("#search", "Enter")
    assert chosen(tab) == "ADD 1995"
    assert int(tab.get_attribute("#graph-canvas", "data-texts")) < 100
    tab.click("#fit")
    tab.wait_for_selector("#graph-canvas[data-texts='0']", state="attached")
