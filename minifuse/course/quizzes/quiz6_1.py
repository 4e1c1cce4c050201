"""Questions on task 6.1: chunks, steps and bytes of an all-reduce in a ring."""

from random import Random

from .question import Question, choose


def steps(rng: Random) -> Question:
    """Ask for the number of steps."""
    size = rng.randint(3, 16)
    return Question(
        f"In how many steps does a ring of {size} ranks complete an all-reduce?",
        2 * (size - 1),
        f"{size - 1} steps for the sums, and {size - 1} to pass them on: {2 * (size - 1)}.",
        {
            size - 1: "this is the reduce-scatter alone",
            2 * size: "a chunk meets all other ranks, and not the one where it begins",
            size * (size - 1): "all ranks send at the same time",
        },
        numbers={"size": size},
    )


def sent_bytes(rng: Random) -> Question:
    """Ask for the bytes that a rank sends."""
    size, chunk = rng.choice([4, 5, 8, 10, 16]), rng.choice([100, 250, 1000])
    count = size * chunk
    return Question(
        f"{size} ranks all-reduce a float32 array of {count} elements in a ring. How many bytes does each rank send?",
        2 * (size - 1) * chunk * 4,
        f"{2 * (size - 1)} messages of {chunk} elements with 4 bytes each.",
        {
            (size - 1) * chunk * 4: "the sums have to be passed on, too",
            (size - 1) * count * 4: "a message is a chunk, not the array",
            2 * (size - 1) * chunk: "an element has 4 bytes",
        },
        numbers={"size": size, "count": count},
    )


def larger(rng: Random) -> Question:
    """Ask for the number of larger chunks."""
    size = rng.randint(3, 9)
    count = size * rng.randint(1, 9) + rng.randint(1, size - 1)
    return Question(
        f"{count} elements are cut into {size} chunks whose sizes differ by at most one. How many chunks are "
        "larger than the others?",
        count % size,
        f"{count} = {size} * {count // size} + {count % size}: {count % size} chunks have one element more.",
        {size - count % size: "these are the smaller ones", 1: "the rest is spread over as many chunks as it has elements"},
        numbers={"size": size, "count": count},
    )


def begins(rng: Random) -> Question:
    """Ask on which rank the sum of a chunk begins."""
    size = rng.randint(4, 9)
    chunk = rng.randrange(size)
    return Question(
        f"In a ring of {size} ranks, the sum of chunk {chunk} is to end on rank {chunk}, and messages go to the right. "
        "Which rank sends it first?",
        (chunk + 1) % size,
        f"It makes {size - 1} steps to the right and ends on rank {chunk}: it begins right of it, on "
        f"rank {(chunk + 1) % size}.",
        {
            (chunk - 1) % size: "from there it would arrive after one step",
            chunk: "it would have to travel around the whole ring",
        },
        numbers={"size": size, "chunk": chunk},
    )


def second_round(rng: Random) -> Question:
    """Ask which part a rank sends in a step of the all-gather."""
    size = rng.randint(4, 8)
    rank, step = rng.randrange(size), rng.randint(1, size - 2)
    return Question(
        f"All-gather of {size} ranks: in step 0 each sends its own part to the right. Whose part does rank {rank} send in "
        f"step {step}?",
        (rank - step) % size,
        f"It passes on what it received last, which has come {step} to the right: that of rank {(rank - step) % size}.",
        {
            rank: "its neighbor has this part after step 0",
            (rank + step) % size: "parts come from the left",
            (rank - step - 1) % size: "this part is received in that step",
        },
        numbers={"size": size, "rank": rank, "step": step},
    )


def same_bits(rng: Random) -> Question:
    """Ask why all ranks have the same bits."""
    size = rng.randint(3, 16)
    return choose(
        rng,
        f"Why do {size} ranks have the same bits after an all-reduce in a ring?",
        "the sum of each chunk is computed once and copied",
        {
            "float sums do not depend on their order": "(0.1 + 0.2) + 0.3 is not 0.1 + (0.2 + 0.3)",
            "each rank adds the arrays in the order of ranks": "a sum begins where its chunk begins",
            "rank 0 sends its result to all": "no rank has all sums before the second round ends",
        },
        "Chunks grow along the ring, each in an order of its own. Complete chunks are only copied.",
        numbers={"size": size},
    )


QUESTIONS = (steps, sent_bytes, larger, begins, second_round, same_bits)
