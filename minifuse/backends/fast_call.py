"""Launches from Python straight to kernels, or to the driver of a GPU: what is left once all that can be is done before.

One C function serves all kernels of a kind. It belongs to a record that holds what is launched, one kernel or several after
one another, over what they run, and what each of their arguments is: a constant, or a value of the call, moved on by a
constant. It writes the values of a call and those arguments on its own stack, and goes on:

    addresses and numbers of a call -> values of 8 bytes -> slots of 8 bytes -> kernel(0, count, slots)                  CPU
                                                         -> cuLaunchKernel(kernel, grid, block, ..., slots), for each    GPU

Where anything is not as it should be (a value of another type, a number that does not fit, an address that is no multiple of
16 where it must be, an error of the driver, a thread without a GPU) it starts anew, the long way, which says what is wrong
or puts it right. So launches in a row must bear to be done twice.

The C functions stand in `direct_text`; here their records are written.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from .fast_call_llvm import FAST_CALL_TEXT
from .llvm_linker import METH_FASTCALL, MethodDef, link_text

RECORD_FORMAT, LAUNCH_FORMAT = "=4Q5q", "=Q8I2q"  # bytes of a `%Record`, of a `%Launch`
FLOAT_KINDS = {"f32": 1, "f64": 2}  # whatever else is 8 bytes wide is an integer
ALIGNED_KIND = 3  # an address on which something depends
SLOT_FORMATS = {"f32": "f4x", "f64": "d", "i32": "i4x", "i64": "q", "u8": "B7x"}  # of a slot; the rest of it is not read


class Driver(NamedTuple):
    """The functions of NVIDIA's driver that a launch takes, by address, and where it goes."""

    launch: int
    stream: int
    use: int = 0  # cuCtxSetCurrent; 0 where there is one GPU only
    context: int = 0


class CallValue(NamedTuple):
    """An argument that is one of the values of a call, moved on by so many bytes, or units of what it counts."""

    value: int
    further: int = 0


IF_ALIGNED, ZERO_VALUE = (
    CallValue(-1),
    -2,
)  # what depends on addresses; the value that is 0, from where constants are counted


class FastLaunch(NamedTuple):
    """One launch: a constant is an argument as the 8 bytes that it fills, read as an integer."""

    kernel: int  # the driver's handle of the function; of a CPU its address
    arguments: Sequence[CallValue | int]
    grid: Sequence[int] = (1, 1, 1)  # blocks along x, y, z
    block: Sequence[int] = (1, 1, 1)  # threads of each
    shared: int = 0  # bytes of dynamic shared memory
    points: int = 0  # of a CPU, over how many it runs

    def packed(self) -> bytes:
        """The bytes of a `%Launch`, and what follows it."""
        words = [w for x in self.arguments for w in (x if isinstance(x, CallValue) else (ZERO_VALUE, x))]
        sizes = *self.grid, *self.block, self.shared, 0, self.points, len(self.arguments)
        return struct.pack(f"{LAUNCH_FORMAT}{len(words)}q", self.kernel, *sizes, *words)


def make_fast_launch(
    driver: Driver,
    kinds: Sequence[str],
    launches: Sequence[FastLaunch],
    long_way: Callable[..., Any],
    wide: Iterable[int] = (),
    whole: int | None = None,
) -> Callable[..., Any] | None:
    """A launch(*values) of loaded kernels, or None where the values are of a kind that only the long way takes.

    Parameters
    ----------
    driver : Driver
        How to ask.
    kinds : sequence of str
        Of each value of a call: f32, f64, or a kind of 8 bytes that comes as an integer.
    launches : sequence of Launch
        What is launched, one after the other.
    long_way : function of the values
        Called in the place of the driver when anything is not as it should be; its result or error is that of the launch.
    wide : ints
        Values that are addresses, and count: see `whole`.
    whole : int, optional
        What `IF_ALIGNED` is where all that count are multiples of 16; else it is 0. Without it, others take the long way.

    Examples
    --------
    >>> sent = []
    >>> launch = make_fast_launch(Driver(0, 0), ["*f32"], [], lambda *values: sent.append(values), wide=[0])
    >>> launch(4096), launch(4100), sent
    (None, None, [(4100,)])
    """
    if any(kind in ("i32", "u8") for kind in kinds):
        return None
    words = encode_record(driver, kinds, launches, wide, whole)
    return compiled_functions()["launch"].bound((words, long_way))


def make_fast_run(
    kernel: int,
    count: int,
    kinds: Sequence[str],
    constants: Sequence[int],
    long_way: Callable[..., Any],
    header: Sequence[int] = (),
) -> Callable[..., Any]:
    """A run(*values) of a compiled kernel of the CPU over all of `range(count)`, on the calling thread.

    Parameters
    ----------
    kernel : int
        Address of a C function `void(int64 start, int64 stop, int64 *args)`.
    count : int
        The size of its first axis.
    kinds : sequence of str
        Of each value: f64, or one that comes as an integer.
    constants : sequence of int
        The arguments behind the values.
    long_way : function of the values
        Called in the place of the kernel when anything is not as it should be.
    header : sequence of int
        The arguments before the values.
    """
    launch = FastLaunch(kernel, [*header, *map(CallValue, range(len(kinds))), *constants], points=count)
    return compiled_functions()["run"].bound((encode_record(Driver(0, 0), kinds, [launch]), long_way))


def encode_record(
    driver: Driver,
    kinds: Sequence[str],
    launches: Sequence[FastLaunch],
    wide: Iterable[int] = (),
    whole: int | None = None,
) -> bytes:
    """The bytes of a `%Record`, and what follows it."""
    counted = set(wide)
    of_values = [ALIGNED_KIND if k in counted else FLOAT_KINDS.get(kind, 0) for k, kind in enumerate(kinds)]
    most = max((len(launch.arguments) for launch in launches), default=0)
    numbers = len(kinds), len(launches), most, whole or 0, whole is None
    words = struct.pack(f"{RECORD_FORMAT}{len(kinds)}q", *driver, *numbers, *of_values)
    return b"".join([words, *[launch.packed() for launch in launches]])


def encode_argument(kind: str, number: Any) -> int:
    """A number of a kernel's argument as the 8 bytes of its slot, read as an integer."""
    return int.from_bytes(struct.pack(f"={SLOT_FORMATS[kind]}", number), "little", signed=True)


@cache
def compiled_functions() -> dict[str, MethodDef]:
    """The compiled functions; made at first use, in 10 ms."""
    addresses = link_text(FAST_CALL_TEXT, ["run", "launch"])
    return {name: MethodDef(name.encode(), address, METH_FASTCALL) for name, address in addresses.items()}
