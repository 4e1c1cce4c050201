"""runtime.kernel_cache with a fake compiler: memory, disk, and failures of the disk."""

import ast
import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from minifuse.core.errors import MinifuseError
from minifuse.runtime import file_trust, kernel_files
from minifuse.runtime.file_locks import FileLock
from minifuse.runtime.kernel_cache import KernelCache, MissingKernel

TEXT = "def kernel(start, stop, args):\n    pass\n"


class Compiler:
    """Counts its work; compiled code is the source between marks."""

    def __init__(self):
        self.built, self.loaded = [], []

    def build(self, name, text):
        self.built.append(name)
        return b"<" + text.encode() + b">"

    def load(self, name, payload):
        self.loaded.append(name)
        if payload[:1] + payload[-1:] != b"<>":
            raise ValueError(payload)
        return f"{name}: {payload.decode()}"


def find(cache, compiler, text=TEXT, flavour="cpu"):
    return cache.find(text, flavour, compiler.build, compiler.load)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / "kernels"
    monkeypatch.setenv("MINIFUSE_CACHE", str(path))
    return path


@pytest.fixture
def compiler(folder):
    return Compiler()


def only(folder, suffix):
    (path,) = folder.glob(f"*.{suffix}")
    return path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# From memory, from disk, compiled


def test_a_kernel_is_compiled_once_in_a_process(compiler):
    cache = KernelCache()
    assert find(cache, compiler) == find(cache, compiler)
    assert len(compiler.built) == len(compiler.loaded) == 1


def test_a_second_process_compiles_nothing(compiler):
    first, second = KernelCache(), KernelCache()  # two processes differ in their memory only
    assert find(first, compiler) == find(second, compiler)
    assert len(compiler.built) == 1
    assert (first.stats().compiled, first.stats().loaded) == (1, 0)
    assert (second.stats().compiled, second.stats().loaded) == (0, 1)


def test_the_source_on_disk_is_python_with_the_name_of_its_file(compiler, folder):
    find(KernelCache(), compiler)
    path = only(folder, "py")
    (function,) = ast.parse(path.read_text()).body
    assert isinstance(function, ast.FunctionDef)
    assert function.name == path.stem == only(folder, "bin").stem == compiler.built[0]
    assert function.name in find(KernelCache(), compiler)


def test_text_and_flavour_decide_the_kernel(compiler, folder):
    cache = KernelCache()
    found = {find(cache, compiler, text, flavour) for text in (TEXT, TEXT + "\n") for flavour in ("cpu", "gpu", "cpu\n")}
    assert len(found) == len(compiler.built) == len(list(folder.glob("*.bin"))) == 6


def test_a_failed_build_leaves_no_file_and_is_repeated(compiler, folder):
    def fail(name, text):
        raise SyntaxError(name)

    cache = KernelCache()
    for _ in range(2):
        with pytest.raises(SyntaxError, match="k_"):
            cache.find(TEXT, "cpu", fail, compiler.load)
    assert not folder.exists()
    assert cache.stats()[:3] == (0, 0, 0)
    assert find(cache, compiler)


def test_a_new_kernel_that_cannot_be_loaded_is_an_error(compiler, folder):
    with pytest.raises(ValueError, match="bad"):
        KernelCache().find(TEXT, "cpu", lambda name, text: b"bad", compiler.load)
    assert not folder.exists()


# A disk on which something is wrong


DAMAGES = {
    "empty": lambda data: b"",
    "one byte": lambda data: data[:1],
    "the header only": lambda data: data[:50],
    "half": lambda data: data[: len(data) // 2],
    "the last byte missing": lambda data: data[:-1],
    "a byte more": lambda data: data + b"\0",
    "another version": lambda data: data.replace(b"kernel 1", b"kernel 0"),
    "a bit of the checksum": lambda data: data[:20] + bytes([data[20] ^ 1]) + data[21:],
    "a bit of the payload": lambda data: data[:-9] + bytes([data[-9] ^ 16]) + data[-8:],
    "something else": lambda data: b"\x7fELF" * 100,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_replaced(compiler, folder, damage):
    value = find(KernelCache(), compiler)
    path = only(folder, "bin")
    good = path.read_bytes()
    path.write_bytes(damage(good))
    cache = KernelCache()
    assert find(cache, compiler) == value
    assert cache.stats().compiled == 1
    assert path.read_bytes() == good
    assert len(names(folder)) == 2


def test_the_file_of_another_kernel_is_not_loaded(compiler, folder):
    find(KernelCache(), compiler)
    path = only(folder, "bin")
    data = path.read_bytes()
    find(KernelCache(), compiler, flavour="gpu")
    (other,) = set(folder.glob("*.bin")) - {path}
    other.write_bytes(data)
    assert find(KernelCache(), compiler, flavour="gpu").count(other.stem) == 2  # in the name, and in the code


def test_a_payload_that_cannot_be_loaded_is_compiled_again(compiler, folder):
    value = find(KernelCache(), compiler)
    loads = iter([OSError("not for this linker")])

    def load(name, payload):
        for error in loads:
            raise error
        return compiler.load(name, payload)

    cache = KernelCache()
    assert cache.find(TEXT, "cpu", compiler.build, load) == value
    assert cache.stats().compiled == 1


def refuse(code):
    def raise_it(*args, **options):
        raise OSError(code, os.strerror(code))

    return raise_it


def half_write(path, data):
    with path.open("xb") as file:
        file.write(data[: len(data) // 2])
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def put_a_file_there(folder, monkeypatch):
    folder.write_text("not a folder")


TROUBLES = {
    "a file where the folder should be": put_a_file_there,
    "no folder can be made": lambda folder, monkeypatch: monkeypatch.setattr(Path, "mkdir", refuse(errno.EACCES)),
    "read-only": lambda folder, monkeypatch: monkeypatch.setattr(file_trust, "write_new", refuse(errno.EROFS)),
    "full": lambda folder, monkeypatch: monkeypatch.setattr(file_trust, "write_new", half_write),
    "nothing can be renamed": lambda folder, monkeypatch: monkeypatch.setattr(Path, "replace", refuse(errno.EPERM)),
}


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
def test_where_nothing_can_be_written_kernels_stay_in_memory(compiler, folder, monkeypatch, trouble):
    trouble(folder, monkeypatch)
    cache = KernelCache()
    assert find(cache, compiler) == find(cache, compiler)
    assert len(compiler.built) == 1
    assert cache.stats()[:5] == (1, 1, 0, 0, 0)
    assert cache.clear() == 0
    assert cache.kernels()[0].path is None
    assert not folder.is_dir() or names(folder) == []


def test_readers_never_see_half_a_file(compiler, folder, monkeypatch):
    seen = []
    ends = (b"pass\n", b"pass\n>")  # of a whole source, of a whole payload

    def write_in_two(path, data):
        path.write_bytes(data[: len(data) // 2])
        seen.extend(
            file for file in folder.iterdir() if file.suffix in (".py", ".bin") and not file.read_bytes().endswith(ends)
        )
        path.write_bytes(data)

    monkeypatch.setattr(file_trust, "write_new", write_in_two)
    find(KernelCache(), compiler)
    assert seen == []
    assert len(names(folder)) == 2


def test_a_folder_that_cannot_be_read_is_no_error(compiler, folder, monkeypatch):
    value = find(KernelCache(), compiler)
    monkeypatch.setattr(file_trust, "read", refuse(errno.EACCES))
    assert find(KernelCache(), compiler) == value
    assert len(compiler.built) == 2


@pytest.mark.parametrize("code", [errno.EROFS, errno.EPERM, errno.EACCES])
def test_a_cache_that_may_only_be_read_serves_its_old_kernels_too(compiler, folder, monkeypatch, code):
    value = find(KernelCache(), compiler)
    then = time.time() - 7200
    os.utime(only(folder, "bin"), (then, then))
    monkeypatch.setattr(os, "utime", refuse(code))
    assert find(KernelCache(), compiler) == value
    assert len(compiler.built) == 1


def test_a_user_without_a_home_has_kernels_in_memory(compiler, monkeypatch):
    for name in ("MINIFUSE_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", refuse_home)
    cache = KernelCache()
    assert find(cache, compiler)
    assert cache.stats().folder is None


def refuse_home():
    raise RuntimeError("no home")


def test_the_folder_may_be_deleted_meanwhile(compiler, folder):
    cache = KernelCache()
    for flavour in ("a", "b"):
        find(cache, compiler, flavour=flavour)
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    assert cache.kernels()[0].path is None
    assert find(cache, compiler, flavour="a")
    assert len(compiler.built) == 2


# Whose files they are


PERMISSIONS = pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")


@pytest.fixture
def _warned_of_nothing():
    """Each reason is warned of once in a process."""
    kernel_files.warn_once.cache_clear()
    yield
    kernel_files.warn_once.cache_clear()


def stays_in_memory(compiler, words):
    """Kernels are found in memory alone, with one warning; the reason is told where a command asks for it."""
    caches = [KernelCache(), KernelCache()]
    with pytest.warns(RuntimeWarning, match=rf"kernels are kept in memory only, since .*{words}") as caught:
        [find(cache, compiler, flavour=flavour) for cache in caches for flavour in "abab"]
    assert len(caught) == 1
    assert len(compiler.built) == 4
    assert caches[1].stats().loaded == 0
    with pytest.raises(MinifuseError, match=rf"kernels are kept in memory only, since .*{words}.*set MINIFUSE_CACHE"):
        caches[0].check()


@PERMISSIONS
@pytest.mark.usefixtures("_warned_of_nothing")
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o757, 0o702])
def test_kernels_in_a_folder_that_others_may_write_to_are_not_executed(compiler, folder, mode):
    find(KernelCache(), compiler, flavour="a")
    compiler.built.clear()
    folder.chmod(mode)
    stays_in_memory(compiler, rf"other users may write to .*kernels \(mode {mode:04o}")
    assert len(names(folder)) == 2  # and nothing is added


@PERMISSIONS
@pytest.mark.usefixtures("_warned_of_nothing")
def test_a_folder_above_that_others_may_write_to_is_as_bad(compiler, folder):
    folder.parent.chmod(0o777)
    stays_in_memory(compiler, "other users may write to ")
    assert not folder.exists()
    folder.parent.chmod(0o1777)  # as /tmp: only the owner of an entry may replace it
    find(KernelCache(), compiler)
    assert len(names(folder)) == 2


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.usefixtures("_warned_of_nothing")
def test_a_folder_of_another_user_is_not_used(compiler, folder):
    find(KernelCache(), compiler, flavour="a")
    compiler.built.clear()
    os.chown(folder, 65534, 65534)
    stays_in_memory(compiler, "belongs to user 65534, not to user 0 or root")


@PERMISSIONS
@pytest.mark.parametrize("mode", [0o666, 0o646, 0o602])
def test_a_kernel_that_others_may_write_to_is_compiled_again(compiler, folder, mode):
    value = find(KernelCache(), compiler)
    only(folder, "bin").chmod(mode)
    assert find(KernelCache(), compiler) == value
    assert len(compiler.built) == 2
    assert only(folder, "bin").stat().st_mode & 0o777 == 0o644 & ~umask()
    assert find(KernelCache(), compiler) == value
    assert len(compiler.built) == 2


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_a_kernel_of_another_user_is_compiled_again(compiler, folder):
    value = find(KernelCache(), compiler)
    os.chown(only(folder, "bin"), 65534, 65534)
    assert find(KernelCache(), compiler) == value
    assert len(compiler.built) == 2
    assert only(folder, "bin").stat().st_uid == 0


@PERMISSIONS
def test_a_kernel_that_is_a_link_or_a_pipe_is_compiled_again(compiler, folder):
    value = find(KernelCache(), compiler)
    path = only(folder, "bin")
    path.rename(folder.parent / "elsewhere")
    path.symlink_to(folder.parent / "elsewhere")
    assert find(KernelCache(), compiler) == value
    path.unlink()
    os.mkfifo(path)
    assert find(KernelCache(), compiler) == value
    assert len(compiler.built) == 3
    assert path.is_file()
    assert not path.is_symlink()


@PERMISSIONS
@pytest.mark.parametrize("mask", [0, 0o002, 0o022, 0o077])
def test_whatever_the_umask_a_new_cache_is_this_users_alone(compiler, folder, monkeypatch, mask):
    chosen = folder / "deep" / "kernels"
    monkeypatch.setenv("MINIFUSE_CACHE", str(chosen))
    before = os.umask(mask)
    try:
        value = find(KernelCache(), compiler)
        assert find(KernelCache(), compiler) == value
    finally:
        os.umask(before)
    assert len(compiler.built) == 1
    assert {path.stat().st_mode & 0o777 for path in (folder, chosen.parent, chosen)} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in chosen.iterdir()} == {0o644 & ~mask}


@PERMISSIONS
@pytest.mark.usefixtures("_warned_of_nothing")
@pytest.mark.filterwarnings("error")
def test_a_warning_that_a_filter_makes_an_error_fails_no_call(compiler, folder, capsys):
    folder.mkdir()
    folder.chmod(0o777)
    cache = KernelCache()
    assert find(cache, compiler, flavour="a")
    assert find(cache, compiler, flavour="b")
    assert capsys.readouterr().err.count("kernels are kept in memory only") == 1


def umask():
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


# Threads and processes


def test_threads_that_ask_for_one_kernel_compile_it_once(compiler):
    cache, barrier, values = KernelCache(), threading.Barrier(8), []

    def build(name, text):
        time.sleep(0.05)  # so that the others come while it works
        return compiler.build(name, text)

    def ask():
        barrier.wait(30)
        values.append(cache.find(TEXT, "cpu", build, compiler.load))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(compiler.built) == 1
    assert len(values) == 8
    assert len(set(values)) == 1


def test_threads_that_ask_for_two_kernels_do_not_wait_for_each_other(compiler):
    cache, both = KernelCache(), threading.Barrier(2)

    def build(name, text):
        both.wait(30)  # broken if the other one may not build now
        return compiler.build(name, text)

    threads = [threading.Thread(target=cache.find, args=(TEXT, f, build, compiler.load)) for f in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.stats().in_memory == 2


def run_python(script, **environment):
    command = [sys.executable, "-c", script]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=120, check=False)


FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")

RACE = """
import os, sys
from minifuse.runtime.kernel_cache import KernelCache
from tests.unit.test_kernel_cache import Compiler, TEXT, find

read, write = os.pipe()
children = []
for _ in range(16):
    children.append(os.fork())
    if not children[-1]:
        os.read(read, 1)  # all start at once
        for flavour in range(20):
            value = find(KernelCache(), Compiler(), flavour=str(flavour))
            assert value.startswith("k_") and value.count("def k_") == 1
        os._exit(0)
os.write(write, b"." * 16)
print([os.waitpid(child, 0)[1] for child in children])
"""


@FORK
def test_sixteen_processes_may_race(folder):
    done = run_python(RACE)
    assert done.stdout.strip() == str([0] * 16), done.stderr
    assert len(names(folder)) == 2 * 20
    compiler, cache = Compiler(), KernelCache()
    for flavour in range(20):
        find(cache, compiler, flavour=str(flavour))
    assert compiler.built == []


FORK_WHILE_A_THREAD_BUILDS = """
import os, threading
from minifuse.runtime.kernel_cache import cache
from tests.unit.test_kernel_cache import Compiler, TEXT

building, done = threading.Event(), threading.Event()

def build(name, text):
    building.set()
    done.wait(60)
    return b"<>"

compiler = Compiler()
thread = threading.Thread(target=cache.find, args=(TEXT, "cpu", build, compiler.load))
thread.start()
building.wait(60)
child = os.fork()
if not child:
    cache.find(TEXT, "cpu", compiler.build, compiler.load)
    os._exit(0)
print(os.waitpid(child, 0)[1])
done.set()
"""


@FORK
def test_a_child_does_not_wait_for_a_thread_of_its_parent(folder):
    done = run_python(FORK_WHILE_A_THREAD_BUILDS, PYTHONWARNINGS="ignore")  # of forking with threads, in newer versions
    assert done.stdout.strip() == "0", done.stderr


# Locks between processes: here, of two caches


def lock_file(folder):
    return folder / f"{MISSING.name}.lock"


MISSING = MissingKernel(f"k_{1:024x}", TEXT, lambda name, text: b"<payload>")


def test_another_process_is_waited_for(folder):
    folder.mkdir(0o700)
    compiler, is_building, may_end = Compiler(), threading.Event(), threading.Event()

    def build(name, text):
        is_building.set()
        may_end.wait(60)
        return compiler.build(name, text)

    first = threading.Thread(target=KernelCache().find, args=(TEXT, "cpu", build, compiler.load))
    first.start()
    is_building.wait(60)
    second = threading.Thread(target=find, args=(KernelCache(), compiler))
    second.start()
    second.join(0.1)
    assert second.is_alive()
    may_end.set()
    for thread in (first, second):
        thread.join(60)
    assert len(compiler.built) == 1
    assert len(compiler.loaded) == 2
    assert [*folder.glob("*.lock")] == []


def test_a_process_that_is_stopped_is_not_waited_for(compiler, folder, monkeypatch):
    monkeypatch.setattr(kernel_files, "MAX_LOCK_SECONDS", 0.05)
    find(KernelCache(), compiler)
    lock = FileLock(folder / f"{compiler.built[0]}.lock")
    only(folder, "bin").unlink()
    assert not lock.acquire()
    assert find(KernelCache(), compiler)
    assert len(compiler.built) == 2
    lock.release()


def test_the_lock_of_a_killed_process_is_free(compiler, folder):
    folder.mkdir(0o700)
    lock_file(folder).write_text("owner")
    assert KernelCache().compile_missing(MISSING)
    assert not lock_file(folder).exists()


def test_a_failed_build_releases_its_lock(folder):
    folder.mkdir(0o700)

    def fail(name, text):
        raise SyntaxError(name)

    for attempt in (
        lambda: KernelCache().find(TEXT, "cpu", fail, Compiler().load),
        lambda: KernelCache().compile_missing(MISSING._replace(build=fail)),
    ):
        with pytest.raises(SyntaxError):
            attempt()
    assert names(folder) == []


def test_a_kernel_is_compiled_without_loading_it_unless_it_is_locked(folder):
    folder.mkdir(0o700)
    cache, lock = KernelCache(), FileLock(lock_file(folder))
    assert not lock.acquire()
    assert not cache.compile_missing(MISSING)
    lock.release()
    assert cache.compile_missing(MISSING)
    assert names(folder) == [f"{MISSING.name}.bin", f"{MISSING.name}.py"]
    assert cache.compile_missing(MISSING._replace(build=None)), "it is on disk"
    assert cache.stats()[:3] == (0, 0, 0)


def test_without_a_folder_a_kernel_is_not_compiled_in_advance(folder):
    with pytest.raises(MinifuseError, match="no folder"):
        KernelCache().compile_missing(MISSING)


# How large the folder may grow


def fill(compiler, folder, count, size=2000):
    """Kernels of some bytes, one an hour, the last one just now; in the order of their age."""
    order = []
    for k in range(count):
        known = set(folder.glob("*"))
        find(KernelCache(), compiler, TEXT + "#" * size, str(k))
        (path,) = set(folder.glob("*.bin")) - known
        order.append(path)
    for age, path in enumerate(reversed(order)):
        then = time.time() - 3600 * age
        os.utime(path, (then, then))
    return order


def test_the_least_recently_used_go(compiler, folder, monkeypatch):
    order = fill(compiler, folder, 10)
    size = sum(path.stat().st_size for path in folder.iterdir())
    monkeypatch.setenv("MINIFUSE_CACHE_LIMIT_MB", str(size / 2**20))
    cache = KernelCache()
    assert find(cache, compiler, TEXT + "#" * 2000, "0")  # the oldest is used again
    assert find(cache, compiler, TEXT + "#" * 2000, "one more")  # and now the folder is too large
    assert cache.stats().nbytes_on_disk <= 0.75 * size
    assert order[0].exists()
    assert order[-1].exists()
    left = [path.exists() for path in order[1:]]
    assert left == sorted(left)  # none remained that is older than one that went
    assert not all(left)
    assert {path.stem for path in folder.glob("*.py")} >= {path.stem for path in folder.glob("*.bin")}


def test_below_the_limit_nothing_goes(compiler, folder, monkeypatch):
    order = fill(compiler, folder, 4)
    size = sum(path.stat().st_size for path in folder.iterdir())
    monkeypatch.setenv("MINIFUSE_CACHE_LIMIT_MB", str(2 * size / 2**20))
    find(KernelCache(), compiler, flavour="one more")
    assert all(path.exists() for path in order)


def test_foreign_files_stay_and_abandoned_files_are_removed(compiler, folder, monkeypatch):
    folder.mkdir()
    name = "k_" + 24 * "0"
    foreign = ["notes.txt", "k_1.py", f"{name}.pyc", f"{name}.tmp"]
    old, young = f"{name}.{16 * 'a'}.tmp", f"{name}.{16 * 'b'}.tmp"
    for file in (*foreign, old, young):
        (folder / file).write_bytes(b"x" * 10_000)
    then = time.time() - 7200
    for file in (*foreign, old):
        os.utime(folder / file, (then, then))
    monkeypatch.setenv("MINIFUSE_CACHE_LIMIT_MB", "0.001")
    find(KernelCache(), compiler)
    assert set(names(folder)) >= {*foreign, young}
    assert old not in names(folder)
    KernelCache().clear()
    assert set(names(folder)) == set(foreign)


def test_no_limit_above_zero_keeps_kernels_in_memory(compiler, folder, monkeypatch):
    find(KernelCache(), compiler)
    monkeypatch.setenv("MINIFUSE_CACHE_LIMIT_MB", "0")
    cache = KernelCache()
    find(cache, compiler)
    find(cache, compiler, flavour="gpu")
    assert cache.stats().compiled == 2
    assert len(names(folder)) == 2


@pytest.mark.parametrize("limit", ["many", "1GB", "nan", "inf", "-1"])
def test_a_limit_that_is_no_number_explains_itself(compiler, folder, monkeypatch, limit):
    monkeypatch.setenv("MINIFUSE_CACHE_LIMIT_MB", limit)
    with pytest.raises(MinifuseError, match=f"MINIFUSE_CACHE_LIMIT_MB is '{limit}'; expected a number of megabytes"):
        find(KernelCache(), compiler)


# What a user sees


def test_stats_clear_and_kernels(compiler, folder):
    cache = KernelCache()
    assert cache.stats()[:7] == (0, 0, 0, 0, 0, folder, 0)
    for flavour in ("a", "b", "c"):
        find(cache, compiler, flavour=flavour)
    other = KernelCache()
    find(other, compiler, flavour="b")
    nbytes = sum(path.stat().st_size for path in folder.iterdir())
    assert cache.stats()[:6] == (3, 3, 0, 3, nbytes, folder)
    assert cache.stats().seconds > 0
    assert other.stats()[:7] == (1, 0, 1, 3, nbytes, folder, 0)
    assert [kernel.name for kernel in cache.kernels()] == compiler.built
    assert [kernel.path for kernel in cache.kernels()] == [folder / f"{name}.py" for name in compiler.built]
    assert [kernel.text for kernel in cache.kernels()] == [kernel.path.read_text() for kernel in cache.kernels()]
    assert cache.clear() == 3
    assert cache.clear() == 0
    assert cache.stats()[:6] == (3, 3, 0, 0, 0, folder)
    assert [kernel.path for kernel in cache.kernels()] == [None] * 3
    find(cache, compiler, flavour="a")
    assert len(compiler.built) == 3


FOLDERS = [
    ("linux", {}, "home/.cache/minifuse"),
    ("linux", {"XDG_CACHE_HOME": "xdg"}, "xdg/minifuse"),
    ("linux", {"XDG_CACHE_HOME": "", "MINIFUSE_CACHE": ""}, "home/.cache/minifuse"),
    ("linux", {"XDG_CACHE_HOME": "xdg", "MINIFUSE_CACHE": "chosen"}, "chosen"),
    ("darwin", {}, "home/Library/Caches/minifuse"),
    ("win32", {}, "home/AppData/Local/minifuse"),
    ("win32", {"LOCALAPPDATA": "local"}, "local/minifuse"),
]


@pytest.mark.parametrize(("platform", "environment", "expected"), FOLDERS)
def test_the_folder_is_the_platforms(monkeypatch, platform, environment, expected):
    for name in ("MINIFUSE_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Path, "home", lambda: Path("home"))
    monkeypatch.setattr(sys, "platform", platform)
    assert kernel_files.cache_folder() == Path(expected)
