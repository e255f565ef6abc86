"""`NDArray` and `ArrayLike` for annotations, without the 4 ms that `numpy.typing` takes to import."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
else:
    import numpy as np

    ArrayLike = Any

    class NDArray:
        """``NDArray[np.uint8]`` is an array, to whoever asks when the program runs."""

        def __class_getitem__(cls, _):
            return np.ndarray


__all__ = ["ArrayLike", "NDArray"]
