"""simt/trace_html.py and simt/request_picture.py: a trace in a notebook."""

import numpy as np
import pytest

from minifuse import simt
from minifuse.simt import cuda
from minifuse.simt.request_picture import place_in_banks, place_in_sectors, request_accesses
from minifuse.simt.trace_html import first_requests
from tests.well_formed import Document

MAX_CHARACTERS = 120_000


def copy(out, a, stride):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[stride * i]


def strided(stride, count=32, dtype=np.float32):
    return simt.trace(copy, 1, 32, np.zeros(count, dtype), np.zeros(32 * max(stride, 1), dtype), stride)


def shared(columns, dtype="float32"):
    def transpose(out):
        tile = cuda.shared.array((32, columns), dtype)
        t = cuda.threadIdx.x
        for row in range(32):
            tile[row, t] = row
        cuda.syncthreads()
        out[t] = tile[t, 3]

    return simt.trace(transpose, 1, 32, np.zeros(32, dtype))


def racy(out):
    out[0] = cuda.threadIdx.x


@pytest.mark.parametrize(
    "trace", [strided(1), strided(2), strided(32), shared(32), shared(33), shared(32, "float64")], ids=repr
)
def test_a_picture_has_as_many_sectors_or_passes_as_the_metrics(trace):
    requests = trace.requests()
    for row in range(len(requests.block)):
        accesses = request_accesses(trace.events, requests, row)
        assert len(accesses) == requests.lanes[row]
        if trace.arrays[requests.array[row]].space == "shared":
            assert max(x.row for x in place_in_banks(accesses)) + 1 == requests.wavefronts[row]
        else:
            placed, number = place_in_sectors(accesses)
            assert len(number) == requests.sectors[row]
            assert [x.access.lane for x in placed] == sorted(x.lane for x in accesses)


def test_each_access_of_the_source_is_a_step():
    trace = shared(32)
    document = Document(trace._repr_html_())
    assert document.count("svg") == len(first_requests(trace.requests())) == 3
    steps = [found for tag, found in document.elements if tag == "details"]
    assert ["open" in found for found in steps] == [True, False, False]
    assert len({found["name"] for found in steps}) == 1
    assert "loads tile: 32 lanes, 128 bytes, 32 passes over the banks (ideal 1)" in document.text("summary")


def test_the_numbers_are_those_of_the_summary():
    trace = strided(2)
    cells = [text for path, text in Document(trace._repr_html_()).texts if path.endswith("/td")]
    facts = trace.summary()
    wanted = [
        f"{row[label][name]:,}"
        for row in (*facts["arrays"], *facts["lines"])
        for label, name in (
            ("TRACED", "loads"), ("TRACED", "stores"), ("DERIVED", "requests"), ("DERIVED", "sectors"),
            ("DERIVED", "ideal_sectors"),
        )
    ]  # fmt: skip
    assert cells == wanted


def test_the_source_of_each_line_is_shown():
    assert "out[i] = a[stride * i]" in Document(strided(2)._repr_html_()).text("code")


def test_idle_lanes_are_not_numbered():
    texts = [text for path, text in Document(strided(1, count=5)._repr_html_()).texts if path.endswith("svg/text")]
    assert [text for text in texts if text.isdigit()] == ["0", "1", "2", "3", "4"] * 2


def test_lanes_that_share_an_element_are_shown_at_one_place():
    document = Document(strided(0)._repr_html_())
    assert "lanes " + ", ".join(map(str, range(32))) in document.text("title")
    assert "0+" in document.text("g")


def test_hazards_are_listed():
    trace = simt.trace(racy, 1, 32, np.zeros(1, np.int64))
    document = Document(trace._repr_html_())
    assert len(trace.hazards()) == 1
    assert str(trace.hazards()[0]) in document.text()
    assert "1 hazard" in document.text("summary")
    assert "no hazards" in Document(strided(1)._repr_html_()).text()


def test_a_trace_without_accesses_has_no_pictures():
    document = Document(simt.trace(lambda: None, 1, 32)._repr_html_())
    assert document.count("svg") == 0


def test_hostile_names_are_escaped():
    namespace = {"cuda": cuda}
    exec(compile("def kernel(out):\n    out[cuda.threadIdx.x] = 1\n", "<b>file</b>.py", "exec"), namespace)
    trace = simt.trace(namespace["kernel"], 1, 4, np.zeros(4))
    assert "of b>.py" in Document(trace._repr_html_()).text("code")


def test_many_accesses_have_bounded_html():
    lines = "\n".join(f"    out[t + {k}] = a[t * {k}]" for k in range(200))
    namespace = {"cuda": cuda}
    exec(f"def kernel(out, a):\n    t = cuda.threadIdx.x\n{lines}\n", namespace)
    trace = simt.trace(namespace["kernel"], 1, 32, np.zeros(300), np.zeros(32 * 200))
    document = Document(trace._repr_html_())
    assert len(document.source) < MAX_CHARACTERS
    assert "and 160 more" in document.text()
    assert "and 388 more accesses" in document.text()


def test_a_loaded_trace_looks_the_same(tmp_path):
    trace = strided(2)
    trace.save(tmp_path / "trace.npz")
    assert simt.load(tmp_path / "trace.npz")._repr_html_() == trace._repr_html_()
