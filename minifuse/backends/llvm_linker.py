"""C functions made at run time, as functions of Python: text in LLVM's language, linked into this process.

The text may call the C interface of Python, so no compiler need be started and nothing is installed. Code that is linked
stays in memory until the process ends.
"""

import ctypes
import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import count
from typing import Any

import llvmlite.binding as llvm

CPU_FEATURES = llvm.get_host_cpu_features()
VECTOR_BYTES = (
    64 if CPU_FEATURES.get("avx512f") else 32 if CPU_FEATURES.get("avx2") else 16
)  # of a register of this processor
METH_O, METH_FASTCALL = 0x08, 0x80  # called with one object; with an array of objects and its length
_libraries = count()


class MethodDef(ctypes.Structure):
    """How C tells Python of a function: PyMethodDef. Python refers to it as long as a function made of it lives."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )

    def bound(self, owner: object) -> Callable[..., Any]:
        """The function as one of Python; `owner` is the object that it gets before its arguments."""
        create = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(MethodDef), ctypes.py_object, ctypes.c_void_p)
        function: Callable[..., Any] = create(("PyCFunction_NewEx", ctypes.pythonapi))(self, owner, None)
        return function


def link_text(text: str, exports: Iterable[str]) -> dict[str, int]:
    """The addresses of what a text in LLVM's language defines; of Python's interface it may call what it declares."""
    library = llvm.JITLibraryBuilder().add_ir(text)
    for name in set(re.findall(r"@(_?Py\w+)", text)):
        library.import_symbol(name, ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value)
    return link(library, exports)


def link(library: llvm.JITLibraryBuilder, exports: Iterable[str]) -> dict[str, int]:
    """The addresses of what a library defines."""
    for name in exports:
        library.export_symbol(name)
    tracker = library.link(_linker(), f"minifuse_{next(_libraries)}")  # each has its own names, and is never unloaded
    tracker.detach()
    return {name: tracker[name] for name in exports}


def host_processor() -> tuple[str, str]:
    """LLVM's name of this processor, and its features."""
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@cache
def _linker() -> llvm.LLJIT:
    """LLVM's linker for code in memory; it reports what it cannot find, where the older engine ends the process."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    processor, features = host_processor()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(cpu=processor, features=features, opt=0, jit=True)  # of text: objects are done
    return llvm.create_lljit_compiler(machine, suppress_errors=True)
