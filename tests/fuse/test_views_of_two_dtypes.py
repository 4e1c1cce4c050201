"""Inputs of fused calls that show the same bytes as different dtypes, and one of them is changed in place.

Each program is called in several orders. A call that shares bytes gives what the unfused function gives, or always the same
error, whatever was called before.
"""

from contextlib import nullcontext, suppress
from itertools import permutations

import numpy as np
import pytest

import minifuse as mf

BACKENDS = ["python", "parallel"]


PLACES = {  # of the two arguments, in one array of 8 float32
    "apart": lambda a: (a[:4], a[4:].view(np.int32)),
    "same bytes": lambda a: (a[:4], a[:4].view(np.int32)),
    "some bytes": lambda a: (a[:4], a[2:6].view(np.int32)),
    "backward": lambda a: (a[:4], a[5:1:-1].view(np.int32)),
    "interleaved": lambda a: (a[::2], a.view(np.int32)[1::2]),
    "wide": lambda a: (a[1:5], a.view(np.int64)),
    "one element": lambda a: (a[:4], np.broadcast_to(a[1:2].view(np.int32), (4,))),
}
SHARING = [name for name in PLACES if name not in ("apart", "interleaved")]


def reads_before(x, y):
    t = y + 1
    x *= 2
    return t


def reads_before_in_one_statement(x, y):
    x += y * 0.5


def reads_before_each_change(x, y):
    t = y[1:] * 2
    x += 1
    x[1:3] = t[:2]
    x *= x.sum()
    return t, x * 2


def never_reads(x, y):
    x *= 2


def gives_the_other(x, y):
    x *= 2
    return y


def reads_first_and_gives_both(x, y):
    t = y.flip(0) * 1
    x.copy_(t)
    return t, x, y


def reads_after(x, y):
    x *= 2
    return y + 1


def reads_between(x, y):
    x *= 2
    t = y + 1
    x += 1
    return t


def reads_before_and_after(x, y):
    t = y + 1
    x *= 2
    return t + y


def changes_both(x, y):
    x *= 2
    y += 1


def changes_the_first_by_the_second_and_back(x, y):
    x += y
    y[1:] = x[1:].to("int32")


def gives_a_view(x, y):
    x *= 2
    return y[1:]


AGREEING = [
    reads_before,
    reads_before_in_one_statement,
    reads_before_each_change,
    never_reads,
    gives_the_other,
    reads_first_and_gives_both,
]
REFUSED = {
    reads_after: "is read after a change of its bytes",
    reads_between: "is read after a change of its bytes",
    reads_before_and_after: "is read after a change of its bytes",
    changes_both: "is changed too",
    changes_the_first_by_the_second_and_back: "is changed too",
    gives_a_view: "a result or a gradient refers to y",
}


def outcome(function, place, backend, *more):
    """All that a call leaves behind, or the text of its error."""
    a = np.arange(1, 9, dtype=np.float32)
    x, y = (mf.from_numpy(z, backend=backend) for z in PLACES[place](a))
    try:
        result = function(x, y, *more)
    except mf.OverlapError as error:
        return str(error)
    results = result if isinstance(result, tuple) else (result,)
    return a.tobytes(), [(z is x, z is y, z if z is None else (z.dtype, z.tolist())) for z in results]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", AGREEING, ids=lambda f: f.__name__)
def test_a_view_read_before_the_change_is_copied(function, backend):
    expected = {place: outcome(function, place, backend) for place in PLACES}
    for order in (*permutations(["apart", "same bytes", "some bytes"]), [*PLACES], [*PLACES][::-1]):
        fused = mf.fuse(function)
        for place in order:
            assert outcome(fused, place, backend) == expected[place], (order, place)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_a_call_that_no_copy_helps_is_refused_in_every_order(function, backend):
    found = {}
    for order in (*permutations(["apart", "same bytes", "some bytes"]), [*PLACES], [*PLACES][::-1]):
        fused = mf.fuse(function)
        for place in (*order, *order):
            got = outcome(fused, place, backend)
            if place == "one element" and REFUSED[function] == "is changed too":
                assert "in-place write to read-only memory" in got
            elif place in SHARING:
                assert isinstance(got, str), (order, place)
                assert REFUSED[function] in got
                assert found.setdefault(place, got) == got
            else:
                assert got == outcome(function, place, backend), (order, place)


def test_the_error_names_function_arguments_and_remedy():
    a = np.arange(1, 9, dtype=np.float32)
    with pytest.raises(mf.OverlapError) as caught:
        mf.fuse(reads_after)(mf.from_numpy(a[:4]), mf.from_numpy(a[:4].view(np.int32)))
    assert str(caught.value) == (
        "reads_after: x (float32) and y (int32) share bytes, but not as the same elements: x is changed in place, and y is "
        "read after a change of its bytes; pass y.clone(), which shares nothing with x, or call the function without "
        "@mf.fuse"
    )


@pytest.mark.parametrize("first", ["apart", "one tensor"])
def test_a_refusal_of_read_only_memory_is_that_of_the_first_call(first):
    fused, x = mf.fuse(changes_both), mf.ones(4)
    fused(
        *[x, x] if first == "one tensor" else [x, mf.ones(4)]
    )  # of one tensor, only the first argument is known as changed
    assert "in-place write to read-only memory" in outcome(fused, "one element", "python")


# What other captures of the function have found.


def changes_one_or_the_other(x, y, what):
    if "x" in what:
        x *= 2
    t = y + 1
    if "y" in what:
        y += 1
    return (t, y[1:]) if "view" in what else t


KINDS = ["", "y", "x", "x y", "y view", "view"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("place", ["same bytes", "some bytes"])
def test_other_traces_do_not_change_what_is_accepted(place, backend):
    found = {}
    for order in permutations(KINDS, 3):
        fused = mf.fuse(changes_one_or_the_other)
        for what in (*order, *order):
            got = outcome(fused, place, backend, what)
            if "x" in what:
                assert isinstance(got, str), (order, what)
                assert found.setdefault(what, got) == got
            else:
                assert got == outcome(changes_one_or_the_other, place, backend, what), (order, what)


def reads_or_changes_first(x, y, what):
    t = y + 1
    x *= 2
    if what == "again":
        return t + y
    return (t, y[1:]) if what == "view" else t


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_copy_is_made_though_another_capture_needs_the_memory(backend):
    for order in permutations(["before", "again", "view"]):
        fused = mf.fuse(reads_or_changes_first)
        for what in (*order, *order):
            for place in ("same bytes", "some bytes", "apart"):
                got = outcome(fused, place, backend, what)
                if what == "before" or place == "apart":
                    assert got == outcome(reads_or_changes_first, place, backend, what), (order, what, place)
                else:
                    assert isinstance(got, str), (order, what, place)


# Three arguments, two of which may be windows of one memory.


def moves(x, y, z):
    t = z * 2
    x += y
    y *= 3
    return t + y.sum(), x * 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_windows_of_one_dtype_beside_a_view_of_another(backend):
    parts = {
        "all": (slice(0, 4), slice(2, 6), slice(1, 5)),
        "two": (slice(0, 4), slice(4, 8), slice(2, 6)),
        "the third between": (slice(0, 7, 2), slice(0, 4), slice(5, 8, 2)),
        "interleaved": (slice(0, 8, 2), slice(0, 8, 2), slice(1, 8, 2)),
    }
    for order in permutations(parts):
        fused = mf.fuse(moves)
        for name in order:
            found = []
            for f in (moves, fused):
                a = np.arange(1, 9, dtype=np.float32)
                first, second, third = parts[name]
                x, y, z = (mf.from_numpy(v, backend=backend) for v in (a[first], a[second], a.view(np.int32)[third]))
                z = z if len(z.tolist()) == 4 else z[:1].expand(4)
                found.append([*[r.tolist() for r in f(x, y, z)], a.tolist()])
            assert found[0] == found[1], (order, name)


# Gradients.


def weighs(x, y, w):
    t = w * (y.to("float32") * 2)
    x *= 2
    return t.sum()


def weighs_the_argument(x, y, w):
    t = w.to("float64") * y
    x *= 2
    return t.sum()


def learns_inside(x, y, w):
    (w * (y.to("float32") + 1)).sum().backward()
    x *= 2
    return w * 1


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", [weighs, weighs_the_argument, learns_inside], ids=lambda f: f.__name__)
def test_gradients_through_a_copied_view(function, backend):
    first, places = slice(0, 4), {"apart": slice(0, 2), "shared": slice(0, 2), "partly": slice(1, 3)}
    for order in permutations(places):
        fused = mf.fuse(function)
        for name in (*order, *order):
            found = []
            for f in (function, fused):
                a = np.arange(1, 13, dtype=np.float32)
                b = (a.copy() if name == "apart" else a).view(np.float64)
                x, y = (mf.from_numpy(part, backend=backend) for part in (a[first], b[places[name]]))
                w = mf.ones(2, backend=backend, requires_grad=True)
                result = f(x, y, w)
                with suppress(mf.GradientError):  # unfused too: it needs what was changed
                    result.sum().backward()
                found.append([result.tolist(), a.tolist(), w.grad if w.grad is None else w.grad.tolist()])
            assert found[0] == found[1], (order, name)


@pytest.mark.parametrize("is_recording", [True, False], ids=["recorded", "not recorded"])
def test_an_argument_that_requires_a_gradient_is_not_read_from_a_copy(is_recording):
    for order in permutations(["plain", "apart", "shared"]):
        fused = mf.fuse(reads_before)
        for name in (*order, *order):
            a = np.ones(4)
            memory = mf.from_numpy((a.copy() if name == "apart" else a).view(np.float32)[:4])
            y = memory.detach().requires_grad_(name != "plain")
            with nullcontext() if is_recording else mf.no_grad():
                if name == "shared":
                    with pytest.raises(mf.OverlapError, match="a result or a gradient refers to y"):
                        fused(mf.from_numpy(a), y)
                else:
                    expected = y.tolist()
                    assert fused(mf.from_numpy(a), y).tolist() == [v + 1 for v in expected]
                    assert a.tolist() == [2.0] * 4
