"""runtime.file_trust: which files may be executed, by owner, permissions, links and parent folders."""

import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from minifuse.runtime import file_trust
from minifuse.runtime.file_trust import (
    is_private_group,
    make_private,
    others_may_write,
    remove_distrusted,
    why_distrusted,
    why_others_may_change,
)

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
ROOT = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
NOBODY = 65534


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "a" / "b"
    path.mkdir(parents=True, mode=0o755)
    return path


def test_an_ordinary_folder_is_trusted(folder, monkeypatch):
    assert why_distrusted(folder) == ""
    assert why_distrusted(folder / "missing" / "too") == ""
    monkeypatch.chdir(folder.parent)
    assert why_distrusted(Path("b")) == why_distrusted(Path("b/../b")) == why_distrusted(Path()) == ""


@pytest.mark.parametrize("mode", [0o777, 0o757, 0o702, 0o1777])
def test_a_folder_that_all_may_write_to_is_not(folder, mode):
    folder.chmod(mode)
    assert why_distrusted(folder) == f"other users may write to {folder} (mode {mode:04o}, `chmod go-w` changes it)"


def test_a_folder_above_must_be_private_or_sticky(folder):
    folder.parent.chmod(0o777)
    assert f"other users may write to {folder.parent} (mode 0777" in why_distrusted(folder)
    assert why_distrusted(folder / "missing")
    folder.parent.chmod(0o1777)
    assert why_distrusted(folder) == why_distrusted(folder / "missing") == ""


@ROOT
def test_an_owner_above_could_replace_the_folder(folder):
    os.chown(folder.parent, NOBODY, NOBODY)
    assert why_distrusted(folder) == f"{folder.parent} belongs to user {NOBODY}, not to user 0 or root"


@ROOT
def test_a_home_of_another_user_is_not_trusted(folder):
    os.chown(folder, 1001, 1001)
    assert f"{folder} belongs to user 1001" in why_distrusted(folder / ".cache" / "minifuse")


def test_for_another_user_these_folders_are_a_strangers(folder, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    is_roots = folder.stat().st_uid == 0
    assert (why_distrusted(folder) == "") is is_roots  # what is root's is trusted by all


def test_links_in_the_path_are_followed(folder, tmp_path):
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "absolute").symlink_to(folder)
    assert [why_distrusted(tmp_path / name) for name in ("link/b", "absolute", "link/b/..")] == ["", "", ""]
    folder.chmod(0o777)
    assert f"other users may write to {folder} " in why_distrusted(tmp_path / "link" / "b")
    assert f"other users may write to {folder} " in why_distrusted(tmp_path / "absolute")


def test_a_link_in_a_folder_of_all_leads_anywhere(folder, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    (shared / "link").symlink_to(folder)
    assert f"other users may write to {shared} " in why_distrusted(shared / "link")


@ROOT
def test_a_link_of_another_user_is_not_followed(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    os.chown(tmp_path / "link", NOBODY, NOBODY, follow_symlinks=False)
    link = tmp_path / "link"
    assert why_distrusted(link) == f"the link {link} belongs to user {NOBODY}, not to user 0 or root"


def test_links_in_a_circle_lead_to_no_file(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert why_distrusted(tmp_path / "a" / "c") == ""
    with pytest.raises(OSError, match=r"symbolic links"):
        file_trust.read(tmp_path / "a" / "c")


def test_a_working_folder_that_was_deleted_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert why_distrusted(Path("kernels")) == ""
    assert why_distrusted(tmp_path) == ""


# Groups


def user_and_group(patch, name="ann", members=(), primary=500):
    import grp
    import pwd

    is_private_group.cache_clear()
    patch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_name="ann", pw_gid=primary))
    patch.setattr(grp, "getgrgid", lambda gid: SimpleNamespace(gr_name=name, gr_mem=list(members)))


@pytest.fixture
def _no_groups_known():
    yield
    is_private_group.cache_clear()


@pytest.mark.usefixtures("_no_groups_known")
@pytest.mark.parametrize(
    ("known", "is_private"),
    [
        ({}, True),
        ({"members": ["ann"]}, True),
        ({"members": ["ann", "bob"]}, False),
        ({"name": "staff"}, False),
        ({"primary": 100}, False),
    ],
)
def test_a_group_of_one_user_counts_as_the_user(monkeypatch, known, is_private):
    user_and_group(monkeypatch, **known)
    status = SimpleNamespace(st_mode=stat.S_IFDIR | 0o775, st_uid=500, st_gid=500)
    assert others_may_write(Path("nowhere"), status) is not is_private
    assert others_may_write(Path("nowhere"), SimpleNamespace(**{**vars(status), "st_mode": stat.S_IFDIR | 0o755})) is False


@pytest.mark.usefixtures("_no_groups_known")
def test_an_unknown_user_or_group_is_not_private(monkeypatch):
    import pwd

    def unknown(uid):
        raise KeyError(uid)

    user_and_group(monkeypatch)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert not is_private_group(500, 500)


@pytest.mark.usefixtures("_no_groups_known")
def test_an_access_list_may_name_others(monkeypatch):
    user_and_group(monkeypatch)
    status = SimpleNamespace(st_mode=stat.S_IFDIR | 0o770, st_uid=500, st_gid=500)
    monkeypatch.setattr(os, "listxattr", lambda path: ["system.posix_acl_access"], raising=False)
    assert others_may_write(Path("nowhere"), status)
    monkeypatch.setattr(os, "listxattr", lambda path: ["user.note"], raising=False)
    assert not others_may_write(Path("nowhere"), status)


def test_in_a_user_namespace_the_owner_of_the_top_folder_is_the_system():
    status = SimpleNamespace(st_mode=stat.S_IFDIR | 0o755, st_uid=54321, st_gid=54321)
    assert why_others_may_change(Path("/home"), status, is_ancestor=True, system={0, 54321}) == ""
    assert "belongs to user" in why_others_may_change(Path("/home/x"), status, is_ancestor=False, system={0, 54321})


# Files


@pytest.mark.parametrize("mask", [0, 0o002, 0o077])
def test_new_folders_and_files_are_this_users_alone(tmp_path, mask):
    before = os.umask(mask)
    try:
        make_private(tmp_path / "x" / "y")
        file_trust.write_new(tmp_path / "x" / "y" / "z", b"data")
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "x", tmp_path / "x" / "y")] == [0o700, 0o700]
    assert (tmp_path / "x" / "y" / "z").stat().st_mode & 0o022 == 0
    assert file_trust.read(tmp_path / "x" / "y" / "z") == b"data"


def test_a_folder_that_is_there_keeps_its_permissions(folder):
    make_private(folder / "c")
    assert folder.stat().st_mode & 0o777 == 0o755
    with pytest.raises(FileExistsError):
        file_trust.write_new(folder / "c", b"")
    file_trust.write_new(folder / "file", b"")
    with pytest.raises(NotADirectoryError):
        make_private(folder / "file")


def test_the_open_file_is_examined_and_not_its_name(folder, monkeypatch):
    (folder / "good").write_bytes(b"good")
    (folder / "bad").write_bytes(b"bad")
    (folder / "bad").chmod(0o666)
    open_ = os.open

    def replaced(path, flags):
        (folder / "bad").replace(folder / "good")
        return open_(path, flags)

    monkeypatch.setattr(os, "open", replaced)
    with pytest.raises(PermissionError, match="other users may write to"):
        file_trust.read(folder / "good")


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_only_regular_files_are_read(folder, kind):
    path = folder / "x"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        (folder / "y").write_bytes(b"data")
        path.symlink_to("y")
    with pytest.raises(OSError, match=r"symbolic links|not a regular file|directory"):
        file_trust.read(path)


def test_files_that_others_may_have_put_there_are_removed(folder):
    for name, mode in {"mine": 0o644, "shared": 0o666}.items():
        (folder / name).write_bytes(b"")
        (folder / name).chmod(mode)
    (folder / "link").symlink_to("mine")
    (folder / "deeper").mkdir(mode=0o777)
    remove_distrusted(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["deeper", "mine"]


def test_where_files_have_no_owners_nothing_is_examined(folder, monkeypatch):
    monkeypatch.setattr(file_trust, "HAS_OWNERS", False)
    folder.chmod(0o777)
    (folder / "x").write_bytes(b"data")
    assert why_distrusted(folder) == ""
    assert file_trust.read(folder / "x") == b"data"
