"""The first page about speed: its figures and charts have the values of the result files."""

from xml.etree import ElementTree

import pytest

from project.benchmarks import __main__ as command
from project.benchmarks import dots, highlights, page
from project.benchmarks.dots import DotChart, DotRow

SVG = "{http://www.w3.org/2000/svg}"
MAX_BYTES = 60_000
each_chart = pytest.mark.parametrize("spec", highlights.CHARTS, ids=lambda spec: spec.name)


@pytest.fixture(scope="module")
def files():
    return page.load_results(command.RESULTS)


def test_all_figures_and_charts_were_measured(files):
    chosen = highlights.FIGURES + highlights.COSTS
    assert len(highlights.figures(chosen, files)) == len(chosen)
    assert highlights.charts_from(files) == list(highlights.CHARTS)
    sources = [figure.source for figure in chosen] + [source for spec in highlights.CHARTS for source in spec.sources]
    for source in sources:
        assert [row["name"] for row in source.rows(files)] == list(source.names) or not source.names


def invented(ratios, group="fusion-large", name="chain", date="2026-11-02"):
    times = {"minifuse": {"median": 2.0}, "torch": {"median": 4.0}}
    work = {"nbytes": 8e9, "operations": 6e12}
    row = {"group": group, "name": name, "ratios": {who: {"median": x} for who, x in ratios.items()}, "times": times}
    machine = {"processor": "CPU", "microarchitecture": "new"}
    return {"machine": machine, "date": date, "versions": {}, "rows": [row | {"work": work}]}


@pytest.mark.parametrize(("measure", "expected"), [("ratio", 0.5), ("GB/s", 2.0), ("TFLOP/s", 1.5)])
def test_values_are_ratios_or_rates(measure, expected):
    [row] = invented({"torch": 0.5})["rows"]
    assert highlights.value_of(row, "torch", measure) == expected
    assert highlights.value_of(row, "jax", measure) is None


def test_losses_are_the_lowest_ratios_of_the_newest_results():
    old = invented({"torch": 0.1}, date="2026-11-01")
    new = invented({"torch": 0.9, "jax": 0.8, "minifuse, eager": 0.2, "copy": 0.3})
    other = invented({"numpy": 0.7}, name="sum")
    ladder = invented({"torch": 0.01}, group="gpu-ladder")
    lines = highlights.losses({"old": old, "new": new, "other": other, "ladder": ladder})
    assert lines == [["sum", "CPU (new)", "2.00 s", "numpy 0.70x"], ["chain", "CPU (new)", "2.00 s", "jax 0.80x"]]


@each_chart
def test_chart_has_a_dot_for_each_value(spec, files):
    chart = highlights.chart_of(spec, files)
    root = ElementTree.fromstring(dots.draw(chart))
    told = [element[0].text for element in root.iter() if element.get("class") == "dot"]
    values = [f"{row.name}, {player}: {x:,.4g}" for row in chart.rows for player in row.values for x in row.values[player]]
    assert sorted(told) == sorted([*chart.players(), *values])
    assert len(dots.draw(chart)) < MAX_BYTES
    assert {chart.axis, chart.title} <= {element.text for element in root.iter(f"{SVG}text")}


def test_places_follow_the_axis():
    rows = [DotRow("one", {"a": [1.0, 10.0]}), DotRow("two", {"b": [100.0]})]
    log, linear = DotChart("t", "x", rows, is_log=True), DotChart("t", "x", rows)
    assert log.place(10.0) == pytest.approx((log.place(1.0) + log.place(100.0)) / 2)
    assert linear.place(50.0) == pytest.approx((linear.place(0.0) + linear.place(100.0)) / 2)
    assert linear.left == linear.place(0.0) < log.place(1.0) < log.place(100.0) < dots.WIDTH - dots.RIGHT


@each_chart
def test_caption_names_device_date_versions_and_files(spec, files):
    text = highlights.caption(spec, files)
    for source in spec.sources:
        found = files[source.file]
        assert source.file in text
        assert highlights.place_of(found) in text
        assert f"minifuse {found['versions']['minifuse']}" in text
        assert {row.get("date", found["date"])[:10] for row in source.rows(files)} <= set(text.replace(",", "").split())
