"""engines.timeline and engines.buckets: text pictures of rings, buckets and pipelines, and their plain data."""

import json

import numpy as np
import pytest

import minifuse as mf
import minifuse.distributed as dist
from minifuse.engines.algorithms import ring_all_reduce, ring_reduce_scatter
from minifuse.engines.buckets import between_devices, data_parallel, on_ranks
from minifuse.engines.cost import COSTS, Link, play
from minifuse.engines.messages import Work
from minifuse.engines.schedules import SCHEDULES, run_stage
from minifuse.engines.simulated import Simulation
from minifuse.engines.timeline import format_seconds, make_picture

X = np.zeros(4096, np.float32)


def lines_of(picture, width):
    return [line.partition("|")[2].rstrip("|") for line in picture.to_text(width).splitlines()[1:]]


def test_the_chunks_of_a_ring_move_along_diagonals():
    timeline = play([ring_all_reduce(rank, 4, X, np.add) for rank in range(4)], Link(1, 0))
    lines = lines_of(make_picture(timeline, "ring"), 12)
    assert lines == ["3-2-1-0-3-2-", "0-3-2-1-0-3-", "1-0-3-2-1-0-", "2-1-0-3-2-1-"]
    steps = [line[::2] for line in lines]
    assert all(steps[rank][step] == steps[(rank + 1) % 4][step + 1] for rank in range(4) for step in range(5))


def pipeline_picture(schedule):
    orders = [SCHEDULES[schedule](stage, 3, 3) for stage in range(3)]
    stages = [run_stage(stage, 3, orders[stage], lambda _k, _x: X, lambda _k, _x: X, (1, 2)) for stage in range(3)]
    return make_picture(play(stages, Link(0, 0)), schedule)


def test_a_pipeline_has_bubbles_at_both_ends():
    picture = pipeline_picture("1f1b")
    work = [line for line, row in zip(lines_of(picture, 45), picture.rows, strict=True) if row.kind == "work"]
    assert work == [
        "F0=F1=F2=            B0====   B1====   B2====",
        "   F0=F1=      B0====F2=B1====   B2====      ",
        "      F0=B0====F1=B1====F2=B2====            ",
    ]
    assert picture.idle_share == pytest.approx(2 / 5)
    assert "40% idle" in picture.summary()


def test_both_schedules_show_each_pass_once():
    for schedule in SCHEDULES:
        for row in pipeline_picture(schedule).rows:
            if row.kind == "work":
                assert sorted(span.label for span in row.spans) == ["B0", "B1", "B2", "F0", "F1", "F2"]


LAYERS, BUCKETS = [1.0] * 4, [[3, 2], [1, 0]]


def test_buckets_travel_under_the_backward_pass():
    timeline = play(data_parallel(2, LAYERS, BUCKETS, [100, 100]), between_devices(2, Link(1, 0)))
    picture = make_picture(timeline, "buckets", devices=2)
    assert [(row.device, row.kind) for row in picture.rows] == [(0, "work"), (0, "send"), (1, "work"), (1, "send")]
    assert lines_of(picture, 24) == ["L3==L2==L1==L0==        ", "        0---0---1---1---"] * 2
    assert (picture.seconds, picture.bytes_sent, picture.idle_share) == (6, (200, 200), pytest.approx(1 / 3))


@pytest.mark.parametrize("size", range(1, 6))
def test_only_the_last_bucket_is_not_hidden(size):
    """If an all-reduce takes less time than a bucket's layers, a step is the backward pass and the last all-reduce."""
    link = Link(1e-3, 1e-6)
    for buckets in ([[3], [2], [1], [0]], BUCKETS, [[3, 2, 1, 0]]):
        nbytes = [size * 100 * len(bucket) for bucket in buckets]
        timeline = play(data_parallel(size, LAYERS, buckets, nbytes), between_devices(size, link))
        last = COSTS["all_reduce"]["ring"].seconds(size, nbytes[-1], link)
        assert timeline.seconds == pytest.approx(4 + last)


def test_a_program_runs_on_other_ranks_with_its_results():
    xs = [np.arange(6.0) + rank for rank in range(3)]
    parts = [np.array_split(x, 3) for x in xs]

    def idle():
        yield Work(0, "w")

    ranks = (3, 1, 2)
    programs = {ranks[k]: on_ranks(ring_reduce_scatter(k, 3, parts[k], np.add), ranks, chunk=7) for k in range(3)}
    timeline = play([idle(), *(programs[rank] for rank in (1, 2, 3))])
    assert [list(timeline.results[rank]) for rank in ranks] == [[3, 6], [9, 12], [15, 18]]
    assert {event.chunk for event in timeline.messages} == {7}


def test_a_picture_is_plain_data():
    timeline = play([ring_all_reduce(rank, 2, X, np.add) for rank in range(2)])
    picture = make_picture(timeline, "ring", holdings={"gradients": [8, 8]})
    data = picture.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["rows"][0]["spans"][0] == {"start": 0.0, "end": timeline.seconds / 2, "label": "1", "to": 1, "nbytes": 8192}
    assert data["holdings"] == {"gradients": [8, 8]}
    assert picture.to_text().splitlines()[-1] == "gradients: 8, 8 bytes"


def test_a_simulation_has_a_picture_of_what_ran():
    """Rank 2 sends its array to both others, then all add theirs around the ring."""
    simulation = Simulation(3, algorithm="ring", link=Link(1, 0))

    def program():
        x = dist.broadcast(mf.ones(6) * dist.rank(), source=2)
        return dist.all_reduce(x).tolist()

    assert simulation.run(program) == [[6.0] * 6] * 3
    picture = make_picture(simulation.timeline, "a program")
    assert picture.seconds == 2 + 4
    assert lines_of(picture, 12) == ["    2-1-0-2-", "    0-2-1-0-", "0-0-1-0-2-1-"]


def test_an_empty_timeline_has_an_empty_picture():
    assert make_picture(play([]), "nothing", devices=1).to_text() == "nothing: 0.0 us"


@pytest.mark.parametrize(("seconds", "text"), [(2e-6, "2.0 us"), (9.994e-4, "999.4 us"), (0.0015, "1.5 ms"), (15, "15.0 s")])
def test_times_have_a_unit_that_fits(seconds, text):
    assert format_seconds(seconds) == text
