"""Attention."""

from __future__ import annotations

from typing import Any

from gossamer.convert.blocks.attention import attention
from gossamer.convert.graph import Value, refuse
from gossamer.convert.lowerings.torch import Call, lowers


@lowers("aten.scaled_dot_product_attention", "aten._scaled_dot_product_attention_math")
@lowers("aten._scaled_dot_product_flash_attention", "aten._scaled_dot_product_flash_attention_for_cpu")
@lowers("aten._scaled_dot_product_efficient_attention", "aten._scaled_dot_product_cudnn_attention")
@lowers("aten._scaled_dot_product_fused_attention_overrideable")
def scaled_dot_product_attention(
    call: Call,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    attn_bias: Value | None = None,
    **others: Any,
) -> Value | tuple[Value]:
    if dropout_p:
        refuse("drops elements at random, which only training does: call eval() before the export")
    mask = attn_mask if attn_mask is not None else attn_bias
    found = attention(call.graph, query, key, value, mask, scale=scale, causal=is_causal)
    return found if len(call.results) == 1 else (found,)
