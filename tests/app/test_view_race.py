"""The view of races between backends: timing, facts, saved results, and the page. Speed is never tested."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minifuse.core.errors import MinifuseError
from minifuse.inspect.roofline import MachineLimits
from project import measure_app
from project.benchmarks import report
from project.views import curves, race
from project.views.cited_facts import MEASURED
from project.views.picture import IDLE, LOAD

LIMITS = MachineLimits(100.0, {"float32": 1000.0}, None)
POINTS = (
    race.Point("NumPy", 256, 2e-6, 1e-6, 3e-6),
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
    assert all(0 < p.fastest <= p.seconds <= p.slowest for p in found.points)
    assert race.picture(found).sentence == race.sentence(found)
    assert all(fact.truth == MEASURED for fact in race.facts(found))


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


@given(st.integers(0, 8))
def test_roofline_is_the_slower_of_memory_and_arithmetic(k):
    n = 4**k
    assert race.roofline_seconds("a + b", n, LIMITS) == pytest.approx(12 * n / 100e9)
    assert race.roofline_seconds("a @ b", n, LIMITS) == pytest.approx(max(12 * n / 100e9, 2 * n**1.5 / 1e12))


def test_picture_marks_the_fastest_and_unmeasured_players():
    grid = race.picture(RACE).grids[0]
    cells = {(c.row, c.column): c for c in grid.cells}
    assert len(cells) == 2 * len(race.SIZES)
    assert cells[0, 0].kind == LOAD
    assert cells[0, 0].text == "2.00 us"
    assert cells[1, 0].kind == ""
    assert "2.00 times the fastest" in cells[1, 0].label
    assert "(3.00 us to 9.00 us)" in cells[1, 0].label
    assert cells[0, 1].kind == IDLE
    assert cells[1, 1].kind == LOAD
    assert "2^10 elements of float32: parallel 8.00 us." in race.sentence(RACE)


def test_rows_contain_all_points_and_the_roofline():
    rows = race.rows(RACE, {"parallel": LIMITS})
    assert [row["us"] for row in rows[:3]] == pytest.approx([2, 4, 8])
    assert [row["elements"] for row in rows[3:]] == [256, 1024]
    assert rows[4]["us"] == pytest.approx(12 * 1024 / 100e9 * 1e6)
    assert len(race.rows(RACE)) == 3
    spec = curves.line_chart(rows, "elements", "us", "who", are_logarithmic=True)
    assert spec["encoding"]["y"]["scale"]["type"] == "log"
    assert len(spec["encoding"]["color"]["scale"]["domain"]) == 3


def test_facts_name_machine_and_date():
    facts = {fact.name: fact for fact in race.facts(RACE, {"parallel": LIMITS})}
    assert facts["machine"].value == "a machine"
    assert "2026-01-02" in facts["machine"].why
    assert facts["parallel"].value == "1.5 GB/s"  # 12 * 1024 bytes in 8 us
    assert facts["parallel: share of the roof"].value == "2%"


@pytest.mark.parametrize("name", race.result_files())
def test_each_saved_file_is_shown_completely(name):
    found = race.load_results(name)
    raw = json.loads((race.FOLDER / name).read_text(encoding="utf-8"))
    assert found.device
    assert found.date.startswith("20")
    count = sum(len(table.rows) for table in found.tables)
    assert count == (len(raw["rows"]) if "rows" in raw else len(raw["minifuse"]["kernels"]))
    if "date" in raw:
        assert raw["date"].startswith(found.date)
        assert found.device in (raw.get("device", {}).get("name"), raw["machine"]["processor"])
    for table in found.tables:
        rows = race.as_rows(table)
        assert [list(row.values()) for row in rows] == table.rows
        assert next(iter(rows[0])) == "what"


def test_saved_results_exist():
    assert race.result_files()


@pytest.mark.parametrize("name", ["", "../../pyproject.toml", "cpu-znver4.json.bak", "/etc/passwd"])
def test_files_outside_the_results_are_not_read(name):
    with pytest.raises(MinifuseError, match="no file"):
        race.load_results(name)


def test_folder_without_results_lists_no_files(tmp_path):
    assert race.result_files(tmp_path) == []
    with pytest.raises(MinifuseError, match="none"):
        race.load_results("x.json", tmp_path)


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
    facts = {fact.name: fact.value for fact in race.facts(found, roofs)}
    for who, speed in (("NumPy", 100e9), ("cuda", 4000e9)):
        assert facts[f"{who}: share of the roof"] == f"{12 * 256 / speed / times[who]:.0%}"
    rows = race.rows(found, roofs)
    assert {row["who"]: row["us"] for row in rows[2:]} == pytest.approx(
        {"roof of parallel": 12 * 256 / 100e9 * 1e6, "roof of cuda": 12 * 256 / 4000e9 * 1e6}
    )
    everybody = race.Race("a + b", (*POINTS, *found.points), race.players(), "", "", 0)
    assert curves.line_chart(race.rows(everybody, roofs), "elements", "us", "who", are_logarithmic=True)


def test_rooflines_of_the_participating_backends_are_measured(gpu, monkeypatch):
    monkeypatch.setattr(race, "machine_limits", lambda backend: MachineLimits(1.0, {"float32": 2.0}, backend.name))
    assert {name: found.backend for name, found in race.measure_rooflines(["NumPy", "python", "cuda"]).items()} == {
        "parallel": "parallel",
        "cuda": "cuda",
    }


def test_unnamed_column_is_called_what():
    assert race.as_rows(report.Table("t", ["", "a"], [["x", "1"]])) == [{"what": "x", "a": "1"}]


def test_app_timings_are_shown_like_other_results(tmp_path):
    found = json.loads((race.FOLDER / "cpu-znver4.json").read_text(encoding="utf-8"))
    kinds = [(measure_app.FIRST, measure_app.COLD), (measure_app.CONTROL, measure_app.WARM)]
    found["rows"] = [measure_app.result_row(*kind, "Fusion", [4.0, 0.4, 0.5]) for kind in kinds]
    (tmp_path / "app-x.json").write_text(json.dumps(found), encoding="utf-8")
    first, control = race.load_results("app-x.json", tmp_path).tables
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
    assert any("Saved results" in heading.value for heading in at.header)
    at.button(key="race_run").click().run()
    found = at.session_state["race_found"]
    assert found.operation == "a @ b"
    assert not at.exception
    at.run()
    assert at.session_state["race_found"] is found
    assert any("curves" in box.label for box in at.expander)


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
        *((race.kernel_counts.KEPT.name, text) for text in [*BROKEN, '{"minifuse": 3}', '{"minifuse": {}}']),
    ],
)
def test_damaged_results_file_is_an_error_with_its_path(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(MinifuseError, match=rf"{name} is no file of results, or a damaged one .*measure anew"):
        race.load_results(name, tmp_path)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", race.result_files())
def test_page_shows_each_saved_file(page, name):
    at = page.run()
    at.selectbox(key="race_file").set_value(name).run()
    assert not at.exception
    assert not at.error
    assert any(race.load_results(name).date in text.value for text in at.markdown)
