"""Rows in which functions are fused: by minifuse, by torch.compile, by cupy.fuse, by jax.jit.

Whoever compiles does so before the clock starts, in the call that is checked. A function is written in PyTorch's words, and,
for NumPy, CuPy and JAX, in NumPy's, given the module: cupy.fuse takes no others than those of CuPy. In a quick run
torch.compile captures, but generates no code.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import minifuse as mf

from .row import US, Bench, Contest, Inputs, Row, Target, Work, formula

EAGER = f"{US}, eager"
Arrays = Callable[[Any, Any], Work]  # of a module, and of how long rows are, a float32


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
    others: Mapping[str, Work] | None = None,
    without: Sequence[str] = (),
    gradients: bool = False,
    flops: Callable[..., int] | None = None,
    rests: bool = False,
    targets: Sequence[Target] = (),
) -> Row:
    """A row whose players fuse one function, each in its way, beside those who compute it operation by operation.

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
    others, without, gradients, flops, rests, targets
        As `formula` describes them.
    """

    def setup(bench: Bench) -> Contest:
        given = inputs(bench)
        width = np.float32(given[0].shape[-1])
        works = {US: around(mf.fuse(tensors)), EAGER: around(tensors), "torch": around(torch or tensors)}
        if "torch.compile" in bench.peers:
            works["torch.compile"] = around(compiled(torch or tensors, bench))
        if arrays and "cupy.fuse" in bench.peers:
            fuse = bench.peers["cupy.fuse"].fuse(kernel_name="fused")
            works["cupy.fuse"] = of_views(views, fuse(arrays(bench.peers["cupy.fuse"], width)))
        if arrays and "jax" in bench.peers:
            jax: Any = bench.peers["jax"]
            works["jax"] = of_views(views, waited_for(jax.jit(arrays(jax.numpy, width))))
        on_arrays = of_views(views, arrays(np, width)) if arrays else tensors
        row = formula(
            name,
            group,
            lambda bench: given,
            tensors,
            on_arrays,
            exact=exact,
            others={**works, **(others or {})},
            without=[*without, *([] if arrays else ["numpy", "cupy"])],
            gradients=gradients,
            flops=flops,
            rests=rests,
        )
        return row.setup(bench)

    return Row(name, group, setup, tuple(targets))


def compiled(work: Work, bench: Bench, mode: str | None = None) -> Work:
    """The function, compiled by torch for the shapes that come; what it compiled for other rows is forgotten."""
    torch: Any = bench.peers["torch.compile"]
    torch._dynamo.reset()
    how = {"backend": "eager"} if bench.is_quick else {"mode": mode}
    made: Work = torch.compile(work, dynamic=False, **how)
    return made


def of_views(views: Callable[..., Sequence[Any]] | None, work: Work) -> Work:
    """A function of views of its inputs."""
    return (lambda *inputs: work(*views(*inputs))) if views else work


def waited_for(work: Work) -> Work:
    """A function of JAX whose result is there when it returns."""
    return lambda *inputs: work(*inputs).block_until_ready()


def backward(forward: Work) -> Work:
    """A forward and a backward pass: of the inputs and what the result receives, the gradient of the first input."""

    def both(x: Any, *rest: Any) -> Any:
        x.grad = None
        forward(x, *rest[:-1]).backward(rest[-1])
        return x.grad

    return both
