"""engines.predict: its formulas against the cost model, the GPT of the recipes, measurements of two GPUs, and papers."""

from dataclasses import replace
from math import ceil

import numpy as np
import pytest

from minifuse.engines.algorithms import ring_all_gather, ring_all_reduce, ring_reduce_scatter
from minifuse.engines.buckets import between_devices, data_parallel, on_ranks
from minifuse.engines.cost import COSTS, Link, play
from minifuse.engines.predict import (
    A100,
    FAMILIES,
    H100,
    USABLE_MEMORY,
    GPTShape,
    Spread,
    Strategy,
    compare,
    comparison_table,
    exposed,
    memory,
    predict,
    state_bytes,
    why_not,
)
from minifuse.engines.schedules import SCHEDULES, run_stage
from minifuse.recipes.gpt import GPT

LAYERS = {256: 4, 512: 8, 1024: 16, 2048: 24, 4096: 32, 8192: 48}
SHAPES = [GPTShape(layers, width, max(width // 64, 4)) for width, layers in LAYERS.items()]


@pytest.mark.parametrize(("layers", "width", "context"), [(2, 64, 64), (3, 32, 16)])
def test_parameters_are_those_of_the_recipe(layers, width, context):
    model = GPT(59, context, layers, 4, width)
    assert GPTShape(layers, width, 4, context, 59).parameters == sum(p.size for p in model.parameters())


def test_flops_are_those_of_the_megatron_paper():
    """Its equation 3 has recomputation: 4 passes in place of 3, but for the head."""
    shape = GPTShape(40, 6144, 48, 2048, 51200, 1024)
    layers, h, s, vocabulary = 40, 6144, 2048, 51200
    whole = 96 * 1024 * s * layers * h**2 * (1 + s / (6 * h) + vocabulary / (16 * layers * h))
    head = 6 * vocabulary * h
    assert 1024 * s * ((shape.flops_per_token - head) * 4 / 3 + head) == pytest.approx(whole)


def test_an_all_reduce_of_two_levels_costs_what_its_messages_cost():
    """Two nodes of four devices: reduce-scatter in a node, all-reduce between nodes, all-gather in a node."""
    hardware = replace(H100, node=Link(1, 0.25), network=Link(8, 0.5), startup=0)
    xs = [np.arange(16, dtype=np.uint8) + rank for rank in range(8)]

    def program(rank):
        node, place = divmod(rank, 4)
        inside, across = range(4 * node, 4 * node + 4), (place, place + 4)
        part = yield from on_ranks(ring_reduce_scatter(place, 4, np.split(xs[rank], 4), np.add), inside)
        part = yield from on_ranks(ring_all_reduce(node, 2, part, np.add), across)
        return np.concatenate((yield from on_ranks(ring_all_gather(place, 4, part), inside)))

    timeline = play(
        [program(rank) for rank in range(8)],
        lambda a, b: hardware.node if a // 4 == b // 4 else hardware.network,
    )
    assert all((result == sum(xs)).all() for result in timeline.results)
    assert timeline.seconds == Spread(4, 2, hardware).all_reduce(16)


@pytest.mark.parametrize("seconds_per_byte", [1e-4, 1e-2, 1e-1])
def test_exposed_time_is_that_of_the_event_driven_model(seconds_per_byte):
    link, layers, nbytes = Link(0.01, seconds_per_byte), [1.0, 2.0, 0.5, 1.5], [60, 40]
    timeline = play(data_parallel(4, layers, [[3, 2], [1, 0]], nbytes), between_devices(4, link))
    seconds = [COSTS["all_reduce"]["ring"].seconds(4, n, link) for n in nbytes]
    assert timeline.seconds == pytest.approx(sum(layers) + exposed([2.0, 5.0], seconds))


@pytest.mark.parametrize("schedule", sorted(SCHEDULES))
def test_the_time_of_a_pipeline_is_that_of_its_schedule(schedule):
    shape, strategy = GPTShape(16, 1024, 16, batch=32), Strategy(pipeline=4)
    predicted = predict(shape, strategy)
    pass_seconds = predicted.compute / 32 / 3
    orders = [SCHEDULES[schedule](stage, 4, 32) for stage in range(4)]
    x = np.empty(1024 * 1024, np.float16)
    timeline = play(
        [run_stage(k, 4, orders[k], lambda *_: x, lambda *_: x, (pass_seconds, 2 * pass_seconds)) for k in range(4)],
        H100.node,
    )
    assert predicted.compute + predicted.bubble == pytest.approx(timeline.seconds, rel=0.02)


def test_sharded_state_is_that_of_the_zero_paper():
    """7.5 billion parameters on 64 devices, in mixed precision: its figure 1."""
    stages = {"nothing": 120.0, "optimizer": 31.4, "everything": 1.9}
    assert {name: round(state_bytes(7.5e9, 2, name, 64) / 1e9, 1) for name in stages} == stages


# GB/s of NCCL's all-reduce of n MB on two H200, and ms of a step of GPT (4 layers, width 256, 64 sequences a GPU)
MEASURED_GB_PER_S = {1: 71, 4: 125, 16: 223, 64: 263, 256: 299, 1024: 326}
H200 = replace(H100, name="H200", bandwidth=4.8e12, memory=141e9, flops=66.9e12)


@pytest.mark.parametrize(("megabytes", "measured"), MEASURED_GB_PER_S.items())
def test_all_reduces_of_two_gpus_are_within_a_quarter(megabytes, measured):
    nbytes = megabytes * 2**20
    assert nbytes / Spread(2, 1, H200).all_reduce(nbytes) / 1e9 == pytest.approx(measured, rel=0.25)


def test_data_parallel_steps_of_two_gpus_are_near_the_measured_ones():
    """In float32: 10.11 ms on one GPU and on two, of which all-reduces are about 60 us."""
    shape = GPTShape(4, 256, 4, 256, 59, batch=64, itemsize=4)
    one = predict(shape, Strategy(micro_batch=64), H200)
    two = predict(replace(shape, batch=128), Strategy(data=2, micro_batch=64), H200)
    assert one.seconds == pytest.approx(10.11e-3, rel=0.1)
    assert two.seconds == pytest.approx(10.11e-3, rel=0.1)
    assert two.data == pytest.approx(60e-6, rel=0.15)
    assert 0.98 < one.seconds / two.seconds < 1


@pytest.mark.parametrize("devices", [8, 64, 1024])
def test_the_best_strategy_fits_and_is_the_fastest(devices):
    for shape in SHAPES:
        found = compare(shape, devices)
        assert found.keys() == FAMILIES.keys()
        if best := found["best"]:
            assert all(best.seconds <= p.seconds for p in found.values() if p)
            assert best.memory <= USABLE_MEMORY * H100.memory
            assert 0 < best.utilization < H100.efficiency * 1.1
            assert best.strategy.devices == devices


def test_large_models_need_several_kinds_of_parallelism():
    assert compare(SHAPES[-1], 8)["best"] is None
    for name in ("data parallel", "ZeRO-1", "tensor 8"):
        assert compare(SHAPES[-1], 1024)[name] is None
    best = compare(SHAPES[-1], 1024)["best"].strategy
    assert min(best.data, best.tensor, best.pipeline) > 1
    assert str(best).startswith(f"data {best.data} x tensor {best.tensor} x pipeline {best.pipeline}")


def test_slower_links_never_make_a_step_faster():
    slow = replace(H100, network=Link(H100.network.latency * 2, H100.network.seconds_per_byte * 4))
    for shape in SHAPES[:4]:
        for name, prediction in compare(shape, 64).items():
            other = compare(shape, 64, slow)[name]
            assert (prediction is None) == (other is None)
            assert prediction is None or other.seconds >= prediction.seconds


@pytest.mark.parametrize(
    ("strategy", "reason"),
    [
        (Strategy(), None),
        (Strategy(tensor=16), "one node"),
        (Strategy(tensor=8), "4 heads cannot be divided by 8 ranks"),
        (Strategy(pipeline=3), "4 layers cannot be divided by 3 stages"),
        (Strategy(data=3), "a batch of 1024 cannot be divided by 3 ranks"),
        (Strategy(data=2, pipeline=2, shards="everything"), "again"),
    ],
)
def test_impossible_strategies_have_a_reason(strategy, reason):
    found = why_not(SHAPES[0], strategy)
    assert (found is None) if reason is None else reason in found


def test_a_model_that_does_not_fit_says_what_it_needs():
    assert why_not(SHAPES[-1], Strategy(data=8, shards="everything", recomputes=True)) == "needs 85 GB"


def test_recomputing_trades_time_for_memory():
    one, other = Strategy(data=8, micro_batch=4), Strategy(data=8, micro_batch=4, recomputes=True)
    shape = SHAPES[3]
    assert memory(shape, other) < memory(shape, one)
    assert predict(shape, other).seconds > predict(shape, one).seconds


def test_the_table_has_a_line_for_each_shape():
    lines = comparison_table(SHAPES, 8, A100).splitlines()
    assert len(lines) == 2 + len(SHAPES)
    assert lines[-1].endswith("does not fit")
    assert {len(line.split("  ")[0]) for line in lines[2:]} <= {0, ceil(len("width"))}
