"""Sizes and lifetimes in, offsets out. Knows nothing of models, graphs or tensors beyond a few integers."""
