"""Which chip a model fits: its flash, its arena with CMSIS-NN's kernels, and a verdict for each board."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from gossamer.errors import GossamerError
from gossamer.micro import MicroReport, measure
from gossamer.micro.boards import BOARDS, Board, Needs, Verdict, judge
from gossamer.micro.code_size import Library, code_size
from gossamer.micro.kernels.cmsis_nn import Extension, Target
from gossamer.micro.multiply_adds import count_multiply_adds
from gossamer.micro.offline import is_planned_offline, smallest_plan, smallest_plan_in_place, with_offline_plan
from gossamer.micro.resolver import CmsisNnOpResolver, MicroOpResolver
from gossamer.model import Model
from gossamer.schema.enums import TensorType

CPUS = {
    f"cortex-{name.lower()}": extension
    for extension in Extension
    for name in extension.value.removeprefix("Cortex-").split("/")
}
"""What each processor has, by its name."""

UNLIMITED = 1 << 62
"""Bytes of what a board of one's own has no limit for."""


def resolver(library: Library, extension: Extension | None) -> MicroOpResolver | None:
    """The kernels of a firmware; ``None`` for TFLite Micro's own, which those without CMSIS-NN have."""
    if library is Library.TFLITE_MICRO or extension is None:
        return None
    return CmsisNnOpResolver(Target(extension))


class Chips:
    """What a model of ``model_bytes`` takes on any chip. ``measured`` is its report for pointers of 4 bytes, with the
    kernels of the library, CMSIS-NN's for ``extension``."""

    def __init__(
        self, model: Model, model_bytes: int, measured: MicroReport, library: Library, extension: Extension | None
    ) -> None:
        self.model = model
        self.model_bytes = model_bytes
        self.library = library
        self._changes: dict[tuple[Library, Extension | None], list[Needs]] = {}
        self._measured = {(library, extension if library is Library.CMSIS_NN else None): measured}

    def measured(self, library: Library, extension: Extension | None, model: Model | None = None) -> MicroReport:
        """The report of a firmware. Raises what `measure` raises."""
        key = library, extension if library is Library.CMSIS_NN else None
        if model is not None:
            return measure(model, resolver=resolver(*key))
        if key not in self._measured:
            self._measured[key] = measure(self.model, resolver=resolver(*key))
        return self._measured[key]

    def flash_bytes(self, library: Library) -> int:
        """Bytes of model, interpreter and operators."""
        return self.model_bytes + code_size(self._operators, library).total

    @property
    def _operators(self) -> Sequence[str]:
        return next(iter(self._measured.values())).operators

    def to_json(self) -> dict[str, Any]:
        """Flash, multiply-adds and arenas with CMSIS-NN as plain values."""
        return {
            "kernels": self.library.value,
            "model_bytes": self.model_bytes,
            "flash_bytes": self.flash_bytes(self.library),
            "code": {library.value: self._code(library) for library in Library},
            "multiply_adds": self._multiply_adds(),
            "cmsis_nn": [self._with_cmsis_nn(extension) for extension in Extension],
        }

    def _code(self, library: Library) -> dict[str, Any]:
        code = code_size(self._operators, library)
        return {
            "estimated": True,
            "interpreter_bytes": code.interpreter,
            "operators_bytes": code.operators,
            "alone": code.alone,
            "unknown": list(code.unknown),
        }

    def _multiply_adds(self) -> dict[str, Any]:
        nodes, by_operator = [], Counter[str]()
        counted = zip(self.model.subgraphs, count_multiply_adds(self.model), strict=True)
        for number, (subgraph, counts) in enumerate(counted):
            for node, (operator, count) in enumerate(zip(subgraph.operators, counts, strict=True)):
                name = self.model.operator_name(operator)
                by_operator[name] += count
                nodes.append({"subgraph": number, "node": node, "operator": name, "multiply_adds": count})
        return {
            "total": by_operator.total(),
            "by_operator": {name: count for name, count in by_operator.most_common() if count},
            "subgraphs_counted_once": len(self.model.subgraphs) > 1,
            "nodes": nodes,
        }

    def _with_cmsis_nn(self, extension: Extension) -> dict[str, Any]:
        try:
            report = self.measured(Library.CMSIS_NN, extension)
        except GossamerError as error:
            return {"processors": extension.value, "error": str(error)}
        return {
            "processors": extension.value,
            "head_bytes": report.head_bytes,
            "arena_used_bytes": report.used_bytes,
            "minimum_arena_bytes": report.minimum_arena_bytes,
        }

    def verdicts(self, boards: Sequence[Board] = BOARDS) -> list[Verdict]:
        """Whether each board has what is needed. One that is not Arm's has TFLite Micro's own kernels."""
        return [self._verdict(board) for board in boards]

    def _verdict(self, board: Board) -> Verdict:
        library = self.library if board.extension is not None else Library.TFLITE_MICRO
        needs = self._needs(library, board.extension)
        if needs.fits(board):
            return Verdict(board, needs, None)
        key = library, board.extension
        if key not in self._changes:
            self._changes[key] = list(self._changed(*key))
        return judge(board, needs, self._changes[key])

    def _needs(self, library: Library, extension: Extension | None, how: str = "", model: Model | None = None) -> Needs:
        report = self.measured(library, extension, model)
        return Needs(report.minimum_arena_bytes, self.flash_bytes(library), how)

    def _changed(self, library: Library, extension: Extension | None) -> Iterator[Needs]:
        """What is needed after changes, those first that cost least."""
        if library is not Library.TFLITE_MICRO:
            yield self._needs(Library.TFLITE_MICRO, None, "with TFLite Micro's own kernels")
        report, needs = self.measured(library, extension), self._needs(library, extension)
        if self._planned is not None:
            yield self._needs(library, extension, "with --write-offline-plan", self._planned)
            if library is not Library.TFLITE_MICRO:
                how = "with TFLite Micro's own kernels and --write-offline-plan"
                yield self._needs(Library.TFLITE_MICRO, None, how, self._planned)
        saved = report.head_bytes - min(smallest_plan_in_place(self.model, report).size, report.head_bytes)
        if saved:
            how = "with kernels of your own that write over their inputs"
            yield Needs(needs.arena - saved, needs.flash, how, estimated=True)
        floats = self._float_bytes
        if floats:
            # Three of four bytes go, of constants and of what is alive where most is.
            head = min(smallest_plan(report).size, report.head_bytes)
            arena = needs.arena - report.head_bytes + head - int(0.75 * self._float_share * head)
            yield Needs(arena, needs.flash - floats * 3 // 4, "as int8 (gossamer quantize)", estimated=True)

    @cached_property
    def _planned(self) -> Model | None:
        """The model with an offline plan, if one makes the head smaller."""
        report = next(iter(self._measured.values()))
        if is_planned_offline(self.model) or smallest_plan(report).size >= report.head_bytes:
            return None
        planned = with_offline_plan(self.model)
        return planned if is_planned_offline(planned) else None

    @cached_property
    def _float_bytes(self) -> int:
        """Bytes of float32 constants, each buffer once."""
        buffers = {
            tensor.buffer: len(data)
            for subgraph in self.model.subgraphs
            for tensor in subgraph.tensors
            if tensor.type == TensorType.FLOAT32 and (data := self.model.tensor_data(tensor)) is not None
        }
        return sum(buffers.values())

    @property
    def _float_share(self) -> float:
        report = next(iter(self._measured.values()))
        scope, alive = report.peak
        floats = sum(
            buffer.size
            for buffer in report.buffers
            if buffer.first_use <= scope <= buffer.last_use
            and buffer.tensor is not None
            and self.model.subgraphs[buffer.subgraph].tensors[buffer.tensor].type == TensorType.FLOAT32
        )
        return floats / alive if alive else 0.0


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """A verdict as plain values; sizes are bytes."""
    board, needs, remedy = verdict.board, verdict.needs, verdict.remedy
    return {
        "name": board.name,
        "processor": board.processor,
        "ram_bytes": None if board.ram == UNLIMITED else board.ram,
        "ram_in_one_piece_bytes": None if board.ram == UNLIMITED else board.largest,
        "flash_bytes": None if board.flash == UNLIMITED else board.flash,
        "arena_bytes": needs.arena,
        "flash_needed_bytes": needs.flash,
        "fits": verdict.fits,
        "missing_ram_bytes": verdict.missing_ram,
        "missing_flash_bytes": verdict.missing_flash,
        "fits_if": remedy and remedy._asdict(),
    }


def board_row(verdict: Verdict) -> tuple[str, ...]:
    """A verdict as a row of a table: board, processor, RAM, flash, verdict."""
    board = verdict.board
    ram = (f"{board.piece / 1024:,.0f} of " if board.piece else "") + _kilobytes(board.ram)
    return board.name, board.processor, ram, _kilobytes(board.flash), verdict_words(verdict)


def verdict_words(verdict: Verdict) -> str:
    """What shares of a board a model takes, or what is missing and would make it fit."""
    board, needs = verdict.board, verdict.needs
    if verdict.fits:
        shares = [
            f"{100 * need / limit:.0f} % of {what}"
            for need, limit, what in ((needs.arena, board.largest, "RAM"), (needs.flash, board.flash, "flash"))
            if limit != UNLIMITED
        ]
        return f"fits: {', '.join(shares)}"
    missing = [
        f"{count:,} bytes of {what}"
        for count, what in ((verdict.missing_ram, "RAM"), (verdict.missing_flash, "flash"))
        if count
    ]
    words = f"lacks {' and '.join(missing)}"
    if verdict.remedy is not None:
        words += f"; {'should fit' if verdict.remedy.estimated else 'fits'} {verdict.remedy.how}"
    return words


def _kilobytes(count: int) -> str:
    return "any" if count == UNLIMITED else f"{count / 1024:,.0f} KB"


def lines(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Flash, multiply-adds and arenas with CMSIS-NN for people."""
    kernels, own = report["kernels"], Library.TFLITE_MICRO.value
    if kernels == own:
        arenas = [
            f"{entry['minimum_arena_bytes']:,} on {entry['processors']}"
            for entry in report["cmsis_nn"][1:]
            if "error" not in entry
        ]
        yield "with CMSIS-NN", f"smallest arena {', '.join(arenas) or 'unknown: it refuses the model'}"
    code = {
        library: sum(part[f"{what}_bytes"] for what in ("interpreter", "operators"))
        for library, part in report["code"].items()
    }
    other = next(name for name in code if name != kernels)
    whose = {own: "TFLite Micro's own kernels", Library.CMSIS_NN.value: "CMSIS-NN"}
    yield (
        "flash",
        f"about {report['flash_bytes']:,} bytes: {report['model_bytes']:,} of model, {code[kernels]:,} of code "
        f"({code[other]:,} with {whose[other]})",
    )
    counted = report["multiply_adds"]
    total = counted["total"]
    shares = ", ".join(
        f"{name} {100 * count / total:.0f} %" for name, count in counted["by_operator"].items() if count * 100 >= total
    )
    once = "; each subgraph once" if counted["subgraphs_counted_once"] else ""
    yield "multiply-adds", f"{total:,}{': ' if shares else ''}{shares}{once}"
