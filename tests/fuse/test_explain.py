"""`f.explain(...)`: what it promises is counted, in launches and in bytes, on the simulated GPU and on threads."""

import json
import linecache
from dataclasses import asdict
from inspect import signature

import numpy as np
import pytest

import minifuse as mf
from minifuse import simt
from minifuse.backends.registry import get_backend
from minifuse.inspect.dry_run import RecordingBackend, RecordingDevice
from minifuse.inspect.explain import peak_bytes
from minifuse.simt.record import LOAD

RANDOM = np.random.default_rng(7)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def layer_norm(x, g, b):
    centred = x - x.mean(1, keepdim=True)
    return centred * mf.rsqrt((centred * centred).mean(1, keepdim=True) + 1e-5) * g + b


def update(x, y):
    x += y * 2
    return x.sum(0)


def grow(x, y):
    x *= y + 1


X, Y, V = normal(40, 33), normal(40, 33), normal(33)
CASES = {
    "chain": (lambda x, y: mf.exp(-x) * y + 3.5, X, Y),
    "broadcast": (lambda x, v: x * v - 1, X, V),
    "transposed": (lambda x, y: x + y, X, normal(33, 40).T),
    "the same twice": (lambda x: x * x + x, X),
    "a square and its transpose": (lambda x: x + x.T, normal(19, 19)),
    "a slice and its neighbour": (lambda x: x[1:] - x[:-1], X),
    "softmax": (lambda x: x.softmax(1), X),
    "layer norm": (layer_norm, X, V, normal(33)),
    "all in one": (lambda x: (x * x).mean(), X),
    "columns": (lambda x, y: (x * y).sum(0), X, Y),
    "several results": (lambda x: (x.max(1), x.sum(1), x * 2), X),
    "linear layer": (lambda x, w, v: mf.relu(x @ w + v), X, normal(33, 20), normal(20)),
    "a thin product": (lambda x, w: x @ w, normal(2, 300), normal(300, 5)),
    "product, then rows": (lambda x, w: (x @ w).softmax(1), X, normal(33, 20)),
    "in place": (update, X, Y),
    "in place, where it is read": (grow, X, Y),
    "a number that travels": (lambda x, k: x * k, X, 2.5),
    "nothing": (lambda x: x * 2, normal(0, 5)),
    "sums of nothing": (lambda x: x.sum(0), normal(0, 5)),
}


def on(backend, x):
    return mf.Tensor.from_numpy(np.copy(x), backend) if isinstance(x, np.ndarray) else x


def touched(plan, trace, of=None):
    """The distinct bytes of global memory, or of one operand, that a launch loads, and those that it stores."""
    assert trace.is_complete
    arguments = dict(zip(signature(plan.kernel).parameters, plan.arguments, strict=False))
    events, loaded, stored = trace.events, set(), set()
    for array, kind, address, nbytes in zip(events.array, events.kind, events.address, events.nbytes, strict=True):
        info = trace.arrays[array]
        if info.space == "global" and of in (None, info.name):
            pointer = arguments.get(info.name)  # operands may share memory
            first = address - info.base + pointer.data.ctypes.data if pointer else address
            (loaded if kind == LOAD else stored).update(range(first, first + nbytes))
    return len(loaded), len(stored)


@pytest.mark.parametrize("case", CASES)
def test_launches_and_bytes_are_those_that_the_simulated_gpu_counts(case):
    function, *inputs = CASES[case]
    device = RecordingDevice()
    backend = RecordingBackend(device)
    placed, fused = [on(backend, x) for x in inputs], mf.fuse(function)
    explanation = fused.explain(*placed)
    assert not device.plans, "to explain a call runs nothing"
    fused(*placed)
    promised = explanation.forward
    assert len(device.plans) == promised.launches == sum(kernel.launches for kernel in promised.kernels)
    launches = iter(device.plans)
    for kernel in promised.kernels:
        plans = [next(launches) for _ in range(kernel.launches)]
        traces = [(plan, simt.trace(plan)) for plan in plans]
        assert sum(sum(touched(*trace)) for trace in traces) == kernel.nbytes
        if kernel.form.startswith("matmul") or not traces:
            continue
        for name, operands in (("in", kernel.reads), ("out", kernel.writes)):
            names = [
                name
                for name in (f"{name}{k}" for k in range(len(operands)))
                if name in signature(plans[0].kernel).parameters
            ]
            found = [max(touched(*traces[0], name)) for name in names]
            assert found == [operand.nbytes for operand in operands[: len(names)]]


@pytest.mark.parametrize("case", [*CASES])
def test_launches_are_those_that_threads_are_asked_for(case, monkeypatch):
    """On threads a launch is a call of what `load` returned."""
    function, *inputs = CASES[case]
    parallel, calls = get_backend("parallel"), []

    def counting(step):
        executable = compile_step(step)
        load, sizes = executable.load, [n for d, n in enumerate(step.shape) if d not in step.dims]

        def load_counted():
            launch = load()

            def counted(*values):
                before = len(calls)
                launch(*values)
                if len(calls) == before and 0 not in sizes:  # a product in parts counts its parts
                    calls.append(step)

            return counted

        executable.load = load_counted
        return executable

    compile_step = parallel.compile
    monkeypatch.setattr(parallel, "compile", counting, raising=False)
    placed, fused = [on(parallel, x) for x in inputs], mf.fuse(function)
    promised = fused.explain(*placed)
    assert not calls
    fused(*placed)
    assert len(calls) == promised.forward.launches


def eager_launches(function, *inputs):
    """Launches of a function that is not fused, counted on a device that takes note; memory that is filled is none."""
    device = RecordingDevice()
    placed = [on(RecordingBackend(device), x) for x in inputs]
    backend = RecordingBackend(device)
    placed = [on(backend, x) for x in inputs]
    function(*placed)
    return len(device.plans)


@pytest.mark.parametrize("case", CASES)
def test_the_comparison_counts_the_unfused_launches(case):
    function, *inputs = CASES[case]
    backend = RecordingBackend(RecordingDevice())
    promised = mf.fuse(function).explain(*[on(backend, x) for x in inputs])
    assert promised.unfused.launches == eager_launches(function, *inputs)


def test_a_backward_pass_is_explained_and_counted():
    device = RecordingDevice()
    backend = RecordingBackend(device)
    x, w, b = (on(backend, a) for a in (X, normal(33, 20), normal(20)))
    w.requires_grad = b.requires_grad = True

    @mf.fuse
    def loss(x, w, b):
        return (mf.tanh(x @ w + b) * 2).mean()

    promised = loss.explain(x, w, b)
    y = loss(x, w, b)
    assert len(device.plans) == promised.forward.launches
    del device.plans[:]
    y.backward()
    assert len(device.plans) == promised.backward.run.launches
    assert {"x", "w", "b"} >= set(promised.backward.kept)
    assert any("@" in value for value, _ in promised.backward.saved), "the product is saved"
    assert any("tanh" in value for value in promised.backward.again), "and what is cheap computed again"
    assert promised.backward.unfused.launches >= promised.backward.run.launches
    assert loss.explain(x.detach(), w.detach(), b.detach()).backward is None


def test_a_training_step_is_explained_with_the_gradients_that_it_takes():
    x, target, w = mf.tensor(X), mf.tensor(normal(40, 20)), mf.tensor(normal(33, 20), requires_grad=True)
    optimizer = mf.optim.SGD([w], lr=0.1)

    @mf.fuse
    def step(x, target):
        optimizer.zero_grad()
        loss = ((x @ w - target) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    found = step.explain(x, target)
    products = [kernel for kernel in found.unfused.kernels if kernel.flops]
    assert len(products) == 2, "the product and the gradient of w, though backward is called inside"
    assert any(operand.name == "w" for kernel in found.forward.kernels for operand in kernel.writes)
    assert found.unfused.nbytes > found.forward.nbytes


def test_the_peak_is_that_of_the_host_program():
    text = """def run(x0):
    m0 = allocate(100)
    launch0(m0.address, x0.address)
    m1 = allocate(30)
    launch1(m1.address, m0.address)
    del m0
    m2 = allocate(50)
    launch2(m2.address, m1.address)
    return Tensor(m2, m2.address, meta0)
"""
    assert peak_bytes(text, [0, 0, 0]) == 130
    assert peak_bytes(text, [0, 0, 60]) == 140


def test_memory_is_that_of_the_pool():
    """What a call takes from an empty pool is the peak that was promised."""
    device = RecordingDevice()
    backend = RecordingBackend(device)
    asked = []

    def allocate(nbytes):
        asked.append(nbytes)
        return device.pool.allocate(nbytes)

    backend.allocate = allocate
    x, w = on(backend, X), on(backend, normal(33, 20))
    fused = mf.fuse(lambda x, w: (x @ w).softmax(1))
    found = fused.explain(x, w)
    del asked[:]
    fused(x, w)
    assert sum(asked) >= found.forward.peak > 0
    assert found.forward.peak == max(asked) + min(asked), "both values lie in memory at once"


def test_a_refused_merge_names_both_sides_the_reason_and_the_line():
    @mf.fuse
    def f(x, w):
        y = x @ w
        return y.softmax(1)

    found = f.explain(mf.tensor(X), mf.tensor(normal(33, 20)))
    refusals = [x for x in found.refusals if "@" in x.producer]
    assert refusals
    assert all(x.reason for x in refusals)
    file, _, line = refusals[0].line.rpartition(":")
    assert file == __file__
    assert "x @ w" in linecache.getline(file, int(line))


def test_slices_are_numbered_like_all_nodes():
    def step(x, w):
        w.grad = None
        for _ in range(12):
            x = mf.tanh(x @ w[:, :4]) * (x @ w[:, 4:])
        x.sum().backward()
        return w.grad

    found = mf.fuse(step).explain(mf.tensor(normal(4, 4)), mf.tensor(normal(4, 8), requires_grad=True))
    assert any(node.operation.startswith("slice_update(%") for node in found.nodes)
    assert all(len(refusal.producer) < 200 for refusal in found.refusals)
    assert "insert(insert(" not in str(found)


def test_names_are_the_users():
    scale = mf.tensor(V)
    layer = mf.nn.Linear(33, 4)

    @mf.fuse
    def f(x, weights, *, bias):
        return layer(x * scale) + weights["w"] * bias

    found = f.explain(mf.tensor(X), {"w": mf.tensor(normal(4))}, bias=mf.tensor(normal(4)))
    names = {node.name for node in found.nodes} - {""}
    assert names == {"x", "weights_w", "bias", "scale", "layer_weight", "layer_bias"}
    formulas = " ".join(kernel.formula for kernel in found.forward.kernels)
    assert all(name in formulas for name in names)


def test_it_is_text_and_data():
    found = mf.fuse(layer_norm).explain(mf.tensor(X), mf.tensor(V), mf.tensor(V))
    text = str(found)
    assert text.startswith("layer_norm on parallel: 1 kernel instead of ")
    assert all(len(line) <= 110 for line in text.splitlines())
    facts = json.loads(json.dumps(found.as_dict()))
    assert facts["forward"]["nbytes"] == found.forward.nbytes == 2 * X.nbytes + 2 * V.nbytes
    assert facts["ratio"] == found.ratio > 5
    assert sum(x["nbytes"] for x in facts["forward"]["kernels"][0]["reads"]) == X.nbytes + 2 * V.nbytes


def test_nothing_is_compiled_until_the_first_call():
    fused = mf.fuse(lambda x: (mf.exp(x * 1.37) - mf.sin(x) * 2.91).log_softmax(1).sum())
    x = mf.tensor(X, requires_grad=True)
    before = mf.cache.stats()
    found = fused.explain(x)
    assert found.backward is not None
    assert mf.cache.stats()[:3] == before[:3]  # others may write to the folder meanwhile
    fused(x)
    assert mf.cache.stats()[:3] != before[:3]
    assert fused.captures == 1


def test_a_call_after_explain_uses_the_fast_path():
    fused = mf.fuse(lambda x: x * 2 + 1)
    x = mf.tensor(X)
    fused.explain(x)
    assert not fused.runs
    assert np.array_equal(fused(x).numpy(), X * 2 + 1)
    assert len(fused.runs) == 1
    assert np.array_equal(fused(x).numpy(), X * 2 + 1)


def test_one_tensor_in_two_places_counts_once():
    x = mf.tensor(X)
    squared = mf.fuse(lambda x, y: x * y)
    assert squared.explain(x, mf.tensor(Y)).forward.nbytes == 3 * X.nbytes
    assert squared.explain(x, x).forward.nbytes == 2 * X.nbytes
    assert mf.fuse(lambda x: x * x).explain(x).unfused.nbytes == 2 * X.nbytes


def test_the_source_has_the_users_names_and_the_very_text_that_is_compiled():
    @mf.fuse
    def f(x, k, *, plan, m0):
        return mf.exp(x * (k * 2.0)) + plan * m0

    x, other = mf.tensor(X), mf.tensor(V)
    arguments = {"plan": other, "m0": other}
    text = f.source(x, 1.5, **arguments)
    host, _, kernels = text.partition("\n# launch0: ")
    assert host.startswith("def run(x, k, x2, x3):"), "names that the host program needs itself are not given away"
    assert "= (k * 2.0)" in host, "a number that the call computes"
    plan = f.plan(x, 1.5, **arguments)
    assert kernels.endswith("\n" + plan.backend.compile(plan.steps[0]).source)
    assert "in0 = x [" in kernels
    np.testing.assert_allclose(f(x, 1.5, **arguments).numpy(), np.exp(X * 3) + V * V, rtol=1e-5)


def test_other_names_are_the_same_kernel():
    x = mf.tensor(X)
    mf.fuse(lambda x: mf.exp(x) * 0.731)(x)
    before = mf.cache.stats().in_memory
    mf.fuse(lambda renamed: mf.exp(renamed) * 0.731)(x)
    assert mf.cache.stats().in_memory == before


@pytest.mark.parametrize("case", CASES)
def test_steps_lead_to_the_kernels_and_the_refusals(case):
    function, *inputs = CASES[case]
    found = mf.fuse(function).explain(*[on(get_backend("parallel"), x) for x in inputs])
    made = [step for step in found.steps if step.kind in ("made", "copied")]
    assert [step.launch for step in made] == list(range(len(found.forward.kernels)))
    for step, kernel in zip(made, found.forward.kernels, strict=True):
        assert len(step.values) == len(kernel.writes)
    refused = [step for step in found.steps if step.kind == "refused"]
    for step, refusal in zip(refused, found.refusals, strict=True):
        assert step.text == f"{refusal.producer} is not fused into {refusal.consumer}: {refusal.reason}."
    ends = {step.kernel: step.kind for step in found.steps if step.kind in ("made", "again", "copied")}
    assert all((step.launch is None) == (ends[step.kernel] == "again") for step in found.steps if step.kernel is not None)


def test_each_decision_is_a_sentence_with_its_subject():
    @mf.fuse
    def f(x, w, v):
        v *= 0.5
        return mf.relu(mf.exp(x) @ w + v), (x - 1).sum(1), x * 2

    found = f.explain(*[mf.tensor(a) for a in (normal(2, 33), normal(33, 20), normal(20))])
    for step in found.steps:
        assert step.text.endswith(".")
        for k in step.values[:3]:
            assert found.nodes[k].name in step.text if found.nodes[k].name else f"%{k} = " in step.text
    texts = {step.kind: step.text for step in found.steps}
    assert texts["in place"] == "launch0 stores %5 = %2 * 0.5 in the memory of v."
    assert " = %0 * 2 will share a kernel with %11 = sum(%10, dim=1): both read one array" in texts["joined"]
    assert any(step.text.endswith(" in its prologue.") for step in found.steps)
    assert any(step.text.endswith(" in its epilogue.") for step in found.steps)
    assert json.loads(json.dumps(found.as_dict()))["steps"][0]["text"] == found.steps[0].text


@pytest.mark.parametrize("case", CASES)
def test_passes_lead_to_the_kernels(case):
    function, *inputs = CASES[case]
    found = mf.fuse(function).explain(*[on(get_backend("parallel"), x) for x in inputs])
    changes = [change for x in found.passes for change in x.changes]
    assert all(change.startswith(("- ", "+ ", "! ")) for change in changes)
    count = sum({"+ launch(": 1, "- launch(": -1}.get(change[:9], 0) for change in changes)
    assert count == len(found.forward.kernels)
    assert sum(change.startswith("!") for change in changes) <= len(found.refusals)
    assert [*found.as_dict()["passes"]] == [asdict(x) for x in found.passes]
    assert "shows_passes" not in found.as_dict()


@pytest.mark.parametrize("case", CASES)
def test_graphs_between_passes_are_those_that_the_changes_describe(case):
    function, *inputs = CASES[case]
    found = mf.fuse(function).explain(*[on(get_backend("parallel"), x) for x in inputs])
    before = {x.name: x for x in found.captured}
    for x in found.passes:
        assert bool(x.nodes) == bool(x.changes)
        after = {node.name: node for node in x.nodes} or before
        seen = set[str]()
        for node in after.values():
            assert {*node.reads} <= seen  # inputs come first
            seen.add(node.name)
        went, came = ({c.split()[1] for c in x.changes if c[0] == sign and " = " in c} for sign in "-+")
        assert {name for name in before if name not in after} <= went
        assert {name for name in after if name not in before} - {n.name for n in x.nodes if n.operation == "input"} <= came
        before = after
    count = len(found.forward.kernels)
    assert {k for node in before.values() for k in node.kernels} <= {*range(count)}
    assert found.as_dict()["captured"][0]["name"] == found.captured[0].name


def test_a_kernel_grows_as_nodes_join_it():
    (formed,) = [x for x in mf.fuse(lambda x: mf.softmax(x, 1)).explain(mf.tensor(X)).passes if x.growth]
    assert formed.name == "form_kernels"
    assert formed.growth == (("max0",), ("max0", "sum0"), ("max0", "sum0", "div0"))


def test_passes_show_what_went_what_came_and_what_was_refused():
    def f(query, keys):
        return mf.softmax(query @ keys.T, 1) @ keys

    fused = mf.fuse(f)
    found = fused.explain(mf.tensor(X), mf.tensor(Y), passes=True)
    passes = {x.name: x for x in found.passes}
    assert passes["decompose"].changes == (
        "- softmax_vjp0 = div0",
        "- matmul1 = softmax_vjp0 @ keys",
        "+ matmul1 = div0 @ keys",
    )
    assert passes["merge_slice_gradients"].changes == ()
    formed = passes["form_kernels"].changes
    assert formed[:2] == ("- matmul0 = query @ permute0", "+ matmul0 = query @ permute0  # kernel 0")
    assert "! matmul0 is not fused into max0: a row reduction needs complete rows; a matmul tile holds only parts" in formed
    assert passes["emit_steps"].changes == (
        "+ launch(query, keys -> matmul0)",
        "+ launch(matmul0 -> max0, sum0)",
        "+ launch(matmul0, max0, sum0, keys -> matmul1)",
    )
    assert "\npasses\n  order_collectives: " in str(found)
    assert "\npasses\n" not in str(fused.explain(mf.tensor(X), mf.tensor(Y)))


def test_passes_show_stores_in_arguments():
    passes = {x.name: x.changes for x in mf.fuse(grow).explain(mf.tensor(X), mf.tensor(Y)).passes}
    assert passes["emit_steps"] == ("+ launch(x, y -> detach0)", "+ launch(detach0 -> x)")
    assert passes["elide_copies"] == ("- launch(x, y -> detach0)", "- launch(detach0 -> x)", "+ launch(x, y -> x)")


def test_nodes_behind_a_rewrite_keep_their_names():
    def f(x):
        for _ in range(3):
            x = mf.exp(mf.softmax(x, 1)) + 1
        return x

    (rewritten,) = [x for x in mf.fuse(f).explain(mf.tensor(X)).passes if x.name == "decompose"]
    for k in range(3):
        assert f"- exp{2 * k + 1} = exp(softmax_vjp{k})" in rewritten.changes
        assert f"+ exp{2 * k + 1} = exp(div{k})" in rewritten.changes
    assert len(rewritten.changes) == 9  # three lines for each softmax; lines behind it are as they were


def test_an_argument_with_the_name_of_a_node_is_told_apart():
    def f(exp0):
        return mf.exp(mf.softmax(exp0, 1))

    (rewritten,) = [x for x in mf.fuse(f).explain(mf.tensor(X)).passes if x.name == "decompose"]
    assert rewritten.changes[-1] == "+ exp2 = exp(div0)"


def test_an_argument_named_passes_is_passed_by_position():
    fused = mf.fuse(lambda passes: passes * 2)
    assert fused.explain(mf.tensor(X)).nodes[0].name == "passes"


def test_steps_are_those_of_a_call_that_is_recorded_and_changes_parameters():
    model = mf.nn.Sequential(mf.nn.Linear(33, 16), mf.nn.ReLU(), mf.nn.Linear(16, 10))
    optimizer = mf.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    @mf.fuse
    def train(x, y):
        optimizer.zero_grad()
        loss = mf.nn.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    @mf.fuse
    def loss(x, y):
        return mf.nn.cross_entropy(model(x), y)

    for function in (loss, train):
        for _ in range(2):  # the second time, parameters have a grad
            x, y = mf.tensor(X), mf.arange(40) % 10
            found = function.explain(x, y)
            function(x, y)
            made = [step for step in found.steps if step.kind in ("made", "copied")]
            for k, kernel in enumerate(found.forward.kernels):
                assert len(kernel.writes) == sum(len(step.values) for step in made if step.launch == k)
            assert sum(step.kind == "refused" for step in found.steps) == len(found.refusals)
    assert any(step.kind == "in place" for step in found.steps)


def explain_on_gpu(function, *shapes):
    backend = RecordingBackend(RecordingDevice())
    return mf.fuse(function).explain(*[on(backend, normal(*shape)) for shape in shapes])


def test_schedule_of_each_axis_and_its_reason_are_printed():
    found = explain_on_gpu(lambda x: x.sum(1), (4096, 1000))
    (kernel,) = found.forward.kernels
    schedule = "i0 (4096): blocks, 4 threads; i1 (1000): loop, 4 registers, 32 threads, vectors of 4"
    assert kernel.schedule == f"{schedule} (adjacent threads share a row)"
    assert f"schedule: {schedule[:50]}" in str(found)
    assert found.as_dict()["forward"]["kernels"][0]["schedule"] == kernel.schedule


def test_schedule_of_a_split_reduction_has_a_line_for_each_launch():
    found = explain_on_gpu(lambda x: x.sum(), (1, 300_000))
    (kernel,) = found.forward.kernels
    first, *launches = kernel.schedule.splitlines()
    assert first.startswith(f"{kernel.launches} launches, i1 in 15 chunks of 20,480 elements (")
    assert [line.partition(":")[0] for line in launches] == [f"launch {k}" for k in range(1, kernel.launches + 1)]
    assert "i1 (300000): loop" in launches[0]
    assert "(15)" in launches[1], "the second launch combines a result for each chunk"


def test_schedule_of_shared_memory_names_the_operands():
    found = explain_on_gpu(lambda a, b: ((a[:, None] - b[None]) ** 2).sum(2), (200, 64), (300, 64))
    assert "chunks of 16 in shared memory; in0, in1 in shared memory (each thread" in found.forward.kernels[0].schedule


def test_kernel_without_a_schedule_prints_none():
    assert explain_on_gpu(lambda x: x * 2, (0, 5)).forward.kernels[0].schedule == ""
    on_cpu = mf.fuse(lambda x: x.sum(1)).explain(mf.tensor(X))
    assert on_cpu.forward.kernels[0].schedule == ""
    assert "schedule" not in str(on_cpu)


def test_a_kernel_of_values_that_the_compiler_adds_is_explained():
    n = 8192  # so many comparisons that the index is sorted
    add = mf.fuse(lambda x, i, y: mf.index_add(x, 0, i, y) + 1)
    inputs = [mf.rand(n, backend="cuda"), mf.zeros(n, dtype="int64", backend="cuda"), mf.rand(n, backend="cuda")]
    assert "inline" in str([x.text for x in add.explain(*inputs).steps])


def test_the_headline_leaves_out_a_ratio_of_about_one():
    report = mf.fuse(lambda x, y: (x @ x, y.exp() + 1)).explain(mf.ones(64, 64), mf.ones(4))
    assert 1 < report.ratio < 1.05
    assert "moved instead of" in str(report)
    assert "times fewer" not in str(report)
    report = mf.fuse(lambda x: x.exp() + 1).explain(mf.ones(64, 64))
    assert "2 times fewer" in str(report)
