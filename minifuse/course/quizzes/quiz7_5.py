"""Questions on task 7.5: rows, bytes, copies, places, and steps."""

from random import Random

from .question import Question


def rows(rng: Random) -> Question:
    """Ask how many rows are projected without a cache."""
    prompt, count = rng.randint(3, 9), rng.randint(3, 6)
    total = sum(range(prompt, prompt + count))
    return Question(
        f"A prompt has {prompt} tokens, and {count} more are generated. Without a cache, each of them needs a pass over the "
        "whole text so far. How many rows does one layer project in all?",
        total,
        f"The passes have {', '.join(map(str, range(prompt, prompt + count)))} rows.",
        {prompt + count - 1: "this is the number with a cache", (prompt + count) * count: "early passes are shorter"},
        numbers={"prompt": prompt, "count": count},
    )


def nbytes(rng: Random) -> Question:
    """Ask for the bytes of a cache."""
    layers, heads, size, tokens = rng.choice([2, 4, 12]), rng.choice([2, 4, 8]), rng.choice([16, 64]), rng.choice([100, 500])
    answer = 2 * 8 * layers * heads * size * tokens
    return Question(
        f"{layers} layers, {heads} heads of {size} numbers, float64: how many bytes have the keys and values of "
        f"{tokens} tokens?",
        answer,
        f"2 * {layers} * {heads} * {size} * {tokens} numbers of 8 bytes.",
        {
            answer // 2: "there are keys and values",
            answer // layers: "each layer has its own",
            answer // 8: "a number has 8 bytes",
        },
        numbers={"layers": layers, "heads": heads, "size": size, "tokens": tokens},
    )


def copies(rng: Random) -> Question:
    """Ask how many tokens a growing memory copies."""
    room, doublings = rng.choice([2, 4, 8]), rng.randint(2, 4)
    count = room * 2**doublings - rng.randint(0, room - 1)
    answer = sum(room * 2**k for k in range(doublings))
    return Question(
        f"Memory has room for {room} tokens, and is doubled when a token finds it full. How many tokens are copied until "
        f"{count} are stored?",
        answer,
        f"It is full at {', '.join(str(room * 2**k) for k in range(doublings))} tokens, and copies as many each time.",
        {
            answer + room * 2**doublings: "the last memory has room for all",
            doublings: "this is how often it grows",
            count * (count - 1) // 2: "this is cat for each token",
        },
        numbers={"room": room, "count": count},
    )


def place(rng: Random) -> Question:
    """Ask for places of a step."""
    first, second, steps = rng.randint(2, 9), rng.randint(2, 9), rng.randint(2, 5)
    return Question(
        f"Two caches have {first} and {second} tokens. The second one is reset. Then {steps} steps feed both sequences, a "
        "token each. Which places have the two tokens of the last step?",
        (first + steps - 1, steps - 1),
        "A place is the number of tokens in the cache before the step, and each cache has its own.",
        {
            (first + steps, steps): "the first place is 0",
            (first + steps - 1, second + steps - 1): "a reset begins at 0",
            (first + steps - 1, first + steps - 1): "each sequence has its own places",
        },
        numbers={"first": first, "steps": steps},
    )


def steps(rng: Random) -> Question:
    """Ask how many steps several prompts take."""
    lengths, count = tuple(rng.sample(range(2, 9), 3)), rng.randint(2, 6)
    answer = max(lengths) + count - 1
    return Question(
        f"Prompts of {lengths[0]}, {lengths[1]} and {lengths[2]} tokens are continued by {count} tokens each. All advance "
        "together, a token in each step, and the last token of each is not fed. How many steps are there?",
        answer,
        f"The longest needs {max(lengths)} + {count} - 1 steps; the others end earlier.",
        {
            answer + 1: "nobody needs what follows the last token",
            sum(lengths) + 3 * (count - 1): "this is one sequence after the other",
            count: "prompts are fed, too",
        },
        numbers={"lengths": lengths, "count": count},
    )


QUESTIONS = (rows, nbytes, copies, place, steps)
