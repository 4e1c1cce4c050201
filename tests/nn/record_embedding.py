"""Embeddings: rows, with and without padding, and what the table receives when some are looked up several times."""

import numpy as np

CASES = {"plain": None, "padded": 3, "padded from the end": -1}
ROWS, DIM = 7, 5


def table() -> np.ndarray:
    """The first value of the table."""
    return np.sin(1.3 * np.arange(1, ROWS * DIM + 1) ** 1.2).reshape(ROWS, DIM)


def indices() -> np.ndarray:
    """Some rows several times, one never."""
    return np.array([[3, 0, 3, 6], [1, 5, 6, 3], [6, 6, 2, 0]])


def arrives() -> np.ndarray:
    """The gradient that arrives at each row that was looked up."""
    return np.cos(0.7 * np.arange(indices().size * DIM)).reshape(*indices().shape, DIM)


def record() -> dict[str, np.ndarray]:
    """Results and gradients of all cases; and the gradient of the sum of squared gradients, of the first."""
    import torch

    found: dict[str, np.ndarray] = {}
    index, g = torch.tensor(indices()), torch.tensor(arrives())
    for name, padding in CASES.items():
        weight = torch.tensor(table(), requires_grad=True)
        y = torch.nn.functional.embedding(index, weight, padding_idx=padding)
        (y * g).sum().backward()
        found |= {f"{name}/y": y.detach().numpy(), f"{name}/grad": weight.grad.numpy()}
    weight = torch.tensor(table(), requires_grad=True)
    (first,) = torch.autograd.grad((torch.nn.functional.embedding(index, weight) ** 3).sum(), weight, create_graph=True)
    (first**2).sum().backward()
    found["second"] = weight.grad.numpy()
    x = torch.tensor(table())
    found["index_select"] = x.index_select(1, torch.tensor([4, 0, 4])).numpy()
    return found
