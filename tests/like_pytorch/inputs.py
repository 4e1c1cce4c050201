"""Make the variables that the lines use. The same calls make them with PyTorch and with minifuse."""

import io
import math
from types import ModuleType
from typing import Any


def values(shape: tuple[int, ...], seed: int) -> Any:
    """Return nested lists of different numbers in (-2, 2), as a function of the seed."""
    if not shape:
        return round(2 * math.sin(1.37 * seed + 0.4), 3)
    step = math.prod(shape[1:])
    return [values(shape[1:], seed + k * step) for k in range(shape[0])]


def mapped(function: Any, nested: Any) -> Any:
    """Apply a function to each number of nested lists."""
    return [mapped(function, part) for part in nested] if isinstance(nested, list) else function(nested)


def inputs(torch: ModuleType, nn: Any, functional: Any, optim: Any) -> dict[str, Any]:
    """Make the namespace of a line.

    x, y : (3, 4), positive and negative    p : (3, 4), between 0 and 1    m : (3, 4), bool    v : (4,)
    a, b : (3, 4), integers                 i : (3,), classes below 4      s : (3, 3), symmetric positive definite
    seq : (2, 4, 6)    img : (1, 4, 4, 5)   vol : (1, 2, 3, 4, 5)
    w : (2, 4), requires a gradient         sgd : an optimizer of it       fixed : set the parameters of a layer
    """

    def fixed(layer: Any) -> Any:
        """Set the k-th parameter of a layer to fixed values in (-1, 1)."""
        with torch.no_grad():
            for k, parameter in enumerate(layer.parameters()):
                parameter.copy_(torch.tensor(values(tuple(parameter.shape), 100 + k)) / 2)
        return layer

    x, w = values((3, 4), 1), torch.tensor(values((2, 4), 37), requires_grad=True)
    return {
        "torch": torch,
        "nn": nn,
        "F": functional,
        "optim": optim,
        "io": io,
        "fixed": fixed,
        "x": torch.tensor(x),
        "y": torch.tensor(values((3, 4), 13)),
        "p": torch.tensor(mapped(lambda z: round(0.5 + z / 5, 3), values((3, 4), 25))),
        "m": torch.tensor(mapped(lambda z: z > 0, x)),
        "a": torch.tensor([[-7, 4, 6, 9], [2, -5, 8, 1], [12, 3, 0, 6]]),
        "b": torch.tensor([[2, 6, 4, 3], [2, 5, 12, 7], [8, 3, 5, 9]]),
        "i": torch.tensor([2, 0, 3]),
        "v": torch.tensor([0.5, -1.25, 2.0, 0.75]),
        "s": torch.tensor([[4.0, 1.0, 0.5], [1.0, 3.0, -0.25], [0.5, -0.25, 2.0]]),
        "seq": torch.tensor(values((2, 4, 6), 50)),
        "img": torch.tensor(values((1, 4, 4, 5), 60)),
        "vol": torch.tensor(values((1, 2, 3, 4, 5), 70)),
        "w": w,
        "sgd": optim.SGD([w], lr=0.1, momentum=0.9),
    }
