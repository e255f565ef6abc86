"""Boards that are common where models run on microcontrollers, and whether a model fits them.

Memory is that of the makers' data sheets and manuals, as known in November 2026. The arena must lie in one piece of
RAM, and the largest one is smaller than all of it on some: an ESP32 has 160 KB for what is allocated when it is linked,
an ESP32-S3 about 333 KB. Nothing is deducted for stack, drivers and what else a firmware has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gossamer.errors import did_you_mean
from gossamer.micro.kernels.cmsis_nn import Extension
from gossamer.records import record

_KB, _MB = 1 << 10, 1 << 20


@record(frozen=True)
class Board:
    """A board: bytes of RAM and flash, and of the largest piece of RAM, which is all of it unless there is ``piece``.

    ``extension`` is that of an Arm processor, ``None`` for others, which CMSIS-NN is not for.
    """

    name: str
    processor: str
    ram: int
    flash: int
    extension: Extension | None = None
    piece: int = 0

    @property
    def largest(self) -> int:
        """Bytes of RAM in one piece."""
        return self.piece or self.ram


_NONE, _DSP, _MVE = Extension

BOARDS = (
    Board("STM32F103 Blue Pill", "Cortex-M3, 72 MHz", 20 * _KB, 64 * _KB, _NONE),
    Board("Arduino Uno R4", "Cortex-M4, 48 MHz", 32 * _KB, 256 * _KB, _DSP),
    Board("micro:bit v2", "Cortex-M4, 64 MHz", 128 * _KB, 512 * _KB, _DSP),
    Board("NUCLEO-F446RE", "Cortex-M4, 180 MHz", 128 * _KB, 512 * _KB, _DSP),
    Board("Arduino Nano 33 BLE", "Cortex-M4, 64 MHz", 256 * _KB, _MB, _DSP),
    Board("Raspberry Pi Pico", "Cortex-M0+, 133 MHz", 264 * _KB, 2 * _MB, _NONE),
    Board("STM32F746G-DISCO", "Cortex-M7, 216 MHz", 320 * _KB, _MB, _DSP),
    Board("SparkFun Edge", "Cortex-M4, 48 MHz", 384 * _KB, _MB, _DSP),
    Board("nRF5340 DK", "Cortex-M33, 128 MHz", 512 * _KB, _MB, _DSP),
    Board("ESP32-S3", "Xtensa LX7, 240 MHz", 512 * _KB, 8 * _MB, piece=333 * _KB),
    Board("ESP32", "Xtensa LX6, 240 MHz", 520 * _KB, 4 * _MB, piece=160 * _KB),
    Board("Raspberry Pi Pico 2", "Cortex-M33, 150 MHz", 520 * _KB, 4 * _MB, _DSP),
    Board("NUCLEO-L4R5ZI", "Cortex-M4, 120 MHz", 640 * _KB, 2 * _MB, _DSP),
    Board("NUCLEO-H743ZI2", "Cortex-M7, 480 MHz", _MB, 2 * _MB, _DSP, piece=512 * _KB),
    Board("Teensy 4.1", "Cortex-M7, 600 MHz", _MB, 7936 * _KB, _DSP, piece=512 * _KB),
    Board("Grove Vision AI V2", "Cortex-M55, 400 MHz", 2432 * _KB, 16 * _MB, _MVE, piece=2 * _MB),
    Board("Alif Ensemble E7", "Cortex-M55, 400 MHz", 13824 * _KB, 5632 * _KB, _MVE, piece=4 * _MB),
)
"""By RAM, small ones first."""


def find_board(name: str) -> Board:
    """The board of a name, or the only one that has it in its name, whatever the capitals, blanks and signs.

    Raises `ValueError`, which names those that there are.
    """
    wanted = _plain(name)
    exact = [board for board in BOARDS if _plain(board.name) == wanted]
    found = exact or [board for board in BOARDS if wanted and wanted in _plain(board.name)]
    if len(found) == 1:
        return found[0]
    names = [board.name for board in found or BOARDS]
    what = "more than one board is called" if found else "no board is called"
    guess = "" if found else did_you_mean(name, names)
    raise ValueError(f"{what} {name!r}{guess or '.'} There are {', '.join(names)}; of others say --ram and --flash.")


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


class Needs(NamedTuple):
    """What a model needs, in bytes: its arena, and flash for itself and the code.

    ``how`` completes "it fits ..." for what is not the model as it is. ``estimated``: the bytes are not exact.
    """

    arena: int
    flash: int
    how: str = ""
    estimated: bool = False

    def fits(self, board: Board) -> bool:
        """Whether a board has that much."""
        return self.arena <= board.largest and self.flash <= board.flash


@record(frozen=True)
class Verdict:
    """Whether a model fits a board: how many bytes of RAM and flash are missing, and what would make it fit."""

    board: Board
    needs: Needs
    remedy: Needs | None

    @property
    def fits(self) -> bool:
        """Whether the model fits as it is."""
        return self.needs.fits(self.board)

    @property
    def missing_ram(self) -> int:
        """Bytes of RAM in one piece."""
        return max(self.needs.arena - self.board.largest, 0)

    @property
    def missing_flash(self) -> int:
        """Bytes of flash."""
        return max(self.needs.flash - self.board.flash, 0)


def judge(board: Board, needs: Needs, changed: Sequence[Needs]) -> Verdict:
    """Whether a board has what is needed, and the first of the changes that makes it fit."""
    fits = needs.fits(board)
    return Verdict(board, needs, None if fits else next((other for other in changed if other.fits(board)), None))
