"""What the outputs of a model say: classes, boxes, masks, keypoints, or just numbers.

The task is the first of these whose rule holds, unless it is given:

- detection: four outputs as of TFLite_Detection_PostProcess: boxes [1, N, 4], classes and scores [1, N], count [1];
- pose: one output [1, 1, 17, 3] (y, x, score for the 17 keypoints of a body) or [1, P, 56] (six bodies of MoveNet);
- segmentation: the first output has class numbers [1, H, W], or a score for each of C classes [1, H, W, C], for a
  picture of at most 8 times its height (C = 3 only with three labels, else it may be a picture);
- classification: the first output is a list of N > 1 scores, made by SOFTMAX or with N labels to go with it;
- tensors: everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gossamer.arrays import NDArray
from gossamer.inputs.pictures import Picture
from gossamer.inputs.port import Port
from gossamer.records import record
from gossamer.tools._command import Failure, table
from gossamer.tools._labels import Labels, name_of

if TYPE_CHECKING:
    from rich.console import RenderableType

Array = NDArray[Any]

TASKS = ("classification", "detection", "segmentation", "pose", "tensors")

KEYPOINTS = (
    "nose", "left eye", "right eye", "left ear", "right ear", "left shoulder", "right shoulder", "left elbow",
    "right elbow", "left wrist", "right wrist", "left hip", "right hip", "left knee", "right knee", "left ankle",
    "right ankle",
)  # fmt: skip


class Answer(Protocol):
    """What a run of a model says."""

    def data(self) -> dict[str, Any]:
        """As plain values for JSON."""

    def show(self) -> RenderableType:
        """As a table for people."""


@record(frozen=True)
class Question:
    """What is known before the outputs are read: labels, the operator that makes the first output, and options."""

    labels: Labels
    maker: str = ""
    top_k: int = 5
    threshold: float = 0.3


@record(frozen=True)
class Classification:
    """Classes by falling score. ``quantity`` says what the scores are."""

    ranking: list[tuple[int, str, float]]
    quantity: str

    def data(self) -> dict[str, Any]:
        """``classes``: index, label and score of each, best first."""
        return {"classes": [{"index": i, "label": label, self.quantity: score} for i, label, score in self.ranking]}

    def show(self) -> RenderableType:
        """Rank, class, label, score."""
        rows = [(rank, i, label, f"{score:.4f}") for rank, (i, label, score) in enumerate(self.ranking, 1)]
        return table([">rank", ">class", "label", f">{self.quantity}"], rows)


@record(frozen=True)
class Box:
    """A detected object; edges in pixels of the picture, or from 0 to 1 if there is no picture."""

    index: int
    label: str
    score: float
    left: float
    top: float
    right: float
    bottom: float


@record(frozen=True)
class Detection:
    """The objects whose score reaches the threshold, best first, of ``found`` that the model gave."""

    boxes: list[Box]
    found: int
    threshold: float
    pixels: bool

    def data(self) -> dict[str, Any]:
        """``boxes``: index, label, score and edges of each."""
        return {
            "unit": "pixel" if self.pixels else "fraction",
            "found": self.found,
            "threshold": self.threshold,
            "boxes": [vars(box) for box in self.boxes],
        }

    def show(self) -> RenderableType:
        """Class, label, score, edges."""
        from rich.text import Text

        if not self.boxes:
            return Text(f"  no boxes with a score of {self.threshold:g} or more; {self.found} below\n")
        form = "{:.0f}" if self.pixels else "{:.4f}"
        rows = [
            (box.index, box.label, f"{box.score:.4f}", *map(form.format, (box.left, box.top, box.right, box.bottom)))
            for box in self.boxes
        ]
        left_out = self.found - len(self.boxes)
        title = f"{left_out} more below the score {self.threshold:g}" if left_out else None
        return table([">class", "label", ">score", ">left", ">top", ">right", ">bottom"], rows, title)


@record(frozen=True)
class Segmentation:
    """The class of each pixel of the model's output, and the classes by the part of the picture that they cover."""

    mask: NDArray[np.int64]
    areas: list[tuple[int, str, float]]

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
class Keypoint:
    """A point of a body; in pixels of the picture, or from 0 to 1 if there is no picture."""

    name: str
    score: float
    x: float
    y: float


@record(frozen=True)
class Pose:
    """The keypoints of each body."""

    bodies: list[list[Keypoint]]
    threshold: float
    pixels: bool

    def data(self) -> dict[str, Any]:
        """``bodies``: for each the name, score and place of its keypoints."""
        return {
            "unit": "pixel" if self.pixels else "fraction",
            "threshold": self.threshold,
            "bodies": [[vars(point) for point in body] for body in self.bodies],
        }

    def show(self) -> RenderableType:
        """Body, keypoint, score, place; a point below the threshold is in brackets."""
        form = "{:.0f}" if self.pixels else "{:.4f}"
        rows = [
            (
                number,
                point.name if point.score >= self.threshold else f"({point.name})",
                f"{point.score:.4f}",
                form.format(point.x),
                form.format(point.y),
            )
            for number, body in enumerate(self.bodies, 1)
            for point in body
        ]
        return table([">body", "keypoint", ">score", ">x", ">y"], rows)


@record(frozen=True)
class Tensors:
    """Shapes, types and statistics of outputs, of the real numbers where they are quantized."""

    rows: list[dict[str, Any]]

    def data(self) -> dict[str, Any]:
        """``tensors``: name, type, shape and statistics of each output; its values if it has at most 16."""
        return {"tensors": self.rows}

    def show(self) -> RenderableType:
        """Name, type, shape, least, greatest, mean, standard deviation, values if they are few."""
        rows = []
        for row in self.rows:
            numbers = [f"{row[key]:.6g}" if row.get(key) is not None else "" for key in ("min", "max", "mean", "std")]
            values = ", ".join(v if isinstance(v, str) else f"{v:.6g}" for v in row.get("values", ()))
            rows.append((row["name"], row["type"], row["shape"], *numbers, values))
        return table(["output", "type", "shape", ">min", ">max", ">mean", ">std", "values"], rows)


def find_task(ports: Sequence[Port], outputs: Sequence[Array], question: Question, picture: Picture | None) -> str:
    """The task by the rules above."""
    if not outputs:
        return "tensors"
    shape = outputs[0].shape
    if _detection_outputs(ports, outputs) is not None:
        return "detection"
    if len(outputs) == 1 and _bodies(outputs[0]) is not None:
        return "pose"
    if picture is not None and _class_map(outputs[0], len(question.labels)) and 8 * shape[1] >= picture.input_height:
        return "segmentation"
    scores = _scores(outputs[0])
    if scores is not None and (len(scores) == len(question.labels) or question.maker == "SOFTMAX"):
        return "classification"
    return "tensors"


def answer(
    task: str, ports: Sequence[Port], outputs: Sequence[Array], question: Question, picture: Picture | None
) -> Answer:
    """The outputs read as the task says. Raises `Failure` if they cannot be."""
    if task == "tensors" or not outputs:
        return Tensors([_statistics(port, values) for port, values in zip(ports, outputs, strict=True)])
    first = ports[0].dequantize(outputs[0])
    result: Answer | None = None
    if task == "classification":
        result = _classify(first, question)
    elif task == "detection":
        result = _detect(ports, outputs, question, picture)
    elif task == "segmentation":
        result = _segment(first, question)
    elif task == "pose":
        result = _pose(first, question, picture)
    if result is None:
        shapes = ", ".join(f"{port.type_name} {list(value.shape)}" for port, value in zip(ports, outputs, strict=True))
        raise Failure(f"the outputs ({shapes}) cannot be read as {task}; --task tensors shows them as they are.")
    return result


def _scores(output: Array) -> Array | None:
    # A list of scores is a vector with any number of ones around it.
    if output.size < 2 or output.dtype.kind not in "fiu" or max(output.shape) != output.size:
        return None
    return output.reshape(-1)


def _classify(output: Array, question: Question) -> Classification | None:
    scores = _scores(output)
    if scores is None:
        return None
    order = np.argsort(-scores.astype(np.float64), kind="stable")[: question.top_k]
    within = bool((scores >= 0).all() and (scores <= 1).all())
    ranking = [(int(i), name_of(question.labels, int(i)), float(scores[i])) for i in order]
    return Classification(ranking, "probability" if within else "score")


def _detection_outputs(ports: Sequence[Port], outputs: Sequence[Array]) -> tuple[int, int, int, int] | None:
    # Positions of boxes, classes, scores and count.
    named = [i for i, port in enumerate(ports) if "TFLite_Detection_PostProcess" in port.name]
    if len(named) == 4:
        named.sort(key=lambda i: ports[i].name)
        boxes, classes, scores, count = named
        return boxes, classes, scores, count
    if len(outputs) != 4 or any(output.dtype.kind != "f" for output in outputs):
        return None
    places = [i for i, output in enumerate(outputs) if output.ndim == 3 and output.shape[2] == 4]
    counts = [i for i, output in enumerate(outputs) if output.size == 1 and output.ndim <= 1]
    lists = [i for i, output in enumerate(outputs) if output.ndim == 2 and i not in counts]
    if len(places) != 1 or len(counts) != 1 or len(lists) != 2:
        return None
    if any(outputs[i].shape != outputs[places[0]].shape[:2] for i in lists):
        return None
    words = [" ".join((ports[i].name, *ports[i].aliases)).lower() for i in lists]
    if any("score" in word for word in words):
        second_is_scores = "score" in words[1]
    else:
        # Class numbers are whole; where both lists are, the order of the operator counts.
        whole = [bool(np.all(outputs[i] == np.floor(outputs[i]))) for i in lists]
        second_is_scores = whole[0] or not whole[1]
    classes, scores = lists if second_is_scores else lists[::-1]
    return places[0], classes, scores, counts[0]


def _detect(
    ports: Sequence[Port], outputs: Sequence[Array], question: Question, picture: Picture | None
) -> Detection | None:
    positions = _detection_outputs(ports, outputs)
    if positions is None:
        return None
    places, classes, scores = (outputs[i].reshape(-1, 4 if i == positions[0] else 1) for i in positions[:3])
    count = outputs[positions[3]].reshape(-1)
    found = max(0, min(int(count[0]) if count.size and np.isfinite(count[0]) else 0, len(places), len(scores)))
    # Label files of COCO may begin with an entry for the background, which the operator does not count.
    offset = 1 if question.labels.get(0) == "???" else 0
    boxes = []
    for i in np.argsort(-scores[:found, 0], kind="stable"):
        score, index = float(scores[i, 0]), int(np.nan_to_num(classes[i, 0]))
        if score >= question.threshold:
            top, left, bottom, right = np.nan_to_num(places[i]).tolist()
            if picture is not None:
                left, top = picture.to_pixels(left, top)
                right, bottom = picture.to_pixels(right, bottom)
            boxes.append(Box(index, name_of(question.labels, index + offset), score, left, top, right, bottom))
    return Detection(boxes, found, question.threshold, picture is not None)


def _class_map(output: Array, labels: int) -> bool:
    if output.ndim == 3:
        return output.shape[0] == 1 and min(output.shape[1:]) > 1 and output.dtype.kind in "iu"
    if output.ndim != 4 or output.shape[0] != 1 or min(output.shape[1:3]) < 2:
        return False
    channels = output.shape[3]
    return 2 <= channels <= 256 and (channels != 3 or labels == 3)


def _segment(output: Array, question: Question) -> Segmentation | None:
    if output.ndim == 4 and output.shape[0] == 1 and output.shape[3] > 1:
        mask = output[0].argmax(axis=-1)
    elif output.ndim in (3, 4) and output.shape[0] == 1:
        # One channel: class numbers, or the probability of the one class that is not background.
        values = output.reshape(output.shape[1:3])
        mask = values >= 0.5 if values.dtype.kind == "f" else values
    else:
        return None
    mask = mask.astype(np.int64)
    numbers, counts = np.unique(mask, return_counts=True)
    areas = [
        (int(n), name_of(question.labels, int(n)), float(c) / mask.size) for n, c in zip(numbers, counts, strict=True)
    ]
    areas.sort(key=lambda area: (-area[2], area[0]))
    return Segmentation(mask, areas)


def _bodies(output: Array) -> Array | None:
    # [bodies, 17, (y, x, score)] of both kinds of MoveNet output.
    if output.dtype.kind != "f":
        return None
    if output.shape == (1, 1, 17, 3):
        body: Array = output[0]
        return body
    if output.ndim == 3 and output.shape[0] == 1 and output.shape[2] == 56:
        bodies: Array = output[0, output[0, :, 55] > 0, :51].reshape(-1, 17, 3)
        return bodies
    return None


def _pose(output: Array, question: Question, picture: Picture | None) -> Pose | None:
    found = _bodies(output)
    if found is None:
        return None
    bodies = []
    for body in found:
        points = []
        for name, (y, x, score) in zip(KEYPOINTS, body.tolist(), strict=True):
            if picture is not None:
                x, y = picture.to_pixels(x, y)
            points.append(Keypoint(name, score, x, y))
        bodies.append(points)
    if len(found) > 1:
        bodies = [body for body in bodies if max(point.score for point in body) >= question.threshold]
    return Pose(bodies, question.threshold, picture is not None)


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
