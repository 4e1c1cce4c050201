"""Questions on task 6.4: the bubble, orders, and what a stage keeps."""

from random import Random

from .question import Question, choose


def idle(rng: Random) -> Question:
    """Ask for the idle share."""
    stages, total = rng.choice([(2, 10), (3, 8), (4, 12), (5, 16), (6, 20), (9, 32), (5, 40)])
    microbatches = total - stages + 1
    return Question(
        f"{stages} stages, {microbatches} microbatches. Which share of the time is a stage idle? Answer "
        "with a number from 0 to 1, or a fraction.",
        (stages - 1) / total,
        f"({stages} - 1) / ({microbatches} + {stages} - 1) = {stages - 1}/{total}.",
        {
            (stages - 1) / microbatches: "this is the idle time relative to the work",
            stages / (microbatches + stages): "stages - 1 turns are idle",
            100 * (stages - 1) / total: "this is the number of percent; a share is from 0 to 1",
        },
        tolerance=5e-3,
        numbers={"stages": stages, "microbatches": microbatches},
    )


def turns(rng: Random) -> Question:
    """Ask for the time of a pipeline."""
    stages, microbatches, ms = rng.randint(2, 6), rng.randint(4, 12), rng.choice([3, 6, 9])
    return Question(
        f"A stage needs {ms} ms for a microbatch, forward and backward together. How many ms do {stages} stages need for "
        f"{microbatches} microbatches, if messages take no time?",
        (microbatches + stages - 1) * ms,
        f"{microbatches} + {stages} - 1 turns of {ms} ms.",
        {
            microbatches * ms: "the first and the last turns are missing",
            microbatches * stages * ms: "stages work at the same time",
        },
        numbers={"stages": stages, "microbatches": microbatches, "ms": ms},
    )


def kept(rng: Random) -> Question:
    """Ask how many microbatches a stage keeps with 1F1B."""
    stages = rng.randint(3, 8)
    stage, microbatches = rng.randrange(stages - 1), rng.randint(10, 40)
    return Question(
        f"1F1B with {stages} stages and {microbatches} microbatches. Of how many microbatches at most does stage {stage} "
        "keep the activations?",
        stages - stage,
        f"It runs {stages} - 1 - {stage} = {stages - 1 - stage} ahead, and one more before its first backward pass.",
        {
            microbatches: "this is GPipe",
            stages - stage - 1: "the next forward pass is before the first backward pass",
            stage + 1: "stage 0 waits for its first gradient longest",
        },
        numbers={"stages": stages, "stage": stage, "microbatches": microbatches},
    )


def first_backward(rng: Random) -> Question:
    """Ask for the forward passes of a stage before its first backward pass."""
    stages = rng.randint(3, 8)
    stage = rng.randrange(stages)
    return Question(
        f"1F1B with {stages} stages and 20 microbatches. How many microbatches does stage {stage} run forward before it "
        "runs the first one backward?",
        stages - stage,
        f"{stages - 1 - stage} ahead, and the forward pass of its first pair.",
        {20: "this is GPipe", stage + 1: "later stages have gradients earlier"},
        numbers={"stages": stages, "stage": stage},
    )


def enough(rng: Random) -> Question:
    """Ask how many microbatches make the idle share small."""
    stages, part = rng.randint(3, 9), rng.choice([4, 5, 10, 20])
    return Question(
        f"{stages} stages are to be idle for 1/{part} of the time. How many microbatches does that need?",
        (stages - 1) * (part - 1),
        f"({stages} - 1) / (m + {stages} - 1) = 1/{part}, so m = {stages - 1} * {part} - {stages - 1}.",
        {(stages - 1) * part: "this is the number of turns", stages * part: "count the turns: m + stages - 1"},
        numbers={"stages": stages, "part": part},
    )


def why(rng: Random) -> Question:
    """Ask what 1F1B is better in than GPipe."""
    stages = rng.randint(3, 8)
    return choose(
        rng,
        f"{stages} stages, many microbatches. What does 1F1B need less of than GPipe?",
        "memory for activations",
        {
            "idle time": "the last stage waits as long for its first microbatch, and never again, in both",
            "messages": "each microbatch sends as many in both",
            "memory for gradients": "gradients are summed in both",
        },
        "A microbatch that is run backward at once need not be kept. The bubble is the same.",
        numbers={"stages": stages},
    )


QUESTIONS = (idle, turns, kept, first_backward, enough, why)
