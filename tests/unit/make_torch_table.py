"""What PyTorch computes in training: losses and weights that `test_optim.py` compares with. Run where torch is installed:

    python -m tests.unit.make_torch_table

The first weights and the batches follow from formulas, so that the table holds results alone. All is float64.
"""

import json
from pathlib import Path

import numpy as np

TABLE = Path(__file__).parent / "tables" / "torch_training.json"
SIZES = 5, 7, 3  # of the input, of the hidden layer, classes
STEPS, BATCHES, ROWS = 100, 4, 11
CASES = {
    "descend": ("SGD", {"lr": 0.1}),
    "momentum": ("SGD", {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01}),
    "nesterov": ("SGD", {"lr": 0.05, "momentum": 0.8, "nesterov": True}),
    "adam": ("Adam", {"lr": 0.01}),
    "adam, all settings": ("Adam", {"lr": 0.02, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.1}),
}


def first_weights() -> dict[str, np.ndarray]:
    """Weights and biases of two layers, without any pattern that a layer could share with another."""
    inputs, hidden, classes = SIZES
    shapes = {"0.weight": (hidden, inputs), "0.bias": (hidden,), "2.weight": (classes, hidden), "2.bias": (classes,)}
    return {
        name: 0.5 * np.sin(1.7 * np.arange(1, np.prod(shape) + 1) ** 1.3 + k).reshape(shape)
        for k, (name, shape) in enumerate(shapes.items())
    }


def batches() -> list[tuple[np.ndarray, np.ndarray]]:
    """Inputs, and classes that follow from them, a few of which are wrong."""
    count = BATCHES * ROWS
    x = np.sin(2.3 * np.arange(count * SIZES[0]) ** 1.1).reshape(count, SIZES[0])
    y = (x @ np.cos(np.arange(SIZES[0] * SIZES[2])).reshape(SIZES[0], SIZES[2])).argmax(1)
    y[::9] = np.arange(len(y[::9])) % SIZES[2]
    return list(zip(np.split(x, BATCHES), np.split(y, BATCHES), strict=True))


def main() -> None:
    """Train with PyTorch, and write the table."""
    import torch
    from torch import nn

    table = {}
    for name, (kind, settings) in CASES.items():
        model = nn.Sequential(nn.Linear(*SIZES[:2]), nn.ReLU(), nn.Linear(*SIZES[1:])).double()
        model.load_state_dict({key: torch.tensor(x) for key, x in first_weights().items()})
        optimizer = getattr(torch.optim, kind)(model.parameters(), **settings)
        data, losses = batches(), []
        for step in range(STEPS):
            x, y = map(torch.tensor, data[step % BATCHES])
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(round(loss.item(), 12))
        weights = {key: x.numpy().round(12).tolist() for key, x in model.state_dict().items()}
        table[name] = {"losses": losses, "weights": weights}
    lines = [f"{json.dumps(name)}: {json.dumps(result)}" for name, result in table.items()]
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
