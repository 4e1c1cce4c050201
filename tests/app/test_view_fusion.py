"""The view of fusion, compared with `explain`, `source`, and the results of the functions."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

import minifuse as mf
from minifuse.core.layout import row_major
from minifuse.inspect.explanation import GraphNodeFacts
from project.views import functions, fusion, fusion_steps
from project.views.function_parts import FunctionParts
from project.views.fusion_graph import computing_kernels, memory_names, shorten_sentence
from project.views.fusion_passes import merge_reads
from project.views.picture import CHOSEN, KINDS, LOAD, MAX_NBYTES, OTHER, STORE, WRONG, Picture

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


def example_parts(name: str, rows: int = 8, backend: str = "parallel") -> FunctionParts:
    """Return the parts of the example with this name."""
    return fusion.split_function(functions.find_example(name, functions.FUSED), rows, backend)


def grids_by_name(drawn: Picture) -> dict:
    """Return the grids of a picture by name."""
    return {grid.name: grid for grid in drawn.grids}


def test_example_functions_have_the_expected_kernel_counts():
    assert {example.name: len(example_parts(example.name).parts) for example in functions.FUSED} == COUNTS


@pytest.mark.sampled(3, each="example")
@EACH
@pytest.mark.parametrize("backend", fusion.BACKENDS)
@pytest.mark.parametrize("rows", [1, 33])
def test_picture_agrees_with_explain(example, backend, rows):
    found = fusion.split_function(example, rows, backend)
    drawn = fusion.picture(found)
    graph, bars = grids_by_name(drawn)["graph"], grids_by_name(drawn)["bytes"]
    places = {cell.links[0]: ("graph", cell.row, cell.column) for cell in graph.cells}
    assert len(graph.cells) == len(found.explained.nodes)
    assert {(e.start, e.end) for e in drawn.edges} == {
        (places[f"g{j}"], places[f"g{k}"]) for k, inputs in enumerate(found.reads) for j in inputs
    }
    assert {cell.links[0] for cell in graph.cells if cell.kind == LOAD} == {f"g{k}" for k in found.inputs}
    assert {cell.links[0] for cell in graph.cells if cell.kind == STORE} == {
        f"g{k}" for k in found.stored - found.inputs - found.free
    }
    assert len(found.parts) == len(found.explained.forward.kernels)
    for parts, kernel in zip(found.parts, found.explained.forward.kernels, strict=True):
        assert {part.memory for part in parts if part.kind == LOAD} >= {x.name for x in kernel.reads}
        assert [part.memory for part in parts if part.kind == STORE] == [x.name for x in kernel.writes]
    moved = found.explained.unfused.nbytes, found.explained.forward.nbytes
    for row, nbytes in enumerate(moved):
        cells = [cell for cell in bars.cells if cell.row == row]
        assert abs(len(cells) - fusion.BAR * nbytes / max(moved)) <= 1
        assert fusion.format_bytes(nbytes) in bars.row_names[row]
        assert fusion.format_bytes(nbytes) in cells[0].label


@EACH
@pytest.mark.parametrize("backend", fusion.BACKENDS)
def test_outlines_hold_the_nodes_of_each_kernel(example, backend):
    found = fusion.split_function(example, 33, backend)
    drawn = fusion.picture(found)
    node_at = {(cell.row, cell.column): int(cell.links[0][1:]) for cell in grids_by_name(drawn)["graph"].cells}
    for k, frame in enumerate(drawn.frames[1 : 1 + len(found.parts)]):
        for hull in frame.hulls:
            kernel, inside = int(hull.text.removeprefix("launch")), {node_at[place[1:]] for place in hull.around}
            assert inside - found.free == set(fusion.kernel_nodes(found, kernel)) - found.free
            assert hull.start in hull.around
            assert (hull.kind == CHOSEN) == (kernel == k)
            for view in inside & found.free:  # a view inside is read in the kernel and views nothing else
                assert set(found.reads[view]) <= inside
                assert any(view in found.reads[n] for n in inside)
        assert {hull.text for hull in frame.hulls} == {
            f"launch{j}" for j in range(len(found.parts)) if fusion.kernel_nodes(found, j)
        }


@EACH
@pytest.mark.parametrize("backend", fusion.BACKENDS)
def test_arrows_of_a_kernel_begin_at_what_it_loads(example, backend):
    found = fusion.split_function(example, 33, backend)
    drawn = fusion.picture(found)
    node_at = {(cell.row, cell.column): int(cell.links[0][1:]) for cell in grids_by_name(drawn)["graph"].cells}
    names = memory_names(found) | {found.explained.nodes[k].name: f"%{k}" for k in found.inputs}
    for k, frame in enumerate(drawn.frames[1 : 1 + len(found.parts)]):
        ends = [(node_at[e.start[1:]], node_at[e.end[1:]]) for e in frame.edges]
        assert all(start in found.reads[end] for start, end in ends)
        starts = {f"%{start}" for start, _ in ends if start not in found.free}
        computed = {f"%{n}" for n in fusion.kernel_nodes(found, k)}
        loaded = {names.get(part.memory) for part in found.parts[k] if part.kind == LOAD}
        if computed and None not in loaded and not loaded & computed and "clone" not in str(found.explained.nodes):
            assert starts == loaded, (k, frame.sentence)


@EACH
@pytest.mark.parametrize("play", fusion.PLAYS)
def test_lit_lines_are_lines_of_operations(example, play):
    found = fusion.split_function(example, 8, "parallel")
    lines = {int(node.line.rpartition(":")[2]) for node in found.explained.nodes if node.line}
    lit = {frame.line for frame in fusion.picture(found, play).frames}
    assert lit - {None} <= lines
    assert lit - {None}
    joined = {link for cell in grids_by_name(fusion.picture(found))["graph"].cells for link in cell.links}
    assert {link for link in joined if link.startswith("line ")} == {f"line {line}" for line in lines}


def split_passes(found: FunctionParts) -> list:
    """Return (pass, its frames) for each pass that changes something; the last frame shows the graph after it."""
    begin, *frames = fusion.picture(found, "pass by pass").frames
    changed = [x for x in found.explained.passes if x.changes]
    assert f"{len(changed)} of {len(found.explained.passes)} passes" in begin.sentence
    of_pass = [(x, [frame for frame in frames if frame.sentence.startswith(f"{x.name}: ")]) for x in changed]
    assert [frame for _, parts in of_pass for frame in parts] == frames
    return of_pass


@EACH
@pytest.mark.parametrize("backend", fusion.BACKENDS)
def test_each_pass_shows_the_graph_after_it(example, backend):
    found = fusion.split_function(example, 64, backend)
    drawn = fusion.picture(found, "pass by pass")
    link_at = {("graph", c.row, c.column): c.links[0] for c in grids_by_name(drawn)["graph"].cells}
    before = found.explained.captured
    for x, frames in split_passes(found):
        frame, after = frames[-1], {node.name: node for node in x.nodes}
        link = {name: f"g{found.named[name]}" if name in found.named else name for name in after}
        kinds = dict(frame.kinds)
        gone = {node.name for node in before} - after.keys()
        operations = {node.name: node.operation for node in before}
        assert {k for k, kind in kinds.items() if kind == WRONG} == {
            f"g{found.named[name]}" if name in found.named else name for name in gone
        }
        assert {k for k, kind in kinds.items() if kind == CHOSEN} == {
            link[name] for name, node in after.items() if operations.get(name) != node.operation
        }
        assert {(link_at[e.start], link_at[e.end]) for e in frame.edges} == {
            (link[j], link[name]) for name, node in after.items() for j in node.reads
        }
        assert {*kinds} | {k for k, text in frame.texts if text == ""} == {*link_at.values()}
        inside = {hull.text: {link_at[place] for place in hull.around} for hull in frame.hulls}
        computed = {k for node in x.nodes for k in node.kernels if not node.is_free}
        assert {int(text[6:]) for text in inside} == computed
        for text, nodes in inside.items():
            known = {link[name] for name, node in after.items() if int(text[6:]) in node.kernels}
            assert nodes <= known
            assert nodes >= {link[node.name] for node in x.nodes if link[node.name] in known and not node.is_free}
        before = x.nodes
    assert all(text.startswith("launch") for text in inside)


@EACH
@pytest.mark.parametrize("backend", fusion.BACKENDS)
def test_last_pass_ends_with_the_kernels_of_the_plan(example, backend):
    """The kernels of nodes follow from buffers; those of the plan were found by comparing expressions."""
    found = fusion.split_function(example, 33, backend)
    last = [x for x in found.explained.passes if x.nodes][-1]
    for k in range(len(found.parts)):
        mine = {found.named[x.name] for x in last.nodes if k in x.kernels and not x.is_free and x.name in found.named}
        assert mine == set(fusion.kernel_nodes(found, k)) - found.free
    assert {x.name for x in last.nodes if x.operation == "input"} == {found.explained.nodes[k].name for k in found.inputs}


@EACH
def test_kernels_grow_node_by_node_until_they_are_those_of_the_pass(example):
    found = fusion.split_function(example, 64, "parallel")
    formed, frames = next((x, frames) for x, frames in split_passes(found) if x.name == "form_kernels")
    assert len(frames) == max(len(formed.growth), 1)
    groups = set[tuple[str, ...]]()
    for members in formed.growth:
        groups = {group for group in groups if not {*group} & {*members}} | {members}
    placed = {name for group in groups for name in group}
    assert all(formed.growth.count(x) == 1 for x in formed.growth)
    if formed.growth:
        grown = {frozenset(k for node in formed.nodes if node.name == name for k in node.kernels) for name in placed}
        assert {k for kernels in grown for k in kernels} == {k for node in formed.nodes for k in node.kernels}
    for members, frame in zip(formed.growth, frames[:-1], strict=False):
        assert f" {members[-1]} " in frame.sentence
        assert [hull.kind for hull in frame.hulls].count(CHOSEN) == 1


def test_softmax_grows_from_its_maximum():
    frames = {x.name: parts for x, parts in split_passes(example_parts("softmax", 64))}
    assert [frame.sentence for frame in frames["form_kernels"][:-1]] == [
        "form_kernels: max0 begins a kernel.",
        "form_kernels: sum0 joins the kernel of max0.",
    ]
    sizes = [len(frame.hulls[0].around) for frame in frames["form_kernels"]]
    assert sizes == [1, 5, 7]


@EACH
@pytest.mark.parametrize("play", fusion.PLAYS)
def test_sentences_are_short(example, play):
    drawn = fusion.picture(fusion.split_function(example, 64, "parallel"), play)
    assert [frame.sentence for frame in drawn.frames if len(frame.sentence) > 120] == []


def test_a_node_that_passes_exchange_has_one_place():
    def graph(**reads):
        return {k: GraphNodeFacts(k, "", v, (), "float32", False, False, ()) for k, v in reads.items()}

    merged = merge_reads([graph(a=(), b=("a",), c=("b",)), graph(a=(), c=("a",), b=("c",))])
    order = [*merged]
    assert {*order} == {"a", "b", "c"}
    assert all(order.index(x) < order.index(name) for name, inputs in merged.items() for x in inputs)


@pytest.mark.sampled(3, each="example")
@EACH
@pytest.mark.parametrize("backend", fusion.BACKENDS)
@pytest.mark.parametrize("rows", [1, 33, 1024])
def test_each_operation_belongs_to_a_kernel(example, backend, rows):
    if rows == 1024 and backend == "python":
        rows = 256
    found = fusion.split_function(example, rows, backend)
    for k, node in enumerate(found.explained.nodes):
        if k not in found.free | found.inputs and "clone" not in node.operation:
            assert computing_kernels(found, k), node
    assert all(len(part.nodes) <= 1 for parts in found.parts for part in parts)  # each part is assigned to at most one node


@EACH
def test_kernel_parts_read_the_inputs_of_their_nodes(example):
    """Views and numbers are skipped."""
    found = fusion.split_function(example, 8, "parallel")

    def under(k: int) -> set[int]:
        return {k} if k not in found.free else set().union(*map(under, found.reads[k]))

    for parts in found.parts:
        for part in parts:
            for n in part.nodes:
                expected = set().union(*map(under, found.reads[n])) if found.reads[n] else set()
                for below in (parts[j] for j in part.reads):
                    assert not below.nodes or expected & set(below.nodes), (n, below)


def test_row_reductions_are_computed_in_one_kernel():
    found = example_parts("layer norm")
    sums = [k for k, node in enumerate(found.explained.nodes) if node.operation.startswith("sum")]
    assert len(sums) == 2
    assert all(computing_kernels(found, k) == [0] for k in sums)


def test_reductions_along_two_dims_are_distinguished():
    found = example_parts("rows and columns", 64)
    columns, rows = (
        next(k for k, node in enumerate(found.explained.nodes) if node.operation == f"sum(%0, dim={d})") for d in (0, 1)
    )
    assert computing_kernels(found, columns) == [1]
    assert computing_kernels(found, rows) == [0]
    assert found.stored == {rows, len(found.reads) - 1}


def test_attention_stores_the_product_but_not_its_scaling():
    found = example_parts("attention")
    product = next(k for k, node in enumerate(found.explained.nodes) if " @ " in node.operation)
    assert computing_kernels(found, product) == [0]
    stored = [found.explained.nodes[k].operation for k in sorted(found.stored)]
    assert len(stored) == 2
    assert "a row reduction needs complete rows" in fusion.picture(found).frames[-1].sentence


def test_a_kernel_names_what_the_kernel_before_it_stored():
    found = example_parts("attention")
    stored, read = (frame.sentence for frame in fusion.picture(found).frames[1:3])
    assert "writes %3;" in stored
    assert read.startswith("launch1 reads %3 and writes")


def test_graph_links_join_inputs_and_readers():
    found = example_parts("layer norm")
    cells = grids_by_name(fusion.picture(found))["graph"].cells
    for k, inputs in enumerate(found.reads):
        links = {link for link in cells[k].links if not link.startswith("line ")}
        joined = {j for j, other in enumerate(cells) if links.intersection(other.links) and j != k}
        outward = {j for j, reads in enumerate(found.reads) if k in reads}
        assert joined == set(inputs) | outward


@EACH
def test_refused_merges_are_marked_from_producer_to_consumers(example):
    found = fusion.split_function(example, 64, "parallel")
    drawn = fusion.picture(found)
    frames = drawn.frames[1 + len(found.parts) :]
    node_at = {(cell.row, cell.column): int(cell.links[0][1:]) for cell in grids_by_name(drawn)["graph"].cells}
    marked = set[tuple[int, int, str]]()
    for frame in frames:
        producer, *consumers = [int(link[1:]) for link, kind in frame.kinds if kind == OTHER]
        marked |= {(producer, consumer, frame.sentence.partition(": ")[2].rstrip(".")) for consumer in consumers}
        ends = [(node_at[e.start[1:]], node_at[e.end[1:]]) for e in frame.edges]
        assert {e.kind for e in frame.edges} == {OTHER}
        assert ends[0][0] == producer
        assert {end for _, end in ends} >= set(consumers)
        assert all(start in found.reads[end] or (start, end) == (producer, consumers[0]) for start, end in ends)
    assert marked == {
        (fusion.node_number(x.producer), fusion.node_number(x.consumer), x.reason) for x in found.explained.refusals
    }


@EACH
def test_facts_compare_unfused_and_fused_kernels(example):
    found = fusion.split_function(example, 33, "parallel")
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
def test_fused_and_unfused_examples_agree(example):
    arrays = example.arrays(5, "float64")
    inputs = [[mf.tensor(array.copy()) for array in arrays] for _ in range(2)]
    results = [f(*xs) for f, xs in zip((example.function, mf.fuse(example.function)), inputs, strict=True)]
    if results[0] is None:  # in place
        results = [xs[0] for xs in inputs]
        assert not np.array_equal(results[0].numpy(), arrays[0])
    np.testing.assert_allclose(results[1].numpy(), results[0].numpy(), rtol=1e-12)


def test_function_lines_are_those_of_the_file():
    found = example_parts("layer norm")
    text = Path(functions.__file__).read_text(encoding="utf-8").splitlines()
    lines = fusion.function_lines(found)
    assert lines[0].text.startswith("def layer_norm")
    assert all(text[line.number - 1] == line.text for line in lines)
    counts = {line.text.strip(): dict(line.counts).get("ops", 0) for line in lines}
    assert counts["centred = x - x.mean(1, keepdim=True)"] == 3  # a sum, a quotient, a difference


@pytest.mark.parametrize(("backend", "words"), [("python", "python"), ("parallel", "def kernel"), ("cuda", "cuda.")])
def test_generated_source_is_that_of_the_backend(backend, words):
    found = example_parts("softmax", 8, backend)
    text = "\n".join(line.text for line in fusion.generated_lines(found))
    assert text == found.source.rstrip("\n")
    assert words in text


def test_frames_show_one_kernel_each():
    found = example_parts("attention")
    drawn = fusion.picture(found)
    links = {link for grid in drawn.grids for cell in grid.cells for link in cell.links}
    assert all(link in links for frame in drawn.frames for link, _ in frame.kinds)
    assert [frame.sentence[:7] for frame in drawn.frames[1:3]] == ["launch0", "launch1"]
    assert dict(map(reversed, drawn.frames[1].numbers))["kernels"] == "3 → 2"


# Step by step.


def replay_steps(found: FunctionParts) -> fusion_steps.Progress:
    """Apply all fusion decisions, and return the state after them."""
    now = fusion_steps.Progress()
    for step in found.explained.steps:
        now.apply(step)
    return now


def assert_steps_reach_kernels(found: FunctionParts) -> None:
    """Check that the decisions result in the kernels, stored values and refusals of the explanation."""
    now, nothing = replay_steps(found), found.free
    assert [set(inside) for inside in now.computed] == [{n for part in parts for n in part.nodes} for parts in found.parts]
    assert {k for values in now.stored for k in values} - nothing == found.stored - nothing
    assert not now.open
    assert len(now.refused) == len(found.explained.refusals)
    for ends, no in zip(now.refused, found.explained.refusals, strict=True):
        assert [f"%{k}" for k in ends] == [value.partition(" = ")[0] for value in (no.producer, no.consumer)]


@pytest.mark.sampled(3, each="example")
@EACH
@pytest.mark.parametrize("backend", fusion.BACKENDS)
@pytest.mark.parametrize("rows", [1, 8, 256])
def test_replayed_decisions_reach_the_kernels(example, backend, rows):
    assert_steps_reach_kernels(fusion.split_function(example, rows, backend))


@EACH
def test_each_fusion_decision_has_a_frame(example):
    found = fusion.split_function(example, 33, "parallel")
    drawn = fusion.picture(found, "step by step")
    first, *between, last = drawn.frames
    cells = {cell.links[0]: cell for grid in drawn.grids for cell in grid.cells}
    operations = {f"g{k}" for k in range(len(found.reads)) if k not in found.free | found.inputs}
    assert len(between) == len(found.explained.steps)
    for frame, step in zip(between, found.explained.steps, strict=True):
        assert frame.sentence == shorten_sentence(fusion_steps.sentence(found, step))
        assert step.text.startswith(frame.sentence[:-1]) or frame.sentence.startswith(step.text)
    assert all(link in cells and kind in KINDS for frame in drawn.frames for link, kind in frame.kinds)
    looks = dict(first.kinds)
    assert {link for link in looks if link.startswith("g")} == operations, "each operation is a kernel"
    assert {looks[link] for link in operations} == {STORE}
    assert looks.keys() == operations
    assert not first.hulls
    assert f"{len(operations)} operation" in first.sentence
    assert not last.kinds, "the final kernels"
    rows = fusion_steps.rows(found)
    assert [(row["step"], shorten_sentence(row["in words"])) for row in rows] == [
        (str(k), frame.sentence) for k, frame in enumerate(between, 2)
    ]
    assert all(
        (row["kernel"] == "given up") == (row["decision"] == "again") for row in rows if row["decision"] in ("again", "made")
    )
    assert STORE not in dict(between[-1].kinds).values()
    assert {hull.text for hull in last.hulls} == {
        f"launch{k}" for k in range(len(found.parts)) if fusion.kernel_nodes(found, k)
    }


def test_frames_highlight_the_kernel_under_construction():
    found = example_parts("attention")
    drawn = fusion.picture(found, "step by step")
    looks = {frame.sentence: dict(frame.kinds) for frame in drawn.frames}
    refused = next(kinds for sentence, kinds in looks.items() if "is not fused into %12" in sentence)
    assert refused["g3"] == refused["g12"] == OTHER
    assert refused["g4"] == STORE, "no kernel computes %4 yet"
    begun = next(kinds for sentence, kinds in looks.items() if sentence.startswith("launch1 computes %4"))
    assert (begun["g4"], begun["g5"]) == (CHOSEN, STORE)
    hulls = next(frame.hulls for frame in drawn.frames if frame.sentence.startswith("launch1 reduces its rows"))
    assert [(hull.text, hull.kind, len(hull.around)) for hull in hulls] == [("launch0", "", 1), ("", CHOSEN, 2)]
    moved = fusion.format_bytes(found.explained.forward.kernels[0].nbytes)
    assert f"launch0 is complete, and stores %3 = %0 @ %2. It moves {moved}." in looks


@pytest.mark.parametrize("rows", fusion.SIZES)
def test_steps_fit_the_size_limit_of_pictures(rows):
    for example in functions.FUSED:
        data = fusion.picture(fusion.split_function(example, rows, "cuda"), "step by step").as_data()
        assert len(str(data)) < MAX_NBYTES / 8


def test_explaining_a_function_compiles_nothing():
    before = mf.cache.stats()
    fusion.split_function(
        functions.Example("fresh", lambda x, w: mf.exp(x * 1.7531) @ w, (("n", "n"),) * 2, ""), 8, "parallel"
    )
    after = mf.cache.stats()
    assert (after.compiled, after.in_memory) == (before.compiled, before.in_memory)


def test_label_of_a_chosen_cell_is_the_first_fact():
    found = example_parts("attention")
    cell = grids_by_name(fusion.picture(found))["graph"].cells[4]
    assert fusion.facts(found, cell.links[0])[0].value == cell.label
    assert fusion.facts(found, "gone")[0].name == "kernels"


@pytest.mark.parametrize("shapes", [((0, 3),), ((1,),), ((),), ((1, 1),)])
def test_empty_and_single_arguments_draw(shapes):
    example = functions.Example("shifted", lambda x: (x - x.max()).exp() if x.size else x + 1, shapes, "")
    found = fusion.split_function(example, 1, "parallel")
    assert fusion.picture(found).as_data()["sentence"]
    assert found.explained.nodes[0].shape == shapes[0]


@settings(derandomize=True, max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["exp", "sum", "T", "neg", "double", "square"]), min_size=1, max_size=8), st.integers(1, 9))
def test_random_chains_are_drawn_completely(steps, rows):
    def chain(x):
        for step in steps:
            if step == "sum":
                x = x - x.sum(0, keepdim=True)
            else:
                x = {"exp": x.exp, "neg": x.__neg__, "T": lambda x=x: x.T}.get(step, lambda x=x: x)()
                x = x * 2 if step == "double" else x * x if step == "square" else x
        return x + 1

    example = functions.Example("chain", chain, (("n", "2n"),), "")
    found = fusion.split_function(example, rows, "parallel")
    for k in range(len(found.reads)):
        assert k in found.free | found.inputs or computing_kernels(found, k)
    assert_steps_reach_kernels(found)
    assert sum(part.kind == STORE for parts in found.parts for part in parts) == len(found.stored)
    assert row_major((rows, 2 * rows)).size * 4 <= found.explained.forward.nbytes


def open_page() -> AppTest:
    """Open the page."""

    def app():
        from project.screens.fusion import page

        page()

    return AppTest.from_function(app, default_timeout=30).run()


def test_page_shows_the_graph_after_each_pass():
    at = open_page()
    at.selectbox(key="fusion_function").select("attention").run()
    passes = example_parts("attention", 64).explained.passes
    changed = [x for x in passes if x.changes]
    assert {"decompose", "form_kernels", "emit_steps"} <= {x.name for x in changed}
    (found,) = (x for x in at.expander if x.label == "After each pass")
    assert [block.value for block in found.code] == ["\n".join(x.changes) for x in changed]
    texts = [block.value for block in found.markdown][1:]
    assert texts == [f"**{x.name}**: {x.summary}{'' if x.changes else ' *No change.*'}" for x in passes]


def test_page_draws_for_each_control_value():
    at = open_page()
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
            block.value.startswith("minifuse explain ")
            and ("--steps" in block.value) == (play == fusion.PLAYS[1])
            and "--passes" in block.value
            for block in at.code
        )
    at.select_slider(key="fusion_size").set_value(1).run()
    assert not at.exception
    assert any("2 kernels" in block.value or "def run" in block.value for block in at.code)
