"""Run tests on aarch64 Linux under QEMU, in a Debian of debootstrap: about a hundredth of the speed of a processor.

    make test-arm ARGS=new-folder

Needs root, Debian's mirror, debootstrap, and QEMU registered with the kernel (Debian: qemu-user-static, binfmt-support). pip
of this machine installs the wheels for aarch64, so nothing is built under QEMU. A folder that exists is used again.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.sources import ROOT

SUITE = "bookworm"
PYTHON = "3.11"  # the version of Debian's suite
# numba and numpy are the core; the others run the tests.
PACKAGES = (
    "numba",
    "llvmlite",
    "numpy",
    "pytest",
    "hypothesis",
    "pluggy",
    "packaging",
    "iniconfig",
    "pygments",
    "sortedcontainers",
)
PACKAGES_FOLDER = "opt/packages"
PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_26", "manylinux_2_17", "manylinux2014")
COPIED = ("minifuse", "tests", "pyproject.toml", "pytest_minifuse.py")
TESTS = ("tests/test_smoke.py", "tests/unit/test_layout.py", "tests/unit/test_fast_call.py")
REGISTRATION = Path("/proc/sys/fs/binfmt_misc/qemu-aarch64")


def pins() -> list[str]:
    """Return the requirements of the packages, from requirements.txt."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return [line.partition("#")[0].strip() for line in lines if line.partition("==")[0] in PACKAGES]


def make_debian(root: Path) -> None:
    """Make a Debian for aarch64 in a new folder."""
    command = ["debootstrap", "--arch=arm64", "--variant=minbase", "--include=python3", SUITE, str(root)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def install_packages(root: Path) -> None:
    """Install the packages into a Debian, from their wheels for aarch64."""
    platforms = [word for name in PLATFORMS for word in ("--platform", f"{name}_aarch64")]
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--target",
        str(root / PACKAGES_FOLDER),
    ]
    subprocess.run([*pip, "--implementation", "cp", "--python-version", PYTHON, *platforms, *pins()], check=True)


def copy_sources(root: Path) -> None:
    """Copy the package and the tests into the Debian."""
    target = root / "src"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, target / name)


def main(folder: str) -> str | int:
    """Prepare a Debian where there is none, and run the tests in it."""
    if os.geteuid() != 0:
        return "test-arm needs root, for debootstrap and chroot"
    if shutil.which("debootstrap") is None or not REGISTRATION.exists():
        return "test-arm needs debootstrap, and QEMU for aarch64: apt install debootstrap qemu-user-static binfmt-support"
    root = Path(folder).absolute()
    if not root.exists():
        make_debian(root)
    if not (root / PACKAGES_FOLDER).exists():
        install_packages(root)
    copy_sources(root)
    (root / "proc").mkdir(exist_ok=True)
    subprocess.run(["mount", "--bind", "/proc", str(root / "proc")], check=True)  # where LLVM finds the processor
    try:
        variables = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG": "C.UTF-8",
            "HOME": "/root",
            "PYTHONPATH": f"/{PACKAGES_FOLDER}:/src",
        }
        tests = f"cd /src && exec python3 -m pytest -p pytest_minifuse -q {' '.join(TESTS)}"
        return subprocess.run(["chroot", str(root), "sh", "-c", tests], env=variables).returncode
    finally:
        subprocess.run(["umount", str(root / "proc")], check=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
