"""`minifuse check`: correct scripts have no hazards, broken ones have theirs at the lines that comments mark."""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from minifuse.cli.commands import app
from minifuse.cli.files import RequestError, refuse_cuda_cpp
from minifuse.core import errors
from minifuse.simt.check import check
from tests.sources import ROOT

SCRIPTS = {path.stem: path for path in sorted((Path(__file__).parent / "scripts").glob("*.py"))}
MARKS = {
    "race": errors.RaceError,
    "out of bounds": errors.OutOfBoundsError,
    "uninitialised": errors.UninitializedReadError,
    "barrier": errors.BarrierError,
}
MARK = re.compile(rf"({'|'.join(MARKS)})(?:: (?:read|write|allocation))?(?:, |$)")


def marked_hazards(path):
    """Return the lines that comments of a script mark, by the class of hazard: {class: {line, ...}}."""
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for mark in MARK.finditer(line.partition("  # ")[2]):
            found.setdefault(MARKS[mark[1]], set()).add(number)
    return found


BROKEN = [name for name, path in SCRIPTS.items() if marked_hazards(path)]
RIGHT = [name for name in SCRIPTS if name not in BROKEN]


def write(folder, source, name="script.py"):
    """Write a script, and return its path."""
    path = folder / name
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    return path


def invoke(*arguments):
    """Run the command in this process, on a terminal of 80 columns."""
    return CliRunner().invoke(app, ["check", *map(str, arguments)], env={"COLUMNS": "80", "TERM": "dumb"})


def spawn(*arguments, **options):
    """Run the command in a child process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "minifuse", "check", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False, **options)


@pytest.mark.parametrize("name", RIGHT)
def test_correct_script_has_no_hazard(name, capsys):
    report = check(SCRIPTS[name])
    assert report.failure is None
    assert [finding.error for finding in report.findings] == []
    assert report.status == 0
    assert report.launches > 0
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("name", BROKEN)
def test_broken_script_is_reported_at_the_marked_lines(name):
    report = check(SCRIPTS[name])
    (expected,) = marked_hazards(SCRIPTS[name]).items()
    found = {type(finding.error) for finding in report.findings}
    lines = {line for finding in report.findings for _, line in finding.error.lines}
    files = {Path(file) for finding in report.findings for file, _ in finding.error.lines}
    assert (report.failure, report.status) == (None, 1)
    assert ({expected[0]}, expected[1], {SCRIPTS[name]}) == (found, lines, files)


def test_correct_and_broken_scripts_exist():
    assert len(RIGHT) >= 20
    assert len(BROKEN) >= 15
    assert set().union(*(marked_hazards(SCRIPTS[name]) for name in BROKEN)) == set(MARKS.values())


def test_hazards_are_grouped_by_kernel_and_lines():
    report = check(SCRIPTS["heat_equation_in_place"])
    assert report.launches == 3
    assert report.kernels == ["step"]
    for finding in report.findings:
        assert (finding.kernel, finding.launch, finding.count) == ("step", 1, 3)
        assert source_text(finding.line) == "step[2, 24](rod, 0.4)"
    assert report.verdict() == f"3 launches of 1 kernel: {len(report.findings)} hazards".replace("1 hazards", "1 hazard")


def test_two_races_at_one_line_are_one_hazard():
    (finding,) = check(SCRIPTS["dot_without_atomics"]).findings
    assert finding.count == 1


def test_hazards_caught_by_the_script_are_counted(tmp_path):
    script = write(
        tmp_path,
        """
        import numpy as np
        from numba import cuda

        @cuda.jit
        def kernel(a):
            a[cuda.grid(1)] = 1

        for attempt in range(3):
            try:
                kernel[1, 4](np.zeros(3))
            except RuntimeError:
                if attempt == 2:
                    raise
        """,
    )
    report = check(script)
    (finding,) = report.findings
    assert (finding.count, report.launches, report.failure, report.status) == (3, 3, None, 1)


def source_text(line):
    return Path(line[0]).read_text(encoding="utf-8").splitlines()[line[1] - 1].strip()


def test_command_prints_a_paragraph_for_each_hazard():
    result = invoke(SCRIPTS["block_sum_missing_barrier"])
    assert result.exit_code == 1
    text = result.output
    assert "RaceError: shared array 'cache' element" in text
    first, second = sorted(marked_hazards(SCRIPTS["block_sum_missing_barrier"])[errors.RaceError])
    assert f"\n  block_sum_missing_barrier.py:{first}  cache[t] = a[i]  # race: write\n" in text
    assert f"\n  block_sum_missing_barrier.py:{second}  out[i] = cache[t] + cache[t + 32]" in text
    assert "\n  kernel block_sum, launch 1 at block_sum_missing_barrier.py:20\n" in text
    assert text.endswith("1 launch of 1 kernel: 1 hazard\n")
    assert max(map(len, text.splitlines())) <= 80


def test_script_output_arguments_and_exit_status_pass_through(tmp_path):
    script = write(
        tmp_path,
        """
        import sys
        from numba import cuda
        print("arguments", sys.argv[1:], __name__)
        sys.exit(3)
        """,
    )
    result = spawn(script, "--", "-x", "--json", cwd=tmp_path)
    assert (result.stdout, result.stderr) == ("arguments ['-x', '--json'] __main__\nno kernel was launched\n", "")
    assert result.returncode == 3


def test_json_is_the_only_standard_output(tmp_path):
    result = spawn(SCRIPTS["histogram_without_atomics"], "--json", cwd=tmp_path)
    facts = json.loads(result.stdout)
    assert (facts["launches"], facts["kernels"], facts["status"], facts["exception"]) == (1, ["histogram"], 1, None)
    (line,) = marked_hazards(SCRIPTS["histogram_without_atomics"])[errors.RaceError]
    for hazard in facts["hazards"]:
        assert hazard["error"] == "RaceError"
        assert {tuple(at) for at in hazard["lines"]} == {(str(SCRIPTS["histogram_without_atomics"]), line)}
        assert (hazard["array"], hazard["kernel"], hazard["launch"]) == ("counts", "histogram", 1)
    assert spawn(SCRIPTS["map"], "--json", cwd=tmp_path).stdout.startswith("{")


RACE_WITH_AN_ORDER = textwrap.dedent("""
    import numpy as np
    from numba import cuda

    @cuda.jit
    def last_wins(out):
        out[0] = cuda.grid(1)

    @cuda.jit
    def add(out):
        cuda.atomic.add(out, 0, 1)

    out = np.zeros(1, np.int32)
    add[2, 64](out)
    last_wins[2, 64](out)
    print("out", out[0])
    """)


def test_schedules_report_launches_whose_results_differ(tmp_path):
    script = write(tmp_path, RACE_WITH_AN_ORDER)
    report = check(script, schedules=8)
    (found,) = report.schedules
    assert (found.kernel, found.launch, found.tried, found.count) == ("last_wins", 2, 8, 1)
    assert source_text(found.line) == "last_wins[2, 64](out)"
    assert set(found.seeds) <= set(range(1, 8))
    last = found.seeds[-1]
    result = invoke(script, "--schedules", last + 1)
    assert "out 127\n" in result.output  # the script continues with the result of seed 0, not of the last seed
    told = f"in launch 2 at script.py:{found.line[1]} differs in {len(found.seeds)} of {last + 1} schedules; "
    assert f"the result of last_wins {told}seed {found.seeds[0]} replays it." in " ".join(result.output.split())
    (found,) = check(SCRIPTS["heat_equation_in_place"], schedules=3).schedules
    assert (found.launch, found.count) == (1, 3)
    assert "no results differ in 3 schedules" in invoke(SCRIPTS["histogram"], "--schedules", 3).output


def test_trace_option_saves_the_launch_of_the_first_hazard(tmp_path):
    from minifuse.simt.trace import Trace

    on_device = RACE_WITH_AN_ORDER.replace("np.zeros(1, np.int32)", "cuda.to_device(np.zeros(1, np.int32))")
    script, file = write(tmp_path, on_device + "add[1, 1](out)\n"), tmp_path / "out.npz"
    assert invoke(script, "--trace", file).exit_code == 1
    found = Trace.load(file)
    assert found.kernel == "last_wins"
    assert found.outputs["out"][0] == 127  # the next launch changes it to 128
    assert invoke(SCRIPTS["guard"], "--trace", file).exit_code == 0
    assert Trace.load(file).kernel == "add_ten"


def test_traceback_shows_only_lines_of_the_script(tmp_path):
    script = write(
        tmp_path,
        """
        import numpy as np
        from numba import cuda

        @cuda.jit
        def kernel(a):
            a[0] = missing_name

        def start():
            kernel[1, 1](np.zeros(1))

        start()
        """,
    )
    result = invoke(script)
    assert result.exit_code == 2
    frames = re.findall(r'File "(.*)", line (\d+), in (\w+|<module>)', result.stderr)
    assert [(Path(file).name, name) for file, _, name in frames][:2] == [("script.py", "<module>"), ("script.py", "start")]
    assert all(Path(file).name == "script.py" for file, _, _ in frames)
    assert "missing_name" in result.stderr
    assert result.stdout == "1 launch of 1 kernel: no hazards before the script ended by UnknownWordError\n"


def test_unknown_names_are_errors_with_their_line(tmp_path):
    source = "from numba import cuda\n\n@cuda.jit\ndef kernel(a):\n    a[0] = cuda.frobnicate(3)\n\n"
    result = invoke(write(tmp_path, source + "import numpy as np\nkernel[1, 1](np.zeros(1))\n"))
    assert result.exit_code == 2
    assert re.search(r"UnknownWordError: cuda\.frobnicate.*script\.py:5", result.stderr)
    result = invoke(write(tmp_path, "from numba import cuda\n\ncuda.declare_device('f', 'float32(float32)')\n"))
    assert result.exit_code == 2
    assert re.search(r"UnknownWordError: cuda\.declare_device at script\.py:3", result.stderr)


def test_exit_status_is_1_for_a_hazard_before_an_exception(tmp_path):
    report = check(write(tmp_path, RACE_WITH_AN_ORDER + "raise ValueError('afterwards')\n"))
    assert isinstance(report.failure, ValueError)
    assert report.status == 1


def test_failed_launch_ends_the_script(tmp_path):
    source = SCRIPTS["guard_missing"].read_text(encoding="utf-8")
    script = write(tmp_path, source + "\nprint('not reached')\n")
    result = invoke(script)
    assert result.exit_code == 1
    assert "not reached" not in result.output
    assert "Traceback" not in result.output + result.stderr
    (launched,) = [k for k, line in enumerate(source.split("\n"), 1) if "[" in line and "](" in line]
    ended = f"the script ended in launch 1 at script.py:{launched}; the rest of it was not checked\n"
    assert result.stdout.endswith(f"{ended}1 launch of 1 kernel: 1 hazard\n")


def test_ctrl_c_ends_the_script_with_what_was_found(tmp_path):
    source = """
import numpy as np
from numba import cuda

@cuda.jit
def race(a):
    a[0] = cuda.grid(1)

race[1, 64](np.zeros(1))
raise KeyboardInterrupt
"""
    result = invoke(write(tmp_path, source))
    assert result.exit_code == 130
    assert "RaceError" in result.stdout
    assert "Traceback" not in result.stderr
    assert result.stdout.endswith("1 launch of 1 kernel: 1 hazard\n")


def test_ctrl_c_in_a_launch_names_the_kernel_and_the_line(tmp_path, monkeypatch):
    from minifuse.simt.machine import Machine

    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Machine, "run", interrupt)
    result = invoke(SCRIPTS["map"])
    assert result.exit_code == 130
    assert re.search(r"^stopped in kernel \w+, launch 1 at map.py:\d+$", result.stdout, re.MULTILINE)
    assert result.stdout.endswith("1 launch of 1 kernel: no hazards before the script was stopped\n")


def test_races_at_one_array_are_printed_as_one_group(tmp_path):
    source = """
    import numpy as np
    from numba import cuda, float32

    @cuda.jit
    def fold(out, a):
        s = cuda.shared.array(64, float32)
        t = cuda.threadIdx.x
        s[t] = a[t]
        cuda.syncthreads()
        if t < 32:
            s[t] += s[t + 32]
            s[t] += s[t + 16]
            s[t] += s[t + 8]
        out[t] = s[t]

    fold[1, 64](np.zeros(64, np.float32), np.ones(64, np.float32))
    """
    script = write(tmp_path, source)
    count = len(check(script).findings)
    assert count > 3
    text = invoke(script).stdout
    assert text.count("RaceError") == 1
    pairs = f"and {count - 1} more pairs of lines with races of array 's' in lines 12 to 14 (--all)"
    assert pairs in " ".join(text.split())
    assert text.endswith(f"{count} hazards\n")
    assert invoke(script, "--all").stdout.count("RaceError") == count


def test_summary_prints_sectors_and_wavefronts_of_the_launches(tmp_path):
    source = """
    import numpy as np
    from numba import cuda, float32

    @cuda.jit
    def turn(out, a):
        s = cuda.shared.array((32, 32), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        s[y, x] = a[y, x]
        cuda.syncthreads()
        out[y, x] = s[x, y]

    a = np.ones((32, 32), np.float32)
    for k in range(2):
        turn[1, (32, 32)](np.zeros_like(a), a)
    """
    script = write(tmp_path, source)
    text = " ".join(invoke(script, "--summary").stdout.split())
    assert "kernel turn, 2 launches at script.py:15: 512 sectors, ideal 512; 2,112 wavefronts, of which 1,984" in text
    worst = "script.py:11 out[y, x] = s[x, y] 256 sectors, ideal 256; 2,048 wavefronts, of which 1,984 for bank conflicts"
    assert worst in text
    assert "s[y, x] = a[y, x]" not in text
    assert "wavefronts" not in invoke(script).stdout
    (summary,) = json.loads(invoke(script, "--summary", "--json").stdout)["summaries"]
    numbers = {name: summary[name] for name in ("kernel", "launch", "count", "sectors", "wavefronts", "bank_conflicts")}
    assert list(numbers.values()) == ["turn", 1, 2, 512, 2112, 1984]
    assert [line["bank_conflicts"] for line in summary["lines"]] == [0, 1984]


def test_a_trace_is_saved_where_its_folder_exists(tmp_path):
    file = tmp_path / "none" / "out.npz"
    result = invoke(SCRIPTS["map"], "--trace", file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"minifuse check: --trace {file}: the folder {file.parent} does not exist" in result.stderr
    file.parent.mkdir()
    file.mkdir()
    result = invoke(SCRIPTS["guard_missing"], "--trace", file)
    assert result.exit_code == 2
    assert "OutOfBoundsError" in result.stdout  # the report is printed first
    assert f"--trace {file}: " in result.stderr
    file.rmdir()
    printed = invoke(SCRIPTS["guard_missing"], "--trace", file).stdout
    assert f"trace in {file}; minifuse trace {file} prints it\n" in printed


def test_positions_have_as_many_numbers_as_the_launch_has_dims(tmp_path):
    source = """
    import numpy as np
    from numba import cuda

    @cuda.jit
    def fill(a):
        a[cuda.grid(1)] = 1

    fill[2, BLOCK](np.zeros(7))
    """
    (finding,) = check(write(tmp_path, source.replace("BLOCK", "4"))).findings
    assert "by thread 3 of block 1 at script.py:7" in str(finding.error)
    finding = check(write(tmp_path, source.replace("BLOCK", "(4, 2)"))).findings[0]
    assert "by thread (3, 0) of block 1 at script.py:7" in str(finding.error)


def test_cuda_cpp_is_refused_by_name(tmp_path):
    result = invoke(write(tmp_path, "__global__ void k(float *a) {}", "kernel.cu"))
    assert result.exit_code == 2
    assert "kernel.cu is CUDA C++; minifuse runs kernels written in Python for numba.cuda" in result.stderr
    with pytest.raises(RequestError, match=r"k\.cu is CUDA C\+\+"):
        refuse_cuda_cpp("k.cu:k")
    refuse_cuda_cpp("k.cu.py:k")


def test_launches_past_the_limit_run_unrecorded():
    report = check(SCRIPTS["transpose"], limit=100)
    assert (report.failure, report.status, report.unrecorded) == (None, 0, [1])  # the script checks its result itself
    result = invoke(SCRIPTS["block_sum_missing_barrier"], "--limit", 100)
    assert "1 launch has more than 100 memory accesses" in " ".join(result.output.split())
    assert "UninitializedReadError" in result.output  # only races need the recording
    assert result.exit_code == 1


def test_launch_past_the_limit_restarts_with_restored_memory(tmp_path):
    script = write(
        tmp_path,
        """
        import numpy as np
        from numba import cuda

        @cuda.jit
        def count(a):
            a[cuda.grid(1)] += 1

        a = cuda.to_device(np.zeros(64))
        count[2, 32](a)
        np.testing.assert_array_equal(a.copy_to_host(), 1)
        """,
    )
    report = check(script, limit=50)
    assert (report.failure, report.unrecorded) == (None, [1])


def test_interpreter_errors_are_not_hazards(tmp_path):
    script = write(
        tmp_path,
        """
        import numpy as np
        from numba import cuda

        @cuda.jit
        def kernel(a):
            a[0] = a[0] + (1, 2)

        kernel[1, 1](np.zeros(1))
        """,
    )
    report = check(script)
    assert report.findings == []
    assert report.status == 2
    assert "script.py:7" in str(report.failure)


def test_missing_script_is_an_error():
    result = invoke("nowhere.py")
    assert result.exit_code == 2
    assert "nowhere.py" in result.stderr


TESTS = """
    import numpy as np
    import pytest
    from numba import cuda

    @cuda.jit
    def fill(a, value):
        a[cuda.grid(1)] = value

    @pytest.mark.parametrize("n", [5, 8])
    def test_fill(n):
        a = np.zeros(8)
        fill[1, n](a, 7)
        assert (a[:n] == 7).all()

    def test_too_far():
        fill[1, 9](np.zeros(8), 7)
    """


def test_pytest_runs_test_files(tmp_path):
    script = write(tmp_path, TESTS, "test_kernels.py")
    result = spawn(script, "-q", "-p", "no:cacheprovider", cwd=tmp_path)
    assert result.returncode == 1
    assert "1 failed, 2 passed" in result.stdout
    assert "OutOfBoundsError" in result.stdout
    assert result.stdout.endswith("3 launches of 1 kernel: 1 hazard\n")
    result = spawn(script, "-q", "-p", "no:cacheprovider", "-k", "test_fill", cwd=tmp_path)
    assert result.returncode == 0
    assert result.stdout.endswith("2 launches of 1 kernel: no hazards\n")


def test_modules_next_to_the_script_are_checked_and_unloaded(tmp_path):
    write(
        tmp_path, "import numba.cuda as nc\n\n@nc.jit(device=True)\ndef twice(x):\n    return 2 * x\n", "device_functions.py"
    )
    script = write(
        tmp_path,
        """
        import numba.cuda
        import numpy as np
        from device_functions import twice
        from numba import float32, prange, types

        @numba.cuda.jit
        def kernel(a):
            i = numba.cuda.grid(1)
            tile = numba.cuda.shared.array(4, types.float32)
            tile[i] = twice(a[i])
            a[i] = numba.float32(tile[i]) + float32(1)

        @numba.njit
        def total(a):
            result = 0.0
            for i in prange(a.size):
                result += a[i]
            return result

        a = np.arange(4, dtype=np.float32)
        kernel[1, 4](a)
        assert total(a) == 16
        """,
    )
    argv, folders, modules = list(sys.argv), list(sys.path), set(sys.modules)
    report = check(script)
    assert (report.failure, report.status) == (None, 0)
    assert (sys.argv, sys.path) == (argv, folders)
    assert "device_functions" not in set(sys.modules) - modules


def test_check_needs_no_numba_cuda_and_leaves_none_imported(tmp_path):
    code = f"""
    import sys
    for name in ("numba_cuda", "cuda", "cuda.bindings"):
        sys.modules[name] = None
    from pathlib import Path
    from minifuse.simt.check import check
    report = check(Path({str(SCRIPTS["monte_carlo_pi"])!r}))
    assert report.status == 0, report.failure
    print([name for name in sys.modules if name.startswith("numba.cuda")], hasattr(sys.modules["numba"], "cuda"))
    """
    script = write(tmp_path, code, "probe.py")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=environment, timeout=60, check=False
    )
    assert result.stdout.splitlines()[-1:] == ["[] False"], result.stderr


def test_schedules_restore_views_of_one_array(tmp_path):
    """Between the runs of --schedules, memory is restored, even if two arguments are views of one array."""
    script = write(
        tmp_path,
        """
        import numpy as np
        from numba import cuda

        @cuda.jit
        def shift(left, right):
            i = cuda.grid(1)
            if i < left.size:
                left[i] = right[i] + 1

        a = cuda.to_device(np.arange(20.0))
        shift[1, 16](a[:10], a[10:])
        np.testing.assert_array_equal(a.copy_to_host(), [*range(11, 21), *range(10, 20)])
        """,
    )
    report = check(script, schedules=5)
    assert (report.failure, report.schedules, report.status) == (None, [], 0)
    assert np.isfinite(report.launches)
