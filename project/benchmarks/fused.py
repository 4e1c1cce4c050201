"""Rows of fused functions: by minifuse, torch.compile, cupy.fuse, jax.jit, or by hand as a cupy.ElementwiseKernel.

Compilation happens before the clock starts, in the call that is checked. A function is written for tensors, and, for NumPy,
CuPy and JAX, with the functions of a NumPy-like module: cupy.fuse accepts only those of CuPy. In a quick run torch.compile
captures, but generates no code.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import minifuse as mf

from .row import US, Bench, Contest, Inputs, Row, Target, Work, formula, jax_jit

EAGER = f"{US}, eager"
MAX_COMPILED = 256  # rows that share a function, if all of them are compiled before one is timed
Arrays = Callable[[Any, Any], Work]  # of a NumPy-like module and the row length, a float32


def fused(
    name: str,
    group: str,
    inputs: Inputs,
    tensors: Work,
    arrays: Arrays | None = None,
    *,
    torch: Work | None = None,
    around: Callable[[Work], Work] = lambda work: work,
    views: Callable[..., Sequence[Any]] | None = None,
    exact: Work | None = None,
    element: tuple[str, str, str] | None = None,
    others: Mapping[str, Work] | None = None,
    without: Sequence[str] = (),
    gradients: bool = False,
    flops: Callable[..., int] | None = None,
    rests: bool = False,
    targets: Sequence[Target] = (),
) -> Row:
    """Return a row whose players fuse one function, each in its way, beside players that run it unfused.

    Parameters
    ----------
    tensors
        The function on tensors of minifuse and of torch.
    arrays
        Given a module with NumPy's words and the length of a row, the function on arrays; None leaves those players out.
    torch
        The function on tensors of torch, where it is another one.
    around
        What is done with the fused function; it is called, if left out.
    views
        What `arrays` gets instead of the inputs: cupy.fuse takes no views of what it fuses.
    exact
        The result in float64; that of `arrays`, if left out.
    element
        For cupy.ElementwiseKernel: its inputs, its outputs, and what it does with one element of each, in C.
    others, without, gradients, flops, rests, targets
        As `formula` describes them.
    """

    def setup(bench: Bench) -> Contest:
        given = inputs(bench)
        width = np.float32(given[0].shape[-1])
        works = fusing_players(bench, tensors, arrays, width, torch or tensors, around, views, element)
        on_arrays = of_views(views, arrays(np, width)) if arrays else tensors
        row = formula(
            name,
            group,
            lambda bench: given,
            tensors,
            on_arrays,
            exact=exact,
            others={**works, **(others or {})},
            without=[*without, *([] if arrays else ["numpy", "cupy", "jax"])],
            gradients=gradients,
            flops=flops,
            rests=rests,
        )
        return row.setup(bench)

    return Row(name, group, setup, tuple(targets))


def fusing_players(
    bench: Bench,
    tensors: Work,
    arrays: Arrays | None,
    width: Any,
    torch: Work,
    around: Callable[[Work], Work] = lambda work: work,
    views: Callable[..., Sequence[Any]] | None = None,
    element: tuple[str, str, str] | None = None,
) -> dict[str, Work]:
    """Return one function as each player of a bench fuses it, or runs it without fusion."""
    works = {US: around(mf.fuse(tensors)), EAGER: around(tensors), "torch": around(torch)}
    if "torch.compile" in bench.peers:
        works["torch.compile"] = around(torch_compiled(torch, bench))
    if arrays and "cupy.fuse" in bench.peers:
        fuse = bench.peers["cupy.fuse"].fuse(kernel_name="fused")
        works["cupy.fuse"] = of_views(views, fuse(arrays(bench.peers["cupy.fuse"], width)))
    if element and "cupy.ElementwiseKernel" in bench.peers:
        kernel = bench.peers["cupy.ElementwiseKernel"].ElementwiseKernel(*element, "by_element")
        works["cupy.ElementwiseKernel"] = of_views(views, kernel)
    if arrays and "jax" in bench.peers:
        works["jax"] = of_views(views, jax_jit(lambda np: arrays(np, width)))
    return works


def torch_compiled(work: Work, bench: Bench, mode: str | None = None) -> Work:
    """Return the function, compiled by torch for these shapes.

    Code that torch compiled for other rows is discarded, unless these rows are still to be timed. Then the limit on the code
    of one function is raised, since rows share functions: once it is exceeded, torch runs a function eagerly.
    """
    torch: Any = bench.peers["torch.compile"]
    if bench.is_ahead:
        torch._dynamo.config.recompile_limit = MAX_COMPILED
    else:
        torch._dynamo.reset()
    how = {"backend": "eager"} if bench.is_quick else {"mode": mode}
    made: Work = torch.compile(work, dynamic=False, **how)
    return made


def of_views(views: Callable[..., Sequence[Any]] | None, work: Work) -> Work:
    """Return a function of views of its inputs."""
    return (lambda *inputs: work(*views(*inputs))) if views else work


def backward(forward: Work) -> Work:
    """Return a forward and backward pass: from inputs and output gradient to the gradient of the first input."""

    def both(x: Any, *rest: Any) -> Any:
        x.grad = None
        forward(x, *rest[:-1]).backward(rest[-1])
        return x.grad

    return both
