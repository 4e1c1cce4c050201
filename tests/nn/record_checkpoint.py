"""A file of tensors as PyTorch writes it, byte by byte, and what lies in it."""

import numpy as np


def record() -> dict[str, np.ndarray]:
    """The file of a small network, with counts, flags, doubles, a 0-d tensor and one without elements."""
    import torch
    from safetensors.torch import save

    tensors = {
        **torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.BatchNorm1d(7)).state_dict(),
        "doubles": torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(3, 2).T.contiguous(),
        "counts": torch.tensor([-(2**31), 7], dtype=torch.int32),
        "flags": torch.tensor([True, False, True]),
        "number": torch.tensor(2.5),
        "nothing": torch.zeros(0, 3),
    }
    found = {f"tensor/{name}": x.numpy() for name, x in tensors.items()}
    return {**found, "bytes": np.frombuffer(save(tensors, {"format": "pt"}), np.uint8)}
