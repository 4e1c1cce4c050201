"""Jacobians, Hessians and their products with vectors, with PyTorch's names, for functions of one tensor or of several.

All use the tape: one call of the function, and one backward pass for each row. `mf.func` has the same as transforms.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ..core.dispatch import grad_recording
from ..core.errors import GradientError
from ..functions.joining import stack
from ..tensors.grad_methods import check_gradient
from ..tensors.transforms import filled_like, gradients_of, make_variable
from .tape import as_sequence


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return the outputs of a function, and the product of a vector with its Jacobian: v^T J.

    Parameters
    ----------
    func
        Takes the inputs, and returns a tensor or a tuple of tensors.
    inputs : Tensor, or tuple of tensors
        The point.
    v : Tensor, or tuple of tensors, optional
        The vector, with the shapes of the outputs. Default for one element: 1.
    create_graph : bool
        Record the result, so that it can be differentiated again.
    strict : bool
        Raise an error if an output does not depend on an input, instead of returning zeros.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.autograd.functional.vjp(mf.exp, mf.zeros(2), mf.ones(2))
    (tensor([1., 1.]), tensor([1., 1.]))
    """
    with grad_recording(True):
        variables, outputs = run(func, inputs)
        vectors = vectors_for("vjp", outputs, v)
        results = rows_of("vjp", outputs, variables, vectors, strict)
    return finish(outputs, create_graph, outputs), finish(results, create_graph, inputs)


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return the outputs of a function, and the product of its Jacobian with a vector: J v. Parameters as for `vjp`.

    The vector has the shapes of the inputs. The product is the derivative of u^T J with respect to u.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.autograd.functional.jvp(lambda x: x * x, mf.tensor([1.0, 2.0]), mf.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with grad_recording(True):
        variables, outputs = run(func, inputs)
        vectors = vectors_for("jvp", variables, v)
        results = directional(outputs, variables, vectors, "jvp", strict)
    return finish(outputs, create_graph, outputs), finish(results, create_graph, outputs)


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian of a function: for each output and input, an array of the shape of the one and then the other.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As for `vjp`.
    vectorize, strategy
        Without effect: there is one backward pass for each element of the outputs. `mf.func.jacrev` is one call.

    Returns
    -------
    Tensor, or nested tuples
        jacobian[output][input]; a level is left out where the function has one tensor and no tuple.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.autograd.functional.jacobian(lambda x: x * x, mf.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    with grad_recording(True):
        variables, outputs = run(func, inputs)
        table = [finish(jacobian_rows(y, variables, strict), create_graph, inputs) for y in as_sequence(outputs)]
    return tuple(table) if isinstance(outputs, tuple) else table[0]


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the Hessian of a function of one element: hessian[i][j] for inputs i and j. Parameters as for `jacobian`.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.autograd.functional.hessian(lambda x: (x**3).sum(), mf.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """

    def gradient(*xs: Any) -> Any:
        y = func(*xs)
        if y.size != 1:
            raise GradientError(f"hessian: the function returned shape {y.shape}, expected one element; end it with sum()")
        return tuple(rows_of("hessian", y, xs, [filled_like(y, 1)], strict))

    table = jacobian(gradient, as_sequence(inputs), create_graph, strict)
    return table if isinstance(inputs, tuple) else table[0][0]


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return the output of a function of one element, and the product of a vector with its Hessian: v^T H.

    Parameters as for `vjp`; the vector has the shapes of the inputs.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.autograd.functional.vhp(lambda x: (x**3).sum(), mf.tensor([1.0, 2.0]), mf.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with grad_recording(True):
        variables, outputs = run(func, inputs)
        vectors = vectors_for("vhp", variables, v)
        first = rows_of("vhp", outputs, variables, vectors_for("vhp", outputs, None), strict)
        results = rows_of("vhp", tuple(first), variables, vectors, strict)
    return finish(outputs, create_graph, outputs), finish(results, create_graph, inputs)


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return the output of a function of one element, and the product of its Hessian with a vector: H v, which is v^T H.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.autograd.functional.hvp(lambda x: (x**3).sum(), mf.tensor([1.0, 2.0]), mf.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return vhp(func, inputs, v, create_graph, strict)


# The parts of which these consist. Gradients are recorded; `finish` removes the history at the end.


def run(func: Callable[..., Any], inputs: Any) -> tuple[list[Any], Any]:
    """Call a function with variables of its inputs, and return the variables and the outputs."""
    variables = [make_variable(x, k) for k, x in enumerate(as_sequence(inputs))]
    outputs = func(*variables)
    return variables, tuple(outputs) if isinstance(outputs, list) else outputs


def vectors_for(caller: str, targets: Any, vectors: Any) -> list[Any]:
    """Return vectors with the shapes of some tensors; 1 for a tensor of one element if none are given."""
    tensors = as_sequence(targets)
    given = (None,) * len(tensors) if vectors is None else as_sequence(vectors)
    if len(given) != len(tensors):
        raise GradientError(f"{caller}: got {len(given)} vectors, expected {len(tensors)}, one for each tensor")
    return [check_gradient(x, v, caller) for x, v in zip(tensors, given, strict=True)]


def rows_of(caller: str, outputs: Any, variables: Sequence[Any], vectors: Sequence[Any], strict: bool) -> list[Any]:
    """Return vectors times the Jacobian; zeros where no output depends on a variable."""
    grads = gradients_of(as_sequence(outputs), variables, vectors, create_graph=True)
    if strict and None in [None if g is None else 0 for g in grads]:
        raise GradientError(f"{caller}: strict=True, and an output does not depend on an input")
    return [filled_like(x, 0) if g is None else g for x, g in zip(variables, grads, strict=True)]


def directional(outputs: Any, variables: Sequence[Any], vectors: Sequence[Any], caller: str, strict: bool) -> list[Any]:
    """Return the Jacobian times vectors, by differentiating u^T J with respect to u."""
    zeros = [make_variable(filled_like(y, 0), k) for k, y in enumerate(as_sequence(outputs))]
    return rows_of(caller, rows_of(caller, outputs, variables, zeros, strict), zeros, vectors, strict)


def jacobian_rows(y: Any, variables: Sequence[Any], strict: bool) -> list[Any]:
    """Return the Jacobian of one output with respect to each variable, row by row."""
    rows = []
    for k in range(y.size):
        one = filled_like(y, 0).reshape(-1)
        one[k] = 1
        rows.append(rows_of("jacobian", y, variables, [one.reshape(y.shape)], strict))
    if not rows:
        return [filled_like(x, 0).expand(0, *x.shape).reshape(*y.shape, *x.shape) for x in variables]
    return [stack(column).reshape(*y.shape, *x.shape) for x, column in zip(variables, zip(*rows, strict=True), strict=True)]


def finish(results: Any, create_graph: bool, like: Any) -> Any:
    """Return results without history unless it is wanted, as a tuple if `like` is one."""
    found = [x if create_graph else x.detach() for x in as_sequence(results)]
    return tuple(found) if isinstance(like, tuple) else found[0]
