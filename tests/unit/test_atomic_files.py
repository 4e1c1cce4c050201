"""runtime.atomic_files: a reader sees the old content or the new content, even if the writer is killed."""

import errno
import os
import threading

import pytest

from minifuse.runtime import atomic_files
from minifuse.runtime.atomic_files import is_temporary_of, remedy, replace_content, replacement


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("name", ["a", "ü" * 120, "x" * 255, "a b.json"])
def test_any_name_that_a_file_may_have_can_be_replaced(tmp_path, name):
    for content in ("old", b"new"):
        replace_content(tmp_path / name, content)
    assert (tmp_path / name).read_bytes() == b"new"
    assert names(tmp_path) == [name]


@pytest.mark.parametrize("name", ["a", "ü" * 120])
def test_an_unfinished_file_has_a_name_of_its_own(tmp_path, name):
    with replacement(tmp_path / name) as file:
        file.write(b"half")
        (unfinished,) = names(tmp_path)
        assert is_temporary_of(unfinished, name)
        assert not is_temporary_of(name, name)
        assert not is_temporary_of(unfinished, f"other {name}")


def test_only_regular_files_are_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name, words in {"pipe": "a device or a pipe", "folder": "it is a folder"}.items():
        with pytest.raises(OSError, match=words):
            replace_content(tmp_path / name, "x")
    with pytest.raises(OSError, match="a device or a pipe"):
        replace_content(os.devnull, "x")
    assert names(tmp_path) == ["folder", "pipe"]


def test_a_link_stays_and_the_file_behind_it_is_replaced(tmp_path):
    (tmp_path / "link").symlink_to("real")
    replace_content(tmp_path / "link", "x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "x"


def test_writers_of_one_path_never_mix_their_contents(tmp_path):
    path, contents, seen = tmp_path / "a", [bytes([k]) * 20_000 for k in range(4)], set()
    replace_content(path, contents[0])
    threads = [threading.Thread(target=lambda x=x: [replace_content(path, x) for _ in range(20)]) for x in contents]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        seen.add(path.read_bytes())
    assert seen <= set(contents)
    assert names(tmp_path) == ["a"]


def test_a_system_that_cannot_synchronize_folders_is_no_error(tmp_path, monkeypatch):
    fsync = os.fsync

    def fail_for_folders(handle):
        if os.path.isdir(f"/proc/self/fd/{handle}"):  # noqa: PTH112
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", fail_for_folders)
    replace_content(tmp_path / "a", "x")
    assert (tmp_path / "a").read_text() == "x"


def test_each_known_error_has_a_remedy_of_its_own():
    for code, said in atomic_files.REMEDIES.items():
        assert remedy(OSError(code, os.strerror(code))) == said
    assert remedy(OSError("of no number")) == "free some space, or choose another place"
