"""The view of races between backends: timing, facts, saved results, and the page. Speed is never tested."""

import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import minifuse as mf
from minifuse.compiler.plan import Plan
from minifuse.core.errors import MinifuseError
from minifuse.inspect.roofline import MachineLimits
from project import measure_app
from project.benchmarks import machine, report
from project.benchmarks.operations import operations_of
from project.views import curves, race, race_facts, race_picture, rooflines, saved_results
from project.views.cited_facts import DERIVED, MEASURED
from project.views.picture import CHOSEN, IDLE, LOAD, SHARED, STORE
from tests.app.tables import facts_tables

LIMITS = MachineLimits(100.0, {"float32": 1000.0}, None)
POINTS = (
    race.Point("NumPy", 256, 2e-6, 1.9e-6, 2.5e-6),
    race.Point("parallel", 256, 4e-6, 3e-6, 9e-6),
    race.Point("parallel", 1024, 8e-6, 7e-6, 9e-6),
)
RACE = race.Race("a + b", POINTS, ("NumPy", "parallel"), "a machine", "2026-01-02T03:04:05+00:00", 0.5)


@pytest.mark.parametrize("operation", race.OPERATIONS)
def test_every_operation_is_timed_on_all_players(operation):
    found = race.run_race(operation, race.players(), budget_s=0.02)
    smallest = 1 << race.OPERATIONS[operation].exponents[0]
    assert {p.who for p in found.points if p.elements == smallest} == set(race.players())
    for who in found.players:
        sizes = [p.elements for p in found.points if p.who == who]
        assert sizes == [1 << e for e in race.OPERATIONS[operation].exponents[: len(sizes)]]
    assert all(0 < p.low <= p.seconds <= p.high for p in found.points)
    assert race_picture.picture(found).sentence == race_facts.sentence(found)
    assert all(fact.truth == MEASURED for fact in race_facts.facts(found) if "share" not in fact.name)


def test_zero_budget_measures_one_size():
    found = race.run_race("a + b", ["NumPy", "parallel"], budget_s=0)
    assert [p.elements for p in found.points] == [256, 256]


@pytest.mark.parametrize(("operation", "who"), [("a - b", ["NumPy"]), ("a + b", []), ("a + b", ["NumPy", "tpu"])])
def test_unknown_operations_and_players_are_errors(operation, who):
    with pytest.raises(MinifuseError, match="expected"):
        race.run_race(operation, who)


def test_wrong_results_are_not_timed(monkeypatch):
    wrong = race.Operation(lambda a, b: a - b, np.add, lambda n: ((n,), (n,)), (8,), lambda n: 3 * n)
    monkeypatch.setitem(race.OPERATIONS, "a + b", wrong)
    with pytest.raises(MinifuseError, match="nothing was timed"):
        race.run_race("a + b", ["parallel"])


@pytest.mark.parametrize("operation", race.OPERATIONS.values())
def test_bytes_and_flops_match_the_arrays(operation):
    elements = 1 << operation.exponents[0]
    arrays = race.inputs(operation, elements)
    result = operation.numpys(*arrays)
    assert operation.floats(elements) == sum(x.size for x in arrays) + np.size(result)
    if operation.flops(elements):
        (m, k), (_, n) = (x.shape for x in arrays)
        assert operation.flops(elements) == 2 * m * n * k
        assert race.work_growth(operation, elements) == 8
    else:
        assert race.work_growth(operation, elements) == pytest.approx(4, rel=0.02)


@pytest.mark.parametrize("name", race.OPERATIONS)
def test_operators_are_those_of_the_plan(name):
    operation = race.OPERATIONS[name]
    for exponent in operation.exponents[:2]:
        tensors = [mf.tensor(x) for x in race.inputs(operation, 1 << exponent)]
        assert operation.work(1 << exponent) == operations_of(Plan(operation.ours, tensors))


def roof_of(limits):
    return rooflines.measured_roof("parallel", limits)


@given(st.integers(4, 9))
def test_roofline_is_the_slower_of_memory_and_arithmetic(k):
    n = 4**k
    roof = roof_of(LIMITS)
    assert rooflines.roof_seconds("a + b", n, roof) == pytest.approx(12 * n / 100e9)
    assert rooflines.roof_seconds("a @ b", n, roof) == pytest.approx(max(12 * n / 100e9, 2 * n**1.5 / 1e12))
    assert roof.rate(roof.ridge / 2) == pytest.approx(500)
    assert roof.rate(roof.ridge * 2) == 1000


TIMES = st.tuples(st.integers(1, 60), st.integers(0, 9), st.integers(0, 9))


@settings(derandomize=True, max_examples=60, deadline=None)
@example([(20, 10, 9), (12, 1, 1), (28, 1, 0)])  # the second interval lies in the first, and the third meets the first alone
@given(st.lists(TIMES, min_size=1, max_size=6))
def test_places_are_shared_exactly_by_chains_of_overlapping_intervals(times):
    points = [race.Point(f"p{k}", 256, m, m - min(a, m - 1), m + b) for k, (m, a, b) in enumerate(times)]
    groups = race_facts.places(points)
    assert sorted(p.who for group in groups for p in group) == sorted(p.who for p in points)
    place = {p.who: k for k, group in enumerate(groups) for p in group}
    for p in points:
        for q in points:
            if p.low <= q.high and q.low <= p.high:
                assert place[p.who] == place[q.who]
            elif place[p.who] < place[q.who]:
                assert p.high < q.low
    for group in groups:
        assert [p.seconds for p in group] == sorted(p.seconds for p in group)
        reached = {group[0].who}
        for _ in group:
            near = [p for p in group if p.who in reached]
            reached |= {q.who for q in group for p in near if p.low <= q.high and q.low <= p.high}
        assert reached == {p.who for p in group}


def race_of(*times, operation="a + b"):
    """Return a race of one size: (player, median, low, high) in microseconds."""
    points = tuple(race.Point(who, 256, m * 1e-6, low * 1e-6, high * 1e-6) for who, m, low, high in times)
    return race.Race(operation, points, tuple(who for who, *_ in times), "", "", 0.1)


def test_overlap_is_a_tie_and_never_fastest():
    tie = race_of(("NumPy", 2, 1, 3), ("parallel", 2.5, 2.4, 4), ("python", 90, 80, 99))
    said = race_facts.sentence(tie)
    assert "a tie of NumPy 2.00 us and parallel 2.50 us, then python 90.0 us" in said
    assert "fastest" not in said
    grid = race_picture.times(tie)
    assert [cell.kind for cell in grid.cells if cell.column == 0] == [SHARED, SHARED, STORE]
    assert "in a tie for the first place" in grid.cells[0].label
    apart = race_of(("NumPy", 2, 1, 2.3), ("parallel", 2.5, 2.4, 4))
    assert "fastest is NumPy 2.00 us, then parallel 2.50 us." in race_facts.sentence(apart)
    assert [cell.kind for cell in race_picture.times(apart).cells if cell.column == 0] == [LOAD, STORE]


def test_times_mark_the_fastest_and_unmeasured_players():
    grid = race_picture.times(RACE)
    cells = {(c.row, c.column): c for c in grid.cells}
    assert len(cells) == 2 * len(race.SIZES)
    assert cells[0, 0].kind == LOAD
    assert cells[0, 0].text == "2.00 us"
    assert cells[1, 0].kind == STORE
    assert "2.00 times the fastest" in cells[1, 0].label
    assert "(3.00 us to 9.00 us)" in cells[1, 0].label
    assert cells[0, 1].kind == IDLE
    assert cells[1, 1].kind == LOAD
    assert "2^8 elements: fastest is NumPy 2.00 us, then parallel 4.00 us." in race_facts.sentence(RACE)  # both got there
    assert "parallel 8.00 us; no time was left for NumPy." in race_facts.sentence(RACE, elements=1024)


@settings(derandomize=True, max_examples=25, deadline=None)
@given(st.lists(TIMES, min_size=1, max_size=4), st.integers(1, 4))
def test_lanes_show_median_and_quartiles_of_each_size(times, count):
    players = ("NumPy", "python", "parallel", "cuda")[: len(times)]
    points = tuple(
        race.Point(who, 1 << (8 + 2 * j), m * 4.0**j, (m - min(a, m - 1)) * 4.0**j, (m + b) * 4.0**j)
        for j in range(count)
        for who, (m, a, b) in zip(players, times, strict=True)
    )
    found = race.Race("exp(x)", points, players, "", "", 0.1)
    shown, axis = race_picture.picture(found), race_picture.Axis(found)
    assert [frame.sentence for frame in shown.frames] == [
        race_facts.sentence(found, elements=n) for n in race_facts.sizes(found)
    ]
    assert shown.first == count - 1
    for frame, elements in zip(shown.frames, race_facts.sizes(found), strict=True):
        here = race_facts.points_at(found, elements)
        best, texts, kinds = min(p.seconds for p in here), dict(frame.texts), dict(frame.kinds)
        for row, point in enumerate(here):
            [hull] = [hull for hull in frame.hulls if hull.start[:2] == ("lanes", row)]
            ends = hull.start[2], hull.start[2] + hull.columns - 1
            [median] = [column for column in range(race_picture.BINS) if f"lane{row}.{column}" in texts]
            for ratio, column in zip((point.low, point.seconds, point.high), (ends[0], median, ends[1]), strict=True):
                assert axis.ratio(column) <= ratio / best * 1.001
                assert ratio / best <= axis.ratio(column + 1) * 1.001
            first = race_facts.places(here)[0]
            assert hull.kind == (STORE if point not in first else LOAD if len(first) == 1 else SHARED)
            assert {kinds[f"lane{row}.{column}"] for column in range(ends[0], ends[1] + 1)} == {hull.kind}
        [column] = [hull.start[2] for hull in frame.hulls if hull.kind == CHOSEN]
        assert shown.grids[1].column_names[column] == race_facts.power(elements)
        assert {who: time for time, who in frame.numbers} == {
            p.who: cell.text
            for p in here
            for cell in shown.grids[1].cells
            if (cell.row, cell.column) == (players.index(p.who), column)
        }


def test_axis_names_ratios_where_they_are():
    axis = race_picture.Axis(race_of(("NumPy", 2, 1.9, 2.1), ("python", 90, 80, 99)))
    heads = axis.heads()
    assert "1x" in heads
    assert len([head for head in heads if head]) > 4
    for column, head in enumerate(heads):
        if head:
            assert axis.ratio(column) <= float(head[:-1]) * 1.001
            assert float(head[:-1]) <= axis.ratio(column + 1) * 1.001


def test_rows_contain_all_points_with_quartiles_and_the_roofline():
    rows = race_facts.rows(RACE, {"parallel": LIMITS})
    assert [row["us"] for row in rows[:3]] == pytest.approx([2, 4, 8])
    assert [row[end] for row in rows[:3] for end in ("low", "high")] == pytest.approx([1.9, 2.5, 3, 9, 7, 9])
    assert [row["elements"] for row in rows[3:]] == [256, 1024]
    assert rows[4]["us"] == pytest.approx(12 * 1024 / 100e9 * 1e6)
    assert len(race_facts.rows(RACE)) == 3
    spec = curves.line_chart(rows, "elements", "us", "who", are_logarithmic=True, band=("low", "high"))
    line, band = spec["layer"]
    assert line["encoding"]["y"]["scale"]["type"] == "log"
    assert (band["encoding"]["y"]["field"], band["encoding"]["y2"]["field"]) == ("low", "high")
    assert band["transform"] == [{"filter": "isValid(datum.low)"}]  # a roof has no band
    assert spec["data"]["values"][0] == {"who": "NumPy", "elements": 256, "us": rows[0]["us"], "low": rows[0]["low"],
                                         "high": rows[0]["high"]}  # fmt: skip
    assert len(spec["encoding"]["color"]["scale"]["domain"]) == 3


def test_roofline_chart_has_each_point_below_or_above_its_roof():
    roofs = rooflines.roofs_of(RACE.players, {"parallel": LIMITS})
    points, corners = rooflines.chart_rows(RACE), rooflines.roof_rows(RACE, roofs)
    for row, point in zip(points, RACE.points, strict=True):
        assert row["intensity"] == pytest.approx(1 / 12)
        assert row["rate"] == pytest.approx(point.elements / point.seconds / 1e9)
        assert row["low"] <= row["rate"] <= row["high"]
        assert row["high"] == pytest.approx(point.elements / point.low / 1e9)
        share = rooflines.share("a + b", point, roofs["parallel"])
        assert share == pytest.approx(12 * point.elements / 100e9 / point.seconds)
    assert [row["rate"] for row in corners] == pytest.approx([100 / 48, 1000, 1000])
    assert corners[1]["intensity"] == 10
    dots, spreads, lines, names = curves.roofline_chart(points, corners)["layer"]
    assert dots["data"]["values"] == spreads["data"]["values"] == points
    assert lines["data"]["values"] == names["data"]["values"] == corners
    assert "Of the roof: NumPy 2%, parallel 2%." in rooflines.describe(RACE, roofs)
    assert "Of the roof: NumPy 2%, parallel 1%." in race_facts.sentence(RACE, {"parallel": LIMITS})


def results_with_roof(folder, name, date, changes=None):
    found = {
        "machine": machine.describe() | (changes or {}),
        "date": date,
        "roofs": {"copy_gb_per_s": 10.0, "fma_gflop_per_s": 500.0},
    }
    (folder / name).write_text(json.dumps(found), encoding="utf-8")


def test_saved_roof_of_this_kind_of_machine_gives_shares(tmp_path):
    results_with_roof(tmp_path, "a.json", "2026-01-02T00:00", {"cores": 999})
    results_with_roof(tmp_path, "b.json", "2026-02-02T00:00")
    results_with_roof(tmp_path, "c.json", "2026-01-05T00:00")
    (tmp_path / "damaged.json").write_text("{")
    (tmp_path / "list.json").write_text("[]")
    roof = rooflines.saved_roof("parallel", tmp_path)
    assert (roof.name, roof.is_here, roof.gbytes_per_s) == ("parallel", True, 10.0)
    assert "b.json, 2026-02-02" in roof.origin
    said = rooflines.sentence(RACE, RACE.points[:1], {"parallel": roof})
    assert said == f"Of the saved roof: NumPy {12 * 256 / 10e9 / 2e-6:.0%}."


def test_saved_roof_of_another_machine_gives_no_shares(tmp_path):
    results_with_roof(tmp_path, "a.json", "2026-01-02T00:00", {"cores": 999})
    assert rooflines.saved_roof("parallel", tmp_path) is None
    (tmp_path / rooflines.OTHER_ROOF).write_text((tmp_path / "a.json").read_text())
    rooflines.files_with_roofs.cache_clear()
    roof = rooflines.saved_roof("parallel", tmp_path)
    assert roof.name.endswith(", another machine")
    assert not roof.is_here
    assert not rooflines.sentence(RACE, RACE.points, {"parallel": roof})
    assert "Measure the roof" in rooflines.describe(RACE, {"parallel": roof})


def test_facts_name_machine_and_date():
    facts = {fact.name: fact for fact in race_facts.facts(RACE, {"parallel": LIMITS})}
    assert facts["machine"].value == "a machine"
    assert "2026-01-02" in facts["machine"].why
    assert facts["parallel"].value == "1.5 GB/s"  # 12 * 1024 bytes in 8 us
    assert "8.00 us (7.00 us to 9.00 us)" in facts["parallel"].why
    assert facts["parallel: share of the roof"].value == "2%"
    assert facts["parallel: share of the roof"].truth == DERIVED
    assert facts["order at 2^8"].value == "fastest is NumPy 2.00 us, then parallel 4.00 us"
    assert facts["roof of parallel"].value == "100.0 GB/s in a copy, 1,000 GFLOP/s of float32"


def assert_picture_has_the_texts(picture, table):
    """Check the texts of the cells, and the verdicts that their colors give, against the table."""
    grids = {grid.name: grid for grid in picture.grids}
    columns = [k for k, head in enumerate(table.header) if k and head != saved_results.TARGET]
    for name, chosen in (("ours", columns[:1]), ("others", columns[1:])):
        if not chosen:
            assert name not in grids
            continue
        cells = {(cell.row, cell.column): cell for cell in grids[name].cells}
        for r, row in enumerate(table.rows):
            assert [cells[r, c].text for c in range(len(chosen))] == [row[k] for k in chosen]
            for c in range(len(chosen)):
                words = cells[r, c].text.split("x (")
                if len(words) == 2:
                    low, high = (float(part.replace(",", "")) for part in words[1].rstrip(")").split(" to "))
                    assert cells[r, c].kind == (LOAD if low > 1 else STORE if high < 1 else SHARED)
    assert grids["ours"].row_names == tuple(row[0] for row in table.rows)
    if saved_results.TARGET in table.header and "targets" in grids:
        k = table.header.index(saved_results.TARGET)
        for cell in grids["targets"].cells:
            assert [part.split(":")[0] for part in table.rows[cell.row][k].split("; ") if part] == (
                cell.text.split("; ") if cell.text else []
            )


@pytest.mark.parametrize("name", saved_results.result_files())
def test_each_saved_file_is_shown_completely(name):
    found = saved_results.load_results(name)
    raw = json.loads((saved_results.FOLDER / name).read_text(encoding="utf-8"))
    assert found.device
    assert found.date.startswith("20")
    count = sum(len(table.rows) for table in found.tables)
    assert count == (len(raw["rows"]) if "rows" in raw else len(raw["minifuse"]["kernels"]))
    if "date" in raw:
        assert raw["date"].startswith(found.date)
        assert found.device in (raw.get("device", {}).get("name"), raw["machine"]["processor"])
    for table in found.tables:
        rows = saved_results.as_rows(table)
        assert [list(row.values()) for row in rows] == table.rows
        assert next(iter(rows[0])) == "what"
        assert_picture_has_the_texts(saved_results.picture(found, table), table)


def test_saved_results_exist():
    assert saved_results.result_files()


@pytest.mark.parametrize("name", ["", "../../pyproject.toml", "cpu-znver4.json.bak", "/etc/passwd"])
def test_files_outside_the_results_are_not_read(name):
    with pytest.raises(MinifuseError, match="no file"):
        saved_results.load_results(name)


def test_folder_without_results_lists_no_files(tmp_path):
    assert saved_results.result_files(tmp_path) == []
    with pytest.raises(MinifuseError, match="none"):
        saved_results.load_results("x.json", tmp_path)


@pytest.fixture
def gpu(monkeypatch):
    """Let the simulated backend look like a GPU. Kernels run in the interpreter, at the smallest size."""
    backend = race.get_backend("cuda")
    monkeypatch.setattr(backend, "has_roofline", True)
    monkeypatch.setattr(backend.device, "name", "a GPU", raising=False)
    return backend


def test_gpu_is_a_player_with_its_own_roofline(gpu):
    assert race.players() == ("NumPy", "python", "parallel", "cuda")
    found = race.run_race("a + b", ["NumPy", "cuda"], budget_s=0)
    assert found.place.endswith(", a GPU")
    times = {p.who: p.seconds for p in found.points}
    roofs = {"parallel": LIMITS, "cuda": MachineLimits(4000.0, {"float32": 50_000.0}, None)}
    facts = {fact.name: fact.value for fact in race_facts.facts(found, roofs)}
    for who, speed in (("NumPy", 100e9), ("cuda", 4000e9)):
        assert facts[f"{who}: share of the roof"] == f"{12 * 256 / speed / times[who]:.0%}"
    rows = race_facts.rows(found, roofs)
    assert {row["who"]: row["us"] for row in rows[2:]} == pytest.approx(
        {"roof of parallel": 12 * 256 / 100e9 * 1e6, "roof of cuda": 12 * 256 / 4000e9 * 1e6}
    )
    everybody = race.Race("a + b", (*POINTS, *found.points), race.players(), "", "", 0)
    assert curves.line_chart(race_facts.rows(everybody, roofs), "elements", "us", "who", are_logarithmic=True)


def test_rooflines_of_the_participating_backends_are_measured(gpu, monkeypatch):
    monkeypatch.setattr(race, "machine_limits", lambda backend: MachineLimits(1.0, {"float32": 2.0}, backend.name))
    assert {name: found.backend for name, found in race.measure_rooflines(["NumPy", "python", "cuda"]).items()} == {
        "parallel": "parallel",
        "cuda": "cuda",
    }


def test_unnamed_column_is_called_what():
    assert saved_results.as_rows(report.Table("t", ["", "a"], [["x", "1"]])) == [{"what": "x", "a": "1"}]


def test_app_timings_are_shown_like_other_results(tmp_path):
    found = json.loads((saved_results.FOLDER / "cpu-znver4.json").read_text(encoding="utf-8"))
    kinds = [(measure_app.FIRST, measure_app.COLD), (measure_app.CONTROL, measure_app.WARM)]
    found["rows"] = [measure_app.result_row(*kind, "Fusion", [4.0, 0.4, 0.5]) for kind in kinds]
    (tmp_path / "app-x.json").write_text(json.dumps(found), encoding="utf-8")
    first, control = saved_results.load_results("app-x.json", tmp_path).tables
    assert (first.title, control.title) == ("First load of a page, cold", "The answer to a control, warm")
    assert first.rows == [["Fusion", "500 ms", "met: 3 s"]]
    assert control.rows == [["Fusion", "500 ms", "not met: 0.35 s"]]
    assert measure_app.result_row(*kinds[1], "Fusion", [0.34])["targets"] == [{"words": "0.35 s", "met": True}]


@pytest.mark.parametrize(
    ("text", "typed"),
    [("3, 4", "3, 2"), ("an index such as 0, 2; or a cell", "0, 1"), (".T[::2]", ".T[::1]"), ("x.T", "x.T"), ("", "")],
)
def test_alternative_field_text_has_the_same_form(text, typed):
    assert measure_app.alternative_text(text) == typed


# The page.


def app():
    from project.screens.race import page

    page()


@pytest.fixture
def page():
    testing = pytest.importorskip("streamlit.testing.v1")
    return testing.AppTest.from_function(app, default_timeout=60)


def test_page_measures_only_on_request(page):
    at = page.run()
    assert "race_found" not in at.session_state
    assert at.get("bidi_component")
    at.button(key="race_run").click().run()
    found = at.session_state["race_found"]
    assert found.operation == "a @ b"
    assert not at.exception
    at.run()
    assert at.session_state["race_found"] is found
    assert [tab.label for tab in at.tabs] == ["Time over size", "Under the roof", "The curves as a table"]
    assert not at.header  # one screen: nothing but the stage, its drawer and the charts


def test_page_draws_the_roofline(page):
    at = page.run()
    at.selectbox(key="race_operation").set_value(RACE.operation)
    at.session_state["race_found"], at.session_state["race_roof"] = RACE, {"parallel": LIMITS}
    at.run()
    assert not at.exception
    assert any("share of the roof" in str(table.value) for table in at.table)


def test_race_without_players_is_an_error(page):
    at = page.run()
    at.multiselect(key="race_players").set_value([]).run()
    at.button(key="race_run").click().run()
    assert not at.exception
    assert "players are none" in at.error[0].value


BROKEN = ["", "{", "3", "null", "[" * 50_000]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("cpu-x.json", text) for text in [*BROKEN, "[]", "{}", '{"device": 3}', '{"device": {"name": "x"}}']),
        *((saved_results.kernel_counts.KEPT.name, text) for text in [*BROKEN, '{"minifuse": 3}', '{"minifuse": {}}']),
    ],
)
def test_damaged_results_file_is_an_error_with_its_path(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(MinifuseError, match=rf"{name} is no file of results, or a damaged one .*measure anew"):
        saved_results.load_results(name, tmp_path)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", saved_results.result_files())
def test_page_shows_each_saved_file(page, name):
    at = page.run()
    at.selectbox(key="race_file").set_value(name).run()
    assert not at.exception
    assert not at.error
    found = saved_results.load_results(name)
    assert f"on {found.date}" in set(facts_tables(at)[0]["why"])
    assert at.selectbox(key="race_table").options == [table.title for table in found.tables]
    assert not at.button
