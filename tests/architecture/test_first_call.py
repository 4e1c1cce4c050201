"""How much of minifuse a reader meets who follows a first call with a debugger: files, calls, and hops between files.

The call is the first one of its process, and its kernel is on disk, so no compiler runs. On Python 3.11, a comprehension and
each step of a generator are calls, too; newer versions count fewer.
"""

import json
import os
import subprocess
import sys
from itertools import pairwise

import pytest

FOLLOW = """
import json, sys
import minifuse as mf

package = mf.__file__.removesuffix("__init__.py")
a, b = (mf.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]) for _ in range(2))
functions = {"a + b": lambda a, b: a + b, "fused": mf.fuse(lambda a, b: mf.exp(a + b) * 2)}
call, files = functions[sys.argv[1]], []

def note(frame, event, _):
    if event == "call" and frame.f_code.co_filename.startswith(package):
        files.append(frame.f_code.co_filename.removeprefix(package))

sys.setprofile(note)
call(a, b)
sys.setprofile(None)
print(json.dumps([files, mf.cache.stats().seconds]))
"""
MAX_FILES = {"a + b": 32, "fused": 45}
MAX_CALLS = {"a + b": 450, "fused": 940}
MAX_HOPS = {"a + b": 189, "fused": 397}  # calls of a function in another file than that of the last call
TRUST = "runtime/file_trust.py"  # its calls depend on how deep the folder of the cache is: they count as one


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Return a folder that has the kernels of both calls."""
    folder = tmp_path_factory.mktemp("kernels")
    for name in MAX_FILES:
        follow(name, folder)
    return folder


def follow(name, folder):
    """Return the file of each Python call of minifuse, in order, and the seconds that kernels were compiled."""
    command = [sys.executable, "-c", FOLLOW, name]
    environment = os.environ | {"MINIFUSE_CACHE": str(folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    files, seconds = json.loads(done.stdout)
    return [file for k, file in enumerate(files) if file != TRUST or k == files.index(TRUST)], seconds


@pytest.mark.parametrize("name", MAX_FILES)
def test_a_first_call_is_short_enough_to_follow(name, cache):
    files, seconds = follow(name, cache)
    assert seconds == 0
    counts = {file: files.count(file) for file in files}  # in the order of the call
    hops = 1 + sum(x != y for x, y in pairwise(files))
    table = "\n".join(f"{count:5}  {file}" for file, count in counts.items())
    found = f"{name}: {len(counts)} files, {len(files)} calls, {hops} hops between files; expected at most "
    limits = f"{MAX_FILES[name]}, {MAX_CALLS[name]} and {MAX_HOPS[name]}"
    is_short = len(counts) <= MAX_FILES[name] and len(files) <= MAX_CALLS[name] and hops <= MAX_HOPS[name]
    assert is_short, f"{found}{limits}. Calls in each file:\n{table}"
