"""What fusion is to do, claim by claim: a short test for each row of the table that compares minifuse with other systems.

Each claim is counted (captures, kernels, bytes) or compared with the function unfused and with NumPy. Other files of this
folder go into depth.
"""

import gc
import inspect
import os
import re
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.pytree import tree_leaves

from .functions import Counter

BACKENDS = ["python", "parallel", "cuda"]
on_each_backend = pytest.mark.parametrize("backend", BACKENDS)
RANDOM = np.random.default_rng(11)


def normal(*shape, dtype="float32"):
    return RANDOM.standard_normal(shape).astype(dtype)


def on(backend, *arrays):
    """Tensors with the very strides of arrays."""
    return [mf.Tensor.from_numpy(a, mf.zeros(1, backend=backend).meta.backend) for a in arrays]


def kernels_of(f, *inputs, **named):
    """How many kernels a call runs."""
    return len(f.plan(*inputs, **named).steps)


def agree(function, expected, *inputs, kernels=None, **named):
    """The function fused gives what it gives unfused, and what NumPy gives; in so many kernels."""
    f = function if hasattr(function, "plan") else mf.fuse(function)
    got, plain = f(*inputs, **named), f.function(*inputs, **named)
    right = expected if isinstance(expected, tuple) else (expected,)
    for x, y, z in zip(tree_leaves(got), tree_leaves(plain), right, strict=True):
        if isinstance(x, mf.Tensor):
            assert (x.dtype, x.shape) == (y.dtype, y.shape)
            np.testing.assert_allclose(x.numpy(), z, rtol=2e-5, atol=2e-5)
            np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=2e-5, atol=2e-5)
        else:
            assert x == y == z
    if kernels is not None:
        assert kernels_of(f, *inputs, **named) == kernels
    return f


# Inlines called Python functions, loops, keyword and nested-container arguments.


class Settings(NamedTuple):
    scale: object
    shifts: list


def scaled(x, by=2.0):
    return x * by


def nested(x, settings, *, weights, times=3):
    for _ in range(times):
        x = scaled(x, by=0.5) + settings.scale
    for shift in settings.shifts:
        x = x - shift
    return {"sum": x * weights["w"][0], "parts": [x, (x + weights["w"][1],)]}


@on_each_backend
def test_inlines_called_functions_loops_keyword_and_nested_arguments(backend):
    arrays = [normal(5, 7) for _ in range(6)]
    x, scale, s0, s1, w0, w1 = on(backend, *arrays)
    a, b, c, d, e, g = (y.astype("float64") for y in arrays)
    right = a
    for _ in range(3):
        right = right * 0.5 + b
    right = right - c - d
    f = mf.fuse(nested)
    found = f(x, Settings(scale, [s0, s1]), weights={"w": (w0, w1)})
    assert set(found) == {"sum", "parts"}
    assert type(found["parts"][1]) is tuple
    settings = Settings(scale, [s0, s1])
    agree(nested, (right * e, right, right + g), x, settings, weights={"w": (w0, w1)}, kernels=1)


# A fused function inside a fused function: one kernel.


@on_each_backend
def test_a_fused_function_inside_a_fused_function_is_one_kernel(backend):
    inner = mf.fuse(lambda x: mf.exp(-x) + 1)
    outer = mf.fuse(lambda x: 1 / inner(x) * inner(x + 1))
    a = normal(33)
    (x,) = on(backend, a)
    assert kernels_of(outer, x) == 1
    assert inner.stats().captures == 0, "inlined, so it is no call of its own"
    agree(outer, (1 + np.exp(-a - 1)) / (1 + np.exp(-a)), x)


# Numeric closures, globals, defaults: a change re-captures.

GLOBAL = 2.0


def test_changed_closures_globals_and_defaults_capture_anew(monkeypatch):
    closure = 2.0

    @mf.fuse
    def f(x, default=2.0):
        return x * closure + GLOBAL - default

    x = mf.tensor([1.0, 2.0])
    assert f(x).tolist() == [2, 4]
    closure = 3.0
    assert f(x).tolist() == [3, 6]
    monkeypatch.setitem(globals(), "GLOBAL", 5.0)
    assert f(x).tolist() == [6, 9]
    f.function.__defaults__ = (1.0,)
    assert f(x).tolist() == [7, 10]
    assert f.stats().captures == 4
    closure = 2.0
    monkeypatch.setitem(globals(), "GLOBAL", 2.0)
    f.function.__defaults__ = (2.0,)
    assert f(x).tolist() == [2, 4]
    assert f.stats().captures == 4, "what was captured before is found again"


# Captured tensors are lifted to hidden inputs.


def test_captured_tensors_are_inputs():
    w = mf.tensor([1.0, 2.0])

    @mf.fuse
    def f(x):
        return x * w

    x = mf.tensor([3.0, 4.0])
    assert f(x).tolist() == [3, 8]
    w += 1
    assert f(x).tolist() == [6, 12]
    w = mf.tensor([10.0, 20.0])
    assert f(x).tolist() == [30, 80]
    assert f.stats().captures == 1, "new values, and another tensor of the same kind, are no new call"
    assert len(f.plan(x).arguments) == 2


# `True`, `3` and `3.0` as arguments never share a kernel.


@on_each_backend
def test_bools_integers_and_floats_never_share(backend):
    f = mf.fuse(lambda x, n: x * n)
    (x,) = on(backend, np.array([2, 3], "int64"))
    for numbers in ((True, 3, 3.0), (1.0, 1, True)):
        found = [f(x, n) for n in numbers]
        plain = [x * n for n in numbers]
        assert [y.dtype for y in found] == [y.dtype for y in plain]
        assert [y.tolist() for y in found] == [y.tolist() for y in plain]
    assert len({f.plan(x, n).text + f.plan(x, n).source() for n in (True, 3, 3.0)}) == 3


# Tensors made in the body, `.shape` and `.size`.


@on_each_backend
def test_tensors_are_made_in_the_body_and_shapes_are_known(backend):
    def f(x):
        rows, columns = x.shape
        y = mf.zeros_like(x) + mf.ones_like(x) * mf.full((columns,), 2.5)
        z = mf.empty_like(x)
        z[...] = x
        return y * x + mf.arange(columns) / x.size + z * rows

    a = normal(5, 7)
    (x,) = on(backend, a)
    with mf.use_backend(backend):
        agree(f, 2.5 * a + np.arange(7) / 35 + a * 5, x, kernels=1)


# Broadcasting; outputs of different shapes.


@on_each_backend
def test_operands_broadcast_and_outputs_have_their_own_shapes(backend):
    a, b, c = normal(5, 1, 7), normal(6, 1), normal()
    x, y, z = on(backend, a, b, c)
    agree(
        lambda x, y, z: (x * y + z, y - z, x[0, 0] * 2, (x * y).sum((0, 1))),
        (a * b + c, b - c, a[0, 0] * 2, (a * b).sum((0, 1))),
        x,
        y,
        z,
    )


# Permuted, sliced, negative-step, zero-stride, zero-size, 0-d inputs.

BASE = normal(8, 9, 10)
LAYOUTS = {
    "permuted": BASE.transpose(2, 0, 1),
    "sliced": BASE[1:7:2, ::3, 2:],
    "negative step": BASE[::-1, :, ::-2],
    "zero stride": np.broadcast_to(BASE[0, :1], (8, 9, 10)),
    "zero size": BASE[:, 3:3],
    "0-d": np.array(1.5, "float32"),
}


@on_each_backend
@pytest.mark.parametrize("layout", LAYOUTS)
def test_inputs_of_any_layout(layout, backend):
    a = LAYOUTS[layout]
    b = a.copy()
    x, y = on(backend, a, b)
    agree(lambda x, y: (mf.tanh(x) * y + 1, (x * x + y).sum() / 100), (np.tanh(a) * b + 1, (a * a + b).sum() / 100), x, y)


def test_kernels_are_specialised_by_the_class_of_strides():
    f = mf.fuse(lambda x: x * 2)
    a = normal(300, 40)
    texts = [f.plan(x).backend.compile(f.plan(x).steps[0]).source for x in map(mf.from_numpy, (a, a.T, a[::2], a[:, ::2]))]
    assert texts[0] == texts[1], "all neighbours in memory"
    assert len(set(texts)) == 3
    compiled = []
    for x in (a[::2], normal(70, 50)[::2], normal(90, 30)[::3]):
        f(mf.from_numpy(x))
        compiled.append(mf.cache.stats().compiled)
    assert len(set(compiled)) == 1, "other sizes and steps of one class"


# Slicing, reshape, permute, expand in the body: views compose into loads.


@on_each_backend
def test_views_in_the_body_become_loads(backend):
    def f(x, y):
        a = x[1:, ::-1].permute(1, 0).reshape(3, 2, 5)
        return mf.exp(a) * y.unsqueeze(1).expand(3, 2, 5) + x.T[:, 1:].reshape(3, 2, 5)

    a, b = normal(6, 6), normal(3, 5)
    x, y = on(backend, a, b)
    p, q = a[1:, ::-1].T.reshape(3, 2, 5), a.T[:, 1:].reshape(3, 2, 5)
    found = agree(f, np.exp(p) * b[:, None] + q, x, y, kernels=1).explain(x, y)
    assert found.forward.nbytes == 4 * (30 + 15 + 30), "no copies: what is read once, and the result"


# In place and overlapping arguments: functionalised; overlap copies.

PAIRS = {
    "apart": lambda a: (a[:6], a[6:]),
    "the same": lambda a: (a[:6], a[:6]),
    "shifted": lambda a: (a[1:7], a[:6]),
    "backwards": lambda a: (a[:6][::-1], a[:6]),
}


@on_each_backend
@pytest.mark.parametrize("pair", PAIRS)
def test_changes_in_place_of_arguments_that_overlap(pair, backend):
    def f(x, y):
        x += 1
        x[1:] *= y[:-1]
        return x * 2

    a = np.arange(1.0, 13.0, dtype="float32")
    (memory,) = on(backend, a.copy())
    found = mf.fuse(f)(*PAIRS[pair](memory))
    x, y = PAIRS[pair](a)
    x += 1
    x[1:] *= y[:-1].copy()
    assert memory.tolist() == a.tolist()
    assert found.tolist() == (x * 2).tolist()


def test_overlap_of_changed_arguments_is_in_the_key():
    @mf.fuse
    def f(x, y):
        x += y
        return x * 2

    memory = mf.zeros(12)
    found = []
    for make in PAIRS.values():
        f(*make(memory))
        found.append(f.stats().captures)
    assert found == [1, 2, 3, 4]
    f(*PAIRS["apart"](memory))
    assert f.stats().captures == 4
    assert kernels_of(f, *PAIRS["apart"](memory)) == 1, "stored in place, and used on the way"


# Mixed dtypes, weak scalars, where, comparisons, clip, multiple outputs, None results, tuples.


@on_each_backend
def test_dtypes_promote_and_results_may_be_nested(backend):
    def f(x, k, d):
        return (mf.where(x > k, x, d), (x * 2, None, [k + 1, x >= 0]), {"clipped": x.clip(-0.5, 0.5), "n": 3, "d": d / k})

    a, k, d = normal(4, 5), RANDOM.integers(1, 3, (4, 5)), normal(4, 5, dtype="float64")
    x, y, z = on(backend, a, k, d)
    right = (np.where(a > k, a, d), a * np.float32(2), None, k + 1, a >= 0, a.clip(-0.5, 0.5), 3, d / k)
    f = agree(f, right, x, y, z)
    found = [t.dtype.name for t in tree_leaves(f(x, y, z)) if isinstance(t, mf.Tensor)]
    assert found == ["float64", "float32", "int64", "bool", "float32", "float64"]
    assert mf.fuse(lambda x: None)(x) is None


# Elementwise -> reduce -> elementwise: one kernel.

FOLDED = {
    "normalised": (lambda x: x * 2 / (x * x).sum(1, True), lambda a: a * 2 / (a * a).sum(1, keepdims=True)),
    "centred columns": (lambda x: mf.exp(x - x.mean(0)), lambda a: np.exp(a - a.mean(0))),
    "over all": (lambda x: (x - x.max()) / x.std(), lambda a: (a - a.max()) / a.std(ddof=1)),
}


@on_each_backend
@pytest.mark.parametrize("case", FOLDED)
def test_pointwise_reduction_pointwise_is_one_kernel(case, backend):
    function, right = FOLDED[case]
    a = normal(33, 65)
    agree(function, right(a.astype("float64")), *on(backend, a), kernels=1)


# Several reductions along the same dims: one kernel.


def softmax(a):
    e = np.exp(a - a.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def layer_norm(x, gain, shift):
    centred = x - x.mean(1, keepdim=True)
    return centred * mf.rsqrt((centred * centred).mean(1, keepdim=True) + 1e-5) * gain + shift


LABELS = RANDOM.integers(0, 65, 33)
SEVERAL = {
    "softmax": (lambda x: x.softmax(1), softmax),
    "log softmax": (lambda x: x.log_softmax(1), lambda a: np.log(softmax(a))),
    "logsumexp": (lambda x: x.logsumexp(1), lambda a: np.log(np.exp(a).sum(1))),
    "variance": (lambda x: x.var(1), lambda a: a.var(1, ddof=1)),
    "layer norm": (
        lambda x: layer_norm(x, 2.0, 0.5),
        lambda a: (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5) * 2 + 0.5,
    ),
}


@pytest.mark.sampled(2, each="case")
@on_each_backend
@pytest.mark.parametrize("case", SEVERAL)
def test_several_reductions_over_equal_dims_are_one_kernel(case, backend):
    function, right = SEVERAL[case]
    a = normal(33, 65)
    agree(function, right(a.astype("float64")), *on(backend, a), kernels=1)


@on_each_backend
def test_cross_entropy_reduces_each_row_in_one_kernel(backend):
    """One kernel for the rows; the mean over them folds other dims, and is a second one."""
    a = normal(33, 65)
    x, labels = on(backend, a, LABELS)
    right = -np.log(softmax(a.astype("float64")))[np.arange(33), LABELS]
    agree(mf.nn.cross_entropy, right, x, labels, reduction="none", kernels=1)
    agree(mf.nn.cross_entropy, right.mean(), x, labels, kernels=2)


# Keepdim, negative and multiple dims.


@on_each_backend
def test_reductions_over_negative_and_several_dims(backend):
    def f(x):
        return x.sum(-1), x.max((0, -1), keepdim=True), x - x.mean((-1, -3), keepdim=True), x.prod((-2, 0)), x.any((1, 2))

    a = normal(3, 5, 7)
    right = (
        a.sum(-1),
        a.max((0, -1), keepdims=True),
        a - a.mean((-1, -3), keepdims=True),
        a.prod((-2, 0)),
        a.any((1, 2)),
    )
    agree(f, right, *on(backend, a))


# Matrix products with epilogue and prologue.


def gelu(a):
    return a / 2 * (1 + np.vectorize(__import__("math").erf)(a / np.sqrt(2)))


EPILOGUES = {
    "bias": (lambda x, w, b, r: x @ w + b, lambda y, b, r: y + b),
    "activation": (lambda x, w, b, r: mf.gelu(x @ w + b), lambda y, b, r: gelu(y + b)),
    "residual": (lambda x, w, b, r: r + mf.relu(x @ w), lambda y, b, r: r + np.maximum(y, 0)),
    "scale": (lambda x, w, b, r: x @ w * 0.125, lambda y, b, r: y * 0.125),
    "several results": (lambda x, w, b, r: (x @ w + b, x @ w > 0.005), lambda y, b, r: (y + b, y > 0.005)),
}


@pytest.mark.sampled(2, each="case")
@pytest.mark.parametrize("backend", ["python", "parallel", "cuda"])
@pytest.mark.parametrize("case", EPILOGUES)
def test_a_product_and_its_epilogue_are_one_kernel(case, backend):
    function, right = EPILOGUES[case]
    a, w, b, r = (normal(*shape).round(1) for shape in ((33, 20), (20, 35), (35,), (33, 35)))
    y = a.astype("float64") @ w.astype("float64")
    f = agree(function, right(y, b, r), *on(backend, a, w, b, r))
    assert kernels_of(f, *on(backend, a, w, b, r)) == 1


@pytest.mark.parametrize("backend", ["python", "parallel", "cuda"])
def test_a_product_and_its_prologue_are_one_kernel(backend):
    a, w = normal(33, 20), normal(20, 35)
    x, v = on(backend, a, w)
    agree(lambda x, w: mf.relu((x * 0.5) @ w.exp()), np.maximum((a * 0.5) @ np.exp(w), 0), x, v, kernels=1)


# Gradients: fused; reductions and products saved, elementwise computed again.


@on_each_backend
def test_the_gradient_of_a_fused_function_is_fused(backend):
    f = mf.fuse(lambda x: mf.tanh(x * x + 1).softmax(1))
    a = normal(9, 33)
    (x,) = on(backend, a)
    x.requires_grad = True
    plain = x.detach().requires_grad_()
    weights = mf.tensor(normal(9, 33), backend=backend)
    (f(x) * weights).sum().backward()
    (f.function(plain) * weights).sum().backward()
    mf.testing.assert_close(x.grad, plain.grad.numpy(), "composed")
    found = f.explain(x).backward
    assert len(found.run.kernels) == 1
    assert found.unfused.launches > 1
    assert found.unfused.nbytes > 2 * found.run.nbytes


def test_reductions_and_matmuls_are_saved_pointwise_is_recomputed():
    x, w = mf.rand(33, 20, requires_grad=True), mf.rand(20, 35, requires_grad=True)

    def f(x, w):
        y = mf.sigmoid(mf.exp(x @ w * 0.1))
        return y / y.sum(1, True)

    auto, none = mf.fuse(f).explain(x, w).backward, mf.fuse(recompute="none")(f).explain(x, w).backward
    saved = " ".join(value for value, _ in auto.saved)
    assert "@" in saved
    assert "sum(" in saved
    assert "sigmoid" not in saved
    assert any("exp" in value for value in auto.again)
    assert not none.again
    assert len(none.saved) > len(auto.saved)


def test_a_training_step_is_one_call():
    """Loss, gradients and update; parameters are inputs that are changed in place, the learning rate is read anew."""
    made = []
    for fuse in (mf.fuse, lambda f: f):
        mf.manual_seed(3)
        model = mf.nn.Sequential(mf.nn.Linear(20, 16), mf.nn.ReLU(), mf.nn.Linear(16, 5))
        optimizer = mf.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        @fuse
        def step(x, y, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = mf.nn.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        x, y = mf.rand(33, 20), mf.arange(33) % 5
        losses = []
        for k in range(4):
            optimizer.param_groups[0]["lr"] = 0.1 / (k + 1)
            losses.append(step(x, y).item())
        made.append([losses, *[p.tolist() for p in model.parameters()]])
    assert step.__name__ == "step"
    for got, right in zip(*made, strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-6)
    assert made[0][0][-1] < made[0][0][0]


# Buffers planned and reused between calls.


def test_buffers_are_used_again_within_a_call_and_between_calls():
    f = mf.fuse(lambda x: ((x @ x) @ (x + 1) @ x) @ x)
    x = mf.rand(64, 64)
    gc.collect()  # what other tests left: the pool looks at four buffers before it makes another
    for _ in range(10):
        f(x)
    before = mf.memory.stats()
    for _ in range(20):
        f(x)
    assert mf.memory.stats().new == before.new, "no new memory"
    assert mf.memory.stats().in_use == before.in_use
    text = f.plan(x).text
    assert text.count("del ") >= 1
    assert f.explain(x).forward.peak < text.count("allocate(") * 16384


# Cache: in memory, on disk, and compiled for the GPU.

SECOND = """
import sys
import minifuse as mf

f = mf.fuse(lambda x: (mf.exp(x * 0.731) + x).softmax(1))
f(mf.ones(33, 65, backend=sys.argv[1]))
stats = mf.cache.stats()
print(stats.compiled, stats.loaded, stats.on_disk)
"""


def test_kernels_are_found_in_memory_and_on_disk(tmp_path):
    environment = {**os.environ, "MINIFUSE_CACHE": str(tmp_path)}
    found = []
    for _ in range(2):
        command = [sys.executable, "-c", SECOND, "parallel"]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
        found.append([int(x) for x in result.stdout.split()])
    (compiled, loaded, on_disk), again = found
    assert compiled > 0
    assert loaded == 0
    assert on_disk == compiled
    assert again == [0, compiled, on_disk], "a second process compiles nothing"
    f, x = mf.fuse(lambda x: x * 3 + 1), mf.ones(10)
    f(x)
    before = mf.cache.stats().compiled
    f(x)
    mf.fuse(lambda x: x * 3 + 1)(mf.ones(11))
    assert mf.cache.stats().compiled == before, "an equal text is an equal kernel"


# "Cannot fuse": one error that says where, what, which rule, and what to write instead.


def test_code_that_cannot_be_fused_is_one_error():
    ran = Counter()

    @mf.fuse
    def f(x):
        ran.count()
        x += 1
        return x if x.sum() > 0 else -x  # here

    x = mf.tensor([1.0, 2.0])
    with pytest.raises(mf.FuseError) as found:
        f(x)
    lines, first = inspect.getsourcelines(f.function)
    line = next(first + k for k, text in enumerate(lines) if "# here" in text)
    assert f"{__file__}:{line}: f: cannot branch on the value of a tensor" in str(found.value)
    assert "use mf.where(condition, a, b)" in str(found.value)
    assert ran.total == 1, "not tried on another path"
    assert x.tolist() == [1, 2], "nothing half-written"


# The generated source: `f.source()`, readable, the text that is compiled.


@on_each_backend
def test_the_source_is_the_text_that_is_compiled(backend):
    f = mf.fuse(lambda values, weights: (mf.exp(values) * weights).sum(1))
    values, weights = on(backend, normal(33, 65), normal(65))
    text = f.source(values, weights)
    assert text.startswith("def run(values, weights):")
    (step,) = f.plan(values, weights).steps
    assert f.plan(values, weights).backend.compile(step).source in text
    f(values, weights)
    if backend == "parallel":
        kernel = re.search(r"^def kernel\(.*?(?=^# launch|\Z)", text, re.M | re.S)[0]
        body = kernel.partition(":\n")[2].strip()
        assert any(body in kept.text for kept in mf.cache.kernels()), "the very text lies in the cache"
    other = f.source(values, weights, backend="cuda")
    assert "threadIdx" in other or backend == "cuda"


# Why two kernels and not one: `f.explain()`.


@on_each_backend
def test_every_refused_merge_has_its_reason(backend):
    def f(x, w):
        y = mf.relu(x @ w)
        return y.softmax(1), (y * 2).sum(0)

    x, w = on(backend, normal(33, 20), normal(20, 35))
    found = mf.fuse(f).explain(x, w)
    kernels = found.forward.kernels
    assert 1 < len(kernels) < len(found.unfused.kernels)
    assert found.forward.nbytes < found.unfused.nbytes
    assert found.forward.launches >= len(kernels)
    assert found.refusals
    assert all(refusal.reason for refusal in found.refusals)
    assert all(f"{__file__}:" in refusal.line for refusal in found.refusals)
    text = str(found)
    for refusal in found.refusals:
        assert refusal.reason.split()[0] in text
    assert "instead of" in text.splitlines()[0]


SPLIT = {
    "a product, then its columns": lambda x, w: (x @ w, (x @ w).sum(0)),
    "two products": lambda x, w: (x @ w) @ w.T,
    "folds of different dims": lambda x, w: (x.sum(0), x.sum(1)),
    "a fold on the way to a product": lambda x, w: (x / x.sum(1, True)) @ w,
    "a reshape that strides cannot express": lambda x, w: mf.exp(x).T.reshape(-1)[::2].sum(),
    "saved for the backward pass": lambda x, w: (mf.tanh(x @ w) ** 2).mean(),
}


@pytest.mark.parametrize("case", SPLIT)
def test_where_there_are_two_kernels_there_is_a_reason(case):
    found = mf.fuse(SPLIT[case]).explain(mf.rand(33, 20), mf.rand(20, 35, requires_grad=True))
    assert len(found.forward.kernels) > 1
    assert found.refusals
    assert all(len(refusal.reason.split()) > 3 for refusal in found.refusals), "in words"
    assert not any("Space(" in refusal.reason for refusal in found.refusals)
