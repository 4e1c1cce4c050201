"""Read the external symbols that machine code needs from an object file.

The LLVM text does not declare all of them: the code generator inserts calls, such as `fmod` for a remainder of floats.
"""

import re
import struct

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
