"""The logger of the package, ``logging.getLogger("gossamer")``, which is imported when there is something to say."""

from __future__ import annotations

import sys
from typing import Any

INFO, WARNING, ERROR = 20, 30, 40
"""The levels of `logging`."""


class _Logger:
    """What the package uses of `logging.Logger`. Without `logging` imported, nobody listens to less than a warning."""

    def log(self, level: int, message: str, *values: Any) -> None:
        """See `logging.Logger.log`."""
        if level >= WARNING or "logging" in sys.modules:
            import logging

            logging.getLogger("gossamer").log(level, message, *values, stacklevel=3)

    def info(self, message: str, *values: Any) -> None:
        """See `logging.Logger.info`."""
        self.log(INFO, message, *values)

    def warning(self, message: str, *values: Any) -> None:
        """See `logging.Logger.warning`."""
        self.log(WARNING, message, *values)

    def error(self, message: str, *values: Any) -> None:
        """See `logging.Logger.error`."""
        self.log(ERROR, message, *values)


logger = _Logger()
