"""Fast launch path: one C function converts the values of a Python call and starts kernels on the CPU or a GPU.

One C function serves all kernels of a kind. It is bound to a *record*, which describes one launch or several launches in a
row: kernel, grid, and arguments. An argument is a constant, or a value of the call plus a constant. The function allocates
memory only on its stack. It converts values and launches kernels in these steps:

    addresses and numbers of a call -> values of 8 bytes -> slots of 8 bytes -> kernel(0, count, slots)                  CPU
                                                         -> cuLaunchKernel(kernel, grid, block, ..., slots), for each    GPU

In unusual cases, the function calls `fallback` with the original values instead, which handles the case or raises an error
that explains it. The cases are a value of another type, a number out of range, an unaligned address where it must be a
multiple of 16, an error of the driver, and a thread without a GPU. Launches before an error then run twice, so launches in a
row must allow that.

`fast_call_llvm` contains the C functions; this module writes their records.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple, SupportsFloat

from .fast_call_llvm import FAST_CALL_TEXT
from .llvm_linker import METH_FASTCALL, MethodDef, link_text

RECORD_FORMAT, LAUNCH_FORMAT = "=4Q5q", "=Q8I2q"  # `struct` formats of `%Record` and `%Launch`
FLOAT_KINDS = {"f32": 1, "f64": 2}  # all other values are integers of 8 bytes
ALIGNED_KIND = 3  # an address whose alignment is checked
# Formats of 8 bytes each; padding is not read.
SLOT_FORMATS = {"f32": "f4x", "f64": "d", "i8": "b7x", "i16": "h6x", "i32": "i4x", "i64": "q", "u8": "B7x"}
CHECKED_KINDS = {"i8", "i16", "i32", "u8"}  # integers that may be out of range


class DriverAddresses(NamedTuple):
    """Addresses of the functions of NVIDIA's driver, and the stream and context of the launches."""

    launch: int
    stream: int
    set_context: int = 0  # cuCtxSetCurrent; 0 if there is only one GPU
    context: int = 0


class CallValue(NamedTuple):
    """An argument that is a value of the call plus an offset: in bytes for an address, else in units of the value."""

    value_index: int
    offset: int = 0


IF_ALIGNED = CallValue(-1)  # the argument that is `aligned_value` if all checked addresses are aligned, else 0
ZERO_VALUE = -2  # index of the value 0, to which constants are added


class FastLaunch(NamedTuple):
    """One launch. A constant argument is given as the 8 bytes of its slot, read as an integer."""

    kernel: int  # on a GPU the driver's handle of the function, on the CPU its address
    arguments: Sequence[CallValue | int]
    grid: Sequence[int] = (1, 1, 1)  # blocks along x, y, z
    block: Sequence[int] = (1, 1, 1)  # threads along x, y, z
    shared: int = 0  # bytes of dynamic shared memory
    points: int = 0  # on the CPU: size of the first axis

    def encode(self) -> bytes:
        """Encode a `%Launch` with its arguments."""
        words = [w for x in self.arguments for w in (x if isinstance(x, CallValue) else (ZERO_VALUE, x))]
        sizes = *self.grid, *self.block, self.shared, 0, self.points, len(self.arguments)
        return struct.pack(f"{LAUNCH_FORMAT}{len(words)}q", self.kernel, *sizes, *words)


def make_fast_launch(
    driver: DriverAddresses,
    kinds: Sequence[str],
    launches: Sequence[FastLaunch],
    fallback: Callable[..., None],
    aligned_addresses: Iterable[int] = (),
    aligned_value: int | None = None,
) -> Callable[..., None] | None:
    """Return launch(*values) for loaded kernels; None if only the fallback can check the values (bool, small integers).

    Parameters
    ----------
    driver : DriverAddresses
        The functions, the stream and the context to use.
    kinds : sequence of str
        The type of each value of a call: f32, f64, or any type of 8 bytes that is passed as an integer.
    launches : sequence of FastLaunch
        The launches, in the order of execution.
    fallback : function of the values
        Called instead of the driver in unusual cases. The launch returns its result or raises its error.
    aligned_addresses : ints
        Indices of values that are addresses whose alignment is checked.
    aligned_value : int, optional
        The value of `IF_ALIGNED` if all checked addresses are multiples of 16; otherwise it is 0. Without this parameter, a
        call with an unaligned address uses the fallback.

    Examples
    --------
    >>> sent = []
    >>> driver = DriverAddresses(0, 0)
    >>> launch = make_fast_launch(driver, ["*f32"], [], lambda *values: sent.append(values), aligned_addresses=[0])
    >>> launch(4096), launch(4100), sent
    (None, None, [(4100,)])
    """
    if any(kind in CHECKED_KINDS for kind in kinds):
        return None
    words = encode_record(driver, kinds, launches, aligned_addresses, aligned_value)
    return compiled_functions()["launch"].as_function((words, fallback))


def make_fast_run(
    kernel: int,
    count: int,
    kinds: Sequence[str],
    constants: Sequence[int],
    fallback: Callable[..., None],
    header: Sequence[int] = (),
) -> Callable[..., None]:
    """Return run(*values) for a compiled CPU kernel over all of `range(count)`, on the calling thread.

    Parameters
    ----------
    kernel : int
        Address of a C function `void(int64 start, int64 stop, int64 *args)`.
    count : int
        The size of the kernel's first axis.
    kinds : sequence of str
        The type of each value: f64, or any type that is passed as an integer.
    constants : sequence of int
        The arguments after the values.
    fallback : function of the values
        Called instead of the kernel in unusual cases.
    header : sequence of int
        The arguments before the values.
    """
    launch = FastLaunch(kernel, [*header, *map(CallValue, range(len(kinds))), *constants], points=count)
    return compiled_functions()["run"].as_function((encode_record(DriverAddresses(0, 0), kinds, [launch]), fallback))


def encode_record(
    driver: DriverAddresses,
    kinds: Sequence[str],
    launches: Sequence[FastLaunch],
    aligned_addresses: Iterable[int] = (),
    aligned_value: int | None = None,
) -> bytes:
    """Encode a `%Record`, with the kinds of the values and the launches that follow it."""
    checked = set(aligned_addresses)
    value_kinds = [ALIGNED_KIND if k in checked else FLOAT_KINDS.get(kind, 0) for k, kind in enumerate(kinds)]
    max_arguments = max([len(launch.arguments) for launch in launches], default=0)
    numbers = len(kinds), len(launches), max_arguments, aligned_value or 0, aligned_value is None
    words = struct.pack(f"{RECORD_FORMAT}{len(kinds)}q", *driver, *numbers, *value_kinds)
    return b"".join([words, *[launch.encode() for launch in launches]])


def encode_argument(kind: str, number: SupportsFloat) -> int:
    """Encode a number as the 8 bytes of its argument slot, read as an integer."""
    return int.from_bytes(struct.pack(f"={SLOT_FORMATS[kind]}", number), "little", signed=True)


@cache
def compiled_functions() -> dict[str, MethodDef]:
    """Return the compiled C functions, linked at first use in 10 ms."""
    addresses = link_text(FAST_CALL_TEXT, ["run", "launch"])
    return {name: MethodDef(name.encode(), address, METH_FASTCALL) for name, address in addresses.items()}
