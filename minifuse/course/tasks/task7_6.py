"""Task 7.6: weights of eight bits."""

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import sonnets
from ..cases import among, at_random
from ..check import agreement, check_each, close
from ..questions.task7_6 import ask_model, ask_product, ask_quantized, ask_refused
from ..strided import Array
from ..student_process import StudentProcess
from ..task import Check, Effort, Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

CODES, REFUSED, PRODUCT, MODEL = (
    "a code is at most half a step from its weight, and a half goes to the even one",
    "nan and inf are refused",
    "products of codes are added in int32, and scaled once",
    "with a scale for each row, a model of sonnets keeps its perplexity",
)
MAX_READS = 8
MAX_CHANGE, OUTLIER = 1.01, 2000.0
"""Of the perplexity by a scale for each row, and the factor of a row that spoils a common scale."""
Weights = tuple[Array, bool]
"""(weights, whether each row has a scale)."""
Product = tuple[Array, Array, Array]
"""(x, codes, scales)."""


def weights() -> "SearchStrategy[Weights]":
    """Draw weights."""
    return sized(weights_of, (1, 2), (1, 1), (2, 3), (3, 4))


def sized(make: Callable[[Any, Random], Any], *sizes: Any) -> "SearchStrategy[Any]":
    """Draw what `make` makes of a size, the simplest first, and of a random generator."""
    from hypothesis import strategies as st

    return st.builds(lambda size, seed: make(size, Random(seed)), among(*sizes), st.integers(0, 2**48))


def weights_of(shape: tuple[int, int], random: Random) -> Weights:
    """Return weights: some with ties, with rows of zeros, and with rows of very different sizes."""
    draw = np.random.default_rng(random.getrandbits(32))
    if random.random() < 0.5:  # the scale is a power of two, so that ties are exact
        w = draw.integers(-252, 253, shape) / 2.0
        w[:, 0] = 127.0 * draw.choice([-1, 1], shape[0])
        w = w * 2.0 ** random.randint(-3, 3)
    else:
        power = draw.integers(-8, 5, (shape[0], 1))
        w = np.rint(draw.normal(size=shape) * 100) * 10.0 ** np.maximum(power, 0) / 10.0 ** np.maximum(-power, 0)
    if random.random() < 0.3:
        w[random.randrange(shape[0])] = 0.0
    return np.asarray(w), random.random() < 0.6


def scales_of(w: Array, per_row: bool) -> Array:
    """Return the scales of weights."""
    largest = np.abs(w).max(-1 if per_row else None, keepdims=True)
    return np.asarray(np.where(largest == 0, 1.0, largest / 127))


def codes_of(w: Array, per_row: bool = True) -> Array:
    """Return the codes of weights, as floats."""
    return np.asarray(np.rint(w / scales_of(w, per_row)))


def describe_weights(case: Weights) -> str:
    """Return a call of `quantize` as text."""
    return f"quantize({case[0].tolist()}, per_row={case[1]})"


def check_codes(case: Weights, answer: Any) -> None:
    """Raise `Wrong` for wrong codes, scales, bytes, or weights after dequantization."""
    w, per_row = case
    codes, scales, found, nbytes, reads = answer
    text, expected = describe_weights(case), scales_of(w, per_row)
    if reads > MAX_READS:
        raise Wrong(
            f"Python reads {reads:,} elements (tolist and item do); compute with tensors", case_text=text, kind="reads"
        )
    if codes.dtype != np.int8 or codes.shape != w.shape or scales.shape != expected.shape:
        got = f"{codes.dtype} {codes.shape}, scales of shape {scales.shape}"
        wanted = f"int8 {w.shape}, scales of shape {expected.shape}"
        raise Wrong(f"codes or scales have a wrong shape or dtype: {got}", case_text=text, expected=wanted, kind="shape")
    if not np.allclose(scales, expected, rtol=1e-12, atol=0):
        is_zero = np.abs(w).max(-1 if per_row else None, keepdims=True) == 0
        is_128 = np.allclose((scales * 128)[~is_zero], (expected * 127)[~is_zero], rtol=1e-12, atol=0)
        is_128 = is_128 and bool(np.isin(scales[is_zero], (1.0, 127 / 128)).all())
        kind = "128" if is_128 else "zeros" if np.any(is_zero & (scales == 0.0)) else ""
        message = f"scales are {scales.tolist()}"
        raise Wrong(message, case_text=text, expected=expected.tolist(), got=scales.tolist(), kind=kind)
    exact = w / expected
    distance = np.abs(codes - exact)
    if (distance > 0.5 + 1e-9).any():
        is_smaller = np.all((distance < 1 + 1e-9) & (np.abs(codes.astype(float)) < np.abs(exact) + 1e-9))
        kind, place = "truncated" if is_smaller else "far", np.unravel_index(distance.argmax(), w.shape)
        message = f"w / scale is {exact[place]:.4f}, and its code {codes[place]}: more than half a step away"
        raise Wrong(message, case_text=text, expected=np.rint(exact).astype(int).tolist(), kind=kind)
    is_tie = (np.abs(exact * 2 - np.rint(exact * 2)) == 0) & (np.frexp(expected)[0] == 0.5)
    if (is_tie & (codes != np.rint(exact))).any():
        message = f"a half is not rounded to the even code: codes are {codes.tolist()}"
        raise Wrong(message, case_text=text, expected=np.rint(exact).astype(int).tolist(), kind="half")
    if found.dtype != np.float64 or not close(found, codes * scales):
        raise Wrong("dequantize returns other weights", case_text=text, expected=codes * scales, got=found)
    if nbytes != codes.nbytes + scales.nbytes or isinstance(nbytes, bool):
        message = f"count_bytes returns {nbytes}"
        raise Wrong(message, case_text=text, expected=codes.nbytes + scales.nbytes, kind="bytes")


def broken_weights() -> "SearchStrategy[Weights]":
    """Draw weights with nan or inf."""
    return at_random(broken_of)


def broken_of(random: Random) -> Weights:
    """Return weights with one or two elements that are not finite."""
    w = np.random.default_rng(random.getrandbits(32)).normal(size=(2, 3))
    for _ in range(random.randint(1, 2)):
        w[random.randrange(2), random.randrange(3)] = random.choice([np.nan, np.inf, -np.inf])
    return w, random.random() < 0.5


def products() -> "SearchStrategy[Product]":
    """Draw the arguments of a product."""
    return sized(product_of, (1, 1, 2), (1, 2, 2), (2, 3, 4), (1, 2, 300))


def product_of(size: tuple[int, int, int], random: Random) -> Product:
    """Return x, and codes and scales of weights; some rows are long, and of large codes."""
    n, rows, columns = size
    draw = np.random.default_rng(random.getrandbits(32))
    codes = draw.integers(-127, 128, (rows, columns)).astype(np.int8)
    x = np.rint(draw.normal(size=(n, columns)) * 100) / random.choice([100.0, 1e5, 0.01])
    if random.random() < 0.5:
        codes, x = np.abs(codes) // 2 + 64, np.abs(x) + np.abs(x).max()
    return x, codes.astype(np.int8), np.round(10.0 ** draw.uniform(-1, 3, random.choice([(rows, 1), (1, 1)])), 2)


def describe_product(case: Product) -> str:
    """Return a call of `quantized_matmul` as text."""
    names = zip(("x", "codes", "scales"), case, strict=True)
    shown = (f"{name}={x.tolist()}" if x.size <= 12 else f"{name} of shape {x.shape}" for name, x in names)
    return f"quantized_matmul({', '.join(shown)})"


def multiplied(case: Product) -> Array:
    """Return the product of codes with both scales."""
    x, codes, scales = case
    return np.asarray(codes_of(x) @ codes.T.astype(np.float64) * scales_of(x, True) * scales.T)


def check_product(case: Product, answer: Any) -> None:
    """Raise `Wrong` for a wrong product, or one that is not of int32."""
    found, products, reads = answer
    x, codes, scales = case
    text = describe_product(case)
    expected = multiplied(case)
    if reads > MAX_READS:
        raise Wrong(
            f"Python reads {reads:,} elements (tolist and item do); compute with tensors", case_text=text, kind="reads"
        )
    if found.dtype != np.float64 or not np.allclose(found, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max()):
        kind = "int8" if "int8" in str(products) else "float" if close(found, x @ (codes * scales).T) else ""
        message = f"the product is wrong: {found.tolist() if found.size <= 12 else found}"
        raise Wrong(message, case_text=text, expected=expected, got=found, kind=kind)
    names = [name.removeprefix("minifuse.") for name in products]
    if names != ["int32"]:
        kind = "outer" if names.count("int32") == 1 else "float" if "int32" not in names else "several"
        raise Wrong(f"@ is of {' and '.join(names) or 'nothing'}; expected one of int32", case_text=text, kind=kind)


def check_model(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if a model of pairs of characters has another perplexity after quantization."""
    text = sonnets()
    letters = sorted(set(text))
    codes = np.array([letters.index(c) for c in text])
    counts = np.zeros((len(letters), len(letters)))
    np.add.at(counts, (codes[:-1], codes[1:]), 1)
    w = np.log(counts + 0.1)
    w = w - w.max(-1, keepdims=True)
    w[-1] *= OUTLIER  # one row of large weights, which spoils a common scale

    def perplexity(table: Array) -> float:
        logs = (
            table
            - np.log(np.exp(table - table.max(-1, keepdims=True)).sum(-1, keepdims=True))
            - table.max(-1, keepdims=True)
        )
        return float(np.exp(-(counts[:-1] * logs[:-1]).sum() / counts[:-1].sum()))

    by_row, by_tensor = student.ask(ask_model, w)
    before, after, common = map(perplexity, (w, by_row, by_tensor))
    if not after < MAX_CHANGE * before:
        raise Wrong(f"the perplexity is {before:.3f} before and {after:.3f} after, with a scale for each row", kind="rows")
    if not common > 2 * before:
        raise Wrong(f"one scale for all rows gives {common:.3f}: is it the largest weight of all?", kind="tensor")


def has_kind(*kinds: str) -> Callable[[Wrong], bool]:
    """Return a function that says whether a failure is of one of these kinds."""
    return lambda wrong: wrong.kind in kinds


def divides_by_zero(wrong: Wrong) -> bool:
    """Return whether a scale is 0, or a code of a row of zeros is nan."""
    if wrong.kind == "zeros":
        return True
    w, per_row = wrong.case
    return "NaN" in wrong.message and bool((np.abs(w).max(-1 if per_row else None) == 0).any())


TASK = Task(
    id="7.6",
    title="Weights of eight bits",
    file="quantization.py",
    slots=("quantize", "dequantize", "quantized_matmul", "count_bytes"),
    points=5,
    text=(
        "Generation reads every weight for each token, so fewer bytes are less time. "
        "Store each weight as an int8 and each row's scale as a float, bound the error, and multiply matrices of codes."
    ),
    hints=(
        "The largest absolute value of a row becomes 127, so a step is that value / 127. Rounding moves a weight by at "
        "most half a step. A row of small weights needs a scale of its own.",
        "quantize: largest = max of maximum(w, -w) along the row, or of all; scale = largest / 127, or 1.0 for zeros; "
        "codes = (w / scale).round().to(int8). w * 0.0 is nan exactly where w is nan or inf. quantized_matmul: quantize x; "
        "codes to int32 before the product, since int8 overflows at 128; then both scales.",
        "docs/course/7.6-eight-bits.md; its sections The error and Products of codes.",
    ),
    reads=("docs/course/7.6-eight-bits.md",),
    checks=(
        check_each(CODES, weights, ask_quantized, check_codes, describe=describe_weights),
        agreement(REFUSED, broken_weights, ask_refused, lambda case: "ValueError", describe=describe_weights, share=0.3),
        check_each(PRODUCT, products, ask_product, check_product, describe=describe_product, share=0.7),
        Check(MODEL, check_model),
    ),
    mistakes=(
        Mistake(
            "the scale is the largest value / 128",
            "Then the largest weight gets the code 128, which int8 does not have. The range is -127 to 127.",
            when=has_kind("128"),
            check=CODES,
        ),
        Mistake(
            "a row of zeros is divided by 0",
            "Its largest value is 0. Any scale fits codes of 0: take 1.0.",
            when=divides_by_zero,
            check=CODES,
        ),
        Mistake(
            "halves are rounded up",
            "floor(x + 0.5) moves all halves one way, so that sums drift. round() takes the even neighbor.",
            when=has_kind("half"),
            check=CODES,
        ),
        Mistake(
            "codes are cut off, not rounded",
            "Conversion to an integer cuts off the fraction: errors become twice as large. Call round() first.",
            when=has_kind("truncated", "half"),
            check=CODES,
        ),
        Mistake(
            "products overflow in int8",
            "int8 ends at 127: convert both to int32 before you multiply.",
            when=has_kind("int8", "OverflowError"),
            check=PRODUCT,
        ),
        Mistake(
            "the product is of floats",
            "Multiply codes, which are integers, and scale the result: that is what makes it fast.",
            when=has_kind("float"),
            check=PRODUCT,
        ),
        Mistake(
            "the scales are multiplied as matrices",
            "(n, 1) * (1, rows) is broadcast to (n, rows): the only product of matrices is that of the codes.",
            when=has_kind("outer"),
            check=PRODUCT,
        ),
    ),
    allows=frozenset({"minifuse.course.elementary"}),
)
