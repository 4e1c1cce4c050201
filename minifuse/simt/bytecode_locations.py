"""Locate bytecode: the instruction at an offset, its position in the source, and the variable that stores its result.

Python rewrites instructions as they run, so the offset of a frame may be that of a cache entry after the instruction.
Offsets are therefore mapped to the start of their instruction before they are compared.
"""

import dis
from bisect import bisect_right
from types import CodeType, FrameType
from typing import Final, NamedTuple

Line = tuple[str, int]  # a file and a line in it
InstructionKey = tuple[int, ...]  # equal for lanes at the same instruction
CodeOffset = tuple[CodeType, int]  # a function's code and an offset into its bytecode
MAX_CACHED_FUNCTIONS: Final = 4096

# id of a code object -> the code object, kept alive so that the id stays valid, and its instruction offsets
INSTRUCTION_OFFSETS: dict[int, tuple[CodeType, list[int]]] = {}
# (id of a code object, offset of a call) -> the variable that the result is assigned to
ASSIGNED_NAMES: dict[tuple[int, int], str | None] = {}


class Instruction(NamedTuple):
    """An instruction of a kernel: its position in the source and in the bytecode."""

    file: str
    function: str
    line: int
    column: int  # from 0
    offset: int  # bytes into the bytecode of the function


def instruction_start(code: CodeType, offset: int) -> int:
    """Return the offset of the instruction that an offset belongs to."""
    entry = INSTRUCTION_OFFSETS.get(id(code))
    if entry is None:
        if len(INSTRUCTION_OFFSETS) >= MAX_CACHED_FUNCTIONS:
            INSTRUCTION_OFFSETS.clear()
            ASSIGNED_NAMES.clear()
        entry = INSTRUCTION_OFFSETS[id(code)] = code, [step.offset for step in dis.get_instructions(code)]
    offsets = entry[1]
    return offsets[bisect_right(offsets, offset) - 1]


def current_instruction(frame: FrameType) -> int:
    """Return the offset of the instruction that a frame is executing."""
    return instruction_start(frame.f_code, frame.f_lasti)


def instruction_key(caller: FrameType, frame: FrameType) -> InstructionKey:
    """Return a key that is equal for lanes at the same instruction.

    If a function of `cuda` is the caller, the key also contains the instruction of that function.
    """
    if caller is frame:
        return id(frame.f_code), current_instruction(frame)
    return id(frame.f_code), current_instruction(frame), id(caller.f_code), current_instruction(caller)


def instruction_at(code: CodeType, offset: int) -> Instruction:
    """Return the instruction at an offset, with its position in the source."""
    line, column = code.co_firstlineno, 0
    for index, (start_line, _, start_column, _) in enumerate(code.co_positions()):
        if 2 * index == offset:
            line, column = start_line or line, start_column or 0
            break
    return Instruction(code.co_filename, code.co_qualname, line, column, offset)


def assigned_name(frame: FrameType) -> str | None:
    """Return the variable that the result of the running call is assigned to, or None."""
    code, offset = frame.f_code, current_instruction(frame)
    key = (id(code), offset)
    if key not in ASSIGNED_NAMES:
        following = [step for step in dis.get_instructions(code) if step.offset > offset and step.opname != "CACHE"]
        is_stored = following and following[0].opname in ("STORE_FAST", "STORE_DEREF", "STORE_GLOBAL")
        ASSIGNED_NAMES[key] = following[0].argval if is_stored else None
    return ASSIGNED_NAMES[key]
