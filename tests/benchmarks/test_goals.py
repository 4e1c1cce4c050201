"""Goals: each has rows, each row has a target, and the page compares them with the saved results."""

import json

import pytest

from project.benchmarks import __main__ as command
from project.benchmarks import overview, page
from project.benchmarks.goals import GOALS
from project.benchmarks.row import US
from project.benchmarks.suites import every_suite

ROWS = {(row.group, row.name): row for suite in every_suite() for row in suite.rows}
GPU_GROUPS = {row.group for suite in every_suite() if suite.is_on_gpu for row in suite.rows}


def test_there_are_eleven_goals_per_device():
    assert [sum(goal.is_on_gpu == where for goal in GOALS) for where in (True, False)] == [11, 11]
    assert len({goal.work for goal in GOALS}) == len(GOALS)


@pytest.mark.parametrize("goal", [pytest.param(goal, id=goal.work) for goal in GOALS])
def test_each_goal_has_rows_with_targets(goal):
    assert goal.rows
    for place in goal.rows:
        assert place in ROWS, place
        assert ROWS[place].targets, place
        assert (place[0] in GPU_GROUPS) == goal.is_on_gpu


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (("gpu-fusion-memory", "chain of 8"), ["torch.compile at least 1.00x", "cupy.fuse at least 1.60x"]),
        (("gpu-fusion-memory", "((a - b) ** 2).sum()"), ["torch.compile at least 1.02x"]),
        (("gpu-fusion-memory", "softmax, 65536 x 1001"), ["torch.compile at least 1.10x"]),
        (("gpu-sums", "x.sum(0)"), ["each peer at least 1.00x"]),
        (("gpu-matmul", "512 x 512 x 512"), ["torch at least 1.00x"]),
        (("gpu-matmul", "4095 x 4095 x 4095"), ["torch at least 0.95x"]),
        (("gpu-tensor-cores", "4096 x 4096 x 4096, tf32"), ["torch at least 0.90x"]),
        (("gpu-host", "a + b"), ["at most 7 us"]),
        (("gpu-compile", "first call of a function, nothing on disk"), ["at most 100 ms"]),
        (("gpu-compile", "first call of a function, a second process"), ["at most 10 ms"]),
        (("fusion-large", "chain of 8"), ["torch.compile at least 2.50x"]),
        (("fusion-large", "polynomial"), ["torch.compile at least 5.00x"]),
        (("large", "a + b"), ["torch at least 5.00x"]),
        (("large", "x.logsumexp(1)"), ["torch at least 1.50x"]),
        (("fusion-large", "layer norm"), ["torch.compile at least 1.50x"]),
        (("large", "x.sum(1)"), ["torch at least 1.00x"]),
        (("fusion-large", "exp(x.T) * 2"), ["torch at least 3.00x"]),
        (("matmul", "1024 x 1024 x 1024, float32"), ["numpy at least 1.00x"]),
        (("fusion-matmul", "relu(x @ w + b), 1024 x 1024 x 1024"), ["numpy at least 1.10x"]),
        (("host", "a + b"), ["torch at least 0.91x"]),
        (("fusion-host", "chain of 8"), ["at most 3 us"]),
        (("start", "import"), ["at most 0.10 s more than numba"]),
        (("costs-compiling", "first call of a function, a second process"), ["at most 5 ms"]),
        (("costs-compiling", "first call with another size"), ["at most 0.5 ms"]),
    ],
)
def test_rows_have_the_targets_of_their_goals(place, words):
    known = [target.words for target in ROWS[place].targets]
    assert set(words) <= set(known)


def result(place, seconds, **ratios):
    found = {"group": place[0], "name": place[1], "counts": {}, "targets": []}
    times = {US: {"median": seconds}} | {who.replace("_", "."): {"median": seconds * x} for who, x in ratios.items()}
    return found | {"times": times, "ratios": {who.replace("_", "."): {"median": x} for who, x in ratios.items()}}


def test_newest_results_are_compared_with_current_targets():
    place = ("fusion-large", "chain of 8")
    stale = [{"words": "torch.compile at least 2.00x", "bound": 2.0, "value": 2.4, "met": True}]
    old = {"date": "2026-11-01", "rows": [result(place, 1e-2, torch_compile=2.6)]}
    work = {"targets": stale, "work": {"operations": 8e7, "nbytes": 4e8}}
    roofs = {"copy_gb_per_s": 40.0, "fma_gflop_per_s": 400.0}
    new = {"date": "2026-11-02", "rows": [result(place, 2e-2, torch_compile=2.4) | work], "roofs": roofs}
    other = {"date": "2026-11-03", "rows": [result(("fusion-host", "chain of 8"), 2.5e-6)]}
    files = {name: overview.judge_again(found) for name, found in (("old", old), ("new", new), ("other", other))}
    lines = {(line.group, line.name): line for line in overview.lines_of(files)}
    cells = overview.cells_of(lines[place], "the link")
    assert cells[2:] == ["chain of 8", "20.0 ms", "not met: torch.compile at least 2.50x", "2.40x", "50%", "the link"]
    assert lines[place].file == "new"
    assert overview.cells_of(lines["fusion-host", "chain of 8"], "")[3:5] == ["2.50 us", "met: at most 3 us"]
    assert overview.cells_of(lines["large", "a + b"], "")[3] == "not measured yet"
    assert overview.summary(files) == f"Of {len(GOALS)} lines 1 are met as a whole, and 20 are not measured as a whole yet."


def test_page_has_all_goals_and_their_files():
    first = (page.GUIDE / page.GOALS).read_text(encoding="utf-8").partition(page.BEGIN)[2].partition(page.END)[0]
    for goal in GOALS:
        assert f"| {page.escape_cell(goal.work)} | {page.escape_cell(goal.wanted)} |" in first
    for line in overview.lines_of(page.load_results(command.RESULTS)):
        if line.file:
            assert f"[{line.file}](../../../project/benchmarks/results/{line.file})" in first


def test_page_links_a_picture_of_the_curves(tmp_path):
    from tests.benchmarks.test_curves import ROOFED, SWEPT

    known = {"rows": [*SWEPT["rows"], *ROOFED["rows"]], "roofs": ROOFED["roofs"]}
    (tmp_path / "cpu-any-sweeps.json").write_text(json.dumps(SWEPT | known))
    folder = tmp_path / "guide" / page.FOLDER
    folder.mkdir(parents=True)
    for path in (tmp_path / "guide" / page.FIRST, tmp_path / "guide" / page.GOALS):
        path.write_text(f"{page.BEGIN}\n{page.END}")
    (folder / "gone.svg").write_text("")
    (folder / "gone.md").write_text(f"# Gone\n\n{page.MADE}\n")
    (folder / "by-hand.md").write_text("# Kept\n")
    page.write(tmp_path, tmp_path / "guide")
    text = (folder / "cpu-any-sweeps.md").read_text()
    assert "![Curves and roofs of cpu-any-sweeps.json](cpu-any-sweeps.svg)" in text
    assert "- minifuse is faster at all sizes: than torch" in text
    assert sorted(path.name for path in folder.iterdir()) == [
        "by-hand.md",
        "cpu-any-sweeps.md",
        "cpu-any-sweeps.svg",
        "goals.md",
    ]
    assert "Under the roof" in (folder / "cpu-any-sweeps.svg").read_text()
