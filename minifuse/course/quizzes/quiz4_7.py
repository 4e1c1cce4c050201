"""Questions on task 4.7: batches, reads, states, and scaling."""

from random import Random

from .question import Question, choose, format_value


def batches(rng: Random) -> Question:
    """Ask for the number of batches of an epoch."""
    size, drops = rng.randint(3, 9), rng.choice([True, False])
    count = size * rng.randint(3, 12) + rng.randint(1, size - 1)
    answer = count // size + (not drops)
    return Question(
        f"A loader has {count} examples, batch_size {size} and drop_last={drops}. How many batches has an epoch?",
        answer,
        f"{count} = {count // size} * {size} + {count % size}. The rest is {'left out' if drops else 'a batch of its own'}.",
        {count // size + drops: "drop_last leaves out the rest" if drops else "the rest is a batch too"},
        numbers={"count": count, "size": size, "drops": drops},
    )


def last(rng: Random) -> Question:
    """Ask for the size of the last batch."""
    size = rng.randint(4, 9)
    count = size * rng.randint(3, 9) + rng.randint(1, size - 1)
    return Question(
        f"{count} examples are read in batches of {size}, without drop_last. How many has the last batch?",
        count % size,
        f"{count // size} whole batches have {count // size * size} examples: {count % size} are left.",
        {size: "the last batch has what is left", size - count % size: "this is what is missing from a whole batch"},
        numbers={"count": count, "size": size},
    )


def reads(rng: Random) -> Question:
    """Ask how many examples were read."""
    size, done, count = rng.choice([8, 16, 32]), rng.randint(2, 5), rng.choice([1000, 2000, 50000])
    return Question(
        f"A data set has {count} examples, batch_size is {size}. How many examples have been read when the loop has "
        f"received {done} batches of the first epoch?",
        done * size,
        f"Examples are read when their batch is due: {done} * {size} = {done * size}.",
        {count: "the whole is never read at once", (done + 1) * size: "no batch is read ahead here"},
        numbers={"count": count, "size": size, "done": done},
    )


def resumed(rng: Random) -> Question:
    """Ask how many batches the first iteration after loading has."""
    total = rng.randint(6, 20)
    done = rng.randint(1, total - 1)
    return Question(
        f"An epoch has {total} batches. A state is saved after {done} batches of epoch 3, and loaded by a new loader. How "
        "many batches has its first iteration?",
        total - done,
        f"It generates what is left of epoch 3: {total} - {done} = {total - done}.",
        {total: "it continues the epoch, it does not begin one", total - done + 1: "a batch counts when it is yielded"},
        numbers={"total": total, "done": done},
    )


def scaled(rng: Random) -> Question:
    """Ask for a scaled element of the test data."""
    mean, scale, spread = rng.choice([10, 20, 50]), rng.choice([2, 4, 5]), rng.randint(2, 5)
    train, test = (mean - scale, mean + scale), (mean + scale * spread, mean + scale * (spread + 2))
    return Question(
        f"A column of the training data has the elements {train[0]} and {train[1]}, and of the test data {test[0]} and "
        f"{test[1]}. Which value has the first test element after scaling?",
        spread,
        f"The training column has mean {mean} and deviation {scale}: ({test[0]} - {mean}) / {scale} = {spread}.",
        {
            -1: "these are the statistics of the test data; use those of the training data",
            scale * spread: "the difference is divided by the deviation",
        },
        numbers={"train": train, "test": test},
    )


def leak(rng: Random) -> Question:
    """Ask which order of steps lets the training know nothing of the test data."""
    count, part = rng.choice([300, 1000, 2000]), rng.choice([10, 20, 25])
    return choose(
        rng,
        f"{part}% of {count} rows are test data. Which way is right?",
        "split, then scale both parts by the training rows",
        {
            "scale all rows, then split": "the statistics contain the test rows",
            "split, then scale each part by itself": "equal numbers of both parts would get different values",
            "split, then scale the training rows alone": "the network would see test numbers of another size",
        },
        f"The {format_value(count * part // 100)} test rows stand for data that nobody has seen yet: nothing of them may be "
        "used before the test, and they are treated as all data will be.",
        numbers={"count": count, "part": part},
    )


QUESTIONS = (batches, last, reads, resumed, scaled, leak)
