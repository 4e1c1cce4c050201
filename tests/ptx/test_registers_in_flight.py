"""Machine code of products whose left operand lies in registers: none is written while the tensor cores still read it.

`wgmma` runs on after it was started, and reads its operand from registers meanwhile. Whether the assembler keeps off these
is read from its code: along every path, from each product that is started to the wait behind which it has ended.
"""

import re
import subprocess
from shutil import which

import pytest

from minifuse.backends.cuda.compiler import compile_lto_cubin
from minifuse.backends.cuda.matmul.wgmma import RIGHT_ROWS, make_wgmma

from .test_tensor_cores_ptx import BIAS

KERNELS = {
    f"{tile}{', turned' if is_turned else ''}": make_wgmma("tf32", True, is_turned, tile)
    for tile in RIGHT_ROWS
    for is_turned in (True, False)
}
KERNELS |= {f"{tile}, turned, with an epilogue": make_wgmma("tf32", True, True, tile, BIAS) for tile in RIGHT_ROWS}
LINE = re.compile(r"(?P<label>\.L_x_\d+):|\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\d+ )?\s*(?P<code>\S.*?) ?;")
WIDTHS = {"64": 2, "128": 4, "WIDE": 2}  # registers that an instruction writes, by a part of its name
NO_TARGET = ("ST", "RED", "SYNCS", "BAR", "CALL", "RET", "HGMMA")  # their first registers are not written, or are sums


def disassembled(cubin, folder):
    """The instructions, and where each label stands among them."""
    path = folder / "kernel.cubin"
    path.write_bytes(cubin)
    text = subprocess.run(["nvdisasm", "-c", str(path)], capture_output=True, text=True, check=True).stdout
    code, labels = [], {}
    for line in text.splitlines():
        if found := LINE.match(line):
            if found["label"]:
                labels[found["label"]] = len(code)
            else:
                code.append((found["code"], "@" in line.partition(found["code"])[0]))
    return code, labels


def written(instruction):
    """The registers that it writes."""
    name, _, operands = instruction.partition(" ")
    if name.startswith(NO_TARGET):
        return set()
    count = max((WIDTHS[part] for part in name.split(".") if part in WIDTHS), default=1)
    first = next((x for x in map(str.strip, operands.split(",")) if not re.fullmatch(r"U?P[\dT]", x)), "")
    found = re.fullmatch(r"R(\d+)", first)
    return set(range(int(found[1]), int(found[1]) + count)) if found else set()


def overwritten(code, labels):
    """Instructions that write what a product may still read, as (place, instruction)."""
    found, seen, paths = set(), set(), [(0, (), frozenset())]
    while paths:
        place, flight, begun = paths.pop()  # the operands of groups that may run, oldest first, and of the group begun
        while (place, flight, begun) not in seen:
            seen.add((place, flight, begun))
            instruction, is_conditional = code[place]
            name, _, operands = instruction.partition(" ")
            if name.startswith("HGMMA"):
                left = re.fullmatch(r"R(\d+)", operands.split(", ")[1])
                assert left, instruction
                begun |= set(range(int(left[1]), int(left[1]) + 4))
                if "gsb0" in operands:
                    flight, begun = (*flight, begun), frozenset()
            elif written(instruction) & begun.union(*flight):
                found.add((place, instruction))
            if wait := re.match(r"WARPGROUP\.DEPBAR\.LE gsb0, 0x(\d)", instruction):
                flight = flight[len(flight) - min(int(wait[1]), len(flight)) :]
            assert len(flight) < 4, "nothing waits for a product"
            if name == "BRA":
                paths.append((labels[re.search(r"\.L_x_\d+", operands)[0]], flight, begun))
            if not is_conditional and name in ("BRA", "EXIT"):
                break
            place += 1
    return sorted(found)


@pytest.mark.sampled(3)
@pytest.mark.skipif(not which("nvdisasm"), reason="nvdisasm is not on the path: it comes with the CUDA toolkit")
@pytest.mark.parametrize("name", KERNELS)
def test_no_register_is_written_that_a_product_reads(name, tmp_path):
    kernel = KERNELS[name]
    whole = compile_lto_cubin(kernel.function, kernel.signature, kernel.threads, kernel.blocks, (9, 0))
    code, labels = disassembled(whole.partition(b"\n")[2], tmp_path)
    assert sum(instruction.startswith("HGMMA") for instruction, _ in code) in (4, 12)
    assert not overwritten(code, labels)


LOOP = """
.L_x_0:
        /*0000*/                   LDS.64 R8, [R2] ;
        /*0010*/                   HGMMA.64x64x8.F32.TF32 R24, R8, gdesc[UR4], R24, gsb0 ;
        /*0020*/                   WARPGROUP.DEPBAR.LE gsb0, 0x1 ;
        /*0030*/                   LDS.64 R12, [R2+0x400] ;
        /*0040*/                   HGMMA.64x64x8.F32.TF32 R24, R12, gdesc[UR4], R24, gsb0 ;
        /*0050*/                   WARPGROUP.DEPBAR.LE gsb0, 0x1 ;
        /*0060*/              @!P0 BRA `(.L_x_0) ;
        /*0070*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
        /*0080*/                   MOV R12, RZ ;
        /*0090*/                   EXIT ;
"""


@pytest.mark.parametrize(
    ("change", "by"),
    [
        (("", ""), []),
        (("LDS.64 R12", "LDS.64 R10"), ["LDS.64 R10, [R2+0x400]"]),  # the second half of R8 to R11
        (("0x1 ;", "0x2 ;"), ["LDS.64 R8, [R2]", "LDS.64 R12, [R2+0x400]"]),
        (("gsb0, 0x0", "gsb0, 0x1"), ["MOV R12, RZ"]),
    ],
)
def test_loads_in_flight_are_counted(change, by, tmp_path, monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, 0, LOOP.replace(*change)))
    found = overwritten(*disassembled(b"", tmp_path))
    assert [instruction for _, instruction in found] == by
