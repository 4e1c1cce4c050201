"""Count the loop iterations and calls of a kernel, so that an endless kernel is stopped.

`add_loop_counters`, called by `rebind`, adds a few bytecode instructions to a function, at its entry and at every backward
jump. They take one element of `COUNTER`, an iterator implemented in C, which costs about 20 ns. After every `CHUNK_SIZE`
elements, the iterator calls `Machine.next_chunk`, which raises if the launch has reached its limit.

The bytecode layouts of CPython 3.11 to 3.14 are supported. Other versions run the code unchanged, without a limit.
"""

import dis
import sys
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, repeat
from types import CodeType, FrameType
from typing import Final

from ..core.errors import SimtError
from .bytecode_locations import Line
from .lanes import getcurrent

CHUNK_SIZE: Final = 1024  # iterations between two checks of the limit
CACHE_OP: Final = 0
IS_KNOWN_LAYOUT: Final = sys.implementation.name == "cpython" and (3, 11) <= sys.version_info[:2] <= (3, 14)
UNIT_BYTES: Final = 2  # bytes of a unit: one instruction, one EXTENDED_ARG or one cache
MAX_ENTRY_UNITS: Final = 8  # units that one entry of the line table can describe
NO_COLUMNS, WITH_COLUMNS, NO_LINE = 13, 14, 15  # kinds of entries of the line table

SourcePosition = tuple[int | None, int | None, int | None, int | None]  # first and last line, first and last column


class CounterChunks:
    """The iterators that `COUNTER` consumes one after the other."""

    def __init__(self) -> None:
        self._chunk: Iterator[None] = iter(())

    def __iter__(self) -> "CounterChunks":
        return self

    def __next__(self) -> Iterator[None]:
        lane = getattr(getcurrent(), "lane", None)
        try:
            count = CHUNK_SIZE if lane is None else lane.machine.next_chunk(CHUNK_SIZE, sys._getframe(1))
        except SimtError as error:
            return RaisingIterator(error)
        self._chunk = repeat(None, count)
        return self._chunk

    def drain(self) -> None:
        """Discard the rest of the current chunk, so that a launch starts with a new chunk."""
        deque(self._chunk, maxlen=0)


class RaisingIterator:
    """An iterator that raises an error once. (An error raised by `CounterChunks` itself would exhaust `COUNTER`.)"""

    def __init__(self, error: SimtError) -> None:
        self._error: SimtError | None = error

    def __iter__(self) -> "RaisingIterator":
        return self

    def __next__(self) -> None:
        error, self._error = self._error, None
        raise StopIteration if error is None else error


CHUNKS: Final = CounterChunks()
COUNTER: Final = chain.from_iterable(CHUNKS)


@dataclass(eq=False)
class BytecodeInstruction:
    """One instruction, without its EXTENDED_ARGs."""

    opcode: int
    argument: int
    cache_count: int
    position: SourcePosition
    target: "BytecodeInstruction | None" = None  # the target of a jump
    prefix_count: int = 0  # EXTENDED_ARGs that the argument needs
    offset: int = 0  # in bytes, in the code that it was decoded from

    @property
    def name(self) -> str:
        """The name of the opcode in `dis`."""
        return dis.opname[self.opcode]

    @property
    def is_backward(self) -> bool:
        """True for a jump that closes a loop."""
        return self.target is not None and "BACKWARD" in self.name

    @property
    def units(self) -> int:
        """The length of the instruction in units, with EXTENDED_ARGs and caches."""
        return self.prefix_count + 1 + self.cache_count


def add_loop_counters(code: CodeType) -> CodeType:
    """Return code that counts its loop iterations and calls, or the code itself if the bytecode layout is unknown."""
    if not IS_KNOWN_LAYOUT:
        return code
    constants = tuple(add_loop_counters(value) if isinstance(value, CodeType) else value for value in code.co_consts)
    steps = list(insert_counters(decode_instructions(code), len(constants)))
    resolve_jumps(steps)
    return code.replace(
        co_code=b"".join(map(encode_instruction, steps)),
        co_consts=(*constants, COUNTER),
        co_linetable=encode_line_table(steps, code.co_firstlineno),
        co_exceptiontable=b"",  # kernels have no exception handlers, and the offsets in the table would be wrong
        co_stacksize=code.co_stacksize + 2,
    )


def decode_instructions(code: CodeType) -> list[BytecodeInstruction]:
    """Return the instructions of a function, each jump with its target instruction."""
    steps: list[BytecodeInstruction] = []
    step_at_offset: dict[int, BytecodeInstruction] = {}  # also contains the offset of the first EXTENDED_ARG
    jumps: list[tuple[BytecodeInstruction, int]] = []
    positions, bytecode = list(code.co_positions()), code.co_code
    first_offset = None
    for instruction in dis.get_instructions(code):
        first_offset = instruction.offset if first_offset is None else first_offset
        if instruction.opname == "EXTENDED_ARG":
            continue
        end = instruction.offset + UNIT_BYTES
        while end < len(bytecode) and bytecode[end] == CACHE_OP:
            end += UNIT_BYTES
        cache_count = (end - instruction.offset) // UNIT_BYTES - 1
        position = positions[instruction.offset // UNIT_BYTES]
        step = BytecodeInstruction(
            instruction.opcode, instruction.arg or 0, cache_count, position, offset=instruction.offset
        )
        step_at_offset[first_offset] = step_at_offset[instruction.offset] = step
        if instruction.opcode in dis.hasjrel:
            jumps.append((step, instruction.argval))
        steps.append(step)
        first_offset = None
    for step, target in jumps:
        step.target = step_at_offset[target]
    return steps


def insert_counters(steps: list[BytecodeInstruction], constant_index: int) -> Iterator[BytecodeInstruction]:
    """Yield the instructions, with a counter before each backward jump and after the entry."""
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if step.is_backward:
            jump, (first, *others) = replace(step), counter_instructions(constant_index, step.position)
            vars(step).update(vars(first))  # whatever jumped to this jump now jumps to its counter
            yield from (step, *others, jump)
        else:
            yield step
            if step.name == "RESUME" and step.argument == 0:
                yield from counter_instructions(constant_index, (following or step).position)


def counter_instructions(constant_index: int, position: SourcePosition) -> Iterator[BytecodeInstruction]:
    """Yield the instructions that take one element of the counter. Their source position adds no line in debuggers."""
    pop = BytecodeInstruction(dis.opmap["POP_TOP"], 0, 0, position)
    yield BytecodeInstruction(dis.opmap["LOAD_CONST"], constant_index, 0, position)
    # COUNTER is never exhausted, so FOR_ITER never jumps
    yield BytecodeInstruction(dis.opmap["FOR_ITER"], 0, CACHES_OF_FOR_ITER, position, pop)
    yield pop
    yield BytecodeInstruction(dis.opmap["POP_TOP"], 0, 0, position)


def current_loop(frame: FrameType) -> list[BytecodeInstruction]:
    """Return the instructions of the loop whose counter a frame is executing; none if there is no loop."""
    steps = decode_instructions(frame.f_code)
    current_step = bisect_right(steps, frame.f_lasti, key=lambda step: step.offset) - 1
    jump = next((step for step in steps[current_step + 1 : current_step + 4] if step.is_backward), None)
    if jump is None or jump.target is None:
        return []
    start = steps.index(jump.target)
    has_nop = steps[max(0, start - 1)].name == "NOP"  # it has the line of a `while True`
    return steps[start - has_nop : steps.index(jump) + 1]


def loop_line(frame: FrameType) -> Line:
    """Return the file and line of the loop whose counter a frame is executing, or the line of the frame if there is none."""
    lines = [step.position[0] for step in current_loop(frame)[:2] if step.position[0] is not None]
    return frame.f_code.co_filename, min([frame.f_lineno, *lines])


def is_polling_loop(frame: FrameType) -> bool:
    """Return whether a frame executes a loop that only reads arrays, and may wait for another thread to write them."""
    loop = current_loop(frame)
    reads = any((step.name, step.argument) == (SUBSCRIPT.name, SUBSCRIPT.argument) for step in loop)
    return reads and all(step.name != "STORE_SUBSCR" for step in loop)


def example_instruction(prefix: str) -> BytecodeInstruction:
    """Return the instruction of this Python whose name begins with `prefix`, from a loop over `values[0]`."""

    def loop(values: Sequence[Iterable[object]]) -> None:
        for _ in values[0]:
            pass

    steps = decode_instructions(loop.__code__) if IS_KNOWN_LAYOUT else []
    return next((step for step in steps if step.name.startswith(prefix)), BytecodeInstruction(CACHE_OP, 0, 0, (None,) * 4))


CACHES_OF_FOR_ITER: Final = example_instruction("FOR_ITER").cache_count
SUBSCRIPT: Final = example_instruction("BINARY_")  # BINARY_SUBSCR, or BINARY_OP from CPython 3.14 on


def resolve_jumps(steps: list[BytecodeInstruction]) -> None:
    """Compute the distance of each jump and the EXTENDED_ARGs of each instruction.

    Repeat both until nothing changes, because an EXTENDED_ARG makes other jumps longer.
    """
    is_unchanged = False
    while not is_unchanged:
        ends = dict(zip(map(id, steps), accumulate(step.units for step in steps), strict=True))
        for step in steps:
            if step.target is not None:
                step.argument = abs(ends[id(step.target)] - step.target.units - ends[id(step)])
        prefix_counts = [max(step.prefix_count, (step.argument.bit_length() - 1) // 8) for step in steps]
        is_unchanged = all(step.prefix_count == count for step, count in zip(steps, prefix_counts, strict=True))
        for step, count in zip(steps, prefix_counts, strict=True):
            step.prefix_count = count


def encode_instruction(step: BytecodeInstruction) -> bytes:
    """Return an instruction as bytes, with its EXTENDED_ARGs before it and its caches after it."""
    *high, low = step.argument.to_bytes(1 + step.prefix_count, "big")
    prefixes = b"".join(bytes((dis.EXTENDED_ARG, part)) for part in high)
    return prefixes + bytes((step.opcode, low)) + bytes(UNIT_BYTES * step.cache_count)


def encode_line_table(steps: list[BytecodeInstruction], previous_line: int) -> bytes:
    """Return the table of source positions, the first relative to `previous_line`."""
    table = bytearray()
    for step in steps:
        first_line, last_line, first_column, last_column = step.position
        columns: tuple[int, ...] = ()
        if first_line is not None and last_line is not None and first_column is not None and last_column is not None:
            columns = last_line - first_line, first_column + 1, last_column + 1
        for start in range(0, step.units, MAX_ENTRY_UNITS):
            length = min(MAX_ENTRY_UNITS, step.units - start)
            kind = NO_LINE if first_line is None else WITH_COLUMNS if columns else NO_COLUMNS
            table.append(0x80 | kind << 3 | length - 1)
            if first_line is not None:
                delta, previous_line = first_line - previous_line, first_line
                table += encode_varint(-delta << 1 | 1 if delta < 0 else delta << 1)
            table += b"".join(map(encode_varint, columns))
    return bytes(table)


def encode_varint(value: int) -> bytes:
    """Encode a number in groups of six bits, the lowest group first."""
    encoded = bytearray()
    while value >= 0x40:
        encoded.append(0x40 | value & 0x3F)
        value >>= 6
    encoded.append(value)
    return bytes(encoded)
