"""`vmap`, and Jacobians by it: transforms of the graph of a function."""

from collections.abc import Callable, Sequence
from typing import Any

from ..core.errors import FuseError, IndexingError, ShapeError
from ..core.operators import eq
from ..core.pytree import tree_leaves, tree_map
from ..ir.array_methods import Array
from ..ir.batching import batch, example, lead
from ..ir.graph import Node, wrap
from ..ir.vjp import differentiate
from ..tensors.transforms import apply_traced, filled_like, make_variable, normalize_argnum


class Slot:
    """The place of an array in nested tuples, lists and dicts."""

    def __init__(self, index: int) -> None:
        self.index = index


def collect(tree: Any, dims: Any, arrays: list[Any], array_dims: list[int | None], name: str = "in_dims") -> Any:
    """Replace the arrays of a tree by slots, and list them with their dims, which are a number or a tree for parts of it.

    With the name "out_dims", each array gets one more dim.
    """
    if isinstance(tree, dict):
        return {
            k: collect(x, dims[k] if isinstance(dims, dict) else dims, arrays, array_dims, name) for k, x in tree.items()
        }
    if isinstance(tree, list | tuple):
        parts = dims if isinstance(dims, list | tuple) else [dims] * len(tree)
        if len(parts) != len(tree):
            raise ShapeError(f"vmap: got {len(parts)} {name} for {len(tree)} arguments; write one for each, or one number")
        found = [collect(x, d, arrays, array_dims, name) for x, d in zip(tree, parts, strict=True)]
        return found if isinstance(tree, list) else tuple(found)
    if not isinstance(tree, Array):
        return tree
    ndim = tree.ndim + (name == "out_dims")
    if dims is not None and not -ndim <= dims < ndim:
        raise IndexingError(f"vmap: got {name}={dims} for an array of shape {tree.shape}; write a dim that it has, or None")
    arrays.append(tree)
    array_dims.append(None if dims is None else dims % ndim)
    return Slot(len(arrays) - 1)


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that applies `func` to each slice of its arguments along a dim, as one computation.

    The graph of `func` is rewritten: each array that depends on a slice gets a leading dim.

    Parameters
    ----------
    func
        Takes arrays, also in nested tuples, lists and dicts, and returns arrays. It is called once, with graph nodes, so it
        must not read values.
    in_dims : int or None, or nested
        The dim of each argument; None for one that all calls share.
    out_dims : int, or nested
        Where the dim of the slices is in each result.
    randomness : {"error", "same"}
        Random numbers are the same for all slices.
    chunk_size : None
        Not supported.

    Raises
    ------
    ShapeError
        The dims have different sizes, or there is none.
    FuseError
        `func` reads values, or uses a function that has no rule.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> mf.vmap(lambda a, b: (a * b).sum())(x, x)
    tensor([ 5., 25.])
    """
    if chunk_size is not None or randomness == "different":
        raise FuseError("vmap: chunk_size and randomness='different' are not supported; use it on parts of the arrays")

    def mapped(*inputs: Any, **named: Any) -> Any:
        arrays, dims = list[Any](), list[int | None]()
        template = collect(inputs, in_dims, arrays, dims)
        names = collect(named, 0, arrays, dims)
        sizes = {x.shape[d] for x, d in zip(arrays, dims, strict=True) if d is not None}
        if len(sizes) != 1:
            raise ShapeError(f"vmap: got dims of the sizes {sorted(sizes)}, expected one size; use in_dims to choose dims")
        (size,) = sizes
        found: list[Any] = []

        def body(*nodes: Node) -> tuple[Node, ...]:
            slices = [
                x if d is None else example((*x.shape[:d], *x.shape[d + 1 :]), x.dtype)
                for x, d in zip(nodes, dims, strict=True)
            ]
            fronts = {s: move_dim(x, d, 0) for s, x, d in zip(slices, nodes, dims, strict=True) if d is not None}
            fill = lambda x: slices[x.index] if isinstance(x, Slot) else x  # noqa: E731
            result = func(*tree_map(template, fill), **tree_map(names, fill))
            outputs, output_dims = list[Any](), list[int | None]()
            found.append(collect(result, out_dims, outputs, output_dims, "out_dims"))
            if any(not isinstance(x, Slot) for x in tree_leaves(found[-1])) or not outputs:
                raise FuseError("vmap: the function returned something else than arrays; return arrays only, or use in_dims")
            ys = [wrap(y) for y in outputs]
            batched = batch(ys, fronts, size)
            return tuple(
                move_dim(lead(y, size) if z is None else z, 0, d or 0)
                for y, z, d in zip(ys, batched, output_dims, strict=True)
            )

        results = apply_traced(body, arrays)
        return tree_map(found[-1], lambda slot: results[slot.index])

    return mapped


def move_dim(x: Any, source: int, target: int) -> Any:
    """Move a dim of an array to another place."""
    order = [d for d in range(x.ndim) if d != source]
    order.insert(target % x.ndim, source)
    return x.permute(*order) if order != sorted(order) else x


def jacrev(func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `func`: the shape of the output, then that of the argument.

    One graph: the backward pass, batched over the elements of the output.

    Parameters
    ----------
    func
        Takes arrays, and returns an array or a tuple of arrays.
    argnums : int or sequence of int
        The arguments to differentiate with respect to; a sequence gives a tuple.
    has_aux : bool
        Not supported.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.func.jacrev(lambda x: x * x)(mf.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if has_aux:
        raise FuseError("jacrev: has_aux=True is not supported; call the function once more for the other part instead")

    def jacobian(*inputs: Any) -> Any:
        indices = [normalize_argnum(k, len(inputs)) for k in ((argnums,) if isinstance(argnums, int) else argnums)]
        is_tuple: list[bool] = []
        positions = [k for k, x in enumerate(inputs) if isinstance(x, Array)]

        def body(*nodes: Node) -> tuple[Node, ...]:
            arguments = list(inputs)
            for k, node in zip(positions, nodes, strict=True):
                arguments[k] = make_variable(node, k) if k in indices else node
            outputs = func(*arguments)
            is_tuple.append(isinstance(outputs, tuple))
            variables = [arguments[k] for k in indices]
            return tuple(x for y in (outputs if is_tuple[-1] else (outputs,)) for x in jacobian_of(y, variables))

        flat = apply_traced(body, [inputs[k] for k in positions])
        rows = [flat[k : k + len(indices)] for k in range(0, len(flat), len(indices))]
        table = [row[0] if isinstance(argnums, int) else tuple(row) for row in rows]
        return tuple(table) if is_tuple[-1] else table[0]

    return jacobian


def jacobian_of(y: Node, variables: Sequence[Node]) -> list[Node]:
    """Return the Jacobians of a node, by its gradients for each row of an identity matrix."""
    n = y.size
    g = example(y.shape, y.dtype)
    position = y.positions(n)
    identity = eq(position.reshape(n, 1), position.reshape(1, n)).to(y.dtype).reshape(n, *y.shape)
    grads = [
        filled_like(x, 0) if found is None else found
        for x, found in zip(variables, differentiate([y], [g], variables), strict=True)
    ]
    batched = batch(grads, {g: identity}, n)
    return [(lead(x, n) if z is None else z).reshape(*y.shape, *x.shape) for x, z in zip(grads, batched, strict=True)]


def jacfwd(func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `func`, as `jacrev`: differentiation is in reverse mode here, too.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.func.jacfwd(lambda x: x.sum())(mf.tensor([1.0, 2.0]))
    tensor([1., 1.])
    """
    return jacrev(func, argnums, has_aux)


def hessian(func: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return a function that computes the Hessian of `func`: the Jacobian of its Jacobian.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.func.hessian(lambda x: (x**3).sum())(mf.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacrev(jacrev(func, argnums), argnums)
