"""pytest_minifuse: the fixture and marker for backends, and `--backends`."""

import subprocess
import sys

import pytest

import minifuse as mf

pytest_plugins = "pytester"
PLUGIN = "pytest_minifuse"

NAMES = ", ".join(mf.backends())
COUNT = len(mf.backends())

for name in mf.backends():  # NumPy and Numba can be loaded once, and pytester unloads what a run has loaded
    mf.zeros(1, backend=name)

TEST = """
    import pytest
    import minifuse as mf

    def test_it(backend):
        assert mf.zeros(2).backend == backend
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Run pytest with nothing but the plugin on what was made in this folder."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_PLUGINS", raising=False)
    return lambda *arguments: pytester.runpytest_inprocess("-p", PLUGIN, "-p", "no:cacheprovider", "-v", *arguments)


def test_the_fixture_runs_a_test_on_every_backend(pytester, run):
    pytester.makepyfile(TEST)
    result = run()
    result.assert_outcomes(passed=COUNT)
    result.stdout.fnmatch_lines([f"*::test_it?{name}? PASSED*" for name in mf.backends()])


def test_other_tests_are_left_alone(pytester, run):
    pytester.makepyfile("""
        import minifuse as mf

        def test_it():
            assert mf.zeros(2).backend == "parallel"
    """)
    run().assert_outcomes(passed=1)


def test_the_default_backend_is_the_old_one_afterwards(pytester, run):
    pytester.makepyfile("""
        import minifuse as mf

        def test_a(backend):
            mf.set_default_backend("python")

        def test_b():
            assert mf.zeros(2).backend == "parallel"
    """)
    run().assert_outcomes(passed=COUNT + 1)


def test_the_marker_restricts(pytester, run):
    pytester.makepyfile("""
        import pytest

        @pytest.mark.backends("python")
        def test_it(backend):
            assert backend == "python"
    """)
    run("--strict-markers").assert_outcomes(passed=1)


def test_the_command_line_multiplies_every_test(pytester, run):
    """Without a word in the tests: also fixtures and other parameters are made anew on each backend."""
    pytester.makepyfile("""
        import pytest
        import minifuse as mf

        @pytest.fixture(autouse=True)
        def x():
            return mf.zeros(3)

        @pytest.mark.parametrize("k", [1, 2])
        def test_function(x, k):
            print("made on", x.backend)

        class TestClass:
            def test_method(self, x):
                print("made on", mf.zeros(3).backend)
    """)
    result = run("--backends", "python, parallel", "-s")
    result.assert_outcomes(passed=6)
    assert result.stdout.str().count("made on python") == result.stdout.str().count("made on parallel") == 3


def test_the_command_line_and_the_marker_meet(pytester, run):
    pytester.makepyfile("""
        import pytest

        @pytest.mark.backends("parallel")
        def test_skipped(): ...

        @pytest.mark.backends("parallel", "python")
        def test_run(backend):
            assert backend == "python"
    """)
    result = run("--backends=python", "-rs")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["*runs on parallel alone, and --backends names python"])


@pytest.mark.parametrize("names", ["python,abacus", "abacus", "", "python,"])
def test_an_unknown_backend_on_the_command_line_is_a_usage_error(pytester, run, names):
    pytester.makepyfile(TEST)
    result = run(f"--backends={names}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --backends: backend '*' does not exist; choose one of {NAMES}"])


def test_an_unknown_backend_in_a_marker_is_an_error(pytester, run):
    pytester.makepyfile("""
        import pytest

        @pytest.mark.backends("abacus")
        def test_it(backend): ...
    """)
    result = run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*pytest.mark.backends: backend 'abacus' does not exist; choose one of {NAMES}"])


def test_a_conftest_may_register_a_backend(pytester, run):
    pytester.makeconftest("""
        import minifuse as mf
        from minifuse.backends.python import PythonBackend
        from minifuse.backends.registry import registry

        class Abacus(PythonBackend):
            name = "abacus"

        def pytest_configure():
            mf.register_backend(Abacus())

        def pytest_unconfigure():
            registry.factories.pop("abacus"), registry.instances.pop("abacus")
    """)
    pytester.makepyfile(TEST)
    run("--backends=abacus").assert_outcomes(passed=1)
    run().assert_outcomes(passed=COUNT + 1)


def test_a_project_may_have_a_fixture_and_parameters_of_the_same_name(pytester, run):
    pytester.makepyfile("""
        import pytest

        class TestFixture:
            @pytest.fixture
            def backend(self):
                return "postgres"

            def test_it(self, backend):
                assert backend == "postgres"

        @pytest.mark.parametrize("backend", ["mysql", "sqlite"])
        def test_parameters(backend):
            assert backend in ("mysql", "sqlite")

        @pytest.mark.backends("sqlite")
        def test_marker(): ...
    """)
    run().assert_outcomes(passed=4)


def test_a_run_that_asks_for_no_backend_imports_nothing(tmp_path):
    """Seen in a process of its own, from the collection of the tests to their end."""
    (tmp_path / "test_modules.py").write_text("""
import sys

def test_modules():
    assert "pytest_minifuse" in sys.modules
    assert not {"minifuse", "numpy", "numba"} & set(sys.modules)
""")
    command = [sys.executable, "-m", "pytest", "-q", "-p", PLUGIN, "-p", "no:cacheprovider", str(tmp_path)]
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": ":".join(filter(None, sys.path))}
    process = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert process.returncode == 0, process.stdout + process.stderr
