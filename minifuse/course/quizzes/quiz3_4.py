"""Questions on task 3.4: tiles of a matmul, how often they are read, and edges."""

from random import Random

import numpy as np

from ... import simt
from ..launches import blocks
from . import kernels
from .figures import table
from .question import Question, format_value


def loads(kernel: kernels.Kernel, m: int, k: int, n: int) -> tuple[int, int, int]:
    """Return the loads of a and b in all, the most loads of a cell of a, and those of a cell of b."""
    tile = kernels.TILE
    a, b, out = np.ones((m, k)), np.ones((k, n)), np.zeros((m, n))
    trace = simt.trace(kernel, (blocks(n, tile), blocks(m, tile)), (tile, tile), out, a, b)
    assert np.all(out == k)
    reuse = trace.reuse("a"), trace.reuse("b")
    return reuse[0].loads + reuse[1].loads, reuse[0].maximum, reuse[1].maximum


def grid(rng: Random) -> Question:
    """Ask for the grid of a tiled matmul."""
    tile, m, n = rng.choice([8, 16]), rng.randint(9, 70), rng.randint(9, 70)
    answer = (blocks(n, tile), blocks(m, tile))
    return Question(
        f"A matmul with tiles of {tile} x {tile} writes an output of shape ({m}, {n}). blockIdx.x counts tiles along its "
        "columns, blockIdx.y along its rows. Which grid (x, y) is launched?",
        answer,
        f"{n} columns / {tile} rounded up is {answer[0]}, {m} rows / {tile} rounded up is {answer[1]}. x goes along a row, "
        "and is the second index.",
        {
            answer[::-1]: "x and y are exchanged: x goes along a row",
            (n // tile, m // tile): "the tiles that hang over the edge are missing",
        },
        numbers={"tile": tile, "m": m, "n": n},
    )


def cell(rng: Random) -> Question:
    """Ask which element of the output a thread computes."""
    tile, bx, by = rng.choice([4, 8]), rng.randint(0, 3), rng.randint(0, 3)
    tx, ty = rng.randrange(tile), rng.randrange(tile)
    rows, cols = (np.zeros((by + 1, bx + 1, tile, tile), np.int64) for _ in range(2))
    simt.run(kernels.place_threads, (bx + 1, by + 1), (tile, tile), rows, cols)
    answer = (int(rows[by, bx, ty, tx]), int(cols[by, bx, ty, tx]))
    return Question(
        f"Blocks have {tile} x {tile} threads. Which element (row, col) of the output does the thread with threadIdx x = "
        f"{tx}, y = {ty} compute in the block with blockIdx x = {bx}, y = {by}?",
        answer,
        f"row = blockIdx.y * {tile} + threadIdx.y = {by} * {tile} + {ty}, col = blockIdx.x * {tile} + threadIdx.x = {bx} * "
        f"{tile} + {tx}: {answer}.",
        {answer[::-1]: "x goes along a row: it makes the column", (ty, tx): "this is the place in the tile"},
        numbers={"tile": tile, "block": (bx, by), "thread": (tx, ty)},
    )


def reads(rng: Random) -> Question:
    """Ask how often a cell of a or b is read."""
    m, k, n = (rng.choice([2, 3, 4, 5, 6]) for _ in range(3))
    name = rng.choice(["a", "b"])
    tile, all_loads = kernels.TILE, loads(kernels.tiled_matmul, m, k, n)
    answer, other = (all_loads[1], all_loads[2]) if name == "a" else (all_loads[2], all_loads[1])
    size, along = (n, "along its row") if name == "a" else (m, "down its column")
    return Question(
        f"a ({m}, {k}) @ b ({k}, {n}) is computed with tiles of {tile} x {tile}. How often is a cell of {name} read from "
        "global memory?",
        answer,
        f"Once for each tile of the output {along}: {size} / {tile} rounded up is {answer}. Without tiles it would be "
        f"{size}. The trace of both kernels:",
        {
            size: "this is without tiles",
            other: f"a cell of {name} is needed {along} of the output",
            k: "the inner dim decides how many tiles a block goes through, not how often a cell is read",
        },
        drawing=table(
            [
                ("without tiles", *loads(kernels.naive_matmul, m, k, n)),
                ("with tiles", *all_loads),
            ],
            ("", "loads", "of a cell of a", "of a cell of b"),
        ),
        numbers={"m": m, "k": k, "n": n, "name": name},
    )


def total(rng: Random) -> Question:
    """Ask for the number of loads of a whole matmul."""
    m, k, n = (rng.choice([2, 4, 6]) for _ in range(3))
    with_tiles, without = loads(kernels.tiled_matmul, m, k, n)[0], loads(kernels.naive_matmul, m, k, n)[0]
    tile = kernels.TILE
    return Question(
        f"a ({m}, {k}) @ b ({k}, {n}) without tiles loads 2 * {m} * {k} * {n} = {without} elements from global memory. How "
        f"many does it load with tiles of {tile} x {tile}?",
        with_tiles,
        f"Each cell that a block has in shared memory is used {tile} times: {without} / {tile} = {with_tiles}.",
        {
            m * k + k * n: "several blocks read the same cell, each for itself",
            without // tile**2: "a cell is used once for each row or column of the tile, not for each element",
        },
        drawing=table([("without tiles", without), ("with tiles", with_tiles)], ("", "loads")),
        numbers={"m": m, "k": k, "n": n},
    )


def barriers(rng: Random) -> Question:
    """Ask how many barriers a thread passes."""
    tile, k = kernels.TILE, rng.randint(3, 15)
    trace = simt.trace(kernels.tiled_matmul, 1, (tile, tile), np.zeros((tile, tile)), np.ones((tile, k)), np.ones((k, tile)))
    passed = int(trace.summary()["TRACED"]["barriers"]["syncthreads"])
    return Question(
        f"A block walks along an inner dim of {k} in tiles of {tile}: fill, use, fill, use, with a barrier after each "
        "fill and after each use. How many barriers does each thread pass?",
        passed,
        f"{k} / {tile} rounded up is {passed // 2} tiles, each with two barriers: no thread uses a tile before it is full, "
        "and none fills the next one while another still uses this.",
        {
            passed // 2: "the second barrier is the one that is forgotten",
            passed - 1: "there is a barrier after the last use, too",
            2 * (k // tile): "the tile that hangs over the edge counts, too",
        }
        if k % tile
        else {passed // 2: "the second barrier is the one that is forgotten"},
        numbers={"tile": tile, "k": k},
    )


def edges(rng: Random) -> Question:
    """Ask how many threads store nothing."""
    tile, m, n = 8, rng.randint(5, 20), rng.randint(5, 20)
    grid_size = (blocks(n, tile), blocks(m, tile))
    threads = grid_size[0] * grid_size[1] * tile * tile
    answer = threads - m * n
    return Question(
        f"An output of shape ({m}, {n}) is covered by tiles of {tile} x {tile}, a thread for each element. How many "
        "threads store nothing?",
        answer,
        f"{grid_size[0]} x {grid_size[1]} blocks have {threads} threads, and {m} * {n} = {m * n} elements are stored: "
        f"{format_value(answer)} threads fill their cell with 0, take part in all barriers, and do not store.",
        {
            0: "tiles hang over the edge",
            tile * tile - m * n % (tile * tile): "tiles are squares, so they hang over in both directions",
        },
        numbers={"tile": tile, "m": m, "n": n},
    )


QUESTIONS = (grid, cell, reads, total, barriers, edges)
