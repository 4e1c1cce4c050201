"""A student's folder: it is never overwritten, resets keep a backup, and upgrades merge all files or none."""

import os
import threading
from pathlib import Path

import pytest

pytest.importorskip("rich", reason="needs minifuse[course]")
pytest.importorskip("merge3", reason="needs minifuse[course]")

from minifuse.core.errors import CourseError
from minifuse.course import workspace
from tests.course.folder import FILE, TASK


@pytest.fixture
def folder(tmp_path):
    """A folder as a student gets it."""
    workspace.init(tmp_path / "mine")
    return tmp_path / "mine"


def everything(folder):
    """All files below a folder with their contents."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.fixture
def newer(monkeypatch):
    """The course has changed a line of each stub, and its marks."""
    fresh = workspace.fresh()

    def change(old, new):
        assert old in fresh[FILE]
        monkeypatch.setattr(workspace, "fresh", lambda: fresh | {FILE: fresh[FILE].replace(old, new, 1)})

    return change


# init


@pytest.mark.parametrize("name", ["plain", "with spaces", "über/ñ/课程"])
def test_a_folder_has_all_that_is_needed(tmp_path, name):
    written = workspace.init(tmp_path / name)
    assert {path.name for path in written} == {
        *workspace.files(),
        "README.md",
        "pytest.ini",
        "test_tasks.py",
        "train_digits.py",
    }
    assert all(path.is_file() for path in written)
    assert workspace.find_folder(tmp_path / name) == (tmp_path / name).resolve()


@pytest.mark.parametrize("name", [FILE, "README.md", "pytest.ini", "test_tasks.py"])
def test_a_file_that_is_there_is_refused_and_nothing_is_written(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(CourseError, match=f"has {name} already, and nothing was written"):
        workspace.init(tmp_path)
    assert everything(tmp_path) == {Path(name): b"mine"}


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_a_link_into_nowhere_is_a_file_that_is_there(tmp_path):
    (tmp_path / FILE).symlink_to("nowhere")
    with pytest.raises(CourseError, match="already"):
        workspace.init(tmp_path)


def test_unwritable_folder_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CourseError, match=r"cannot be written: .*may you write in this folder"):
        workspace.init(tmp_path / "file" / "mine")


def test_a_folder_is_found_from_within(folder, tmp_path):
    (folder / "deeper").mkdir()
    assert workspace.find_folder(folder / "deeper") == folder
    (tmp_path / "other").mkdir()
    with pytest.raises(CourseError, match="is not a folder of the course; create one: minifuse course init DIR"):
        workspace.find_folder(tmp_path / "other")


# reset


def test_reset_restores_a_task_and_keeps_a_backup(folder):
    path, fresh = folder / FILE, (folder / FILE).read_bytes()
    for k, word in enumerate(("one", "two"), 1):
        edit(path, 'todo("2.1a")', f'return "{word}"')
        edit(path, 'todo("2.2a")', "return None") if k == 1 else None
        copy = workspace.reset(folder, TASK)
        assert copy == folder / workspace.BACKUPS / f"{FILE}.{k}"
        assert f'return "{word}"' in copy.read_text()
    assert path.read_bytes() == fresh.replace(b'todo("2.2a")', b"return None")  # another task's stays


@pytest.mark.parametrize("broken", ["permuted = 3\n", "", "# nothing\n"])
def test_a_function_that_is_gone_comes_back(folder, broken):
    (folder / FILE).write_text(broken)
    workspace.reset(folder, TASK)
    text = (folder / FILE).read_text()
    assert text.startswith(broken.rstrip())
    assert all(
        workspace.definition_of(text, slot) == workspace.definition_of(workspace.stub(FILE), slot) for slot in TASK.slots
    )


def test_a_file_that_is_gone_comes_back(folder):
    fresh = (folder / FILE).read_text()
    (folder / FILE).unlink()
    assert workspace.reset(folder, TASK) is None
    assert (folder / FILE).read_text() == fresh


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"x = (\n", "tensors.py, line 1, is not valid Python"),
        (b"\xe9", "cannot be read: it is not UTF-8; save it as UTF-8"),
    ],
)
def test_unreadable_files_are_not_changed(folder, data, message):
    (folder / FILE).write_bytes(data)
    before = everything(folder)
    with pytest.raises(CourseError, match=message):
        workspace.reset(folder, TASK)
    assert everything(folder) == before


def test_a_backup_that_cannot_be_written_stops_all(folder, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    before = everything(folder)
    monkeypatch.setattr(workspace, "replace_content", full)
    with pytest.raises(CourseError, match=r"cannot be written: No space left on device; is there room"):
        workspace.reset(folder, TASK)
    assert everything(folder) == before


# upgrade


def test_upgrade_without_news_changes_nothing(folder):
    edit(folder / FILE, 'todo("2.1a")', "return ()")
    before = everything(folder)
    assert workspace.upgrade(folder) == []
    assert everything(folder) == before


def test_changes_in_different_places_are_merged(folder, newer):
    newer('todo("2.3a")', 'todo("2.3z")')
    edit(folder / FILE, 'todo("2.1a")', "return ()")
    assert workspace.upgrade(folder) == [f"{FILE} has the newer text, and all that you wrote"]
    text = (folder / FILE).read_text()
    assert "return ()" in text
    assert 'todo("2.3z")' in text
    assert (folder / workspace.BACKUPS / f"{FILE}.1").is_file()
    assert workspace.upgrade(folder) == []  # once is enough


def test_a_conflict_leaves_everything_as_it_was(folder, newer):
    newer('todo("2.1a")', 'todo("2.1z")')
    (folder / "README.md").unlink()  # which an upgrade would bring back
    edit(folder / FILE, 'todo("2.1a")', "return ()")
    before = everything(folder)
    with pytest.raises(CourseError, match=r"changed the same lines of tensors.py .*nothing was changed.*upgrade --mine"):
        workspace.upgrade(folder)
    after = everything(folder)
    marked = after.pop(workspace.MERGES / FILE).decode()
    assert after == before
    assert '<<<<<<< yours\n    return ()\n=======\n    todo("2.1z")\n>>>>>>> the course\n' in marked


def test_conflict_keeps_the_students_lines_with_mine(folder, newer):
    newer('todo("2.1a")', 'todo("2.1z")')
    edit(folder / FILE, 'todo("2.1a")', "return ()")
    mine = (folder / FILE).read_text()
    workspace.upgrade(folder, keeps_mine=True)
    assert (folder / FILE).read_text() == mine
    assert workspace.upgrade(folder) == []


def test_a_task_that_is_new_brings_its_file_and_its_mark(folder, monkeypatch):
    fresh = workspace.fresh()
    marks = fresh["pytest.ini"] + "    task9_9: another one\n"
    monkeypatch.setattr(workspace, "fresh", lambda: fresh | {"another.py": "x = 1\n", "pytest.ini": marks})
    message = workspace.upgrade(folder)
    assert sorted(message) == ["another.py is new", "pytest.ini has the newer text, and all that you wrote"]
    assert (folder / "another.py").read_text() == "x = 1\n"
    assert "task9_9" in (folder / "pytest.ini").read_text()


def test_line_ends_stay_as_the_editor_left_them(folder):
    path = folder / FILE
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    workspace.reset(folder, TASK)
    assert b"\r\n" in path.read_bytes()
    assert b"\r\r" not in path.read_bytes()


# diff


def test_diff_compares_with_the_reference(folder):
    edit(folder / FILE, 'todo("2.1b")', "return offset")
    lines = workspace.diff_with_reference(folder, TASK)
    assert "--- yours: position_of" in lines
    assert "-    return offset" in lines
    assert "+    position = offset" in lines
    assert not any("begin 2.1" in line for line in lines)


def test_without_a_clone_there_is_no_reference(folder, monkeypatch, tmp_path):
    monkeypatch.setattr(workspace, "REFERENCE", tmp_path)
    with pytest.raises(CourseError, match="in the repository, not in what pip installs; clone it to compare"):
        workspace.diff_with_reference(folder, TASK)


# Two commands at once


def of_two_at_once(folder, call):
    """Call while another command changes the folder: refused, and nothing is written."""
    before = everything(folder)
    with workspace.locked(folder):
        with pytest.raises(CourseError, match=rf"is being changed by this process, {os.getpid()} .*nothing was written"):
            call()
        assert everything(folder).keys() - before.keys() == {workspace.LOCK}
    assert everything(folder) == before
    call()


def test_a_reset_waits_for_no_other_command(folder):
    edit(folder / FILE, 'todo("2.1a")', "return 1")
    of_two_at_once(folder, lambda: workspace.reset(folder, TASK))


def test_an_upgrade_waits_for_no_other_command(folder, newer):
    newer('todo("2.1a")', 'todo("2.1a")  # newer')
    of_two_at_once(folder, lambda: workspace.upgrade(folder))


def test_only_one_of_many_simultaneous_inits_succeeds(tmp_path):
    barrier, made, refused = threading.Barrier(4), [], []

    def work():
        barrier.wait(30)
        try:
            made.append(workspace.init(tmp_path / "mine"))
        except CourseError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), len(refused)) == (1, 3)
    assert {path: (tmp_path / "mine" / path).read_text() for path in workspace.fresh()} == workspace.fresh()
    assert not [path for path in (tmp_path / "mine").rglob("*") if path.suffix == ".tmp" or path.name == "lock"]


def test_a_folder_that_is_refused_gets_no_mark_of_the_course(tmp_path):
    (tmp_path / FILE).write_text("mine")
    with pytest.raises(CourseError, match="already"):
        workspace.init(tmp_path)
    assert everything(tmp_path) == {Path(FILE): b"mine"}
    assert not (tmp_path / workspace.STATE).exists()
