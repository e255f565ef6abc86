"""`suppress`: greedy non-maximum suppression, hard (Felzenszwalb et al.) or soft (Bodla et al., ICCV 2017)."""

from __future__ import annotations

from typing import ClassVar

from gossamer.codegen import floats
from gossamer.codegen.ir import F32, I32, I64, Arguments, Function, Module, Part, Value, vector
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.records import record
from gossamer.targets import Target

_NONE = float("-inf")
"""The score of a box that is out."""


@record(frozen=True)
class Suppress(KernelSpec):
    """The best boxes of each row of ``scores`` [rows, count], those that overlap better ones left out.

    The planes of ``boxes`` [4, count] are the least y and x and the greatest; all are float32. In are boxes with a
    score over ``score_threshold``. Again and again the one with the highest score is taken (of equal ones the first),
    at most ``limit`` times and as often as boxes were in. Then a box that overlaps it by ``iou_threshold`` or more,
    which is intersection over union, 0 where an area is, goes out; if the kernel is ``soft``, the scores of the others
    shrink by exp(``decay`` * overlap ** 2), and who has no more than the threshold is out, too.

    If ``repeats`` is 0, what is taken is out, else it is compared with itself: without an area it stays. And where
    equal scores are the highest, the word at ``fault`` is set to 1.

    A row of y, i32, has the indices of what was taken, their scores as bits, each filled up with zeros to ``limit``,
    and how many there are. ``rest`` is memory for as many floats as there are scores. Rows are contiguous, ``_row``
    bytes apart; planes are ``plane`` bytes apart. Threads share rows.
    """

    soft: bool = False

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*boxes *scores *score_threshold *iou_threshold *decay *rest *y *fault rows count limit repeats "
        "plane scores_row y_row"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "suppress", "soft" if self.soft else "hard")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        least = f.load(F32, a.score_threshold)
        none = f.constant(F32, _NONE)
        with f.share(a.rows) as row:
            scores, y = f.offset(a.scores, row * a.scores_row), f.offset(a.y, row * a.y_row)
            rest = f.at(a.rest, row * a.count)
            with f.loop(0, a.limit * 2 + 1) as words:
                f.store(f.constant(I32, 0), f.at(y, words.index, "i32"))

            def enter(at: Value, parts: list[Part], carried: list[Value]) -> list[Value]:
                (part,) = parts
                score = part.load(f.at(scores, at), _NONE)
                is_in = f.compare("ogt", score, part.splat(least))
                score = f.select(is_in, score, part.constant(_NONE))
                part.store(score, f.at(rest, at))
                *best, entered = carried
                return [*self._better(f, at, score, best), f.select(is_in, entered + 1, entered)]

            numbers = f.constant(vector("i32", f.lanes), 0)
            *best, entered = f.vectors(a.count, enter, carry=[*self._nobody(f), numbers], size=1)
            entered = f.emit(I64, f"sext {_sum(f, entered)} to i64")
            with f.loop(0, f.least(a.limit, entered), carry=[*self._best(f, best), f.integer(0)]) as turns:
                score, index, ties, _ = turns.values
                place = f.emit(I64, f"sext {index} to i64")
                f.store(index, f.at(y, turns.index, "i32"))
                f.store(score, f.at(y, a.limit + turns.index, "i32"))
                with f.when(f.compare("sgt", ties, 1) & f.compare("ne", a.repeats, 0)):
                    f.store(f.integer(1), a.fault)
                with f.when(f.compare("eq", a.repeats, 0)):
                    f.store(none, f.at(rest, place))
                score, index, ties = self._without(f, a, rest, place)
                turns.goes_on = f.compare("ogt", score, none)
                turns.hand_on([score, index, ties, turns.index + 1])
            taken = turns.results[-1]
            f.store(f.emit(I32, f"trunc {taken} to i32"), f.at(y, a.limit * 2, "i32"))
        return module.text()

    def _without(self, f: Function, a: Arguments, rest: Value, place: Value) -> list[Value]:
        """Let what overlaps a box go; the best that is left."""
        least, most, decay = (f.load(F32, at) for at in (a.score_threshold, a.iou_threshold, a.decay))
        box = [f.load(F32, f.at(f.offset(a.boxes, a.plane * side), place)) for side in range(4)]

        def compare(at: Value, parts: list[Part], best: list[Value]) -> list[Value]:
            (part,) = parts
            top, left, bottom, right = (part.splat(side) for side in box)
            sides = [part.load(f.at(f.offset(a.boxes, a.plane * side), at)) for side in range(4)]
            zero = part.constant(0)
            height = f.maximum(f.minimum(bottom, sides[2]) - f.maximum(top, sides[0]), zero)
            width = f.maximum(f.minimum(right, sides[3]) - f.maximum(left, sides[1]), zero)
            own, area = (bottom - top) * (right - left), (sides[2] - sides[0]) * (sides[3] - sides[1])
            common = height * width
            is_flat = f.compare("ole", own, zero) | f.compare("ole", area, zero)
            overlap = f.select(is_flat, zero, common / (own + area - common))
            score = part.load(f.at(rest, at), _NONE)
            goes = f.compare("oge", overlap, part.splat(most))
            if self.soft:
                score = score * floats.exp(f, part.splat(decay) * overlap * overlap)
                goes = goes | f.compare("ole", score, part.splat(least))
            score = f.select(goes, part.constant(_NONE), score)
            part.store(score, f.at(rest, at))
            return self._better(f, at, part.keep(score, _NONE), best)

        return self._best(f, f.vectors(a.count, compare, carry=self._nobody(f), size=1))

    def _nobody(self, f: Function) -> list[Value]:
        """The best score of each lane, its index, and how many have it, before there is one."""
        numbers = f.constant(vector("i32", f.lanes), 0)
        return [f.constant(f.f32, _NONE), numbers, numbers]

    def _better(self, f: Function, at: Value, score: Value, best: list[Value]) -> list[Value]:
        value, index, ties = best
        lanes = ", ".join(f"i32 {lane}" for lane in range(f.lanes))
        own = Value(f, index.type, f"<{lanes}>")
        number = f.splat(f.emit(I32, f"trunc {at} to i32")) + own
        better, equal = f.compare("ogt", score, value), f.compare("oeq", score, value)
        one = f.constant(ties.type, 1)
        return [
            f.select(better, score, value),
            f.select(better, number, index),
            f.select(better, one, f.select(equal, ties + 1, ties)),
        ]

    def _best(self, f: Function, best: list[Value]) -> list[Value]:
        """Of all lanes: the highest score, the first index that has it, and how many have."""
        value, index, ties = best
        highest = f.fold(f.maximum, value)
        has = f.compare("oeq", value, f.splat(highest))
        behind = f.constant(index.type, 0x7FFFFFFF)
        first = f.fold(lambda x, y: f.select(f.compare("slt", x, y), x, y), f.select(has, index, behind))
        return [highest, first, _sum(f, f.select(has, ties, f.constant(ties.type, 0)))]


def _sum(f: Function, x: Value) -> Value:
    return f.fold(lambda a, b: a + b, x)
