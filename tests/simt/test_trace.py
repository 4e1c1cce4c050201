"""Traces: their summaries, saving and loading, and the errors for damaged files."""

import json
import math
import zipfile
from contextlib import suppress

import numpy as np
import pytest

from minifuse.core.errors import BarrierError, OutOfBoundsError, RaceError, SimtError, UnwrittenOutputError
from minifuse.simt.record import ATOMIC, LOAD, STORE, Barrier, Collective
from minifuse.simt.trace import Trace, load
from tests.simt.columns import Access, array, columns, lines

ARRAYS = [
    array("tile", "shared", 256, (4, 32)),
    array("out", base=4096, shape=(64,)),
    array("table", "const", 8192, (8,), 8, "int64"),
]


def build_trace(rows=(), **changes):
    """Return a trace of these accesses. The other fields have defaults."""
    values = {
        "kernel": "kernel",
        "file": "folder/kernel.py",
        "line": 3,
        "grid": (2, 1, 1),
        "block": (8, 5, 1),
        "shared": 0,
        "seed": 7,
        "arguments": [("n", 3), ("scale", math.inf), ("where", "(1, 2)")],
        "outputs": {"out": np.arange(6.0, dtype=np.float32).reshape(2, 3).T, "bits": np.zeros((), bool)},
        "events": columns(rows),
        "instructions": lines(41, 44, 47),
        "arrays": ARRAYS,
        "barriers": [Barrier(0, 0, 2, "syncthreads", 0), Barrier(1, 0, 2, "grid", 0)],
        "collectives": [Collective(0, 1, 1, "shfl_down_sync", 0xFF, 0)],
        "findings": [],
        "is_complete": True,
        "fresh": ("out",),
    }
    return Trace(**values | changes)


def sample():
    rows = [Access(thread, STORE, 256 + 128 * (thread % 4), value=thread) for thread in range(40)]
    rows += [Access(thread, LOAD, 4096 + 4 * thread, array=1, instruction=1) for thread in range(40)]
    rows += [Access(3, ATOMIC, 4096, array=1, instruction=2, block=1, value=math.nan)]
    rows += [Access(0, LOAD, 8192, 8, array=2, instruction=2, value=-0.0)]
    findings = [
        OutOfBoundsError(
            "out of bounds", lines=(("f.py", 3),), array="a", element=(-1,), block=(0, 1), threads=((1, 2),), epoch=3
        ),
        BarrierError("no line", lines=()),
    ]
    return build_trace(rows, findings=findings, is_complete=False)


def test_loaded_trace_equals_the_saved_trace(tmp_path):
    for index, trace in enumerate([sample(), build_trace()]):
        trace.save(tmp_path / f"{index}.npz")
        again = Trace.load(tmp_path / f"{index}.npz")
        assert again == trace
        assert [(type(e), str(e), vars(e)) for e in again.hazards()] == [(type(e), str(e), vars(e)) for e in trace.hazards()]
        assert json.dumps(again.summary()) == json.dumps(trace.summary())
        assert again.arguments == trace.arguments
        assert again.instructions == trace.instructions
        assert again.arrays == trace.arrays
        assert all(type(row.shape) is tuple for row in again.arrays)
        assert [*again.outputs] == ["out", "bits"]
        assert again.outputs["out"].shape == (3, 2)
    assert load(tmp_path / "0.npz") == sample()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.npz", "1.npz"], "nothing is left behind"


def test_equal_traces_save_equal_bytes(tmp_path):
    for name in ("a", "b"):
        sample().save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 8},
        {"is_complete": True},
        {"outputs": {"out": np.zeros(3)}},
        {"findings": []},
        {"fresh": ()},
        {"arrays": [*ARRAYS[:2], array("table", "const", 8192, (9,), 8)]},
        {"events": columns([Access(0)])},
        {"events": columns([*[Access(0)] * 81, Access(1)])},
    ],
)
def test_traces_that_differ_in_a_field_are_unequal(changes):
    trace = sample()
    values = {name: getattr(trace, name) for name in trace.__dataclass_fields__}
    assert Trace(**values) == trace
    assert Trace(**values | changes) != trace
    assert trace != "a trace"


def test_failed_save_keeps_the_old_file(tmp_path):
    path = tmp_path / "t.npz"
    sample().save(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="Object arrays"):
        build_trace(outputs={"x": np.array([object()])}).save(path)
    assert path.read_bytes() == before
    assert [*tmp_path.iterdir()] == [path]


def save_sample(tmp_path):
    path = tmp_path / "t.npz"
    sample().save(path)
    return path


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_truncated_file_is_rejected(tmp_path, share):
    path = save_sample(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(SimtError, match=r"t\.npz is not a trace, or is damaged .*write a new one with trace\.save"):
        Trace.load(path)


def test_damaged_byte_is_detected_or_harmless(tmp_path):
    path = save_sample(tmp_path)
    content = path.read_bytes()
    for position in range(100, len(content), len(content) // 40):
        path.write_bytes(content[:position] + bytes([content[position] ^ 0xFF]) + content[position + 1 :])
        with suppress(SimtError):  # or the byte means nothing
            assert Trace.load(path) == sample()


@pytest.mark.parametrize(
    "content", [b"", b"text", b"\x93NUMPY\x01\x00v\x00", b"PK\x05\x06" + bytes(18), b"\x80\x04K\x01.", b"\x93NUMPY"]
)
def test_file_of_another_format_is_rejected(tmp_path, content):
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(SimtError, match="other is not a trace"):
        Trace.load(path)


def test_arrays_without_a_trace_are_rejected(tmp_path):
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(SimtError, match="is not a trace"):
        Trace.load(tmp_path / "other.npz")
    np.save(tmp_path / "other.npy", np.zeros(3))
    with pytest.raises(SimtError, match="is not a trace"):
        Trace.load(tmp_path / "other.npy")
    with pytest.raises(FileNotFoundError):
        Trace.load(tmp_path / "absent.npz")


def rewrite_tables(path, edit, drop=()):
    """Edit the tables of a file, and drop some of its columns."""
    with np.load(path) as found:
        parts = {name: found[name] for name in found.files if name not in drop}
    tables = json.loads(parts.pop("tables.json").tobytes())
    edit(tables)
    np.savez(path, **{"tables.json": np.frombuffer(json.dumps(tables).encode(), np.uint8)}, **parts)


def test_unknown_version_is_rejected_with_its_number(tmp_path):
    path = save_sample(tmp_path)
    rewrite_tables(path, lambda tables: tables.update(version=99))
    with pytest.raises(SimtError, match="of version 99; this version of minifuse reads 'minifuse trace' of version 1"):
        Trace.load(path)


@pytest.mark.parametrize(
    ("edit", "drop"),
    [
        (lambda tables: None, ["event.address"]),
        (lambda tables: None, ["output.1"]),
        (lambda tables: tables.pop("grid"), []),
        (lambda tables: tables.update(arrays=[[1]]), []),
        (lambda tables: tables.update(more=1), []),
        (lambda tables: tables.update(findings=[3]), []),
    ],
)
def test_file_with_a_missing_part_is_rejected(tmp_path, edit, drop):
    path = save_sample(tmp_path)
    rewrite_tables(path, edit, drop)
    with pytest.raises(SimtError, match="lacks a part of a trace"):
        Trace.load(path)


def test_columns_of_wrong_length_or_dtype_are_rejected(tmp_path):
    path = save_sample(tmp_path)
    with np.load(path) as found:
        parts = {name: found[name] for name in found.files}
    np.savez(path, **parts | {"event.thread": parts["event.thread"][1:]})
    with pytest.raises(SimtError, match="column thread has dtype int32 and shape"):
        Trace.load(path)
    np.savez(path, **parts | {"event.value": parts["event.value"].astype(complex)})
    with pytest.raises(SimtError, match="column value has dtype complex128"):
        Trace.load(path)


def test_trace_files_contain_and_load_no_pickle(tmp_path):
    with zipfile.ZipFile(save_sample(tmp_path)) as found:
        for name in found.namelist():
            with found.open(name) as member:
                version = np.lib.format.read_magic(member)
                assert version == (1, 0)
                assert not np.lib.format.read_array_header_1_0(member)[2].hasobject
    np.savez(tmp_path / "evil.npz", **{"tables.json": np.array([object()])})
    with pytest.raises(SimtError, match="is not a trace"):
        Trace.load(tmp_path / "evil.npz")


def test_hazards_are_ordered_findings_races_outputs():
    rows = [Access(thread, STORE, 4096, array=1) for thread in range(2)]
    finding = OutOfBoundsError("x")
    assert [type(error) for error in build_trace(rows, findings=[finding]).hazards()] == [
        OutOfBoundsError,
        RaceError,
        UnwrittenOutputError,
    ]
    cut_short = build_trace(rows, findings=[finding], is_complete=False)
    assert [type(error) for error in cut_short.hazards()] == [OutOfBoundsError, RaceError]
    assert [type(error) for error in build_trace(rows, fresh=()).hazards()] == [RaceError]
    assert build_trace().hazards() == []


def test_summary_is_json_under_truth_labels():
    summary = sample().summary()
    assert json.loads(json.dumps(summary)) == summary
    assert summary["TRACED"] == {
        "events": 82,
        "barriers": {"syncthreads": 1, "grid": 1},
        "collectives": {"shfl_down_sync": 1},
        "elements_not_written": {"out": 63},
    }
    assert summary["DERIVED"] == {
        "requests": 6,
        "partial_requests": 2,
        "hazards": {"OutOfBoundsError": 1, "BarrierError": 1, "RaceError": 2},
    }
    assert "cache hits" in summary["not_modelled"]
    assert (summary["kernel"], summary["grid"], summary["block"]) == ("kernel", [2, 1, 1], [8, 5, 1])


def test_spaces_arrays_and_lines_have_equal_counts():
    summary = sample().summary()
    # One warp of 32 lanes stores to four words of one bank, one of 8 lanes too; loads of 32 + 8 neighbours; one atomic.
    assert summary["spaces"]["shared"] == {
        "TRACED": {"loads": 0, "stores": 40, "atomics": 0, "bytes_requested": 160},
        "DERIVED": {
            "requests": 2,
            "sectors": 0,
            "ideal_sectors": 0,
            "efficiency": None,
            "cache_lines": 0,
            "bytes_moved": 0,
            "wavefronts": 8,
            "bank_conflicts": 6,
        },
    }
    assert summary["spaces"]["global"] == {
        "TRACED": {"loads": 40, "stores": 0, "atomics": 1, "bytes_requested": 164},
        "DERIVED": {
            "requests": 3,
            "sectors": 6,
            "ideal_sectors": 6,
            "efficiency": 1.0,
            "cache_lines": 3,
            "bytes_moved": 192,
            "wavefronts": 0,
            "bank_conflicts": 0,
        },
    }
    for info, of_array in zip(ARRAYS, summary["arrays"], strict=True):
        assert (of_array["name"], of_array["space"], of_array["dtype"]) == (info.name, info.space, info.dtype)
        of_space = summary["spaces"][info.space]  # each space has one array here
        assert (of_array["TRACED"], of_array["DERIVED"]) == (of_space["TRACED"], of_space["DERIVED"])
    assert [(line["line"], line["DERIVED"]["requests"]) for line in summary["lines"]] == [(41, 2), (44, 2), (47, 2)]
    assert [line["DERIVED"]["active_lanes"] for line in summary["lines"]] == [40, 40, 2]
    assert [line["DERIVED"]["possible_lanes"] for line in summary["lines"]] == [40, 40, 64]
    assert [line["DERIVED"]["partial_requests"] for line in summary["lines"]] == [0, 0, 2]


def test_a_trace_without_events_has_a_summary():
    summary = build_trace(instructions=[], arrays=[], barriers=[], collectives=[]).summary()
    assert summary["TRACED"]["events"] == summary["DERIVED"]["requests"] == 0
    assert summary["lines"] == summary["arrays"] == []


def test_reuse_takes_an_array_name():
    assert sample().reuse("out").distinct == 40
    with pytest.raises(SimtError, match="the launch of kernel has no array 'inn'; it has 'tile', 'out', 'table'"):
        sample().reuse("inn")


def test_repr_describes_the_trace():
    assert repr(sample()) == "<Trace of kernel, grid (2, 1, 1), block (8, 5, 1), seed 7: 82 events, cut short>"
    assert build_trace().threads == 40
