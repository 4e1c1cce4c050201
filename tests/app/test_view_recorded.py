"""Recorded hardware counters: equal to the derived counts of the same request, and absent without the file."""

import json

import pytest

from project.views import hardware_counters, matmul, memory
from project.views.cited_facts import DERIVED, MEASURED, Fact
from project.views.hardware_counters import PRESETS
from tests.app.tables import facts_tables

pytest.importorskip("greenlet", reason="the interpreter needs greenlet: minifuse[simt]")
KNOWN = hardware_counters.load_recording()


def request_of(preset):
    if preset.space == "shared":
        return memory.trace_tile_load("float32", 32, True, 3)
    return memory.trace_global_load("float32", preset.stride, preset.offset)


def test_recording_has_device_and_date():
    found = json.loads(hardware_counters.FILE.read_text(encoding="utf-8"))
    assert (KNOWN.device, KNOWN.date) == (found["device"], found["date"])
    assert sum(map(len, KNOWN.counters.values())) == len(found["rows"])
    for fact in hardware_counters.facts("stride_two", KNOWN) + hardware_counters.matmul_facts("shared_tiles", KNOWN):
        assert fact.truth == MEASURED
        assert "NVIDIA H200" in fact.why
        assert KNOWN.date in fact.why


@pytest.mark.parametrize("name", PRESETS)
def test_hardware_counters_equal_derived_counts(name):
    """A preset makes the request of its kernel, so counts DERIVED for one warp equal those MEASURED per warp."""
    found = request_of(PRESETS[name])
    derived = {fact.name: fact.value for fact in memory.facts(found)}
    measured = {
        fact.name.removesuffix(hardware_counters.ON_GPU): int(fact.value) for fact in hardware_counters.facts(name, KNOWN)
    }
    shared = PRESETS[name].space == "shared"
    for key in ("wavefronts", "bank conflicts") if shared else ("sectors",):
        assert measured[key] == derived[key]
    if not shared:
        [store] = [value for key, value in derived.items() if "out[i] = x" in key]
        assert store.startswith(f"{measured['sectors of the store']} sectors")


@pytest.mark.parametrize("name", PRESETS)
def test_preset_choices_map_to_recorded_kernels(name):
    preset = PRESETS[name]
    if preset.space == "shared":
        assert hardware_counters.kernel_of_tile("float32", 32, True, 32) == name
        for other in (("float64", 32, True, 32), ("float32", 33, True, 32), ("float32", 32, False, 32)):
            assert hardware_counters.kernel_of_tile(*other) is None
        assert hardware_counters.kernel_of_tile("float32", 32, True, 31) is None
    else:
        of = preset.stride, preset.offset
        assert hardware_counters.kernel_of_global("float32", *of, 32) == name
        assert hardware_counters.kernel_of_global("int8", *of, 32) is None
        assert hardware_counters.kernel_of_global("float32", *of, 31) is None
        assert hardware_counters.kernel_of_global("float32", preset.stride, preset.offset + 7, 32) is None


def test_recorded_matmul_loads_match_the_tile_formula():
    """The recorded matmul has another size than that of the page. Loads per output are 2 * depth / tile for both."""
    [loads, *_] = hardware_counters.matmul_facts("shared_tiles", KNOWN)
    assert float(loads.value) == 2 * hardware_counters.SIDE / hardware_counters.TILE
    page = matmul.loads_per_output(matmul.trace_matmul("shared_tiles", 16, 16, 16, 4), "global")
    assert page == 2 * 16 / 4
    assert hardware_counters.matmul_facts("naive", KNOWN) == []


def test_measured_facts_follow_their_derived_facts():
    a, b = Fact("sectors", 4, DERIVED), Fact("lanes", 32, DERIVED)
    x, y = Fact("sectors, on a GPU", "4", MEASURED), Fact("sectors of the store, on a GPU", "4", MEASURED)
    assert hardware_counters.merge_facts([a, b], [y, x]) == [a, x, b, y]
    assert hardware_counters.merge_facts([a, b], []) == [a, b]


def test_missing_recording_gives_no_facts(tmp_path):
    assert hardware_counters.load_recording(tmp_path / "none.json") is None
    assert hardware_counters.facts("stride_one", None) == hardware_counters.matmul_facts("shared_tiles", None) == []
    assert hardware_counters.presets(None) == {}
    assert hardware_counters.facts(None, KNOWN) == []


def page():
    from project.screens.memory import page

    page()


def open_page():
    testing = pytest.importorskip("streamlit.testing.v1", reason="the app needs streamlit: minifuse[app]")
    app = testing.AppTest.from_function(page, default_timeout=20).run()
    assert not app.exception
    return app


@pytest.mark.parametrize("name", PRESETS)
def test_preset_sets_all_controls(name):
    app = open_page()
    app.slider(key="memory_lanes").set_value(5)
    app.selectbox(key="memory_dtype").set_value("int8")
    app.selectbox(key="memory_space").set_value("shared").run()
    app.slider(key="memory_width").set_value(37)
    app.selectbox(key="memory_reads").set_value("row").run()
    app.button(key=f"memory_of_{name}").click().run()
    assert not app.exception
    table = facts_tables(app)[0]
    assert MEASURED in set(table["truth"])
    rows = dict(zip(table["fact"], table["value"], strict=True))
    for key in hardware_counters.GLOBAL.values() if PRESETS[name].space == "global" else hardware_counters.SHARED.values():
        assert f"{key}{hardware_counters.ON_GPU}" in rows
    app.selectbox(key="memory_dtype").set_value("float64").run()
    assert MEASURED not in set(facts_tables(app)[0]["truth"])


def test_page_without_a_recording_has_no_presets(monkeypatch):
    monkeypatch.setattr(hardware_counters, "load_recording", lambda: None)
    app = open_page()
    assert not [button for button in app.button if button.key.startswith("memory_of")]
    assert MEASURED not in set(facts_tables(app)[0]["truth"])
