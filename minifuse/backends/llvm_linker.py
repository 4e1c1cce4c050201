"""Link LLVM text into this process, and wrap its functions as Python functions.

The text may call the C API of Python, so no C compiler is needed and nothing is installed. Linked code stays in memory until
the process ends.

The text of a kernel does not declare all symbols that it needs: the code generator inserts calls, such as `fmod` for a
remainder of floats. So they are read from the object file.
"""

import ctypes
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import count
from typing import Any

import llvmlite.binding as llvm

CPU_FEATURES = llvm.get_host_cpu_features()
VECTOR_BYTES = (
    64 if CPU_FEATURES.get("avx512f") else 32 if CPU_FEATURES.get("avx2") else 16
)  # size of a vector register of this processor
METH_O, METH_FASTCALL = 0x08, 0x80  # calling conventions: one object; an array of objects and its length
_libraries = count()


class MethodDef(ctypes.Structure):
    """PyMethodDef, the struct that describes a C function to Python. It must outlive the functions made from it."""

    _fields_ = (("name", ctypes.c_char_p), ("address", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))

    def as_function(self, owner: object) -> Callable[..., Any]:
        """Return the C function as a Python function. `owner` is passed to it as `self`, before its arguments."""
        create = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(MethodDef), ctypes.py_object, ctypes.c_void_p)
        function: Callable[..., Any] = create(("PyCFunction_NewEx", ctypes.pythonapi))(self, owner, None)
        return function


def link_text(text: str, exports: Iterable[str]) -> dict[str, int]:
    """Link LLVM text, and return the addresses of its exported functions. It may declare and use Python's C API."""
    addresses = {name: address_in_python(name) for name in set(re.findall(r"@(_?Py\w+)", text))}
    text = address_directly(text, addresses)
    library = llvm.JITLibraryBuilder().add_ir(text)
    for name in set(re.findall(r"@(_?Py\w+)", text)):
        library.import_symbol(name, addresses[name])
    return link(library, exports)


def address_in_python(name: str) -> int:
    """Return the address of a function or a variable of Python's C API."""
    address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    assert address is not None
    return address


def address_directly(text: str, addresses: Mapping[str, int]) -> str:
    """Let LLVM text address its variables without a table: external ones by number, exported ones as part of the module.

    On Arm, code loads the address of such a variable from a table at most 4 GB away. The linker allocates the table without
    regard to that, and ends the process if it is too far away.

    Examples
    --------
    >>> text = "@x = external global i8\\n@y = global i8 0\\nload i8, ptr @x"
    >>> print(address_directly(text, {"x": 4096}))
    @y = dso_local global i8 0
    load i8, ptr inttoptr (i64 4096 to ptr)
    """
    external = r"^@(\w+) *= external global .*\n"
    for name in re.findall(external, text, re.MULTILINE):
        text = re.sub(rf"@{name}\b(?! *=)", f"inttoptr (i64 {addresses[name]} to ptr)", text)
    text = re.sub(external, "", text, flags=re.MULTILINE)
    return re.sub(r"^(@\w+ *=) global ", r"\1 dso_local global ", text, flags=re.MULTILINE)


def copy_function(element: str) -> str:
    """Return the text of a function that copies a few elements, such as i8. It calls no other function, such as memcpy."""
    return f"""
define internal void @copy(ptr %to, ptr %from, i64 %count) {{
entry:
  br label %look
look:
  %k = phi i64 [ 0, %entry ], [ %next, %one ]
  %is_over = icmp sge i64 %k, %count
  br i1 %is_over, label %return, label %one
one:
  %from_k = getelementptr {element}, ptr %from, i64 %k
  %to_k = getelementptr {element}, ptr %to, i64 %k
  %element = load {element}, ptr %from_k
  store {element} %element, ptr %to_k
  %next = add i64 %k, 1
  br label %look
return:
  ret void
}}
"""


def link(library: llvm.JITLibraryBuilder, exports: Iterable[str]) -> dict[str, int]:
    """Link a library, and return the addresses of its exported functions."""
    for name in exports:
        library.export_symbol(name)
    tracker = library.link(_linker(), f"minifuse_{next(_libraries)}")  # a separate namespace; it is never unloaded
    tracker.detach()
    return {name: tracker[name] for name in exports}


def host_processor() -> tuple[str, str]:
    """Return LLVM's name of this processor, and its features."""
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@cache
def _linker() -> llvm.LLJIT:
    """Return LLVM's in-memory linker. It raises an error for a missing symbol, where the older MCJIT ends the process."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    processor, features = host_processor()
    target = llvm.Target.from_default_triple()
    # No optimization: it would apply to text only, since object files are compiled already.
    machine = target.create_target_machine(cpu=processor, features=features, opt=0, jit=True)
    return llvm.create_lljit_compiler(machine, suppress_errors=True)


ELF64_LITTLE_ENDIAN = b"\x7fELF\x02\x01"
SYMBOL_TABLE = 2  # type of an ELF section
UNDEFINED = 0  # section index of a symbol that another file defines
LINKER_SYMBOLS = {"", "_GLOBAL_OFFSET_TABLE_"}
DECLARATION = re.compile(r"^declare [^@]*@\"?([\w.$]+)", re.MULTILINE)


def needed_symbols(code: bytes, text: str) -> list[str]:
    """Return the names of the symbols that an object file needs, in the order of its symbol table.

    Parameters
    ----------
    code : bytes
        The object file.
    text : str
        The LLVM text that it was compiled from. If the file is not 64-bit ELF, the result is the functions that this text
        declares, without those that the code generator added.

    Examples
    --------
    >>> needed_symbols(b"another format", "declare double @sin(double)\\ndeclare double @llvm.fabs.f64(double)")
    ['sin']
    """
    if not code.startswith(ELF64_LITTLE_ENDIAN):
        return [name for name in DECLARATION.findall(text) if not name.startswith("llvm.")]
    (table,) = struct.unpack_from("<Q", code, 0x28)
    entry_bytes, count = struct.unpack_from("<2H", code, 0x3A)
    # Fields of a section header: name, type, flags, address, offset, size, linked section, info, alignment, entry size.
    sections = [struct.unpack_from("<2I4Q2I2Q", code, table + k * entry_bytes) for k in range(count)]
    names = []
    for section in sections:
        if section[1] == SYMBOL_TABLE:
            begin, nbytes, strings_offset = section[4], section[5], sections[section[6]][4]
            # Fields of a symbol: name, type, visibility, section, address, size.
            for name_offset, _, _, section_index, _, _ in struct.iter_unpack("<I2BH2Q", code[begin : begin + nbytes]):
                if section_index == UNDEFINED:
                    start = strings_offset + name_offset
                    names.append(code[start : code.index(b"\0", start)].decode())
    return [name for name in names if name not in LINKER_SYMBOLS]
