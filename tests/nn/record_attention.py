"""Attention by PyTorch: the function, causal and not, batches that broadcast, and the module with its gradients."""

from typing import Any

import numpy as np
import torch

from .cases_attention import ATTENTIONS, EXACT, HEADS


def record() -> dict[str, Any]:
    """All cases; a name is the case, a slash, and what it is."""
    random = np.random.default_rng(0)
    found: dict[str, Any] = {}

    def draw(*shape: int) -> Any:
        return np.round(16 * random.standard_normal(shape)) / 16  # few digits: files small

    def short(x: Any) -> Any:
        return x.astype(np.float32)

    for name, (shapes, settings) in ATTENTIONS.items():
        arrays = [draw(*shape) for shape in shapes]
        leaves = [torch.tensor(x, requires_grad=True) for x in arrays]
        y = torch.nn.functional.scaled_dot_product_attention(*leaves, **settings)
        g = draw(*y.shape)
        y.backward(torch.tensor(g))
        keep = np.asarray if name in EXACT else short
        values = [*map(short, arrays), keep(y.detach().numpy()), short(g), *[keep(x.grad.numpy()) for x in leaves]]
        found |= {f"{name}/{key}": x for key, x in zip(("q", "k", "v", "y", "g", "gq", "gk", "gv"), values, strict=True)}
    for name, (width, heads, rows, has_bias, is_causal) in HEADS.items():
        module = torch.nn.MultiheadAttention(width, heads, bias=has_bias, batch_first=True, dtype=torch.float64)
        with torch.no_grad():
            for p in module.parameters():
                p.copy_(torch.tensor(draw(*p.shape) / 4))
        x = torch.tensor(draw(2, rows, width), requires_grad=True)
        mask = torch.triu(torch.ones(rows, rows, dtype=torch.bool), 1) if is_causal else None
        y, _ = module(x, x, x, attn_mask=mask, need_weights=False)
        g = torch.tensor(draw(*y.shape))
        y.backward(g)
        values = {"x": x, "y": y, "g": g, "gx": x.grad} | dict(module.named_parameters())
        values |= {f"g {key}": p.grad for key, p in module.named_parameters()}
        found |= {f"{name}/{key}": short(x.detach().numpy()) for key, x in values.items()}
    return found
