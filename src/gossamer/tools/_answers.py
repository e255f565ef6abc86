"""What the outputs of a model say: classes, boxes, masks, keypoints, or just numbers.

The task is the first of these whose rule holds, unless it is given:

- detection: outputs that a reader of `gossamer.tools._heads` knows; with the 17 keypoints of a body it is pose;
- segmentation: the first output has class numbers [1, H, W], or a score for each of C classes [1, H, W, C], for a
  picture of at most 8 times its height (C = 3 only with three labels, else it may be a picture);
- classification: the first output is a list of N > 1 scores, made by SOFTMAX or with N labels to go with it;
- tensors: everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gossamer.arrays import NDArray
from gossamer.inputs.pictures import Picture
from gossamer.inputs.port import Port
from gossamer.records import record
from gossamer.tools import _heads
from gossamer.tools._command import Failure, table
from gossamer.tools._heads.head import Found, Outputs, Unclear, suppressed
from gossamer.tools._labels import Labels, name_of
from gossamer.tools._masks import Mask, mask_of, place_in

if TYPE_CHECKING:
    from rich.console import RenderableType

Array = NDArray[Any]

TASKS = ("classification", "detection", "segmentation", "pose", "tensors", *_heads.HEADS)
"""What can be asked for: a task, or the head of a detector."""

KEYPOINTS = (
    "nose", "left eye", "right eye", "left ear", "right ear", "left shoulder", "right shoulder", "left elbow",
    "right elbow", "left wrist", "right wrist", "left hip", "right hip", "left knee", "right knee", "left ankle",
    "right ankle",
)  # fmt: skip


class Answer(Protocol):
    """What a run of a model says. ``head`` describes the outputs where they were not read as they are."""

    @property
    def task(self) -> str:
        """What kind of answer it is."""

    @property
    def head(self) -> str:
        """Such as ``YOLOv8, 80 classes, boxes normalised``."""

    def data(self) -> dict[str, Any]:
        """As plain values for JSON."""

    def show(self) -> RenderableType:
        """As a table for people."""


@record(frozen=True)
class Question:
    """What is known before the outputs are read: labels, the operator that makes the first output, and options.

    ``threshold`` is the least score of a box, ``iou`` the greatest intersection over union of two boxes of a class,
    ``max_boxes`` how many there are at most. ``size`` is the height and width of the pictures that the model takes,
    ``keypoints`` how many its metadata say (0: nothing), ``turned`` whether they say that boxes are, and ``constants``
    gives its constant tensors of a shape.
    """

    labels: Labels
    maker: str = ""
    top_k: int = 5
    threshold: float = 0.3
    iou: float = 0.45
    max_boxes: int = 100
    size: tuple[int, int] | None = None
    keypoints: int = 0
    turned: bool = False
    constants: Callable[[tuple[int, ...]], Sequence[Array]] = lambda shape: ()


@record(frozen=True)
class Classification:
    """Classes by falling score. ``quantity`` says what the scores are."""

    ranking: list[tuple[int, str, float]]
    quantity: str
    task: str = "classification"
    head: str = ""

    def data(self) -> dict[str, Any]:
        """``classes``: index, label and score of each, best first."""
        return {"classes": [{"index": i, "label": label, self.quantity: score} for i, label, score in self.ranking]}

    def show(self) -> RenderableType:
        """Rank, class, label, score."""
        rows = [(rank, i, label, f"{score:.4f}") for rank, (i, label, score) in enumerate(self.ranking, 1)]
        return table([">rank", ">class", "label", f">{self.quantity}"], rows)


@record(frozen=True)
class Keypoint:
    """A point of an object; in pixels of the picture, or from 0 to 1 if there is no picture."""

    name: str
    score: float
    x: float
    y: float


@record(frozen=True)
class Box:
    """A detected object; edges in pixels of the picture, or from 0 to 1 if there is no picture.

    ``corners`` are those of a turned box, which the edges enclose.
    """

    index: int
    label: str
    score: float
    left: float
    top: float
    right: float
    bottom: float
    keypoints: Sequence[Keypoint] = ()
    mask: Mask | None = None
    corners: Sequence[tuple[float, float]] = ()

    def data(self) -> dict[str, Any]:
        """``class``, ``label``, ``score``, ``box`` (left, top, right, bottom), and what else there is: ``keypoints``
        (name, score, x, y), ``corners`` (x, y), ``area`` (pixels) and ``mask`` (run lengths as of COCO)."""
        data: dict[str, Any] = {
            "class": self.index,
            "label": self.label,
            "score": self.score,
            "box": [self.left, self.top, self.right, self.bottom],
        }
        if self.keypoints:
            data["keypoints"] = [vars(point) for point in self.keypoints]
        if self.corners:
            data["corners"] = self.corners
        if self.mask is not None:
            data |= {"area": self.mask.area, "mask": self.mask.encoded()}
        return data


@record(frozen=True)
class Detection:
    """The objects whose score reaches the threshold, best first, of ``found`` that the model gave; ``final`` if it gave
    a list of its own, else those are the ones that no better one overlaps.

    ``task`` is "pose" if they have the 17 keypoints of a body.
    """

    boxes: list[Box]
    found: int
    threshold: float
    pixels: bool
    head: str = ""
    final: bool = True
    task: str = "detection"

    def data(self) -> dict[str, Any]:
        """``boxes``: class, label, score, edges of each, and the rest of `Box.data`."""
        return {
            "head": self.head,
            "unit": "pixel" if self.pixels else "fraction",
            "found": self.found,
            "threshold": self.threshold,
            "boxes": [box.data() for box in self.boxes],
        }

    def show(self) -> RenderableType:
        """Class, label, score, edges; or, of bodies, the keypoints."""
        from rich.text import Text

        if not self.boxes:
            below = f"; {self.found} below" if self.final else ""
            return Text(f"  no boxes with a score of {self.threshold:g} or more{below}\n")
        form = "{:.0f}" if self.pixels else "{:.4f}"
        if self.task == "pose":
            return self._show_bodies(form)
        edges = [map(form.format, (box.left, box.top, box.right, box.bottom)) for box in self.boxes]
        # The area of a mask, where there are masks.
        areas = [[f"{box.mask.share:.2%}"] if box.mask else [] for box in self.boxes]
        rows = [
            (box.index, box.label, f"{box.score:.4f}", *places, *area)
            for box, places, area in zip(self.boxes, edges, areas, strict=True)
        ]
        left_out = self.found - len(self.boxes)
        why = f"below the score {self.threshold:g}" if self.final else "not listed (--max-boxes)"
        title = f"{left_out} more {why}" if left_out else None
        columns = [">class", "label", ">score", ">left", ">top", ">right", ">bottom", *([">area"] if areas[0] else [])]
        return table(columns, rows, title)

    def _show_bodies(self, form: str) -> RenderableType:
        # Body, keypoint, score, place; a point below the threshold is in brackets.
        rows = [
            (
                number,
                point.name if point.score >= self.threshold else f"({point.name})",
                f"{point.score:.4f}",
                form.format(point.x),
                form.format(point.y),
            )
            for number, body in enumerate(self.boxes, 1)
            for point in body.keypoints
        ]
        return table([">body", "keypoint", ">score", ">x", ">y"], rows)


@record(frozen=True)
class Segmentation:
    """The class of each pixel of the model's output, and the classes by the part of the picture that they cover."""

    mask: NDArray[np.int64]
    areas: list[tuple[int, str, float]]
    task: str = "segmentation"
    head: str = ""

    def data(self) -> dict[str, Any]:
        """``classes``: index, label and area (0 to 1) of each, greatest first."""
        return {
            "height": self.mask.shape[0],
            "width": self.mask.shape[1],
            "classes": [{"index": i, "label": label, "area": area} for i, label, area in self.areas],
        }

    def show(self) -> RenderableType:
        """Class, label, area."""
        return table([">class", "label", ">area"], [(i, label, f"{area:.2%}") for i, label, area in self.areas])


@record(frozen=True)
class Tensors:
    """Shapes, types and statistics of outputs, of the real numbers where they are quantized; ``why`` they are not read
    as something that they look like."""

    rows: list[dict[str, Any]]
    why: str = ""
    task: str = "tensors"
    head: str = ""

    def data(self) -> dict[str, Any]:
        """``tensors``: name, type, shape and statistics of each output; its values if it has at most 16."""
        return {"tensors": self.rows, **({"why": self.why} if self.why else {})}

    def show(self) -> RenderableType:
        """Name, type, shape, least, greatest, mean, standard deviation, values if they are few."""
        rows = []
        for row in self.rows:
            numbers = [f"{row[key]:.6g}" if row.get(key) is not None else "" for key in ("min", "max", "mean", "std")]
            values = ", ".join(v if isinstance(v, str) else f"{v:.6g}" for v in row.get("values", ()))
            rows.append((row["name"], row["type"], row["shape"], *numbers, values))
        return table(["output", "type", "shape", ">min", ">max", ">mean", ">std", "values"], rows, self.why or None)


def answer(
    ports: Sequence[Port],
    outputs: Sequence[Array],
    question: Question,
    picture: Picture | None,
    task: str | None = None,
) -> Answer:
    """The outputs read as the task says, or by the rules above. Raises `Failure` if they cannot be read as it says."""
    why = ""
    result: Answer | None = None
    if outputs and task in (None, "detection", "pose", *_heads.HEADS):
        try:
            result = _detect(ports, outputs, question, picture, task)
        except Unclear as error:
            why = str(error)
    if outputs and result is None and not why:
        first = ports[0].dequantize(outputs[0])
        if task == "segmentation" or (task is None and _is_class_map(first, question, picture)):
            result = _segment(first, question, picture)
        elif task == "classification" or (task is None and _is_classification(first, question)):
            result = _classify(first, question)
    if result is not None and task in (None, result.task, *_heads.HEADS):
        return result
    if task not in (None, "tensors"):
        shapes = ", ".join(f"{port.type_name} {list(value.shape)}" for port, value in zip(ports, outputs, strict=True))
        reason = f": {why}" if why else ""
        raise Failure(
            f"the outputs ({shapes}) cannot be read as {task}{reason}; --task tensors shows them as they are."
        )
    return Tensors([_statistics(port, values) for port, values in zip(ports, outputs, strict=True)], why)


def _scores(output: Array) -> Array | None:
    # A list of scores is a vector with any number of ones around it.
    if output.size < 2 or output.dtype.kind not in "fiu" or max(output.shape) != output.size:
        return None
    return output.reshape(-1)


def _is_classification(output: Array, question: Question) -> bool:
    scores = _scores(output)
    return scores is not None and (len(scores) == len(question.labels) or question.maker == "SOFTMAX")


def _classify(output: Array, question: Question) -> Classification | None:
    scores = _scores(output)
    if scores is None:
        return None
    order = np.argsort(-scores.astype(np.float64), kind="stable")[: question.top_k]
    within = bool((scores >= 0).all() and (scores <= 1).all())
    ranking = [(int(i), name_of(question.labels, int(i)), float(scores[i])) for i in order]
    return Classification(ranking, "probability" if within else "score")


def _detect(
    ports: Sequence[Port], outputs: Sequence[Array], question: Question, picture: Picture | None, task: str | None
) -> Detection | None:
    height, width = (picture.input_height, picture.input_width) if picture is not None else question.size or (1, 1)
    real = [_numbers(port, values) for port, values in zip(ports, outputs, strict=True)]
    found = _heads.read(
        Outputs(
            [values.reshape(values.shape[1:]) if values.shape[:1] == (1,) else values for values in real],
            [" ".join((port.name, *port.aliases)).lower() for port in ports],
            [port.scale if port.is_quantized else 0.0 for port in ports],
            height,
            width,
            len(question.labels),
            question.keypoints,
            question.turned,
            task if task is not None and task in _heads.HEADS else "",
            question.constants,
        )
    )
    if found is None:
        return None
    bodies = found.keypoints is not None and found.keypoints.shape[1] == len(KEYPOINTS)
    # One body alone is shown, however uncertain.
    threshold = -np.inf if found.final and bodies and len(found.scores) == 1 else question.threshold
    chosen = suppressed(found, threshold, question.iou)
    boxes = [_box(found, int(i), question, picture, (height, width)) for i in chosen[: question.max_boxes]]
    count = len(found.scores) if found.final else len(chosen)
    # Who asks for boxes gets them with their keypoints; who asks for keypoints, those of other things than bodies too.
    posed = found.keypoints is not None and (task == "pose" or (bodies and task != "detection"))
    task = "pose" if posed else "detection"
    return Detection(boxes, count, question.threshold, picture is not None, found.what, found.final, task)


def _numbers(port: Port, values: Array) -> Array:
    # What boxes can be computed with: no NaN, infinities, small floats; of what is no number, nothing.
    values = port.dequantize(values)
    if port.is_float or port.is_quantized:
        values = values.astype(np.float32)
        return values if np.isfinite(values).all() else np.nan_to_num(values, nan=0.0, posinf=1e9, neginf=-1e9)
    return values if values.dtype.kind in "iu" else np.empty(0, np.float32)


def _box(found: Found, i: int, question: Question, picture: Picture | None, size: tuple[int, int]) -> Box:
    def place(x: float, y: float) -> tuple[float, float]:
        x, y = float(x) / size[1], float(y) / size[0]
        return picture.to_pixels(x, y) if picture is not None else (x, y)

    index, score = int(found.classes[i]), float(found.scores[i])
    # Label files of COCO may begin with an entry for the background, which no class has.
    before = 1 if question.labels.get(0) == "???" else found.background
    edges = *place(*found.boxes[i, :2]), *place(*found.boxes[i, 2:])
    corners: list[tuple[float, float]] = []
    if found.angles is not None:
        corners = [place(x, y) for x, y in _turned(found.boxes[i], float(found.angles[i]))]
        xs, ys = zip(*corners, strict=True)
        edges = min(xs), min(ys), max(xs), max(ys)
    keypoints = []
    if found.keypoints is not None:
        points = found.keypoints[i].tolist()
        names = KEYPOINTS if len(points) == len(KEYPOINTS) else map(str, range(len(points)))
        keypoints = [Keypoint(name, s, *place(x, y)) for name, (x, y, s) in zip(names, points, strict=True)]
    mask = None
    if found.masks is not None:
        prototypes = found.masks.prototypes
        mask = mask_of(found.masks.coefficients[i], prototypes, edges, picture, size[0] // len(prototypes))
    return Box(index, name_of(question.labels, index + before), score, *edges, keypoints, mask, corners)


def _turned(box: Array, angle: float) -> Array:
    # The corners [4, 2] of a box turned about its centre.
    left, top, right, bottom = box.astype(np.float64)
    across = np.array([np.cos(angle), np.sin(angle)]) * (right - left) / 2
    along = np.array([-np.sin(angle), np.cos(angle)]) * (bottom - top) / 2
    center = np.array([left + right, top + bottom]) / 2
    corners: Array = center + np.array([-across - along, across - along, across + along, along - across])
    return corners


def _is_class_map(output: Array, question: Question, picture: Picture | None) -> bool:
    if picture is None or output.ndim not in (3, 4) or output.shape[0] != 1:
        return False
    if min(output.shape[1:3]) < 2 or 8 * output.shape[1] < picture.input_height:
        return False
    if output.ndim == 3 or output.dtype.kind in "bcO":
        return output.ndim == 3 and output.dtype.kind in "iu"
    channels = output.shape[3]
    return 2 <= channels <= 256 and (channels != 3 or len(question.labels) == 3)


def _segment(output: Array, question: Question, picture: Picture | None) -> Segmentation | None:
    if output.ndim == 4 and output.shape[0] == 1 and output.shape[3] > 1:
        mask = output[0].argmax(axis=-1)
    elif output.ndim in (3, 4) and output.shape[0] == 1:
        # One channel: class numbers, or the probability of the one class that is not background.
        values = output.reshape(output.shape[1:3])
        mask = values >= 0.5 if values.dtype.kind == "f" else values
    else:
        return None
    mask = mask.astype(np.int64)
    numbers, of = np.unique(mask, return_inverse=True)
    pixels = _pixels(mask.shape, picture)
    parts = np.bincount(of.reshape(-1), pixels.reshape(-1)) / pixels.sum()
    areas = [(int(n), name_of(question.labels, int(n)), float(part)) for n, part in zip(numbers, parts, strict=True)]
    areas = [area for area in areas if area[2]]
    areas.sort(key=lambda area: (-area[2], area[0]))
    return Segmentation(mask, areas)


def _pixels(shape: tuple[int, ...], picture: Picture | None) -> Array:
    # How many pixels of the picture lie on each pixel of a mask; without a picture, 1.
    if picture is None:
        return np.ones(shape)
    sides = [np.bincount(mask_positions(picture, size, axis), minlength=size) for axis, size in enumerate(shape)]
    return np.outer(*sides)


def mask_positions(picture: Picture, count: int, axis: int) -> NDArray[np.int64]:
    """For the centre of each pixel of the picture along an axis, which of the ``count`` of a mask lies under it."""
    if axis:
        place = place_in(picture.image.width, picture.left, picture.width, picture.input_width)
    else:
        place = place_in(picture.image.height, picture.top, picture.height, picture.input_height)
    return np.clip((place * count).astype(np.int64), 0, count - 1)


def _statistics(port: Port, values: Array) -> dict[str, Any]:
    row: dict[str, Any] = {"name": port.name, "type": port.type_name, "shape": list(values.shape)}
    if port.is_quantized:
        row["quantization"] = {"scale": port.scale, "zero_point": port.zero_point}
    real = port.dequantize(values)
    if port.is_float and real.dtype.kind != "f":
        real = real.astype(np.float32)
    flat = real.reshape(-1)
    if real.dtype.kind in "fiub" and flat.size:
        wide = flat.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            for name, function in (("min", np.min), ("max", np.max), ("mean", np.mean), ("std", np.std)):
                row[name] = float(function(wide))
    if flat.size <= 16:
        row["values"] = [_plain(value) for value in flat.tolist()]
    return row


def _plain(value: object) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return value if isinstance(value, (bool, int, float, str)) else str(value)
