"""What the interpreter counts of six kernels, and how it is held against the hardware, whose counts are made up here."""

import json
import shutil

import pytest

from minifuse.backends.cuda.compiler import compile_ptx

from . import counters
from .counters import METRICS, TILE, N

WARPS = N // 32
HEAD = '"ID","Process ID","Process Name","Kernel Name","Block Size","Metric Name","Metric Unit","Metric Value"'


def numbers(name):
    (case,) = [case for case in counters.cases() if case.name == name]
    return counters.derived(case)


def written(hardware, kernel="tests::cuda::counters::{}[abi:v1](float *)"):
    """What ncu would write."""
    rows = ["==PROF== Connected to process 1", "all right", HEAD]
    for k, (name, counts) in enumerate(hardware.items()):
        for label, value in counts.items():
            rows.append(f'"{k}","1","python","{kernel.format(name)}","(256, 1, 1)","{METRICS[label]}","","{value:,}"')
    return "\n".join([*rows, "==PROF== Disconnected"])


@pytest.fixture(scope="module")
def derived():
    return {case.name: counters.derived(case) for case in counters.cases()}


@pytest.mark.parametrize(
    ("name", "sectors"), [("stride_one", 4), ("offset_one", 5), ("stride_two", 8), ("transposed_read", 32)]
)
def test_sectors_of_a_warp(derived, name, sectors):
    found = derived[name]
    assert found["global load requests"] == WARPS
    assert found["global load sectors"] == sectors * WARPS
    assert found["global store sectors"] == 4 * WARPS
    assert found["shared load wavefronts"] == 0


def test_a_column_of_a_tile_is_one_bank(derived):
    found = derived["tile_column"]
    assert found["shared store wavefronts"] == TILE
    assert found["shared store conflicts"] == 0
    assert found["shared load wavefronts"] == TILE * TILE
    assert found["shared load conflicts"] == TILE * (TILE - 1)


def test_a_tiled_product_loads_each_element_once_a_block(derived):
    found = derived["shared_tiles"]
    assert found["global load requests"] == 4 * 2 * 2 * TILE  # blocks, tiles along K, operands, warps
    assert found["global load sectors"] == 4 * found["global load requests"]
    assert found["shared load conflicts"] == 0


def test_output_of_ncu_is_parsed(derived):
    names = list(derived)
    assert counters.parse(written(derived), names) == derived
    assert counters.parse(written(derived, "_ZN5tests4cuda8counters10{}B2v1E"), names) == derived


def test_a_kernel_that_ncu_did_not_see_is_an_error(derived):
    with pytest.raises(ValueError, match=r"gave no .* of stride_two"):
        counters.parse(written({name: counts for name, counts in derived.items() if name != "stride_two"}), list(derived))
    with pytest.raises(ValueError, match="no table of ncu"):
        counters.parse("==ERROR== ERR_NVGPUCTRPERM", list(derived))


def test_equal_and_different_counts_are_distinguished(derived):
    rows = counters.compare(derived)
    assert all(row["is_equal"] for row in rows)
    assert {row["kernel"] for row in rows} == set(derived)
    other = {name: dict(counts) for name, counts in derived.items()}
    other["offset_one"]["global load sectors"] += 1
    other["shared_tiles"]["shared load wavefronts"] -= 1
    wrong = [row for row in counters.compare(other) if not row["is_equal"]]
    assert [row["kernel"] for row in wrong] == ["offset_one", "shared_tiles"]
    text = counters.table(wrong)
    assert "| offset_one | global load sectors | 640 | 641 | differs |" in text
    assert text.count("\n") == 3


def test_the_page_shows_its_file_and_the_current_model(derived):
    guide = counters.ROOT / "docs" / "guide"
    found = json.loads((guide / "counters-h200.json").read_text(encoding="utf-8"))
    page = (guide / "counters.md").read_text(encoding="utf-8")
    assert counters.table(found["rows"]) in page
    assert f"{found['device']}, {found['date']}" in page
    assert all(derived[row["kernel"]][row["counter"]] == row["derived"] for row in found["rows"])
    assert f"All {sum(row['is_equal'] for row in found['rows'])} counts are equal" in page


def test_the_kernels_compile():
    pytest.importorskip(
        "numba_cuda", reason='numba-cuda is not installed: pip install "minifuse[cuda13]" (no GPU is needed)'
    )
    for case in counters.cases():
        ptx = compile_ptx(case.kernel, case.signature, 1024)
        assert case.name in ptx.entry  # by which ncu's rows are found
        assert ".local" not in ptx.ptx


@pytest.mark.gpu
def test_the_hardware_counts_the_same(gpu):
    if shutil.which("ncu") is None:
        pytest.skip("ncu is not on the PATH; it is NVIDIA Nsight Compute")
    try:
        found = counters.measured()
    except SystemExit as error:
        pytest.skip(str(error))
    wrong = [row for row in counters.compare(found) if not row["is_equal"]]
    assert not wrong, counters.table(wrong)
