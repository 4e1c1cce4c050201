"""runtime.file_locks: one owner at a time, released when its process ends; a lock file's content is never trusted."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from minifuse.runtime import file_locks
from minifuse.runtime.file_locks import FileLock

HOLDER = """
import sys, time
from pathlib import Path
from minifuse.runtime.file_locks import FileLock
lock = FileLock(Path(sys.argv[1]))
print(lock.acquire() or "held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.lock"


def test_one_object_at_a_time_holds_a_lock(path):
    first, second = FileLock(path), FileLock(path)
    assert first.acquire() == ""
    assert first.acquire() == ""  # it is held already
    assert second.acquire().startswith(f"this process, {os.getpid()} (since 2")
    assert (first.is_held, second.is_held) == (True, False)
    first.release()
    assert second.acquire() == ""
    assert (first.is_held, second.is_held) == (False, True)


def test_a_released_lock_leaves_no_file(path):
    lock = FileLock(path)
    lock.acquire()
    assert json.loads(path.read_text())["pid"] == os.getpid()
    lock.release()
    lock.release()
    assert not path.exists()


def test_a_lock_ends_with_its_object(path):
    assert FileLock(path).acquire() == ""
    assert FileLock(path).acquire() == ""


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"pid": "x"}', b"\xff" * 9000, b"[" * 4000, b'{"pid": 1, "host": "x"}']
)
def test_a_damaged_owner_is_called_another_process(path, content):
    lock = FileLock(path)
    lock.acquire()
    path.write_bytes(content)
    assert FileLock(path).acquire() == "another process"


def test_an_owner_on_another_machine_is_named_with_it(path):
    lock = FileLock(path)
    lock.acquire()
    path.write_text('{"pid": 7, "host": "elsewhere", "since": "then"}')
    assert FileLock(path).acquire() == "process 7 on elsewhere (since then)"


@pytest.mark.parametrize("owner", [1, os.getpid(), 2**22 + 1], ids=["init", "this one", "none"])
def test_a_file_that_names_a_process_locks_nothing(path, owner):
    path.write_text(json.dumps({"pid": owner, "host": "here", "since": "then"}))
    lock = FileLock(path)
    assert lock.acquire() == ""
    assert json.loads(path.read_text())["pid"] == os.getpid()


def test_threads_that_race_have_one_winner_each_round(path):
    for _ in range(20):
        locks, barrier, found = [FileLock(path) for _ in range(6)], threading.Barrier(6), []

        def race(lock, barrier=barrier, found=found):
            barrier.wait(30)
            found.append(lock.acquire())

        threads = [threading.Thread(target=race, args=(lock,)) for lock in locks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found.count("") == 1
        assert sum(lock.is_held for lock in locks) == 1


def test_a_file_that_its_owner_removes_meanwhile_is_not_locked(path, monkeypatch):
    """Between opening and locking the owner may remove the file: nobody else would see a lock on that one."""
    owner, second = FileLock(path), FileLock(path)
    owner.acquire()
    try_lock = file_locks.try_lock

    def try_after_the_owner(handle):
        owner.release()
        return try_lock(handle)

    monkeypatch.setattr(file_locks, "try_lock", try_after_the_owner)
    assert second.acquire() == ""
    assert FileLock(path).acquire().startswith("this process")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_neither_holds_nor_releases_the_lock(path):
    lock = FileLock(path)
    lock.acquire()
    child = os.fork()
    if not child:
        is_right = not lock.is_held and f"process {os.getppid()} " in FileLock(path).acquire()
        lock.release()
        os._exit(0 if is_right and path.exists() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert FileLock(path).acquire() != ""
    lock.release()
    assert FileLock(path).acquire() == ""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_the_lock_of_a_killed_process_is_released(path):
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        lock = FileLock(path)
        assert lock.acquire().startswith(f"process {process.pid} (since 2")
        process.send_signal(signal.SIGKILL)
    assert path.exists()
    assert lock.acquire() == ""


def test_the_systems_error_is_raised_if_the_file_cannot_be_made(tmp_path):
    with pytest.raises(FileNotFoundError):
        FileLock(tmp_path / "nowhere" / "run.lock").acquire()


@pytest.mark.skipif(os.name == "nt", reason="Windows locks bytes")
def test_a_file_system_without_locks_lets_everyone_in(path, monkeypatch):
    import fcntl

    def unsupported(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    locks = [FileLock(path), FileLock(path)]
    assert [lock.acquire() for lock in locks] == ["", ""]


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="this platform follows links")
def test_the_target_of_a_link_is_not_overwritten(path, tmp_path):
    (tmp_path / "mine").write_text("mine")
    path.symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match=r"symbolic links"):
        FileLock(path).acquire()
    assert (tmp_path / "mine").read_text() == "mine"
