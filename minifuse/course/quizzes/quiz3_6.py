"""Questions on task 3.6: loads of a thread, intensity, the elements of a thread, and banks."""

from collections import Counter
from random import Random

from ...simt.metrics import BANK_COUNT
from .question import Question


def loads(rng: Random) -> Question:
    """Ask for the loads of shared memory by a thread."""
    m, n, k = rng.choice([2, 4, 8]), rng.choice([1, 2, 4, 8]), rng.randint(5, 40)
    answer = sum(1 for _ in range(k) for _ in (*range(m), *range(n)))
    return Question(
        f"A thread computes {m} rows and {n} columns of a product with inner size {k}, and keeps elements in registers. How "
        "many elements does it load from the tiles?",
        answer,
        f"For each of {k} steps, {m} elements of a and {n} of b: {k} * ({m} + {n}) = {answer}, for {k * m * n} products.",
        {2 * k * m * n: "each product loads its own two elements", k * m * n: "this is the number of products"},
        numbers={"m": m, "n": n, "k": k},
    )


def intensity(rng: Random) -> Question:
    """Ask for the operations for each byte that a block loads."""
    side, itemsize = rng.choice([16, 32, 64, 128]), rng.choice([4, 8])
    answer = 2 * side * side // (2 * side * itemsize)
    return Question(
        f"A block computes a tile of {side} x {side} elements of {itemsize} bytes. How many operations (products and sums) "
        "does it compute for each byte of a and b that it loads from global memory?",
        answer,
        f"For each k, 2 * {side} * {side} operations, and {side} + {side} elements of {itemsize} bytes: {2 * side * side} / "
        f"{2 * side * itemsize} = {answer}.",
        {answer * itemsize: "this is for each element", answer * 2: "a and b are both loaded"},
        numbers={"side": side, "itemsize": itemsize},
    )


def columns(rng: Random) -> Question:
    """Ask which columns a thread computes."""
    width, count, bx = rng.choice([4, 8, 16]), rng.choice([2, 3, 4]), rng.randint(0, 3)
    tx = rng.randrange(1, width)
    answer = tuple(range(bx * width * count + tx, (bx + 1) * width * count, width))
    return Question(
        f"A block has {width} threads along x, and each computes {count} columns, such that adjacent threads have adjacent "
        f"columns. Which columns does threadIdx.x = {tx} compute in blockIdx.x = {bx}?",
        answer,
        f"The block begins at column {bx} * {width} * {count} = {bx * width * count}; those of a thread are {width} apart.",
        {
            tuple(bx * width * count + tx * count + j for j in range(count)): "then adjacent threads are apart",
            tuple(bx * width + tx + j * width for j in range(count)): "a block has all columns of its threads",
        },
        numbers={"width": width, "count": count, "bx": bx, "tx": tx},
    )


def cell(rng: Random) -> Question:
    """Ask which element of a tile a thread fills."""
    threads, size, turn = rng.choice([64, 128]), rng.choice([8, 16, 32]), rng.randint(1, 3)
    thread = rng.randrange(threads)
    answer = divmod(thread + turn * threads, size)
    return Question(
        f"{threads} threads fill a tile whose rows have {size} elements, counted along rows. Thread t takes elements "
        f"t + i * {threads} for i = 0, 1, 2, ... Where is the one with i = {turn} of thread {thread}: (row, column)?",
        answer,
        f"It is element {thread} + {turn} * {threads} = {thread + turn * threads} of the tile: row {answer[0]}, column "
        f"{answer[1]}.",
        {
            answer[::-1]: "row first",
            divmod(thread + (turn + 1) * threads, size): "with i = 0, it is element t itself",
        },
        numbers={"threads": threads, "size": size, "turn": turn, "thread": thread},
    )


def passes(rng: Random) -> Question:
    """Ask how many passes over the banks a load takes."""
    length, count = rng.choice([7, 8, 9, 12, 16, 17]), rng.choice([3, 4])
    words = Counter((2 * length * row + half) % BANK_COUNT for row in range(count) for half in (0, 1))
    answer = max(words.values())
    banks = [2 * length * row % BANK_COUNT for row in range(count)]
    return Question(
        f"{count} threads read elements (0, 0) to ({count - 1}, 0) of a shared array of doubles, whose rows have {length} "
        "elements. Shared memory has 32 banks of 4 bytes. How many passes over the banks does it take?",
        answer,
        f"The rows begin at banks {banks}; a double has two banks. The most words that one bank has to serve: {answer}.",
        {count: "rows at different banks are served at once"},
        numbers={"length": length, "count": count},
    )


QUESTIONS = (loads, intensity, columns, cell, passes)
