"""Curves, charts and the roofline, computed from invented results."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from project.benchmarks import __main__ as command
from project.benchmarks import (
    chart,
    curves,
    machine_peaks,
    pictures,
    report,
    roofline,
    terminal,
)
from project.benchmarks.chart import Axis, Chart, Curve, power_of_ten, power_of_two
from project.benchmarks.row import US, formula, normal
from project.benchmarks.run import run


def quartiles(x):
    return {"median": x, "q1": 0.9 * x, "q3": 1.1 * x}


def row(curve, size, group="sweeps", counts=(), **times):
    """Return a row of a curve. In names of players, _ stands for a space."""
    of = {who.replace("_", " "): quartiles(x) for who, x in times.items()}
    ratios = {who: quartiles(x["median"] / of[US]["median"]) for who, x in of.items() if who != US}
    common = {"counts": dict(counts), "targets": [], "load": 1.0, "errors": {}, "rounds": 5, "calls": {}}
    return {
        "group": group,
        "name": f"{curve}, {size}",
        "curve": curve,
        "size": size,
        "times": of,
        "ratios": ratios,
        **common,
    }


def results(*rows, **rest):
    machine = {
        "processor": "P",
        "microarchitecture": "any",
        "cores": 2,
        "vector_features": [],
        "memory_gib": 1.0,
        "system": "L",
    }
    head = {"date": "2026-11-22T10:00:00", "machine": machine, "versions": {"python": "3"}, "threads": {}, "missing": {}}
    return {**head, "load": {"before": None, "after": None}, "quick": False, "rows": list(rows), **rest}


SWEPT = results(
    row("a + b", 1 << 8, minifuse=2e-6, numpy=1e-6, torch=4e-6, jax=1e-6),
    row("a + b", 1 << 12, minifuse=2e-6, numpy=4e-6, torch=4e-6, jax=1e-6),
    row("a + b", 1 << 16, minifuse=8e-6, numpy=6e-5, torch=9e-6, jax=1e-6),
    row("exp(x)", 1 << 8, minifuse=1e-6, numpy=2e-6),
)


def test_rows_of_a_curve_are_grouped():
    first, second = curves.curves_of(SWEPT)
    assert (first.title, second.title) == ("a + b", "exp(x)")
    assert first.players["numpy"] == {256: 1e-6, 4096: 4e-6, 65536: 6e-5}
    assert first.is_of_sizes


def test_sentences_name_crossings_and_the_cost_of_a_call():
    first, second = curves.curves_of(SWEPT)
    assert curves.sentences(first) == [
        "a call of minifuse takes 2.00 us at least; it takes twice as long at 2^14 (16,000) elements",
        "minifuse is faster from 2^10 (1,000) elements on: than numpy",
        "minifuse is faster at all sizes: than torch",
        "minifuse is slower at the largest sizes: than jax",
    ]
    assert curves.sentences(second) == [
        "a call of minifuse takes 1.00 us at least",
        "minifuse is faster at all sizes: than numpy",
    ]


@pytest.mark.parametrize(
    ("ours", "theirs", "size"),
    [
        ({1: 1.0, 4: 1.0}, {1: 2.0, 4: 2.0}, 0),
        ({1: 2.0, 4: 1.0}, {1: 1.0, 4: 2.0}, 2),
        ({1: 2.0, 4: 1.0, 16: 3.0}, {1: 1.0, 4: 2.0, 16: 1.0}, None),
        ({1: 1.0, 4: 3.0, 16: 1.0}, {1: 2.0, 4: 1.0, 16: 3.0}, 8),
        ({1: 2.0, 4: 1.0, 16: 1.0}, {1: 1.0, 4: 2.0}, 2),
    ],
)
def test_crossing_size_is_interpolated(ours, theirs, size):
    assert curves.faster_from(ours, theirs) == (size if size is None else pytest.approx(size))


def test_curve_tables_have_a_row_per_size():
    costs = results(
        row("capture", 10, "costs-length", {"kernels": 1}, minifuse=1e-3),
        row("capture", 100, "costs-length", {"kernels": 2}, minifuse=5e-3, **{"ten_of_a_tenth": 1e-2}),
    )
    (table,) = report.tables(costs)
    assert table.header == ["", US, "ten of a tenth", "kernels"]
    assert table.rows == [["10", "1.00 ms", "", "1"], ["100", "5.00 ms", "10.0 ms", "2"]]
    assert table.notes == ["for each operator: 100 us of 10, 50.0 us of 100"]
    first, _ = report.tables(SWEPT)
    assert [line[0] for line in first.rows] == ["2^8", "2^12", "2^16"]
    assert first.notes[0].startswith("a call of minifuse")


# Charts.

AXES = Axis("elements", 2, power_of_two), Axis("seconds", 10, power_of_ten)
DIAGONAL = Chart("all", *AXES, (Curve("one", ((1, 1), (4, 10), (16, 100))), Curve("two", ((1, 100), (16, 1)))))


def test_points_have_logarithmic_positions():
    assert DIAGONAL.limits() == ((0, 4), (0, 2))
    assert DIAGONAL.places([(1, 1), (4, 10), (16, 100)]) == [(0, 0), (0.5, 0.5), (1, 1)]


def test_text_chart_has_points_and_axis_labels():
    lines = chart.text(DIAGONAL, 40, rows=5).split("\n")
    assert max(map(len, lines)) <= 40
    field = [line[chart.MARGIN :] for line in lines[:5]]
    assert field[0] == "x" + " " * 26 + "o"
    assert field[2] == " " * 14 + "o"
    assert field[4] == "o" + " " * 26 + "x"
    assert [line[: chart.MARGIN].strip(" |") for line in lines[:5]] == ["100", "", "10", "", "1"]
    assert lines[6].split() == ["2^0", "2^1", "2^2", "2^3", "2^4"]


def test_svg_is_well_formed_with_a_title_per_dot():
    root = ElementTree.fromstring(chart.svg([DIAGONAL, DIAGONAL]))
    name = "{http://www.w3.org/2000/svg}"
    assert len(list(root.iter(f"{name}polyline"))) == 4
    dots = list(root.iter(f"{name}circle"))
    assert sorted({dot.find(f"{name}title").text for dot in dots}) == ["one", "two"]
    assert len(dots) == 10
    width, height = (float(root.get(side)) for side in ("width", "height"))
    for dot in dots:
        assert 0 < float(dot.get("cx")) < width
        assert 0 < float(dot.get("cy")) < height


def test_run_is_drawn_to_a_file(tmp_path, capsys):
    command.draw(tmp_path / "run.svg", SWEPT)
    assert (tmp_path / "run.svg").read_text() == pictures.draw_charts(SWEPT)
    assert pictures.draw_charts(SWEPT).count("<g ") == 2
    command.draw(tmp_path / "none.svg", results())
    assert not (tmp_path / "none.svg").exists()
    assert "no picture" in capsys.readouterr().err


def test_players_have_one_color_in_all_charts():
    other = Chart("other", *AXES, (Curve("two", ((1, 1), (2, 2))),))
    text = chart.svg([DIAGONAL, other])
    colours = set(re.findall(r'fill="(#\w+)"><title>two', text))
    assert colours == {chart.COLOURS[1]}


# The roofline.


def roofline_row(name, operations, nbytes, seconds, group="large"):
    of = row("", 1, group, minifuse=seconds) | {"name": name, "work": {"operations": operations, "nbytes": nbytes}}
    return {key: value for key, value in of.items() if key not in ("curve", "size")}


ROOFED = results(
    roofline_row("a + b", 1 << 24, 3 << 26, 2e-2),
    roofline_row("a @ b", 1 << 31, 3 << 22, 2e-2, "matmul"),
    roofline_row("small", 1 << 10, 3 << 12, 1e-6),
    roofs={"copy_gb_per_s": 20.0, "fma_gflop_per_s": 200.0},
)


def test_roofline_share_is_limited_by_bytes_or_arithmetic():
    first, second = roofline.dots_of(ROOFED)
    assert (first.name, second.name) == ("a + b", "a @ b")
    assert first.intensity == pytest.approx(1 / 12)
    assert first.gflops == pytest.approx((1 << 24) / 2e-2 / 1e9)
    assert first.share == pytest.approx(first.gflops / (20 / 12))
    assert second.share == pytest.approx((1 << 31) / 2e-2 / 1e9 / 200)


def test_processor_roofline_is_measured():
    results = machine_peaks.measure_peaks(is_on_gpu=False)
    assert set(results) == {"copy_gb_per_s", "fma_gflop_per_s"}
    assert min(results.values()) > 0


def test_gpu_peak_kernel_computes_in_registers():
    cuda = pytest.importorskip("numba.cuda")
    numba = pytest.importorskip("numba")
    signature = (numba.float32[::1], numba.float32, numba.float32, numba.int64)
    text, _ = cuda.compile_ptx(machine_peaks.multiply_add_kernel().py_func, signature, cc=(9, 0))
    loops = [loop.count("fma.rn.f32") for loop in re.findall(r"\$L__BB\w+:.*?bra[^;]*;", text, re.DOTALL)]
    assert max(loops) % machine_peaks.CHAINS == 0 < max(loops)
    assert text.count("ld.global") == 0
    assert text.count("st.global") == 1


def test_failed_roofline_measurement_keeps_the_rows(monkeypatch, capsys):
    def breaks(is_on_gpu):
        raise RuntimeError("no kernel")

    monkeypatch.setattr(machine_peaks, "measure_peaks", breaks)
    result = run([formula("r", "g", normal((5,)), lambda a: a * 2)], {"numpy": np}, {}, seed=0, is_quick=True)
    assert "wrong" not in result["rows"][0]
    assert "roofs" not in result
    assert "no kernel" in capsys.readouterr().err


def test_no_roofline_no_picture():
    assert roofline.chart_of(results(roofline_row("a + b", 1 << 24, 3 << 26, 2e-2))) is None
    assert terminal.under_the_roof(results(), 80) == ""
    assert pictures.draw_charts(results()) == ""


def test_roofline_fits_a_terminal_and_names_its_rows():
    text = terminal.under_the_roof(ROOFED, 80)
    assert max(map(len, text.split("\n"))) <= 80
    assert "a copy moves 20 GB/s, registers do 200 GFLOP/s" in text
    assert re.search(r"^o  large a \+ b +0\.0833 +0\.8 +50%$", text, re.MULTILINE)
    assert "." * 10 in text, "the flat part of the roof"


# The terminal.


def test_report_fits_80_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    long_row = roofline_row("a row whose name is as long as those of layers, 4096 x 4096 x 4096", 1 << 24, 3 << 26, 2e-2)
    long_row["ratios"] = {
        who: quartiles(1.5) for who in ("torch", "torch.compile", "numpy", "jax", "numexpr", "minifuse, eager")
    }
    long_row["targets"] = [{"words": "torch at least 2.00x", "bound": 2, "value": 1.5, "met": False}]
    broken = {"group": "large", "name": "another", "wrong": {"numpy": "differs"}}
    terminal.show(ROOFED | {"rows": [*ROOFED["rows"], long_row, broken, *SWEPT["rows"]]})
    text = capsys.readouterr().out
    assert max(map(len, text.split("\n"))) <= 80
    for words in (
        "missed: a row whose name",
        "torch at least 2.00x",
        "another: wrong: numpy differs",
        "o minifuse, x numpy",
    ):
        assert words in text
    assert "compile" in text
    assert "torch.compile" not in text


def test_wide_terminal_shows_quartiles(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "150")
    of = roofline_row("a + b", 1 << 24, 3 << 26, 2e-2) | {"ratios": {"torch": quartiles(1.5)}}
    terminal.show(ROOFED | {"rows": [of]}, has_picture=False)
    text = capsys.readouterr().out
    assert "1.50x (1.35 to 1.65)" in text
    assert "Under the roof" not in text
