"""Attention that is compared with PyTorch: shapes and settings."""

from typing import Any

Shape = tuple[int, ...]

# name: (shapes of query, key and value, settings)
ATTENTIONS: dict[str, tuple[tuple[Shape, Shape, Shape], dict[str, Any]]] = {
    "one head": (((5, 16), (7, 16), (7, 16)), {}),
    "causal": (((2, 2, 6, 16), (2, 2, 6, 16), (2, 2, 6, 16)), {"is_causal": True}),
    "more keys": (((2, 1, 5, 18), (2, 1, 8, 18), (2, 1, 8, 18)), {"is_causal": True}),
    "more queries": (((1, 2, 8, 17), (1, 2, 5, 17), (1, 2, 5, 17)), {"is_causal": True}),
    "scaled": (((2, 6, 16), (2, 4, 16), (2, 4, 16)), {"scale": 0.7}),
    "turned round": (((2, 6, 16), (2, 4, 16), (2, 4, 16)), {"scale": -0.4}),
    "one key for all heads": (((2, 3, 5, 16), (2, 1, 6, 16), (2, 1, 6, 16)), {}),
    "wide values": (((2, 5, 16), (2, 6, 16), (2, 6, 20)), {}),
    "narrow": (((2, 2, 5, 3), (2, 2, 6, 3), (2, 2, 6, 3)), {"is_causal": True}),
    "past a tile": (((1, 35, 20), (1, 35, 20), (1, 35, 20)), {"is_causal": True}),
}

EXACT = "causal", "more queries", "one key for all heads", "turned round"  # recorded in float64, others in float32

# name: (embed_dim, num_heads, positions, bias, causal)
HEADS: dict[str, tuple[int, int, int, bool, bool]] = {
    "heads": (32, 2, 3, True, False),
    "causal heads": (34, 2, 5, True, True),
    "no bias": (12, 2, 3, False, True),
}
