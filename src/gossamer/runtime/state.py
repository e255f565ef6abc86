"""What outlives a run of a model."""

from __future__ import annotations

from gossamer.model import Model
from gossamer.resolver import OpResolver
from gossamer.runtime.arenas import called_subgraphs
from gossamer.schema.enums import BuiltinOperator


def lasting_state(model: Model, resolver: OpResolver) -> tuple[bool, bool]:
    """Whether a run leaves variables or memories of operators behind, which can be reset; and whether it writes
    resources, which only a new interpreter has as they were. What CALL_ONCE does, a new one does too."""
    with_variables = {
        index
        for index, subgraph in enumerate(model.subgraphs)
        if any(tensor.is_variable for tensor in subgraph.tensors)
    }
    once, resets, writers = set(), bool(with_variables), set()
    for index, subgraph in enumerate(model.subgraphs):
        for operator in subgraph.operators:
            code = model.operator_code(operator)
            builtin = BuiltinOperator(model.builtin_code(operator))
            if builtin == BuiltinOperator.CALL_ONCE:
                once |= set(called_subgraphs(operator.builtin_options))
                continue
            is_custom = builtin == BuiltinOperator.CUSTOM
            op = (
                resolver.find_custom(code.custom_code, code.version)
                if is_custom
                else resolver.find_builtin(builtin, code.version)
            )
            if op is not None:
                resets |= op.reset_function is not None
                if op.side_effects and not op.outputs:
                    writers.add(index)
    # Variables of another subgraph than the first have memory, and can be reset, only when that is allocated.
    return resets, bool(writers - once) or bool(with_variables - {0})
