"""The view of devices: what each holds, the lanes, arrows and lines are those of the programs that ran."""

from inspect import getsourcelines

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minifuse.core.errors import MinifuseError
from project.views import devices, devices_pictures
from project.views.picture import IDLE, LOAD, OTHER, SHARED, STORE

few = settings(derandomize=True, max_examples=12, deadline=None)
counts = st.integers(devices.MIN_DEVICES, devices.MAX_DEVICES)
pieces = st.integers(1, devices.MAX_PIECES)


def texts_of(picture, frame):
    """Return the text of each cell in a step, by grid, row and column."""
    later = dict(frame.texts)
    return {
        (grid.name, c.row, c.column): next((later[link] for link in c.links if link in later), c.text)
        for grid in picture.grids
        for c in grid.cells
    }


def played_by_hand(n, steps):
    """Return what each device holds of each part after so many rounds of a ring all-reduce, as sets of letters."""
    held = {(r, p): {devices.LETTERS[r]} for r in range(n) for p in range(n)}
    for k in range(steps):
        adds = k < n - 1
        moves = {(r, (r - 1 - k) % n if adds else (r - k + n - 1) % n): r for r in range(n)}
        sent = {((r + 1) % n, p): held[r, p] for (r, p) in moves}
        held |= {place: held[place] | data if adds else data for place, data in sent.items()}
    return held


@few
@given(counts, st.data())
def test_ring_picture_shows_what_each_device_holds(n, data):
    picture = devices_pictures.picture(devices.run_programs(devices.RING, n, 1))
    assert len(picture.frames) == 2 * (n - 1) + 1
    k = data.draw(st.integers(0, 2 * (n - 1)))
    texts = texts_of(picture, picture.frames[k])
    for (rank, part), held in played_by_hand(n, k).items():
        assert set(texts["holds", rank, part]) == held
    for edge in picture.frames[k].flights:
        assert edge.end[1] == (edge.start[1] + 1) % n
        assert set(edge.text) <= set(texts[edge.end])
    if k:
        assert len(picture.frames[k].flights) == n
    assert set(texts_of(picture, picture.frames[-1]).values()) >= {devices.LETTERS[:n]}


@few
@given(st.sampled_from([devices.RING, devices.TREE]), counts)
def test_last_arrival_on_each_device_is_the_sum_of_all(subject, n):
    seen = devices.run_programs(subject, n, 1)
    assert all(np.array_equal(x, seen.timeline.results[0]) for x in seen.timeline.results)
    time = devices_pictures.picture(seen).grids[-1]
    last = {c.row: c for c in sorted(time.cells, key=lambda c: c.column)}
    assert sorted(last) == list(range(n))
    assert {c.text.split(":")[-1] for c in last.values()} == {devices.LETTERS[:n]}
    assert {c.kind for c in last.values()} == {SHARED}


@few
@given(counts)
def test_tree_has_an_arrow_for_each_message(n):
    seen = devices.run_programs(devices.TREE, n, 1)
    picture = devices_pictures.picture(seen)
    assert sorted((e.start[1], e.end[1]) for e in picture.edges) == sorted((m.rank, m.to) for m in seen.timeline.messages)
    texts = {(c.row, c.column): set(c.text) for c in picture.grids[0].cells}
    for edge in picture.edges:
        assert edge.end[2] == edge.start[2] + 1
        assert texts[edge.start[1:]] <= texts[edge.end[1:]]


@few
@given(st.sampled_from(sorted(devices.PIPELINES)), counts, pieces)
def test_lanes_of_a_pipeline_are_its_schedule(subject, n, m):
    seen = devices.run_programs(subject, n, m)
    picture = devices_pictures.picture(seen)
    time, kept = picture.grids
    assert time.columns == 3 * (m + n - 1)
    for rank in range(n):
        row = [c for c in time.cells if c.row == rank]
        order = devices.schedules.SCHEDULES[devices.PIPELINES[subject]](rank, n, m)
        expected = [f"{'F' if step.is_forward else 'B'}{step.micro_batch}" for step in order]
        assert list(dict.fromkeys(c.text for c in row if c.text)) == expected
        assert sum(c.kind == IDLE for c in row) == 3 * (n - 1)
        assert {c.kind for c in row if c.text.startswith("F")} == {LOAD}
        assert {c.kind for c in row if c.text.startswith("B")} == {STORE}
    facts = {fact.name: fact.value for fact in devices.facts(seen)}
    assert facts["idle share"] == facts["idle share by formula"]
    most = [max(int(dict(f.texts)[c.links[0]]) for f in picture.frames) for c in kept.cells]
    assert facts["micro-batches that a stage keeps"] == ", ".join(map(str, most))


@few
@given(st.sampled_from(sorted(devices.PIPELINES)), counts, pieces)
def test_arrows_of_a_pipeline_join_a_micro_batch(subject, n, m):
    picture = devices_pictures.picture(devices.run_programs(subject, n, m))
    cells = {(c.row, c.column): c for c in picture.grids[0].cells}
    edges = [edge for frame in picture.frames for edge in frame.edges]
    assert len(edges) == 2 * m * (n - 1)
    for edge in edges:
        start, end = cells[edge.start[1:]], cells[edge.end[1:]]
        assert start.text == end.text
        assert end.row - start.row == (1 if start.text[0] == "F" else -1)
        assert end.column > start.column


@few
@given(counts, pieces)
def test_buckets_are_sent_after_their_layers(n, m):
    seen = devices.run_programs(devices.BUCKETS, n, m)
    picture = devices_pictures.picture(seen)
    [time] = picture.grids
    for bucket in range(m):
        layers = {c.text for c in time.cells if c.row == 0 and f"p{bucket}" in c.links and c.kind == LOAD}
        assert layers == {f"L{layer}" for layer in np.array_split(np.arange(devices.LAYERS)[::-1], m)[bucket]}
        sends = [c.column for c in time.cells if c.row == 1 and c.text == str(bucket)]
        done = [c.column for c in time.cells if c.row == 0 and c.text in layers]
        assert {c.kind for c in time.cells if c.row == 1 and c.text} <= {OTHER}
        if sends:  # a short message may lie between the middles of columns
            assert min(sends) > max(done)
    facts = {fact.name: fact.value for fact in devices.facts(seen)}
    assert facts["bytes that a device sends"] == f"{max(map(seen.timeline.bytes_sent, range(n, 2 * n))):,}"


@pytest.mark.parametrize("subject", devices.SUBJECTS)
def test_lit_lines_are_those_that_send_compute_or_wait(subject):
    seen = devices.run_programs(subject, 4, 4)
    text = {line.number: line.text for line in devices.source(seen)}
    for function in devices.SUBJECTS[subject]:
        lines, first = getsourcelines(function)
        assert [text[first + k] for k in range(len(lines))] == [line.rstrip("\n") for line in lines]
    lit = [frame.line for frame in devices_pictures.picture(seen).frames if frame.line]
    assert lit
    assert all("yield" in text[line] for line in lit)


def test_counts_are_those_of_one_device():
    n = 5
    counts = {line.text.strip(): dict(line.counts) for line in devices.source(devices.run_programs(devices.RING, n, 1))}
    assert counts["received = yield Recv((rank - 1) % size)"] == {"ran": n - 1}


@pytest.mark.parametrize(
    ("subject", "n", "m"), [("star", 4, 4), (devices.RING, 1, 1), (devices.TREE, 9, 1), ("pipeline: gpipe", 4, 0)]
)
def test_unknown_subjects_and_numbers_are_errors(subject, n, m):
    with pytest.raises(MinifuseError, match="expected"):
        devices.run_programs(subject, n, m)


def test_cost_formula_agrees_with_the_played_time():
    for subject, name in devices.KINDS.items():
        assert name in devices.algorithms.ALGORITHMS["all_reduce"]
        for n in range(devices.MIN_DEVICES, devices.MAX_DEVICES + 1):
            facts = {fact.name: fact.value for fact in devices.facts(devices.run_programs(subject, n, 1))}
            assert facts["time"] == facts["time by formula"]
