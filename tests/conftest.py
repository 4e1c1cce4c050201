"""What all tests share: threads and processes, a kernel cache, how hard Hypothesis tries, what is no garbage."""

import gc
import os
import random
import re
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import pytest
from hypothesis import settings

# OpenMP reads it when it starts, at the first parallel launch. Idle threads that spin take the cores of the other process.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# Each process of the tests compiles alone: workers of all of them would take each other's processors.
os.environ.setdefault("MINIFUSE_COMPILE_WORKERS", "0")

BACKENDS = ("python", "parallel", "cuda")  # ids of parameters: a test keeps each other value on each of them

settings.register_profile("ci", derandomize=True, max_examples=50, deadline=None)
settings.register_profile("sample", settings.get_profile("ci"), max_examples=12)
settings.register_profile("thorough", max_examples=2000, deadline=None)


def pytest_configure(config: pytest.Config) -> None:
    """Kernels go into pytest's own cache: shared by its processes, kept between runs, emptied by --cache-clear."""
    default = "sample" if config.getoption("--sample") else "ci"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", default))
    if config.pluginmanager.hasplugin("cacheprovider"):
        os.environ.setdefault("MINIFUSE_CACHE", str(config.cache.mkdir("kernels")))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without searches for cycles, of which each would visit all tests found so far: nearly half of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.fixture(autouse=True, scope="module")
def _nothing_old_is_garbage() -> None:
    """Searches for cycles pass over what was there before a file's tests: a million objects, half a second each time.

    What the file before left in cycles goes first: frozen, it would hold its buffers to the end, and tests count those.
    """
    gc.collect()
    gc.freeze()


SLOW = Path(__file__).with_name("slow.txt")  # seconds and name of each slow test
SLOW_S = 0.2  # what counts as slow
DRAWN_S = 0.06  # seconds that a slow case takes on average with --sample
DRAWN_WHOLE_S = 6.0  # the same, of tests marked sampled(1)
GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--accept", action="store_true", help="write the texts of tests/golden instead of comparing with them")
    parser.addoption("--sample", action="store_true", help="run one case of n, drawn by a seed, of tests marked sampled(n)")
    parser.addoption("--record-slow", action="store_true", help=f"write tests/slow.txt: tests of {SLOW_S} s and more")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--sample`, keep a part of the cases of each test: always the same ones, with every value of each parameter.

    A test marked `sampled(n)` keeps one case of n, and `sampled(n, each="name")` one of n for each value of the parameter
    `name`. Of these, and of all cases of a test without the marker, a test with several parameters keeps as many as contain
    each value of each parameter once, and on each backend. Such a test is marked `sampled` here. `sampled(1)` keeps all.

    Of what is left, the slow cases that `slow.txt` lists are thinned out: the slower one is, the smaller its chance. Where
    `sampled(1)` asks for all, only cases of many seconds are.
    """
    cases, slow = defaultdict[str, list[pytest.Item]](list), read_slow()
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    dropped = set[pytest.Item]()
    for test, found in cases.items():
        marker, chance = found[0].get_closest_marker("sampled"), random.Random(test.partition("::")[0])
        for item in found:
            if marker is None and (len(parameter_ids(item)) > 1 or item.nodeid in slow):
                item.add_marker("sampled")
        if not config.getoption("--sample"):
            continue
        is_whole = marker is not None and marker.args == (1,)
        kept = draw_cases(found, marker, chance) if marker else found
        kept = kept if is_whole else cover_values(kept, chance)
        average = DRAWN_WHOLE_S if is_whole else DRAWN_S
        dropped |= {*found} - {item for item in kept if is_drawn(item.nodeid, slow.get(item.nodeid, 0), average)}
    config.hook.pytest_deselected(items=[item for item in items if item in dropped])
    items[:] = [item for item in items if item not in dropped]


def read_slow() -> dict[str, float]:
    """Read the seconds of each slow test."""
    lines = (line.partition(" ") for line in SLOW.read_text(encoding="utf-8").splitlines())
    return {name: float(seconds) for seconds, _, name in lines}


def is_drawn(name: str, time_s: float, average_s: float) -> bool:
    """Draw a case that takes some seconds so often that it takes the average; always the same ones."""
    return random.Random(name).random() * time_s < average_s


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the seconds of the parts of a test."""
    seconds[report.nodeid] += report.duration


seconds = defaultdict[str, float](float)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the list of slow tests, if asked to. Tests that did not run keep their lines."""
    if session.config.getoption("--record-slow") and not hasattr(session.config, "workerinput"):
        found = {name: s for name, s in (read_slow() | seconds).items() if s >= SLOW_S}
        SLOW.write_text("".join(f"{found[name]:.1f} {name}\n" for name in sorted(found)), encoding="utf-8")


def draw_cases(cases: list[pytest.Item], marker: pytest.Mark, chance: random.Random) -> list[pytest.Item]:
    """Draw one case of n: of all cases, or of those with each value of a parameter.

    Tests of one file with the same number of cases keep the same ones, since they may share what they compile.
    """
    groups = defaultdict[str, list[pytest.Item]](list)
    for case in cases:
        groups[repr([case.callspec.params[name] for name in marker.kwargs.values()])].append(case)
    (n,) = marker.args
    return [case for group in groups.values() for case in chance.sample(group, -(-len(group) // n))]


def cover_values(cases: list[pytest.Item], chance: random.Random) -> list[pytest.Item]:
    """Choose few cases that contain each value of each parameter, and each with each backend.

    The next one contains the most values that are missing.
    """
    if max(len(parameter_ids(case)) for case in cases) < 2:
        return cases
    values = {case: set[object](enumerate(parameter_ids(case))) for case in cases}
    for case, found in values.items():
        found |= {(x, name) for name in parameter_ids(case) if name in BACKENDS for x in found}
    missing, kept = set[object]().union(*values.values()), []
    order = chance.sample(cases, len(cases))
    while missing:
        kept.append(max(order, key=lambda case: len(values[case] & missing)))
        missing -= values[kept[-1]]
    return kept


def parameter_ids(item: pytest.Item) -> Sequence[str]:
    """Return the id of a value for each `parametrize` of a test, and for each of its fixtures with parameters."""
    return item.callspec._idlist if hasattr(item, "callspec") else ()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Compare a text with the file of this test under tests/golden; `--accept` writes the file.

    Read what `git diff tests/golden` shows before you commit it: the files are what a reader of kernels will see.
    """
    folder = GOLDEN / Path(request.node.path).stem.removeprefix("test_")
    name = re.sub(r"[^\w.=,+-]+", "_", request.node.name.removeprefix("test_")).strip("_")
    path = folder / f"{name}.txt"

    def compare(text: str) -> None:
        if request.config.getoption("--accept"):
            folder.mkdir(exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path} is missing; write it: pytest {request.node.nodeid!r} --accept"
        assert text == path.read_text(), f"the text differs from {path}; if it is better, write it: pytest --accept"

    return compare
