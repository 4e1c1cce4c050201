"""Errors of the approximations of operators, in units in the last place (ULP), over all exponents of float32.

    python -m tests.cuda.fast_math_errors                     a table: of the GPU, or of the interpreter if there is none
    python -m tests.cuda.fast_math_errors --samples 100000000

The reference is NumPy in float64. An error is |result - reference|, divided by the distance between the float32 around the
reference. So a correctly rounded result has at most 0.5. Subnormal numbers, all 2^-149 apart, are separate rows. A result is
`flushed` if it is 0 although the reference is at least 2^-149.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

import minifuse as mf
from minifuse.backends.cuda.intrinsics.fast_math import BOUNDS

TINY = float(np.finfo(np.float32).tiny)  # the smallest normal number
SMALLEST = 2.0**-149  # the smallest subnormal number
END = 2.0**128  # numbers from here on round to infinity
MANTISSA_BITS = 23
CHUNK = 1 << 24  # elements that are computed at once
SPECIALS = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1.1754942e-38, TINY, -TINY, 1.0, -1.0, 3.4028235e38, -3.4028235e38],
    np.float32,
)


class Case(NamedTuple):
    """A function: of tensors, of float64, and the ranges of its first input for which errors are reported separately."""

    name: str
    function: Callable[..., mf.Tensor]
    reference: Callable[..., np.ndarray]
    limits: tuple[float, ...] = ()
    """Upper ends of ranges of |x|; without any, there is one range."""


CASES = (
    Case("div", lambda x, y: x / y, np.divide),
    Case("exp", mf.exp, np.exp, (1.0, 10.0, 104.0)),
    Case("rsqrt", mf.rsqrt, lambda x: 1 / np.sqrt(x)),
    Case("sigmoid", mf.sigmoid, lambda x: 1 / (1 + np.exp(-x)), (1.0, 10.0, 87.0)),
)


class Row(NamedTuple):
    """The largest errors of a function in one group of inputs; `exact` is that without fast math."""

    name: str
    group: str
    count: int
    exact: float
    fast: float
    worst: tuple[float, ...]
    """The inputs of the largest error with fast math."""
    flushed: int
    excess: float
    """The largest error minus its bound, which is negative if all errors are within their bounds."""


def samples(case: Case, count: int, seed: int = 0) -> list[np.ndarray]:
    """Return inputs: bit patterns at equal distances over all of float32, numbers in the range of interest, and specials.

    Of a function of two numbers, the patterns are random. Another seed gives other samples.
    """
    random = np.random.default_rng(seed)
    if case.name == "div":
        bits = random.integers(0, 2**32, (2, count // 2), np.uint32).view(np.float32)
        near = random.uniform(1, 2, (2, count - count // 2)) * 2.0 ** random.integers(-60, 60, (2, count - count // 2))
        pairs = np.meshgrid(SPECIALS, SPECIALS)
        return [np.concatenate([a, b.astype(np.float32), p.ravel()]) for a, b, p in zip(bits, near, pairs, strict=True)]
    step = 2**32 // (count // 2)
    bits = (np.arange(count // 2) * step + random.integers(step)).astype(np.uint32).view(np.float32)
    near = random.uniform(-105, 90, count - count // 2) if case.limits else np.abs(random.normal(0, 10, count - count // 2))
    return [np.concatenate([bits, near.astype(np.float32), SPECIALS])]


def errors_in_ulp(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return |got - exact| in ULP of float32; infinity counts as 2^128. If only one of the two is NaN, return infinity."""
    y = np.clip(exact, -END, END)
    _, exponent = np.frexp(y)
    unit = np.ldexp(1.0, np.maximum(exponent, -125) - MANTISSA_BITS - 1)
    errors = np.abs(np.clip(got.astype(np.float64), -END, END) - y) / unit
    return np.where(np.isnan(got) | np.isnan(exact), np.where(np.isnan(got) == np.isnan(exact), 0, np.inf), errors)


def bound(case: Case, inputs: list[np.ndarray], exact: np.ndarray) -> np.ndarray:
    """Return the bound of each error.

    The bound of sigmoid follows from those of its exponential, its sum and its division. Where it is subnormal, the
    exponential is infinite, with fast math or without, and there is no bound.
    """
    if (name := f"fast_{case.name}") in BOUNDS:
        return BOUNDS[name].at(inputs[0]) + 0.5
    found = BOUNDS["fast_exp"].at(inputs[0]) + BOUNDS["fast_div"].at(inputs[0]) + 1.5
    return np.where(np.abs(exact) < TINY, np.inf, found)


def evaluate(case: Case, inputs: list[np.ndarray], is_fast: bool) -> np.ndarray:
    """Return the results on the backend cuda."""
    with mf.use_fast_math(is_fast):
        return case.function(*[mf.tensor(x, backend="cuda") for x in inputs]).numpy()


def groups(case: Case, inputs: list[np.ndarray], exact: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Return the groups of a table, each with a mask of its inputs."""
    size = np.abs(np.stack(inputs)).astype(np.float64)
    is_regular = ~((size > 0) & (size < TINY)).any(0)
    is_normal = is_regular & ~((np.abs(exact) > 0) & (np.abs(exact) < TINY))
    low = 0.0
    for limit in case.limits or (np.inf,):
        inside = (size[0] >= low) & (size[0] <= limit) if case.limits else True
        yield f"{low:g} <= |x| <= {limit:g}" if case.limits else "normal", is_normal & inside
        low = limit
    yield "subnormal operand", ~is_regular
    yield "subnormal result", is_regular & ~is_normal


def measure(case: Case, count: int) -> list[Row]:
    """Return the rows of one function, over chunks of samples."""
    found: dict[str, Row] = {}
    for seed, start in enumerate(range(0, count, CHUNK)):
        for row in measure_chunk(case, samples(case, min(CHUNK, count - start), seed)):
            found[row.group] = merge(found[row.group], row) if row.group in found else row
    return [*found.values()]


@np.errstate(all="ignore")
def measure_chunk(case: Case, inputs: list[np.ndarray]) -> list[Row]:
    """Return the rows of one function for these inputs."""
    exact = case.reference(*[x.astype(np.float64) for x in inputs])
    results = {is_fast: evaluate(case, inputs, is_fast) for is_fast in (False, True)}
    errors = {is_fast: errors_in_ulp(y, exact) for is_fast, y in results.items()}
    excess = errors[True] - bound(case, inputs, exact)
    rows = []
    for group, mask in groups(case, inputs, exact):
        (where,) = np.nonzero(mask)
        if where.size:
            worst = where[errors[True][where].argmax()]
            flushed = int(((results[True] == 0) & (np.abs(exact) >= SMALLEST) & mask).sum())
            largest = float(errors[False][where].max()), float(errors[True][worst])
            at = tuple(float(x[worst]) for x in inputs)
            rows.append(Row(case.name, group, where.size, *largest, at, flushed, float(excess[where].max())))
    return rows


def merge(a: Row, b: Row) -> Row:
    """Return one row for the inputs of two."""
    worst = a.worst if a.fast >= b.fast else b.worst
    largest = max(a.exact, b.exact), max(a.fast, b.fast)
    return Row(a.name, a.group, a.count + b.count, *largest, worst, a.flushed + b.flushed, max(a.excess, b.excess))


def wrong_specials(case: Case) -> list[str]:
    """Return the special inputs for which the approximation and the reference differ in NaN, infinity, zero or sign."""
    inputs = [x.ravel() for x in np.meshgrid(SPECIALS, SPECIALS)] if case.name == "div" else [SPECIALS]
    with np.errstate(all="ignore"):
        exact = case.reference(*[x.astype(np.float64) for x in inputs]).astype(np.float32)
    got = evaluate(case, inputs, True)
    is_same = (np.isnan(got) & np.isnan(exact)) | (
        (np.isnan(got) == np.isnan(exact))
        & (np.signbit(got) == np.signbit(exact))
        & (np.isinf(got) == np.isinf(exact))
        & ((got == 0) == (exact == 0))
    )
    return [
        f"{case.name}({', '.join(f'{x[k]:g}' for x in inputs)}): got {got[k]:g}, expected {exact[k]:g}"
        for k in np.flatnonzero(~is_same)
    ]


def table(count: int) -> str:
    """Return the table of all functions, and the special inputs with unexpected results."""
    lines = [f"{'function':<9}{'inputs':<21}{'count':>10}{'exact':>9}{'fast':>9}  {'flushed':>8}  worst input"]
    for case in CASES:
        for row in measure(case, count):
            worst = ", ".join(f"{x:.9g}" for x in row.worst)
            over = "  above its bound" if row.excess > 0 else ""
            numbers = f"{row.count:>10}{row.exact:>9.3g}{row.fast:>9.3g}  {row.flushed:>8}  {worst}{over}"
            lines.append(f"{row.name:<9}{row.group:<21}{numbers}")
    return "\n".join([*lines, *[line for case in CASES for line in wrong_specials(case)]])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="errors of fast math in units in the last place")
    parser.add_argument("--samples", type=int, help="inputs of each function; default: 2^26, or 4000 without a GPU")
    count = parser.parse_args().samples
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the compiler's packages, while they are imported
        device = (mf.tensor([0.0], backend="cuda") + 1).meta.backend
    print(f"{device}: errors in ULP with and without fast math")
    print(table(count or (4000 if device.device.is_simulated else 1 << 26)))


if __name__ == "__main__":
    main()
