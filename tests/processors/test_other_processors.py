"""Kernels and the driver compile for Arm and for Windows: to vector instructions, and to calls that those systems have."""

import json
import subprocess
import sys
from functools import cache

import pytest

from tests.processors.compile_for import TARGETS
from tests.sources import ROOT

ARM_LINUX, ARM_MAC, WINDOWS = TARGETS
MAGIC = {ARM_LINUX: "7f454c46", ARM_MAC: "cffaedfe", WINDOWS: "6486"}  # ELF, Mach-O, COFF of x86-64
LIBRARY = {"cos", "fmod", "fmodf", "memcpy", "memmove", "memset", "pow", "sin"}  # functions of every C library
EXTRA = {ARM_LINUX: set(), ARM_MAC: {"bzero", "memset_pattern16"}, WINDOWS: {"__chkstk"}}
OWN_INTRINSICS = {ARM_LINUX: "llvm.aarch64", ARM_MAC: "llvm.aarch64", WINDOWS: "llvm.x86"}


@cache
def reports(*triples):
    """Return what compile_for reports for targets that have vectors of the same size."""
    command = [sys.executable, "-m", "tests.processors.compile_for", *triples]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200)
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


def report_of(triple):
    """Return the report of the driver, and those of the kernels."""
    group = (WINDOWS,) if triple == WINDOWS else (ARM_LINUX, ARM_MAC)
    driver, *kernels = [report for report in reports(*group) if report["target"] == triple]
    assert driver["name"] == "driver"
    return driver, kernels


@pytest.mark.parametrize("triple", TARGETS)
def test_code_is_made_for_another_processor_and_system(triple):
    driver, kernels = report_of(triple)
    assert len(kernels) > 30
    assert all(report["magic"].startswith(MAGIC[triple]) for report in (driver, *kernels))

    # Without the dash that macOS writes before each name.
    called = {name.removeprefix("_") if triple == ARM_MAC else name for report in kernels for name in report["calls"]}
    assert called <= LIBRARY | EXTRA[triple]
    assert {"fmod", "pow", "sin"} <= called

    of_processors = {name for report in kernels for name in report["intrinsics"] if name in OWN_INTRINSICS.values()}
    assert not of_processors
    assert OWN_INTRINSICS[triple] in driver["intrinsics"]
    assert all("Py" in name for name in driver["calls"])

    assert kernels[0]["vectors"] > 0  # a fused layer norm
    assert sum(report["vectors"] > 0 for report in kernels) > 0.7 * len(kernels)
    assert not [report["name"] for report in (driver, *kernels) if report["tables"]]  # the linker may lay them too far away
