"""Fusion, as it is shown, against `explain`, `source`, and what the functions compute."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

import minifuse as mf
from minifuse.core.layout import row_major
from project.views import functions, fusion, fusion_steps
from project.views.function_parts import FunctionParts
from project.views.picture import CHOSEN, IDLE, KINDS, LOAD, MAX_NBYTES, OTHER, STORE, Picture

EACH = pytest.mark.parametrize("example", functions.FUSED, ids=lambda found: found.name)
COUNTS = {  # kernels for 8 rows on parallel
    "a chain of operators": 1,
    "views on the way": 1,
    "softmax": 1,
    "layer norm": 1,
    "Huber loss": 1,
    "a layer": 1,
    "momentum": 1,
    "attention": 2,
    "rows and columns": 2,
    "a product of softened rows": 2,
    "down the columns": 3,
    "a gradient": 2,
}


def taken(name: str, rows: int = 8, backend: str = "parallel") -> FunctionParts:
    """One of the functions, taken apart."""
    return fusion.taken_apart(functions.example(name, functions.FUSED), rows, backend)


def grids(drawn: Picture) -> dict:
    """The grids of a picture by name."""
    return {grid.name: grid for grid in drawn.grids}


def test_a_dozen_functions_have_the_kernels_that_they_are_known_for():
    assert {example.name: len(taken(example.name).parts) for example in functions.FUSED} == COUNTS


@EACH
@pytest.mark.parametrize("backend", fusion.BACKENDS)
@pytest.mark.parametrize("rows", [1, 33])
def test_what_is_shown_is_what_explain_says(example, backend, rows):
    found = fusion.taken_apart(example, rows, backend)
    drawn = grids(fusion.picture(found))
    assert len(drawn["graph"].cells) == len(found.explained.nodes)
    assert len(found.parts) == len(found.explained.forward.kernels)
    for k, kernel in enumerate(found.explained.forward.kernels):
        cells = drawn[f"kernel{k}"].cells
        assert {c.text for c in cells if c.kind == LOAD} >= {x.name for x in kernel.reads}
        assert [c.text for c in cells if c.kind == STORE] == [x.name for x in kernel.writes]
        assert kernel.form in drawn[f"kernel{k}"].title
    refused = drawn["refusals"].cells if found.explained.refusals else ()
    assert len(refused) == len(found.explained.refusals)
    for cell, refusal in zip(refused, found.explained.refusals, strict=True):
        assert refusal.reason in cell.label


@EACH
@pytest.mark.parametrize("backend", fusion.BACKENDS)
@pytest.mark.parametrize("rows", [1, 33, 1024])
def test_each_operation_is_found_in_a_kernel(example, backend, rows):
    if rows == 1024 and backend == "python":
        rows = 256
    found = fusion.taken_apart(example, rows, backend)
    for k, node in enumerate(found.explained.nodes):
        if k not in found.free | found.inputs and "clone" not in node.operation:
            assert fusion.kernels_of(found, k), node
    assert all(len(part.nodes) <= 1 for parts in found.parts for part in parts)  # nothing is mistaken for another


@EACH
def test_parts_read_as_the_graph_does(example):
    """What an operation of a kernel reads is what its node reads, but for views and numbers."""
    found = fusion.taken_apart(example, 8, "parallel")

    def under(k: int) -> set[int]:
        return {k} if k not in found.free else set().union(*map(under, found.reads[k]))

    for parts in found.parts:
        for part in parts:
            for n in part.nodes:
                wanted = set().union(*map(under, found.reads[n])) if found.reads[n] else set()
                for below in (parts[j] for j in part.reads):
                    assert not below.nodes or wanted & set(below.nodes), (n, below)


def test_a_fold_of_rows_is_computed_again_by_nobody():
    found = taken("layer norm")
    sums = [k for k, node in enumerate(found.explained.nodes) if node.operation.startswith("sum")]
    assert len(sums) == 2
    assert all(fusion.kernels_of(found, k) == [0] for k in sums)


def test_folds_of_one_array_along_two_dims_are_told_apart():
    found = taken("rows and columns", 64)
    columns, rows = (
        next(k for k, node in enumerate(found.explained.nodes) if node.operation == f"sum(%0, dim={d})") for d in (0, 1)
    )
    assert fusion.kernels_of(found, columns) == [1]
    assert fusion.kernels_of(found, rows) == [0]
    assert found.stored == {rows, len(found.reads) - 1}


def test_what_is_dear_is_stored_and_what_is_cheap_is_not():
    found = taken("attention")
    product = next(k for k, node in enumerate(found.explained.nodes) if " @ " in node.operation)
    assert fusion.kernels_of(found, product) == [0]
    stored = [found.explained.nodes[k].operation for k in sorted(found.stored)]
    assert len(stored) == 2
    labels = [cell.label for cell in grids(fusion.picture(found))["refusals"].cells]
    assert any("a row reduction needs complete rows" in label for label in labels)


def test_the_same_memory_is_linked_between_kernels():
    found = taken("attention")
    drawn = grids(fusion.picture(found))
    written = {link for c in drawn["kernel0"].cells if c.kind == STORE for link in c.links if link.startswith("m ")}
    read = {link for c in drawn["kernel1"].cells if c.kind == LOAD for link in c.links if link.startswith("m ")}
    assert written
    assert written == read


def test_links_join_who_reads_what():
    found = taken("layer norm")
    cells = grids(fusion.picture(found))["graph"].cells
    for k, inputs in enumerate(found.reads):
        joined = {j for j, other in enumerate(cells) if set(other.links) & set(cells[k].links) and j != k}
        outward = {j for j, reads in enumerate(found.reads) if k in reads}
        assert joined == set(inputs) | outward


def test_refused_merges_light_both_ends():
    found = taken("rows and columns")
    for cell, refusal in zip(grids(fusion.picture(found))["refusals"].cells, found.explained.refusals, strict=True):
        assert f"g{refusal.producer.partition(' = ')[0][1:]}" in cell.links
        assert cell.kind == OTHER


@EACH
def test_a_cell_lies_to_the_right_of_what_it_reads(example):
    found = fusion.taken_apart(example, 8, "cuda")
    for reads in (found.reads, *[[part.reads for part in parts] for parts in found.parts]):
        places = fusion.layers(reads)
        assert len(set(places)) == len(places)
        assert all(places[j][1] < places[k][1] for k, inputs in enumerate(reads) for j in inputs)


@EACH
def test_facts_are_those_before_and_after(example):
    found = fusion.taken_apart(example, 33, "parallel")
    values = {fact.name: fact.value for fact in fusion.facts(found)}
    x = found.explained
    assert values["kernels"] == f"{len(x.unfused.kernels)} before, {len(x.forward.kernels)} after"
    assert values["launches"] == f"{x.unfused.launches} before, {x.forward.launches} after"
    refused = [fact for fact in fusion.facts(found) if fact.name == "not fused"]
    for no in x.refusals:
        assert any(
            f"{no.producer} into" in fact.value and no.consumer in fact.value and fact.why == no.reason for fact in refused
        )
    assert len({(fact.value, fact.why) for fact in refused}) == len(refused) <= len(x.refusals)
    assert sum(fact.name.startswith("launch") for fact in fusion.facts(found)) == 1 + len(x.forward.kernels)


@EACH
def test_the_functions_compute_the_same_fused_and_not(example):
    arrays = example.arrays(5, "float64")
    given = [[mf.tensor(array.copy()) for array in arrays] for _ in range(2)]
    results = [f(*xs) for f, xs in zip((example.function, mf.fuse(example.function)), given, strict=True)]
    if results[0] is None:  # in place
        results = [xs[0] for xs in given]
        assert not np.array_equal(results[0].numpy(), arrays[0])
    np.testing.assert_allclose(results[1].numpy(), results[0].numpy(), rtol=1e-12)


def test_own_lines_are_those_of_the_file():
    found = taken("layer norm")
    text = Path(functions.__file__).read_text(encoding="utf-8").splitlines()
    lines = fusion.own_lines(found)
    assert lines[0].text.startswith("def layer_norm")
    assert all(text[line.number - 1] == line.text for line in lines)
    counts = {line.text.strip(): dict(line.counts).get("ops", 0) for line in lines}
    assert counts["centred = x - x.mean(1, keepdim=True)"] == 3  # a sum, a quotient, a difference


@pytest.mark.parametrize(("backend", "words"), [("python", "python"), ("parallel", "def kernel"), ("cuda", "cuda.")])
def test_the_generated_text_is_that_of_the_backend(backend, words):
    found = taken("softmax", 8, backend)
    text = "\n".join(line.text for line in fusion.generated(found))
    assert text == found.source.rstrip("\n")
    assert words in text


def test_frames_go_through_the_kernels():
    found = taken("attention")
    drawn = fusion.picture(found)
    assert len(drawn.frames) == 1 + len(found.parts)
    links = {link for grid in drawn.grids for cell in grid.cells for link in cell.links}
    assert all(link in links for frame in drawn.frames for link, _ in frame.kinds)
    assert "launch1" in drawn.frames[2].sentence


# Step by step.


def replayed(found: FunctionParts) -> fusion_steps.Progress:
    """What the decisions lead to, all together."""
    now = fusion_steps.Progress()
    for step in found.explained.steps:
        now.take(step)
    return now


def assert_leads_to_the_kernels(found: FunctionParts) -> None:
    """Decisions lead to what is found in the kernels' expressions, and to the refusals."""
    now, nothing = replayed(found), found.free
    assert [set(inside) for inside in now.computed] == [{n for part in parts for n in part.nodes} for parts in found.parts]
    assert {k for values in now.stored for k in values} - nothing == found.stored - nothing
    assert not now.open
    assert len(now.refused) == len(found.explained.refusals)
    for ends, no in zip(now.refused, found.explained.refusals, strict=True):
        assert [f"%{k}" for k in ends] == [value.partition(" = ")[0] for value in (no.producer, no.consumer)]


@EACH
@pytest.mark.parametrize("backend", fusion.BACKENDS)
@pytest.mark.parametrize("rows", [1, 8, 256])
def test_what_was_decided_leads_to_the_kernels(example, backend, rows):
    assert_leads_to_the_kernels(fusion.taken_apart(example, rows, backend))


@EACH
def test_a_frame_for_each_decision_between_the_graph_and_the_kernels(example):
    found = fusion.taken_apart(example, 33, "parallel")
    drawn = fusion.picture(found, "step by step")
    first, *between, last = drawn.frames
    cells = {cell.links[0]: cell for grid in drawn.grids for cell in grid.cells}
    operations = {f"g{k}" for k in range(len(found.reads)) if k not in found.free | found.inputs}
    assert len(between) == len(found.explained.steps)
    for frame, step in zip(between, found.explained.steps, strict=True):
        assert frame.sentence.startswith(step.text)
    assert all(link in cells and kind in KINDS for frame in drawn.frames for link, kind in frame.kinds)
    looks = dict(first.kinds)
    assert {link for link in looks if link.startswith("g")} == operations, "each a kernel of its own, which stores it"
    assert {looks[link] for link in operations} == {STORE}
    assert {kind for link, kind in looks.items() if link not in operations} == {IDLE}, "and nothing else is there yet"
    assert f"{len(operations)} operation" in first.sentence
    assert not last.kinds, "the kernels as they are"
    rows = fusion_steps.rows(found)
    assert [(row["step"], row["in words"]) for row in rows] == [
        (str(k), frame.sentence) for k, frame in enumerate(between, 2)
    ]
    assert all(
        (row["kernel"] == "given up") == (row["decision"] == "again") for row in rows if row["decision"] in ("again", "made")
    )
    undecided = dict(between[-1].kinds)
    assert IDLE not in undecided.values()
    assert STORE not in undecided.values()


def test_frames_say_what_is_in_the_making():
    found = taken("attention")
    drawn = fusion.picture(found, "step by step")
    looks = {frame.sentence: dict(frame.kinds) for frame in drawn.frames}
    refused = next(kinds for sentence, kinds in looks.items() if "is not fused into %12" in sentence)
    assert refused["g3"] == refused["g12"] == refused["r0"] == OTHER
    assert refused["g4"] == STORE, "no kernel computes it yet"
    begun = next(kinds for sentence, kinds in looks.items() if sentence.startswith("This kernel computes %4"))
    assert (begun["g4"], begun["g5"]) == (CHOSEN, STORE)
    given_up = next(kinds for sentence, kinds in looks.items() if "is discarded" in sentence)
    assert given_up["g4"] == given_up["g12"] == CHOSEN
    folded = next(kinds for sentence, kinds in looks.items() if sentence.startswith("launch1 reduces its rows"))
    assert [kind for link, kind in folded.items() if link.startswith("k1.")].count(
        CHOSEN
    ) == 2  # the product scaled, its max
    assert not any(link.startswith("k0.") for link in folded), "which is made"
    moved = fusion.format_bytes(found.explained.forward.kernels[0].nbytes)
    assert f"launch0 is complete, and stores %3 = %0 @ %2. It moves {moved}." in looks


@pytest.mark.parametrize("rows", fusion.SIZES)
def test_steps_fit_the_browser(rows):
    for example in functions.FUSED:
        data = fusion.picture(fusion.taken_apart(example, rows, "cuda"), "step by step").as_data()
        assert len(str(data)) < MAX_NBYTES / 8


def test_nothing_is_compiled_for_a_page():
    before = mf.cache.stats()
    fusion.taken_apart(functions.Example("fresh", lambda x, w: mf.exp(x * 1.7531) @ w, (("n", "n"),) * 2, ""), 8, "parallel")
    after = mf.cache.stats()
    assert (after.compiled, after.in_memory) == (before.compiled, before.in_memory)


def test_a_chosen_cell_tells_its_words():
    found = taken("attention")
    cell = grids(fusion.picture(found))["kernel1"].cells[0]
    assert fusion.facts(found, cell.links[0])[0].value == cell.label
    assert fusion.facts(found, "gone")[0].name == "kernels"


@pytest.mark.parametrize("shapes", [((0, 3),), ((1,),), ((),), ((1, 1),)])
def test_empty_and_single_arguments_draw(shapes):
    example = functions.Example("shifted", lambda x: (x - x.max()).exp() if x.size else x + 1, shapes, "")
    found = fusion.taken_apart(example, 1, "parallel")
    assert fusion.picture(found).as_svg().startswith("<svg")
    assert found.explained.nodes[0].shape == shapes[0]


@settings(derandomize=True, max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["exp", "sum", "T", "neg", "double", "square"]), min_size=1, max_size=8), st.integers(1, 9))
def test_any_chain_is_drawn_whole(steps, rows):
    def chain(x):
        for step in steps:
            if step == "sum":
                x = x - x.sum(0, keepdim=True)
            else:
                x = {"exp": x.exp, "neg": x.__neg__, "T": lambda x=x: x.T}.get(step, lambda x=x: x)()
                x = x * 2 if step == "double" else x * x if step == "square" else x
        return x + 1

    example = functions.Example("chain", chain, (("n", "2n"),), "")
    found = fusion.taken_apart(example, rows, "parallel")
    for k in range(len(found.reads)):
        assert k in found.free | found.inputs or fusion.kernels_of(found, k)
    assert_leads_to_the_kernels(found)
    assert sum(part.kind == STORE for parts in found.parts for part in parts) == len(found.stored)
    assert row_major((rows, 2 * rows)).size * 4 <= found.explained.forward.nbytes


def page() -> AppTest:
    """The page."""

    def app():
        from project.screens.fusion import page

        page()

    return AppTest.from_function(app, default_timeout=30).run()


def test_the_page_answers_to_each_control():
    at = page()
    assert not at.exception
    for example in functions.FUSED:
        at.selectbox(key="fusion_function").select(example.name).run()
        assert not at.exception
        assert not at.error
    for backend in fusion.BACKENDS:
        at.selectbox(key="fusion_backend").select(backend).run()
        assert not at.exception
        assert not at.error
    for play in fusion.PLAYS:
        at.button_group(key="fusion_play").set_value(play).run()
        assert not at.exception
        assert any(
            block.value.startswith("minifuse explain ") and ("--steps" in block.value) == (play == fusion.PLAYS[1])
            for block in at.code
        )
    at.select_slider(key="fusion_size").set_value(1).run()
    assert not at.exception
    assert any("2 kernels" in block.value or "def run" in block.value for block in at.code)
