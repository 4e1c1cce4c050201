"""Rows of programs from papers, books and notebooks, beside torch and torch.compile; those with gradients once more.

The results are compared with NumPy in float64. The gradients are compared with those of torch in float64, or, without torch,
with those of minifuse, operation by operation in float64.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import minifuse as mf

from ..fused import EAGER, torch_compiled
from ..gpu import on_device
from ..held_out import PROGRAMS
from ..held_out.program import BenchDraw, Program, weights
from ..row import US, Bench, Contest, Player, Row, Work, is_ours, to_float64

FAST = f"{US}, fast math"
GROUP = "held-out"
GRADIENTS = f"{GROUP}-gradients"


def inputs_of(program: Program, bench: Bench, is_on_gpu: bool) -> tuple[BenchDraw, list[Any]]:
    """Make the inputs of a program in the size of the place; a quick run takes the size of tests."""
    draw = BenchDraw(bench)
    size = program.tiny if bench.is_quick else program.gpu if is_on_gpu else program.cpu
    return draw, list(program.inputs(draw, *size))


def forward_row(program: Program, is_on_gpu: bool, name: str = GROUP) -> Row:
    """Make a row that times the program."""

    def setup(bench: Bench) -> Contest:
        _, inputs = inputs_of(program, bench, is_on_gpu)
        exact = program.exact(*[to_float64(bench.read(x)) for x in inputs])
        exact = bench.read(exact) if isinstance(exact, tuple) else np.asarray(exact)
        works = player_functions(bench, program.on, is_on_gpu)
        players: dict[str, Player] = {who: partial(work, *bench.lend(who, inputs)) for who, work in works.items()}
        nbytes = 4 * (sum(x.size for x in inputs) + exact.size)
        return Contest(players, exact, program.dtype, program.tolerance, nbytes=nbytes)

    return Row(program.name, group(name, is_on_gpu), setup)


def gradient_row(program: Program, is_on_gpu: bool) -> Row:
    """Make a row that times the loss and the gradients of the program."""

    def setup(bench: Bench) -> Contest:
        draw, inputs = inputs_of(program, bench, is_on_gpu)
        shape = program.on(mf)(*bench.lend(US, inputs)).shape
        inputs.append(weights(draw, tuple(shape)))
        checker = next((who for who in bench.peers if who.startswith("torch")), US)
        exact = bench.read(gradients(program, bench, checker, program.loss, [in_float64(x) for x in inputs])())
        players = {
            who: gradients(program, bench, who, lambda module, work=work: work, inputs)
            for who, work in player_functions(bench, program.loss, is_on_gpu).items()
        }
        nbytes = 4 * (sum(x.size for x in inputs) + exact.size)
        return Contest(players, exact, tolerance=program.gradient_tolerance, nbytes=nbytes)

    return Row(program.name, group(GRADIENTS, is_on_gpu), setup)


def player_functions(bench: Bench, work_on: Callable[[Any], Work], is_on_gpu: bool) -> dict[str, Work]:
    """Return the function as each player calls it: fused, on a GPU with approximations too, or operation by operation."""
    works = {US: mf.fuse(work_on(mf)), EAGER: work_on(mf)}
    if is_on_gpu:
        works[FAST] = mf.use_fast_math()(mf.fuse(work_on(mf)))
    if "torch" in bench.peers:
        works["torch"] = work_on(bench.peers["torch"])
    if "torch.compile" in bench.peers:
        works["torch.compile"] = torch_compiled(work_on(bench.peers["torch.compile"]), bench)
    return works


def gradients(
    program: Program, bench: Bench, who: str, loss_on: Callable[[Any], Work], inputs: Sequence[Any]
) -> Callable[[], tuple[Any, ...]]:
    """Return a player that computes a loss and the gradients of the first inputs, with leaves that share their memory."""
    loss = loss_on(mf if is_ours(who) else bench.module(who))
    tensors = [x.detach() for x in bench.lend(who, inputs)]
    leaves = [x.requires_grad_() for x in tensors[: program.gradients]]

    def step() -> tuple[Any, ...]:
        for x in leaves:
            x.grad = None
        loss(*tensors).backward()
        return tuple(x.grad for x in leaves)

    return step


def in_float64(x: Any) -> Any:
    """Convert floats, of an array of NumPy or of a tensor of a GPU, to float64."""
    if isinstance(x, np.ndarray):
        return to_float64(x)
    return x.to(mf.float64) if x.dtype.is_float else x


def group(name: str, is_on_gpu: bool) -> str:
    """Return the name of a group of rows on the processor or on a GPU."""
    return f"gpu-{name}" if is_on_gpu else name


def rows(is_on_gpu: bool) -> list[Row]:
    """Return the rows of all programs, then those with gradients."""
    made = [forward_row(program, is_on_gpu) for program in PROGRAMS]
    made += [gradient_row(program, is_on_gpu) for program in PROGRAMS if program.gradients]
    return [on_device(row) for row in made] if is_on_gpu else made


ROWS, GPU_ROWS = rows(False), rows(True)
