"""Compile the kernels of a program for a processor and a system other than this machine's, and report what the code has.

    python -m tests.processors.compile_for aarch64-unknown-linux-gnu arm64-apple-macos

The program runs here, on vectors as wide as the other processor's, so its kernels are the ones of a machine of that kind.
What Numba made of each of them before it optimizes, and the text of the driver, are then compiled for the target.
"""

import json
import os
import platform
import re
import sys
from collections import defaultdict
from dataclasses import dataclass

import llvmlite.binding as llvm


@dataclass(frozen=True)
class Target:
    """A processor and a system: LLVM's names, Python's name of the machine, and the extensions of x86 that it has not."""

    triple: str
    processor: str
    machine: str
    vector_registers: str  # a pattern of the operands of its vector instructions in a listing
    relocations: str  # Numba's choice
    missing: tuple[str, ...] = ()


ARM_VECTORS = r"\.(?:2d|4s|2s|16b|8h)\b"
NOT_ON_ARM = ("avx", "fma", "f16c")  # so vectors have 16 bytes
TARGETS = {
    target.triple: target
    for target in (
        Target("aarch64-unknown-linux-gnu", "neoverse-n1", "aarch64", ARM_VECTORS, "default", NOT_ON_ARM),
        Target("arm64-apple-macos", "apple-m1", "arm64", ARM_VECTORS, "default", NOT_ON_ARM),
        Target("x86_64-pc-windows-msvc", "x86-64-v3", "AMD64", r"%ymm\d+", "static", ("avx512",)),
    )
}


def hide_extensions(prefixes: tuple[str, ...]) -> None:
    """Let minifuse and Numba find a processor without some extensions."""
    found = llvm.get_host_cpu_features()
    for name in found:
        if name.startswith(prefixes):
            found[name] = False
    llvm.get_host_cpu_features = lambda: found


def run_program() -> None:
    """Run kernels of each kind: pointwise, of each function, of reductions, matmuls, indices, sorts, scans and joins."""
    import numpy as np

    import minifuse as mf

    mf.manual_seed(0)
    x, y = mf.rand(67, 130), mf.rand(130, 65)
    d = mf.tensor(x.numpy().astype(np.float64))
    whole = mf.tensor(np.arange(3, 3971).reshape(31, 128))

    @mf.fuse
    def layer_norm(x):
        centered = x - x.mean(1, keepdim=True)
        return centered / (centered * centered).mean(1, keepdim=True).sqrt()

    computed = [layer_norm(x), x.softmax(0), x.T.contiguous(), x.max(1).values, d.sum(0), x.argmax(1), x.cumsum(1)]
    computed += [x.exp() + x.log() * x.tanh(), x.sin() / x.erf(), x**x, x % 0.3, x.round()]
    computed += [d.exp() + d.log(), d.sin() * d.cos(), d**d, d % 0.3, d.to(mf.int64)]
    computed += [whole // 7, whole**2, whole << 3, whole @ whole.T]
    computed += [
        x @ y,
        x.T @ x,
        x[0] @ y,
        d @ d.T,
        (x @ y).relu(),
        mf.nn.functional.conv2d(mf.rand(2, 3, 9, 8), mf.rand(4, 3, 3, 3)),
    ]
    computed += [x.sort(1).values, x.topk(3).values, x[x > 0.5], x[whole[0, :20] % 67], mf.cat([x, x])]
    for tensor in computed:
        tensor.numpy()


def collect() -> dict[str, str]:
    """Run the program, and return the LLVM text of each kernel before it was optimized."""
    from minifuse.backends.parallel import compiler

    library, found = compiler._object_library(), {}

    class Recorder(library):
        """A library that keeps its text."""

        def _optimize_final_module(self) -> None:
            found[self.name] = str(self._final_module)  # the program also runs without optimization

    compiler._object_library = lambda: Recorder
    run_program()
    return found


def driver_of(target: Target) -> str:
    """Return the text of the driver for a target, as it is linked there."""
    from minifuse.backends.llvm_linker import address_directly
    from minifuse.backends.parallel.thread_pool_llvm import pool_text

    platform.machine = lambda: target.machine
    return address_directly(pool_text(), defaultdict(lambda: 1 << 40))


def compile_text(text: str, target: Target) -> tuple[bytes, str]:
    """Return the object file of LLVM text, and its listing, optimized as Numba optimizes a kernel."""
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.processor, opt=3, reloc=target.relocations, codemodel="jitdefault", jit=True
    )
    head = f'target datalayout = "{machine.target_data}"\ntarget triple = "{target.triple}"\n'
    lines = [line for line in text.splitlines() if not line.startswith(("target datalayout", "target triple"))]
    module = llvm.parse_assembly(head + "\n".join(lines))
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module), machine.emit_assembly(module)


def calls(listing: str) -> list[str]:
    """Return the names of the functions that a listing uses and does not define."""

    def find(pattern: str) -> set[str]:
        return set(re.findall(pattern, listing, re.MULTILINE))

    called = find(r"^\s+(?:callq|jmp|bl|b)\s+([A-Za-z_]\w*)$")
    # On macOS, and with 64-bit addresses on x86, code loads the addresses of functions, and of variables.
    loaded = find(r", (\w+)@GOTPAGE$") | find(r"\smovabsq\s+\$([A-Za-z_]\w*),")
    variables = find(r"^\s*\.l?comm\s+(\w+),") | find(r"^\.zerofill \w+,\w+,(\w+)")
    return sorted((called | loaded) - variables - find(r"^(\w+):"))


def main(*triples: str) -> None:
    """Print a line of JSON for the driver and for each kernel, for each target."""
    hide_extensions(TARGETS[triples[0]].missing)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    kernels = collect()
    for target in (TARGETS[triple] for triple in triples):
        for name, text in {"driver": driver_of(target), **kernels}.items():
            code, listing = compile_text(text, target)
            report = {
                "target": target.triple,
                "name": name,
                "magic": code[:4].hex(),
                "calls": calls(listing),
                "intrinsics": sorted(set(re.findall(r"call [^@\n]*@(llvm\.\w+)", text))),
                "vectors": len(re.findall(target.vector_registers, listing)),
                "tables": listing.count(":got:"),
            }
            print(json.dumps(report), flush=True)


if __name__ == "__main__":
    os.environ["MINIFUSE_CACHE_LIMIT_MB"] = "0"  # each kernel is compiled, and none is stored
    main(*sys.argv[1:])
