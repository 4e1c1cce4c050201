"""Questions on task 7.4: codes, windows, losses, clipping, and temperatures."""

import math
from random import Random

from .question import Question, choose, format_value


def encoded(rng: Random) -> Question:
    """Ask for the codes of a word."""
    text = rng.choice(["to be or not", "all the world", "sweet lovely", "summers day", "eyes of heaven", "marriage of true"])
    letters = sorted(set(text))
    word = "".join(rng.sample(letters[1:], 3))
    codes = tuple(map(letters.index, word))
    return Question(
        f'A tokenizer was made from "{text}", in which the space is a character, too, and the first in sorted order. What '
        f'are the codes of "{word}"?',
        codes,
        f"Sorted, the {len(letters)} characters are {''.join(letters)!r}.",
        {
            tuple(c - 1 for c in codes): "the space has code 0",
            tuple(c + 1 for c in codes): "codes begin at 0",
        },
        numbers={"text": text, "word": word},
    )


def windows(rng: Random) -> Question:
    """Ask how many windows a text has."""
    count, context = rng.randint(50, 900), rng.choice([8, 16, 32])
    return Question(
        f"A text has {count} characters. From how many places can a window of {context} inputs and its targets begin?",
        count - context,
        f"A window needs {context + 1} characters, since the last input has a target, too: {count} - {context + 1} + 1.",
        {count - context + 1: "the last input needs a target", count // context: "windows may overlap"},
        numbers={"count": count, "context": context},
    )


def start_loss(rng: Random) -> Question:
    """Ask for the loss of a model that knows nothing."""
    vocabulary = rng.choice([27, 64, 100, 256])
    return Question(
        f"A model gives each of {vocabulary} characters the same probability. What is its loss, to two decimals?",
        round(math.log(vocabulary), 2),
        f"-log(1 / {vocabulary}) = log({vocabulary}), the natural logarithm.",
        {round(math.log2(vocabulary), 2): "these are bits; the loss is in units of the natural logarithm"},
        tolerance=0.0051,
        numbers={"vocabulary": vocabulary},
    )


def bits(rng: Random) -> Question:
    """Ask for the perplexity of a number of bits."""
    count = rng.choice([1, 2, 3, 4, 5])
    return Question(
        f"A model needs {count} bits a character. What is its perplexity?",
        2**count,
        f"It is as uncertain as among 2 ** {count} = {2**count} equally likely characters.",
        {round(math.exp(count), 2): "e is the base if the loss is given, not the bits"},
        numbers={"bits": count},
    )


def clipped(rng: Random) -> Question:
    """Ask for an element of a clipped gradient."""
    a, b, norm = rng.choice([(3, 4, 5), (6, 8, 10), (5, 12, 13), (8, 15, 17)])
    most = rng.choice([2, 2.5, norm + 5])
    answer = a * min(1.0, most / norm)
    return Question(
        f"One parameter has the gradient [{a}], another one [{b}]. What is the first after clipping to max_norm {most}? (to "
        "three decimals)",
        round(answer, 3),
        f"The common norm is sqrt({a * a} + {b * b}) = {norm}"
        + (", which is not larger than max_norm." if most > norm else f": both are multiplied by {most} / {norm}."),
        {round(a * most / norm, 3): "a small norm stays as it is"}
        if most > norm
        else {float(most): "the norm is that of all gradients together", a / norm: "the norm may be max_norm, not only 1"},
        tolerance=0.00051,
        numbers={"a": a, "b": b, "most": most},
    )


def temperature(rng: Random) -> Question:
    """Ask what a temperature does to the ratio of two probabilities."""
    ratio, low = rng.choice([2, 3, 4, 5, 6, 7]), rng.choice([True, False])
    value = 0.5 if low else 2
    base = ratio if low else ratio * ratio
    answer = base**2 if low else ratio
    return choose(
        rng,
        f"At temperature 1, one character is {base} times as likely as another one. How many times at temperature {value}?",
        f"{format_value(answer)} times",
        {
            f"{format_value(base / value)} times": "logits are divided, not probabilities",
            f"{format_value(base)} times": "a temperature changes all ratios but 1",
            f"{format_value(base ** (3 if low else 4))} times": "the exponent is 1 / temperature",
        },
        f"Logits are logarithms, up to a constant: dividing them by {value} takes the ratio to the power 1 / {value}.",
        numbers={"base": base, "value": value},
    )


QUESTIONS = (encoded, windows, start_loss, bits, clipped, temperature)
