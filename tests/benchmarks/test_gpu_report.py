"""GPU results in the command line, the report and the page, from a small file of invented results."""

import pytest

from project.benchmarks import __main__ as command
from project.benchmarks import gpu, page, terminal
from project.benchmarks.row import US
from project.benchmarks.rows import rows_of
from tests.benchmarks.test_gpu_benchmarks import check_gpu_fields


@pytest.fixture
def _set_no_threads(monkeypatch):
    monkeypatch.setattr("project.benchmarks.peers.prepare", lambda: None)


@pytest.mark.usefixtures("_set_no_threads")
def test_missing_gpu_is_reported_in_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(gpu, "absence", lambda: "no NVIDIA driver is installed")
    assert command.main(["gpu", "--json", str(tmp_path / "out.json")]) == 1
    output = capsys.readouterr()
    assert output.err == "rows of a GPU: nothing is measured, since no NVIDIA driver is installed\n"
    assert not output.out
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("_set_no_threads")
def test_gpu_results_are_saved_under_the_device_name(monkeypatch, tmp_path, capsys):
    asked = []

    def fake_run(rows, modules, missing, seed, is_quick, tell, is_on_gpu, save, lock):
        asked.append(([row.name for row in rows], is_on_gpu))
        return invented_results()

    monkeypatch.setattr(gpu, "absence", lambda: "")
    monkeypatch.setattr(gpu, "load", lambda names: ({}, dict.fromkeys(names, "not here")))
    monkeypatch.setattr("project.benchmarks.run.run", fake_run)
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    assert command.main(["gpu"]) == 0
    assert asked == [([row.name for row in rows_of(True)], True)]
    assert [path.name for path in tmp_path.iterdir()] == ["gpu-h200.json"]
    assert command.main(["gpu", "--quick"]) == command.main(["gpu", "--against", "torch"]) == 0
    assert command.main(["gpu-sums"]) == 0
    assert len(list(tmp_path.iterdir())) == 1
    assert asked[-1][0] == [row.name for row in rows_of(True) if row.group == "gpu-sums"]
    assert command.main(["gpu", "--against", "numpy"]) == 2
    assert "--against numpy: expected some of torch, cupy" in capsys.readouterr().err


def invented_results():
    """Return a small file of GPU results."""

    def spread(x):
        return {"median": x, "q1": 0.9 * x, "q3": 1.1 * x}

    def row(group, name, seconds, ratios, **rest):
        times = {US: spread(seconds)} | {who: spread(seconds * x) for who, x in ratios.items()}
        ratios = {who: spread(x) for who, x in ratios.items()}
        common = {"load": 1.0, "errors": {}, "rounds": 5, "calls": dict.fromkeys(times, 1), "counts": {}, "targets": []}
        return {"group": group, "name": name, **common, "times": times, "ratios": ratios, **rest}

    met = [{"words": "copy at least 0.90x", "bound": 0.9, "value": 0.95, "met": True}]
    return {
        "format": 1,
        "date": "2026-11-20T10:00:00+00:00",
        "quick": False,
        "seed": 1,
        "machine": {
            "processor": "A | processor",
            "microarchitecture": "any",
            "cores": 16,
            "memory_gib": 128.0,
            "vector_features": ["avx512f"],
            "system": "Linux x86_64",
        },
        "device": {
            "name": "NVIDIA H200",
            "compute_capability": "9.0",
            "multiprocessors": 132,
            "driver": "for CUDA 13.0",
            "flushed_mib": 128,
        },
        "versions": {"python": "3.12.3", "minifuse": "0.1.0", "numpy": "2.4.6", "numba": "0.68.1", "blas of numpy": "any"},
        "threads": {},
        "environment": {"OMP_WAIT_POLICY": "passive"},
        "load": {"before": [1.0, 1.0, 1.0], "after": [2.0, 1.0, 1.0]},
        "missing": {"cupy": "cupy cannot be loaded (ImportError)"},
        "rows": [
            row("gpu-memory", "a + b", 2e-4, {"copy": 0.95}, gb_per_s={US: 4000.0, "copy": 4210.0}, targets=met),
            row("gpu-ladder", "naive, 1024", 2e-3, {"torch": 0.02}, gflop_per_s={US: 1074.0, "torch": 50_123.0}),
            row("gpu-host", "a + b", 4e-6, {"torch": 1.25}, broken={"cupy": "RuntimeError: no compiler"}),
        ],
    }


def test_invented_results_have_all_fields():
    check_gpu_fields(invented_results())


def test_report_shows_rates_and_a_table_of_all_rows(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "160")
    terminal.show(invented_results())
    text = capsys.readouterr().out
    for words in ("NVIDIA H200, compute capability 9.0, 132 multiprocessors, driver for CUDA 13.0", "targets met: 1 of 1"):
        assert words in text
    assert "a + b without cupy: RuntimeError: no compiler" in text
    assert "threads:" not in text
    *_, header, memory, ladder, host = [line.split("  ") for line in text.strip().splitlines()]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in (header, memory, ladder, host)]
    assert cells == [
        [US, "copy", "torch", "target"],
        ["gpu-memory a + b", "200 us, 4,000 GB/s", "0.95x 4,210 GB/s", "met: copy at least 0.90x"],
        ["gpu-ladder naive, 1024", "2.00 ms, 1.07 TFLOP/s", "0.02x 50.1 TFLOP/s"],
        ["gpu-host a + b", "4.00 us", "1.25x"],
    ]


def test_each_file_of_results_has_a_page(tmp_path):
    for path in command.RESULTS.glob("cpu-*.json"):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    command.keep(tmp_path / "gpu-h200.json", invented_results())
    made = page.generate(tmp_path)
    assert "[AMD EPYC (znver5)](speed/cpu-znver5.md) | [NVIDIA H200](speed/gpu-h200.md) |" in made[page.FIRST]
    text = made["speed/gpu-h200.md"]
    assert text.startswith("# NVIDIA H200\n")
    assert "All numbers are in [gpu-h200.json](../../../project/benchmarks/results/gpu-h200.json)." in text
    assert "## Memory of the GPU: 2^26 float32, x of (8192, 8192)" in text
    assert "| a + b | 200 us, 4,000 GB/s | 0.95x (0.85 to 1.04) | met: copy at least 0.90x |" in text
    assert "A | processor" in text
