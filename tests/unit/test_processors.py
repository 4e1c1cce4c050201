"""runtime.processors: the number of threads that can run at once and the free memory, from files as in a container."""

import os

import pytest

from minifuse.backends.parallel.driver import count_threads
from minifuse.runtime.processors import available_nbytes, count_processors, cpu_quota

V2 = "30 23 0:26 {folder} /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
V1 = "33 32 0:30 {folder} /sys/fs/cgroup/cpu,cpuacct rw shared:15 - cgroup cgroup rw,cpu,cpuacct"
OTHERS = (
    "24 1 259:2 / / rw,relatime shared:1 - ext4 /dev/root rw\n"
    "34 32 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"
)


def system(root, mount, membership, folder="/", **files):
    """Write the files of a system; names of `files` are paths below the mount."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mountinfo").write_text(f"{OTHERS}\n{mount.format(folder=folder)}\n")
    (root / "proc/self/cgroup").write_text(f"5:memory:/elsewhere\n{membership}\n")
    for name, text in files.items():
        path = root / mount.split()[4].lstrip("/") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch):
    for name in ("MINIFUSE_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)


@pytest.mark.parametrize(
    ("text", "processors"),
    [("200000 100000", 2), ("150000 100000", 2), ("10000 100000", 1), ("max 100000", 16), ("9900000 100000", 16), ("", 16)],
)
def test_a_quota_of_version_two_limits_the_threads(tmp_path, text, processors):
    root = system(tmp_path, V2, "0::/", **{"cpu.max": text})
    assert count_processors(root) == count_threads(root) == processors


@pytest.mark.parametrize(("quota", "period", "processors"), [(250000, 100000, 3), (-1, 100000, 16), (50000, 50000, 1)])
def test_a_quota_of_version_one_limits_the_threads(tmp_path, quota, period, processors):
    files = {"job/cpu.cfs_quota_us": quota, "job/cpu.cfs_period_us": period}
    assert count_threads(system(tmp_path, V1, "4:cpu,cpuacct:/job", **files)) == processors


def test_the_smallest_quota_up_to_the_root_counts(tmp_path):
    files = {"pod/box/cpu.max": "800000 100000", "pod/cpu.max": "350000 100000", "cpu.max": "max 100000"}
    assert cpu_quota(system(tmp_path, V2, "0::/pod/box", **files)) == 3.5


def test_a_part_of_the_tree_may_be_mounted(tmp_path):
    """A container sees its own group as the root, and its path may be that of the host."""
    files = {"cpu.max": "300000 100000", "inner/cpu.max": "200000 100000"}
    assert cpu_quota(system(tmp_path / "a", V2, "0::/docker/id/inner", "/docker/id", **files)) == 2
    assert cpu_quota(system(tmp_path / "b", V2, "0::/elsewhere", "/docker/id", **files)) == 3


def test_without_control_groups_there_is_no_quota(tmp_path):
    assert cpu_quota(tmp_path) is None
    assert cpu_quota(system(tmp_path, V2, "0::/")) is None
    assert count_threads(tmp_path) == 16


def test_a_process_bound_to_few_processors_has_few_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5})
    assert count_threads(system(tmp_path, V2, "0::/", **{"cpu.max": "800000 100000"})) == 2


@pytest.mark.parametrize(
    ("settings", "threads"),
    [
        ({"MINIFUSE_THREADS": "7", "NUMBA_NUM_THREADS": "5", "OMP_NUM_THREADS": "3"}, 7),
        ({"NUMBA_NUM_THREADS": "5", "OMP_NUM_THREADS": "3"}, 5),
        ({"OMP_NUM_THREADS": "3"}, 3),
        ({"OMP_NUM_THREADS": " 4 ,2"}, 4),
        ({"OMP_NUM_THREADS": "many"}, 2),
    ],
)
def test_settings_win_over_a_quota(tmp_path, monkeypatch, settings, threads):
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert count_threads(system(tmp_path, V2, "0::/", **{"cpu.max": "150000 100000"})) == threads


def test_the_smallest_limit_of_memory_counts(tmp_path):
    files = {"pod/box/memory.max": "max", "pod/memory.max": "5000000"}
    root = system(tmp_path, V2, "0::/pod/box", **files)
    assert available_nbytes(root) == 5_000_000
    (root / "proc/meminfo").write_text("MemTotal:       9000000 kB\nMemAvailable:      4000 kB\n")
    assert available_nbytes(root) == 4000 << 10
    assert available_nbytes(tmp_path / "nowhere") is None
