"""Gradients, and products with the Jacobian of a function, as function transforms."""

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.functional import directional, rows_of
from ..core.dispatch import grad_recording
from ..core.errors import GradientError
from ..core.pytree import tree_leaves
from ..tensors.transforms import grad as gradient_of
from ..tensors.transforms import is_recorded, make_variable


def grad_and_value(func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of `func`, and its value: (gradient, value).

    Parameters
    ----------
    func
        Returns a tensor of one element, or with `has_aux` a pair of it and anything else.
    argnums : int or sequence of int
        The arguments to differentiate with respect to.
    has_aux : bool
        Whether the second part of the result is returned as it is: (gradient, (value, aux)).

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.func.grad_and_value(lambda x: (x * x).sum())(mf.tensor([1.0, 2.0]))
    (tensor([2., 4.]), tensor(5.))
    """

    def transformed(*inputs: Any, **named: Any) -> Any:
        values: list[Any] = []

        def value(*xs: Any, **more: Any) -> Any:
            result = func(*xs, **more)
            values.append(result)
            return result[0] if has_aux else result

        gradient = gradient_of(value, argnums)(*inputs, **named)
        y = values[-1]
        if is_recorded([*tree_leaves(inputs)]):
            return gradient, y
        return gradient, (y[0].detach(), y[1]) if has_aux else y.detach()

    return transformed


def grad(func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of `func`, as `mf.grad`; with `has_aux`, (gradient, aux).

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.func.grad(lambda x: ((x * x).sum(), "aux"), has_aux=True)(mf.tensor([1.0, 2.0]))
    (tensor([2., 4.]), 'aux')
    """
    if not has_aux:
        return gradient_of(func, argnums)

    def transformed(*inputs: Any, **named: Any) -> Any:
        gradient, (_, aux) = grad_and_value(func, argnums, True)(*inputs, **named)
        return gradient, aux

    return transformed


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return the outputs of a function, and a function from vectors of their shapes to the products v^T J.

    The second function returns a tuple, one product for each of `primals`. With `has_aux`, the third result is the second
    part of what `func` returns.

    Examples
    --------
    >>> import minifuse as mf
    >>> y, pull_back = mf.func.vjp(lambda x: x * x, mf.tensor([1.0, 2.0]))
    >>> y, pull_back(mf.ones(2))
    (tensor([1., 4.]), (tensor([2., 4.]),))
    """
    with grad_recording(True):
        variables = [make_variable(x, k) for k, x in enumerate(primals)]
        outputs = func(*variables)
    outputs, aux = outputs if has_aux else (outputs, None)
    keeps = is_recorded(primals)

    def pull_back(*vectors: Any) -> tuple[Any, ...]:
        given = vectors[0] if len(vectors) == 1 and isinstance(vectors[0], tuple) else vectors
        with grad_recording(True):
            products = rows_of("vjp", outputs, variables, given, strict=False)
        return tuple(x if keeps or is_recorded(given) else x.detach() for x in products)

    shown = tuple(y.detach() for y in outputs) if isinstance(outputs, tuple) else outputs.detach()
    shown = outputs if keeps else shown
    return (shown, pull_back, aux) if has_aux else (shown, pull_back)


def jvp(
    func: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return the outputs of a function, and the products J v of its Jacobian and tangents with the shapes of the inputs.

    The product is the derivative of u^T J with respect to u: two backward passes.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.func.jvp(lambda x: x * x, (mf.tensor([1.0, 2.0]),), (mf.tensor([1.0, 10.0]),))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    if not isinstance(primals, tuple | list) or len(primals) != len(tangents):
        raise GradientError("jvp: expected a tuple of primals, and as many tangents; write jvp(f, (x,), (v,))")
    with grad_recording(True):
        variables = [make_variable(x, k) for k, x in enumerate(primals)]
        outputs = func(*variables)
        outputs, aux = outputs if has_aux else (outputs, None)
        products = directional(outputs, variables, tangents, "jvp", strict)
    keeps = is_recorded([*primals, *tangents])
    ys = outputs if isinstance(outputs, tuple) else (outputs,)
    pairs = [(y, p) if keeps else (y.detach(), p.detach()) for y, p in zip(ys, products, strict=True)]
    pair = tuple(zip(*pairs, strict=True)) if isinstance(outputs, tuple) else pairs[0]
    return (*pair, aux) if has_aux else pair
