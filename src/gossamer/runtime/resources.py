"""State that the subgraphs of one interpreter share and that outlives an invocation."""

from __future__ import annotations

from typing import Any

from gossamer.arrays import NDArray
from gossamer.records import field, record


@record
class ResourceMap:
    """Resource variables and hash tables by id, the ids by name, and what CALL_ONCE has done.

    ``objects`` are what else TensorFlow's operators share, by ids below 0; ``object_ids`` are those of objects and of
    hash tables of TensorFlow's operators, by kind, container and name. ``uncalled`` are subgraphs without inputs and
    outputs that nobody calls: TensorFlow's converter leaves what fills a table in one.
    """

    ids: dict[tuple[str, str], int] = field(default_factory=dict)
    variables: dict[int, NDArray[Any]] = field(default_factory=dict)
    hash_tables: dict[int, Any] = field(default_factory=dict)
    objects: dict[int, Any] = field(default_factory=dict)
    object_ids: dict[tuple[str, str, str], int] = field(default_factory=dict)
    uncalled: tuple[int, ...] = ()
    initialized: set[int] = field(default_factory=set)
