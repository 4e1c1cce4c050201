"""What all tests share: threads and processes, a kernel cache, how hard Hypothesis tries, what is no garbage."""

import gc
import os
import random
import re
from collections import defaultdict
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import settings

# OpenMP reads it when it starts, at the first parallel launch. Idle threads that spin take the cores of the other process.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# Each process of the tests compiles alone: workers of all of them would take each other's processors.
os.environ.setdefault("MINIFUSE_COMPILE_WORKERS", "0")

settings.register_profile("ci", derandomize=True, max_examples=50, deadline=None)
settings.register_profile("sample", settings.get_profile("ci"), max_examples=20)
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


GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--accept", action="store_true", help="write the texts of tests/golden instead of comparing with them")
    parser.addoption("--sample", action="store_true", help="run one case of n, drawn by a seed, of tests marked sampled(n)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--sample`, keep one case of n of each test marked `sampled(n)`: at least one, always the same ones.

    `sampled(n, each="name")` keeps one of n for each value of the parameter `name`. Tests of one file with the same number
    of cases keep the same ones, since they may share what they compile.
    """
    if not config.getoption("--sample"):
        return
    cases = defaultdict[tuple[str, str], list[pytest.Item]](list)
    for item in items:
        if marker := item.get_closest_marker("sampled"):
            values = [item.callspec.params[name] for name in marker.kwargs.values()]
            cases[item.nodeid.partition("[")[0], repr(values)].append(item)
    dropped, seeded = set[pytest.Item](), dict[str, random.Random]()
    for (test, _), found in cases.items():
        (n,) = found[0].get_closest_marker("sampled").args
        chance = seeded.setdefault(test, random.Random(test.partition("::")[0]))
        kept = chance.sample(found, -(-len(found) // n))
        dropped |= {*found} - {*kept}
    config.hook.pytest_deselected(items=[item for item in items if item in dropped])
    items[:] = [item for item in items if item not in dropped]


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
