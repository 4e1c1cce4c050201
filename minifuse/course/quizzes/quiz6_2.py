"""Questions on task 6.2: shares of examples, buckets, and when they are sent."""

from random import Random

from .question import Question, choose


def average(rng: Random) -> Question:
    """Ask for the average of two gradients."""
    examples = (rng.choice([1, 2, 3]), rng.choice([1, 2, 5]))
    total = sum(examples)
    gradients = (total * rng.randint(-3, 3), total * rng.randint(-3, 3))
    right = (examples[0] * gradients[0] + examples[1] * gradients[1]) // total
    return Question(
        f"Rank 0 has {examples[0]} examples and the gradient {gradients[0]}, rank 1 has {examples[1]} and {gradients[1]}; "
        "each is that of the mean over its examples. What is the gradient of the mean over all?",
        right,
        f"({examples[0]} * {gradients[0]} + {examples[1]} * {gradients[1]}) / {total} = {right}.",
        {
            (gradients[0] + gradients[1]) / 2: "a rank counts by its examples",
            right * total: "the sum is divided by the number of examples",
        },
        numbers={"examples": examples, "gradients": gradients},
    )


def buckets(rng: Random) -> Question:
    """Ask for the number of buckets."""
    sizes, limit = [rng.randint(1, 9) for _ in range(6)], rng.randint(10, 14)
    return Question(
        f"Six parameters have {', '.join(map(str, sizes))} elements, and a bucket has at most {limit}. Buckets take the "
        "last parameter first and as many as they can hold. How many buckets are there?",
        count_buckets(sizes[::-1], limit),
        "Add the sizes from the last one on; where the sum would be over the limit, a new bucket begins.",
        {
            -(-sum(sizes) // limit): "a parameter is not cut in two",
            6: "several parameters share a bucket",
        },
        numbers={"sizes": sizes, "limit": limit},
    )


def count_buckets(sizes: list[int], limit: int) -> int:
    """Return the number of buckets for sizes in the order in which they are taken."""
    count, held = 0, limit
    for size in sizes:
        fits = held + size <= limit
        count, held = (count, held + size) if fits else (count + 1, size)
    return count


def first(rng: Random) -> Question:
    """Ask for the parameters of the first bucket."""
    count, size = rng.randint(5, 9), rng.choice([10, 20])
    held = rng.randint(2, 3)
    limit = held * size + rng.randint(0, size - 1)
    answer = tuple(range(count - 1, count - 1 - held, -1))
    return Question(
        f"{count} parameters, numbers 0 to {count - 1}, have {size} elements each, and the limit is {limit}. Which numbers "
        "has the bucket that is sent first, in the order in which it takes them?",
        answer,
        f"The backward pass ends with parameter 0. {limit} elements hold {held} parameters, the last ones.",
        {
            tuple(range(held)): "their gradients are computed last",
            (*answer, count - 1 - held): "with this one, the bucket is over the limit",
        },
        numbers={"count": count, "size": size, "limit": limit},
    )


def begun(rng: Random) -> Question:
    """Ask how many sums have begun when some gradients are ready."""
    order = [5, 4, 3, 2, 1, 0]
    rng.shuffle(order)
    done = rng.randint(2, 5)
    ready = order[:done]
    pairs = [{5, 4}, {3, 2}, {1, 0}]
    complete = [pair <= set(ready) for pair in pairs]
    answer = complete.index(False) if False in complete else 3
    return Question(
        f"The buckets are [5, 4], [3, 2] and [1, 0]. The gradients {', '.join(map(str, ready))} are ready. How many sums "
        "have begun?",
        answer,
        "A sum begins when its bucket and all before it are complete.",
        {sum(complete): "a bucket waits for those before it", done: "a bucket is one sum"},
        numbers={"ready": ready},
    )


def hidden(rng: Random) -> Question:
    """Ask for the time of messages that is saved by larger buckets."""
    parameters, latency, per = rng.choice([120, 240, 360]), rng.choice([5, 10, 20]), rng.choice([10, 20, 40])
    return Question(
        f"A network has {parameters} parameters, and each message costs a latency of {latency} microseconds. How many "
        f"microseconds does a step save if {per} gradients share a bucket?",
        (parameters - parameters // per) * latency,
        f"{parameters // per} messages instead of {parameters}: {parameters - parameters // per} latencies less.",
        {
            parameters // per * latency: "these are the latencies that are left",
            parameters * latency: "buckets have latencies, too",
        },
        numbers={"parameters": parameters, "latency": latency, "per": per},
    )


def no_examples(rng: Random) -> Question:
    """Ask what a rank without examples does."""
    size = rng.randint(3, 9)
    return choose(
        rng,
        f"In the last batch, one of {size} ranks has no example. What does it do?",
        "it takes part in each sum, with zeros",
        {
            "it leaves this step out": "the others would wait for it forever",
            "it sends the gradients of the step before": "they would count as if it had examples",
            "it takes part in the first sum only": "each bucket is a sum of all ranks",
        },
        "A collective needs all ranks. Its share of the examples is 0, so it changes nothing.",
        numbers={"size": size},
    )


QUESTIONS = (average, buckets, first, begun, hidden, no_examples)
