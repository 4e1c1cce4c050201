"""backends.cuda.intrinsics.rows in the interpreter: reductions of rows in registers."""

import numpy as np

from minifuse import simt
from minifuse.backends.cuda.intrinsics.base import cuda, f32
from minifuse.backends.cuda.intrinsics.gemm import lane_indices, outer_products, zeros
from minifuse.backends.cuda.intrinsics.rows import (
    add_rows,
    exp2,
    exponentials,
    mask_scores,
    row_maxima,
    scale_rows,
    softmax_gradients,
    store_transposed,
)

R, C = 4, 8
RR, RC = R * R, R * C
ROWS, COLUMNS = lane_indices(R, 1), lane_indices(C, 1)
X = (np.arange(R * C, dtype=np.float32).reshape(R, C) % 7 - 3) / 2


def lane(body):
    """Run `body(acc, vector, out)` in one lane: acc is X, `vector` a local array of 8 that begins with -1, 0, 1, ..."""
    multiply, nothing = outer_products(ROWS, COLUMNS, R, R, C), zeros(R, C)

    def kernel(out, left, right):
        a, b = cuda.shared.array(RR, f32, 16), cuda.shared.array(RC, f32, 16)
        vector = cuda.local.array(C, f32)
        for e in range(R * R):
            a[e] = left[e]
        for e in range(R * C):
            b[e] = right[e]
        for e in range(C):
            vector[e] = f32(e - 1)
        body(multiply(nothing(), a, 0, b, 0), vector, out)

    out = np.full(R * C, 77, np.float32)
    simt.run(kernel, 1, 1, out, np.eye(R, dtype=np.float32).ravel(), X.ravel())
    return out.reshape(R, C)


def stored(acc, out):
    for r in range(R):
        for c in range(C):
            out[r * C + c] = acc[r, c]


V = np.arange(C, dtype=np.float32) - 1


def test_a_band_ends_at_the_end_of_its_row():
    word = mask_scores(ROWS, COLUMNS)
    i, j = 10 + np.arange(R)[:, None], 8 + np.arange(C)
    for end, low, high in ((100, -100, 0), (100, 1, 100), (12, -1, 2), (8, -100, 100)):
        got = lane(lambda acc, v, out, e=end, a=low, b=high: stored(word(acc, 10, 8, e, a, b), out))
        np.testing.assert_array_equal(got, np.where((j < end) & (j - i >= low) & (j - i <= high), X, -np.inf))


def test_reductions_of_rows_continue_from_an_accumulator():
    for word, fold in ((row_maxima(R, C), np.maximum), (add_rows(R, C), np.add)):

        def kernel(acc, v, out, word=word):
            word(v, acc)
            for r in range(R):
                out[r] = v[r]

        np.testing.assert_allclose(lane(kernel).ravel()[:R], fold(V[:R], fold.reduce(X, 1)), 1e-6)


def test_exponentials_and_gradients_along_rows_and_columns():
    for along, beside in (("row", V[:R, None]), ("column", V)):
        power, gradient = exponentials(R, C, along), softmax_gradients(R, C, along)
        got = lane(lambda acc, v, out, power=power: stored(power(acc, f32(1.5), v), out))
        np.testing.assert_allclose(got, 2.0 ** (1.5 * X - beside), 1e-6)
        got = lane(lambda acc, v, out, gradient=gradient: stored(gradient(acc, acc, v), out))
        np.testing.assert_allclose(got, X * (X - beside), 1e-6)


def test_rows_are_scaled():
    word = scale_rows(R, C)
    np.testing.assert_array_equal(lane(lambda acc, v, out: stored(word(acc, v), out)), X * V[:R, None])


def test_columns_become_rows():
    word = store_transposed(ROWS, COLUMNS, R)

    def kernel(acc, v, out):
        tile = cuda.shared.array(RC, f32, 16)
        word(tile, 0, acc)
        for e in range(R * C):
            out[e] = tile[e]

    np.testing.assert_array_equal(lane(kernel).reshape(C, R), X.T)


def test_a_power_of_two():
    assert exp2(f32(-3)) == 0.125
    assert exp2(f32(-np.inf)) == 0
    assert np.isnan(exp2(f32(np.nan)))
    assert type(exp2(1.0)) is np.float32
