"""Distances and similarities as layers; normalization to unit length, one-hot vectors, and Bilinear."""

import math

from ..core.dtypes import float32
from ..core.errors import ShapeError
from ..core.operators import eq, maximum
from ..functions.neural import bilinear, cosine_similarity, pairwise_distance, pdist, vector_norm
from ..functions.table import values_of
from ..ir.array_functions import A, BoundFunction
from ..ir.array_methods import Array
from ..ir.index_checks import in_range, require_integer_index
from ..tensors.creation import DTypeLike, tensor
from ..tensors.random import generator
from .function_layers import Constant, layer, layer_class
from .module import Module, Parameter

__all__ = [
    "Bilinear",
    "CosineSimilarity",
    "PairwiseDistance",
    "bilinear",
    "cosine_similarity",
    "one_hot",
    "pairwise_distance",
    "pdist",
]

CosineSimilarity = layer_class("CosineSimilarity", cosine_similarity, __name__)
PairwiseDistance = layer_class("PairwiseDistance", pairwise_distance, __name__)


@layer()
def normalize(x: A, p: Constant = 2.0, dim: int = 1, eps: float = 1e-12) -> A:
    """Divide x by its p-norm along a dim, or by `eps` if that is larger."""
    return x / maximum(vector_norm(x, p, dim, keepdim=True), eps)


def one_hot(x: Array, num_classes: int = -1) -> Array:
    """Return an int64 tensor (..., num_classes) that is 1 where its last index equals the element of x, and 0 elsewhere.

    With num_classes=-1 it is the largest element plus 1, which does not exist while a function is fused.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.functional.one_hot(mf.tensor([0, 2]), num_classes=3)
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    require_integer_index("one_hot", x)
    if num_classes == -1:
        values = values_of("one_hot", x, "write num_classes=...")
        if not values.size:
            raise ShapeError("one_hot: got no elements and no num_classes; write num_classes=...")
        num_classes = int(values.max()) + 1
    y: Array = x.apply(BoundFunction(_one_hot, (num_classes,)), in_range("one_hot", x, num_classes, x.ndim))
    return y


def _one_hot(x: Array, num_classes: int) -> Array:
    return eq(x.unsqueeze(-1), x.positions(num_classes)).to("int64")


class Bilinear(Module):
    """`bilinear` as a module: y = x1 @ A @ x2 + b with a matrix A for each output.

    Attributes
    ----------
    weight : Parameter (out_features, in1_features, in2_features)
    bias : Parameter (out_features,) or None
    """

    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        dtype: DTypeLike = None,
        backend: str | None = None,
    ) -> None:
        if min(in1_features, in2_features, out_features) < 1:
            raise ShapeError(
                f"Bilinear: got {(in1_features, in2_features, out_features)} features, expected at least 1 each"
            )
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        bound = 1 / math.sqrt(in1_features)

        def draw(*shape: int) -> Parameter:
            return Parameter(tensor(generator().uniform(-bound, bound, shape), dtype or float32, backend))

        self.weight = draw(out_features, in1_features, in2_features)
        self.bias = draw(out_features) if bias else None

    def forward(self, x1: A, x2: Array) -> A:
        """Map (..., in1_features) and (..., in2_features) to (..., out_features)."""
        return bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )
