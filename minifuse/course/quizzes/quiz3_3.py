"""Questions on task 3.3: threads, guards, barriers, reductions in pairs, and sectors."""

import re
from random import Random

import numpy as np

from ... import simt
from ...core.errors import BarrierError, OutOfBoundsError, RaceError, SimtError, UninitializedReadError
from ..launches import blocks
from . import kernels
from .figures import table
from .question import Question, Wrong, choose

NO_HAZARD = "nothing, it is right"
RACE = "threads read cells that may not be written yet"
DIVERGENCE = "not all threads reach the barrier"
OUTSIDE = "threads read past the end of a"
VERDICTS = {RaceError: RACE, UninitializedReadError: RACE, BarrierError: DIVERGENCE, OutOfBoundsError: OUTSIDE}


def element(rng: Random) -> Question:
    """Ask which element a thread takes."""
    count, threads = rng.randint(3, 5), rng.choice([4, 8, 16, 32])
    block, thread = rng.randint(1, count - 1), rng.randrange(1, threads)
    out = np.zeros((count, threads), np.int64)
    simt.run(kernels.number_threads, count, threads, out)
    answer = int(out[block, thread])
    return Question(
        f"A kernel is launched with {count} blocks of {threads} threads. Which element k does thread {thread} of block "
        f"{block} take, when each thread takes one?",
        answer,
        f"k = blockIdx.x * blockDim.x + threadIdx.x = {block} * {threads} + {thread} = {answer}, which is cuda.grid(1).",
        {
            thread: "threadIdx.x is the number in the block, right with one block only",
            block * count
            + thread: "the number of the block is multiplied by the threads of a block, not by the blocks of the grid",
            thread * count + block: "block and thread are exchanged",
        },
        numbers={"blocks": count, "threads": threads, "block": block, "thread": thread},
    )


def idle(rng: Random) -> Question:
    """Ask how many threads a guard holds back."""
    threads = rng.choice([8, 16, 32, 64])
    size = rng.randint(threads + 1, 5 * threads - 1)
    count = blocks(size, threads)
    answer = count * threads - size
    return Question(
        f"Blocks of {threads} threads are launched for {size} elements, an element a thread, and no more blocks than "
        "needed. How many threads does the guard `if k < size` hold back?",
        answer,
        f"{size} / {threads} rounded up is {count} blocks, which are {count * threads} threads: {count * threads} - {size} "
        f"= {answer}.",
        {
            size % threads: "these are the threads of the last block that have an element",
            0: "blocks have one size, so the last one has threads to spare",
        },
        numbers={"threads": threads, "size": size},
    )


def barrier(rng: Random) -> Question:
    """Ask what is wrong with a kernel."""
    kernel = rng.choice([kernels.with_barrier, kernels.without_barrier, kernels.barrier_in_guard, kernels.without_guard])
    size = rng.choice([5, 6, 11, 13])
    grid = blocks(size, 8)
    hazard = first_hazard(kernel, grid, size)
    right = NO_HAZARD if hazard is None else VERDICTS[type(hazard)]
    mistakes = {
        NO_HAZARD: "the interpreter finds something",
        RACE: "each cell that is read was written before the barrier",
        DIVERGENCE: "all threads of a block come to the same barrier, or there is none",
        OUTSIDE: "the guard keeps threads past the end from reading",
    }
    said = "The interpreter finds no hazard." if hazard is None else f"The interpreter says: {plain(hazard)}"
    return choose(
        rng,
        f"This kernel is launched with {grid} {'block' if grid == 1 else 'blocks'} of 8 threads for {size} elements. What "
        "is wrong?",
        right,
        {text: mistake for text, mistake in mistakes.items() if text != right},
        said,
        figure=kernels.source(kernel),
        numbers={"kernel": kernel.__name__, "size": size, "right": right},
    )


def first_hazard(kernel: kernels.Kernel, grid: int, size: int) -> SimtError | None:
    """Return the first hazard of a launch of blocks of 8 threads; None if there is none."""
    a, out = np.arange(float(size)), np.zeros(size)
    hazards = simt.trace(kernel, grid, 8, out, a).hazards()
    return hazards[0] if hazards else None


def plain(error: SimtError) -> str:
    """Return the first clause of an error, without files and lines."""
    return re.sub(r" at \S+\.py:\d+", "", str(error)).split(";")[0].split(" line ")[0].rstrip(".") + "."


def pairs(rng: Random) -> Question:
    """Ask for the cells after the first step of a sum in pairs."""
    cells = [rng.randint(1, 9) for _ in range(8)]
    rows, now = [cells], list(cells)
    while len(now) > 1:
        half = len(now) // 2
        now = [now[t] + now[t + half] for t in range(half)]
        rows.append(now)
    return Question(
        f"Eight threads of a block sum {cells} in pairs: in the first step half = 4, and thread t adds cells[t + half] to "
        "cells[t]. Which four numbers are left after it?",
        tuple(rows[1]),
        f"Each line is one step, with a barrier before the next: {len(rows) - 1} steps instead of 7.",
        {
            tuple(
                cells[t] + cells[t + 1] for t in range(0, 8, 2)
            ): "thread t adds the cell that is half away, not its neighbor"
        },
        drawing="\n".join("  ".join(f"{x:>2}" for x in row) for row in rows),
        numbers={"cells": cells},
    )


def steps(rng: Random) -> Question:
    """Ask how many steps a reduction of a long row takes."""
    threads, size = rng.choice([(8, 16), (8, 24), (16, 64), (32, 64), (32, 96), (64, 256), (64, 128)])
    own, half, tree = size // threads, threads // 2, 0
    while half:
        tree, half = tree + 1, half // 2
    answer = own + tree
    wrong: Wrong = {
        size - 1: "this is one thread alone",
        tree: "before the pairs begin, each thread reduces its own elements",
        own + threads - 1: "in pairs, a step halves what is left",
    }
    return Question(
        f"A block of {threads} threads reduces {size} elements. First each thread combines every {threads}th element with "
        "its start, a step for each; then the threads combine in pairs. How many steps is that, if threads work at once?",
        answer,
        f"{size} / {threads} = {own} steps of each thread on its own, then {threads} values in pairs: 2 ** {tree} = "
        f"{threads}, so {tree} steps. {own} + {tree} = {answer}.",
        wrong,
        numbers={"threads": threads, "size": size},
    )


def sectors(rng: Random) -> Question:
    """Ask for the number of sectors that a warp reads."""
    step, dtype = rng.choice([1, 2, 4, 8, 16]), rng.choice(["float32", "float64"])
    item = np.dtype(dtype).itemsize
    a, out = np.zeros(32 * step, dtype), np.zeros(32, dtype)
    answer = int(simt.trace(kernels.copy_every, 1, 32, a, out, step).requests().sectors[0])
    touched = 32 * step * item
    wrong: Wrong = {32 * item // 32: "the elements are not adjacent"} if step > 1 else {32: "neighbors share a sector"}
    if answer < 32:
        wrong[32] = "a sector holds several of the elements that are read"
    else:
        wrong[touched // 32] = "no more than a sector is moved for an element"
    return Question(
        f"Memory moves in sectors of 32 bytes. The 32 threads of a warp read a[t * {step}] of {dtype}, t = 0 to 31. How "
        "many sectors does the warp need, if a begins at one?",
        answer,
        f"Neighbors are {step} * {item} = {step * item} bytes apart, so "
        + (
            f"a sector serves {32 // (step * item)} of them: 32 / {32 // (step * item)} = {answer}."
            if step * item < 32
            else f"each needs a sector of its own: {answer}."
        )
        + f" Of {answer * 32} bytes that move, {32 * item} are used. The trace counts the same.",
        wrong,
        drawing=table(
            [(f"a[t * {n}]", min(32, n * item), 32 * item / min(32, n * item) / 32) for n in (1, 2, 4, 8, 16)],
            ("reads", "sectors", "part of the bytes that is used"),
        ),
        numbers={"step": step, "dtype": dtype},
    )


QUESTIONS = (element, idle, barrier, pairs, steps, sectors)
