"""Recipes that are written down: the lists of rules of ai-edge-quantizer, and shorter ones that name modes.

A rule is a dictionary (in a file: an object of JSON, in a list) with ``regex``, which is searched for in the scopes of
operators, ``operation``, a type of operators or ``"*"``, and either ``mode``, the name of a scheme, or
``algorithm_key`` and ``op_config`` as ai-edge-quantizer has them (recipe_manager.py, qtyping.py): integers throughout
if there is an ``activation_tensor_config``, else weights alone, which are multiplied with inputs that are quantized
when the model runs (``compute_precision`` INTEGER) or become floats again (FLOAT).

As there, later rules go before earlier ones, but rules with equal expressions have the place of the first of them, and
one for all operators replaces those; a rule for all operators is for those that it can do something for: weights alone
leave operators that have none to the rules before. Integers throughout are the types of inputs and outputs too.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Union

from gossamer.errors import ConvertError
from gossamer.ops import all_ops, find_op
from gossamer.quantize.recipe import ANY, INPUT, OUTPUT, Recipe, Rule, scheme_of
from gossamer.quantize.scheme import BLOCKS, FLOAT, Scheme
from gossamer.schema.enums import TensorType

Written = Union[str, "os.PathLike[str]", Sequence[Mapping[str, Any]]]
"""The path of a JSON file, or the list that such a file has."""

CLIPPING = {"min_max_uniform_quantize": "", "OCTAV": "octav", "MSE": "mse", "GPTQ": ""}
"""How the range of weights is found, by the algorithm."""

METHODS = {"GPTQ": "gptq"}
"""The method that an algorithm asks for."""

OTHER_NAMES = {"CONV_2D_TRANSPOSE": "TRANSPOSE_CONV"}
ACTIVATIONS = {
    ("INT", 8, False): TensorType.INT8,
    ("UINT", 8, False): TensorType.UINT8,
    ("INT", 16, True): TensorType.INT16,
}
"""Types of activations by ``dtype``, ``num_bits`` and ``symmetric``."""

WEIGHTS = {("INT", 8): TensorType.INT8, ("INT", 4): TensorType.INT4, ("FLOAT", 16): TensorType.FLOAT16}
GRANULARITIES = {"TENSORWISE": 0, "CHANNELWISE": 0, **{f"BLOCKWISE_{size}": size for size in BLOCKS}}


def read_recipe(source: Written) -> Recipe:
    """The recipe that is written. Raises `ConvertError`, which names the rule."""
    rules: Any = source
    if isinstance(source, (str, os.PathLike)):
        try:
            with open(source, encoding="utf-8") as file:
                rules = json.load(file)
        except (OSError, ValueError) as error:
            raise ConvertError(f"recipe {source}: {error}") from error
    if not isinstance(rules, Sequence) or not all(isinstance(rule, Mapping) for rule in rules):
        raise ConvertError(
            "a recipe is a list of rules, each a dictionary with regex, operation, and algorithm_key or mode"
        )
    places: dict[str, dict[str, list[Rule]]] = {}
    for number, written in enumerate(rules):
        try:
            pattern, op = str(written.get("regex", "")), _operation(str(written.get("operation", ANY)))
            re.compile(pattern)
            found = _rules(written, op, pattern)
        except (ConvertError, re.error) as error:
            raise ConvertError(f"rule {number} of the recipe: {error}") from error
        place = places.setdefault(pattern, {})
        if op == ANY:
            place.clear()
        place[op] = found
    algorithms = [str(written.get("algorithm_key", "")) for written in rules]
    methods = dict.fromkeys(METHODS[name] for name in algorithms if name in METHODS)
    flat = [rule for place in places.values() for found in place.values() for rule in found]
    return Recipe(tuple(flat), tuple(methods))


def _operation(name: str) -> str:
    op = OTHER_NAMES.get(name, name)
    if op not in (ANY, INPUT, OUTPUT) and find_op(op) is None:
        raise ConvertError(f"there is no operator {name!r}")
    return op


def _rules(written: Mapping[str, Any], op: str, pattern: str) -> list[Rule]:
    if "mode" in written:
        return [Rule(scheme_of(str(written["mode"])), op, pattern)]
    algorithm = written.get("algorithm_key", "")
    if algorithm == "no_quantize":
        return [Rule(FLOAT, one, pattern) for one in ((ANY, INPUT, OUTPUT) if op == ANY else (op,))]
    if algorithm not in (*CLIPPING, "float_casting"):
        known = ", ".join(["no_quantize", *CLIPPING, "float_casting"])
        raise ConvertError(f"the algorithm {algorithm!r} is not known here; there are {known}")
    scheme = _scheme(written.get("op_config") or {}, CLIPPING.get(algorithm, ""))
    if (scheme.weights == TensorType.FLOAT16) != (algorithm == "float_casting"):
        raise ConvertError(f"{algorithm} does not give weights of type {scheme.weights.name.lower()}")
    if scheme.activations == TensorType.UINT8 and op not in (INPUT, OUTPUT):
        raise ConvertError("operators compute with int8 or int16; only INPUT and OUTPUT can be uint8")
    if scheme.is_static:
        return [Rule(scheme, one, pattern) for one in ((ANY, INPUT, OUTPUT) if op == ANY else (op,))]
    takers = [one.name for one in all_ops() if one.quantizes is not None and one.quantizes.hybrid]
    if op not in (ANY, *takers):
        raise ConvertError(f"{op} has no weights that could be quantized alone")
    return [Rule(scheme, one, pattern) for one in (takers if op == ANY else (op,))]


def _scheme(config: Mapping[str, Any], clipping: str) -> Scheme:
    """The scheme of an ``op_config``."""
    weights, activations = config.get("weight_tensor_config"), config.get("activation_tensor_config")
    scheme = FLOAT._replace(clipping=clipping, least=int(config.get("min_weight_elements", 0)))
    if weights is not None:
        kind = WEIGHTS.get((str(weights.get("dtype", "INT")), weights.get("num_bits")))
        if kind is None:
            raise ConvertError(
                f"weights of {weights.get('num_bits')} bits ({weights.get('dtype', 'INT')}) are not known here"
            )
        granularity = str(weights.get("granularity", "TENSORWISE"))
        size = int(weights.get("block_size", 0)) or GRANULARITIES.get(granularity)
        if size is None or size not in (0, *BLOCKS):
            raise ConvertError(f"granularity {granularity} with blocks of {size} is not known here")
        per_channel = granularity != "TENSORWISE"
        symmetric = bool(weights.get("symmetric", True))
        scheme = scheme._replace(weights=kind, block=size, per_channel=per_channel, symmetric=symmetric)
    precise = str(config.get("compute_precision", "FLOAT")) == "FLOAT"
    if not scheme.symmetric and (not precise or scheme.block or clipping):
        raise ConvertError("only weights that become floats again, without blocks or clipping, may be asymmetric")
    if activations is not None:
        key = (
            str(activations.get("dtype", "INT")),
            activations.get("num_bits"),
            bool(activations.get("symmetric", True)),
        )
        if key not in ACTIVATIONS or precise:
            raise ConvertError(
                f"activations of {key[1]} bits ({key[0]}, {'' if key[2] else 'not '}symmetric, computed with in "
                f"{'FLOAT' if precise else 'INTEGER'}) are not known here"
            )
        return scheme._replace(activations=ACTIVATIONS[key], weights=scheme.weights if weights else TensorType.INT8)
    return scheme._replace(dequantized=precise)
