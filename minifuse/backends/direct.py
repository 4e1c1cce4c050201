"""A launch from Python straight to a kernel, or to the driver of a GPU: what is left once all that can be is done before.

One C function serves all kernels of a kind. It belongs to a record that holds the address of the kernel, over what it runs,
and the arguments that do not change. It writes the values of a call and those arguments on its own stack, and goes on:

    addresses and numbers of a call -> slots of 8 bytes -> kernel(0, count, slots)                              CPU
                                                        -> cuLaunchKernel(kernel, grid, block, ..., slots)      GPU

Where anything is not as it should be (a value of another type, a number that does not fit, an error of the driver, a thread
without a GPU) it starts anew, the long way, which says what is wrong or puts it right.

References
----------
.. [1] NVIDIA, "CUDA Driver API", cuLaunchKernel: `kernelParams` points to pointers, one to each argument.
"""

import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from .native import METH_FASTCALL, MethodDef, link_text

TEXT = """
%Record = type {
  ptr, ptr,        ;  0 of a GPU cuLaunchKernel, and the kernel; of a CPU the kernel, and the first value's place
  i32, i32, i32,   ;  2 blocks along x, y, z
  i32, i32, i32,   ;  5 threads along x, y, z
  i32, i32,        ;  8 bytes of dynamic shared memory; nothing
  ptr, ptr, ptr,   ; 10 stream; cuCtxSetCurrent, or null where there is one GPU; context
  i64, i64,        ; 13 how many values a call brings, how many arguments there are
  i64, i64         ; 15 bit k: value k is an address on which it depends whether the last argument is this, or 0;
                   ;    of a CPU nothing, and over how many points of its first axis the kernel runs
}                  ; behind it: the kind of each value, then all arguments, 8 bytes each

@_Py_NoneStruct = external global i8

declare ptr    @PyTuple_GetItem(ptr, i64)
declare ptr    @PyBytes_AsString(ptr)
declare i64    @PyLong_AsLongLong(ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr    @PyErr_Occurred()
declare void   @PyErr_Clear()
declare ptr    @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void   @Py_IncRef(ptr)
declare ptr    @PyEval_SaveThread()
declare void   @PyEval_RestoreThread(ptr)

; The arguments of a launch: the constants, with the values of this call among them, from place `first` on. Gives whether all
; went well, and which bits are set in any address that counts.
define internal { i1, i64 } @pack(ptr %record, ptr %values, i64 %length, ptr %slots, i64 %first) {
entry:
  %count_at = getelementptr %Record, ptr %record, i64 0, i32 13
  %count = load i64, ptr %count_at
  %total_at = getelementptr %Record, ptr %record, i64 0, i32 14
  %total = load i64, ptr %total_at
  %mask_at = getelementptr %Record, ptr %record, i64 0, i32 15
  %mask = load i64, ptr %mask_at
  %kinds = getelementptr %Record, ptr %record, i64 1
  %constants = getelementptr i64, ptr %kinds, i64 %count
  %value_slots = getelementptr i64, ptr %slots, i64 %first
  %is_count = icmp eq i64 %length, %count
  br i1 %is_count, label %copy, label %failed

copy:
  %i = phi i64 [ 0, %entry ], [ %i_next, %copy_one ]
  %is_copied = icmp eq i64 %i, %total
  br i1 %is_copied, label %convert, label %copy_one
copy_one:
  %from = getelementptr i64, ptr %constants, i64 %i
  %to = getelementptr i64, ptr %slots, i64 %i
  %constant = load i64, ptr %from
  store i64 %constant, ptr %to
  %i_next = add i64 %i, 1
  br label %copy

convert:
  %k = phi i64 [ 0, %copy ], [ %k_next, %convert_next ]
  %ored = phi i64 [ 0, %copy ], [ %ored_next, %convert_next ]
  %is_converted = icmp eq i64 %k, %count
  br i1 %is_converted, label %converted, label %convert_one
convert_one:
  %object_at = getelementptr ptr, ptr %values, i64 %k
  %object = load ptr, ptr %object_at
  %slot = getelementptr i64, ptr %value_slots, i64 %k
  %kind_at = getelementptr i64, ptr %kinds, i64 %k
  %kind = load i64, ptr %kind_at
  switch i64 %kind, label %failed [ i64 0, label %whole  i64 1, label %single  i64 2, label %double ]
single:
  %wide = call double @PyFloat_AsDouble(ptr %object)
  %narrow = fptrunc double %wide to float
  store float %narrow, ptr %slot
  br label %convert_next
double:
  %number = call double @PyFloat_AsDouble(ptr %object)
  store double %number, ptr %slot
  br label %convert_next
whole:
  %integer = call i64 @PyLong_AsLongLong(ptr %object)
  store i64 %integer, ptr %slot
  %shifted = lshr i64 %mask, %k
  %bit = and i64 %shifted, 1
  %all_or_none = sub i64 0, %bit
  %counted = and i64 %integer, %all_or_none
  br label %convert_next
convert_next:
  %bits = phi i64 [ 0, %single ], [ 0, %double ], [ %counted, %whole ]
  %ored_next = or i64 %ored, %bits
  %k_next = add i64 %k, 1
  br label %convert

converted:
  %error = call ptr @PyErr_Occurred()
  %is_well = icmp eq ptr %error, null
  %found = insertvalue { i1, i64 } undef, i1 %is_well, 0
  %found_bits = insertvalue { i1, i64 } %found, i64 %ored, 1
  ret { i1, i64 } %found_bits
failed:
  ret { i1, i64 } zeroinitializer
}

define internal ptr @take_the_long_way(ptr %owner, ptr %values, i64 %length) {
  call void @PyErr_Clear()
  %function = call ptr @PyTuple_GetItem(ptr %owner, i64 1)
  %result = call ptr @PyObject_Vectorcall(ptr %function, ptr %values, i64 %length, ptr null)
  ret ptr %result
}

; run(*values) and launch(*values), as Python calls them. They belong to a tuple: the record as bytes, and the long way.

define ptr @run(ptr %owner, ptr %values, i64 %length) {
entry:
  %bytes = call ptr @PyTuple_GetItem(ptr %owner, i64 0)
  %record = call ptr @PyBytes_AsString(ptr %bytes)
  %total_at = getelementptr %Record, ptr %record, i64 0, i32 14
  %total = load i64, ptr %total_at
  %slots = alloca i64, i64 %total
  %first_at = getelementptr %Record, ptr %record, i64 0, i32 1
  %first = load i64, ptr %first_at
  %packed = call { i1, i64 } @pack(ptr %record, ptr %values, i64 %length, ptr %slots, i64 %first)
  %is_well = extractvalue { i1, i64 } %packed, 0
  br i1 %is_well, label %go, label %long_way
go:
  %kernel = load ptr, ptr %record
  %points_at = getelementptr %Record, ptr %record, i64 0, i32 16
  %points = load i64, ptr %points_at
  call void %kernel(i64 0, i64 %points, ptr %slots)
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
long_way:
  %result = call ptr @take_the_long_way(ptr %owner, ptr %values, i64 %length)
  ret ptr %result
}

define ptr @launch(ptr %owner, ptr %values, i64 %length) {
entry:
  %bytes = call ptr @PyTuple_GetItem(ptr %owner, i64 0)
  %record = call ptr @PyBytes_AsString(ptr %bytes)
  %total_at = getelementptr %Record, ptr %record, i64 0, i32 14
  %total = load i64, ptr %total_at
  %slots = alloca i64, i64 %total
  %places = alloca ptr, i64 %total
  %packed = call { i1, i64 } @pack(ptr %record, ptr %values, i64 %length, ptr %slots, i64 0)
  %is_well = extractvalue { i1, i64 } %packed, 0
  br i1 %is_well, label %point, label %long_way

point:                                                   ; to each argument
  %i = phi i64 [ 0, %entry ], [ %i_next, %point_one ]
  %is_pointed = icmp eq i64 %i, %total
  br i1 %is_pointed, label %choose, label %point_one
point_one:
  %slot = getelementptr i64, ptr %slots, i64 %i
  %place = getelementptr ptr, ptr %places, i64 %i
  store ptr %slot, ptr %place
  %i_next = add i64 %i, 1
  br label %point

choose:                                                  ; are all addresses that count multiples of 16?
  %chosen_by_at = getelementptr %Record, ptr %record, i64 0, i32 15
  %chosen_by = load i64, ptr %chosen_by_at
  %is_fixed = icmp eq i64 %chosen_by, 0
  br i1 %is_fixed, label %ask, label %choose_one
choose_one:
  %bits = extractvalue { i1, i64 } %packed, 1
  %low = and i64 %bits, 15
  %is_aligned = icmp eq i64 %low, 0
  %all_at = getelementptr %Record, ptr %record, i64 0, i32 16
  %all = load i64, ptr %all_at
  %chosen = select i1 %is_aligned, i64 %all, i64 0
  %last = sub i64 %total, 1
  %last_slot = getelementptr i64, ptr %slots, i64 %last
  store i64 %chosen, ptr %last_slot
  br label %ask

ask:
  %launch = load ptr, ptr %record
  %kernel_at = getelementptr %Record, ptr %record, i64 0, i32 1
  %kernel = load ptr, ptr %kernel_at
  %gx_at = getelementptr %Record, ptr %record, i64 0, i32 2
  %gx = load i32, ptr %gx_at
  %gy_at = getelementptr %Record, ptr %record, i64 0, i32 3
  %gy = load i32, ptr %gy_at
  %gz_at = getelementptr %Record, ptr %record, i64 0, i32 4
  %gz = load i32, ptr %gz_at
  %bx_at = getelementptr %Record, ptr %record, i64 0, i32 5
  %bx = load i32, ptr %bx_at
  %by_at = getelementptr %Record, ptr %record, i64 0, i32 6
  %by = load i32, ptr %by_at
  %bz_at = getelementptr %Record, ptr %record, i64 0, i32 7
  %bz = load i32, ptr %bz_at
  %shared_at = getelementptr %Record, ptr %record, i64 0, i32 8
  %shared = load i32, ptr %shared_at
  %stream_at = getelementptr %Record, ptr %record, i64 0, i32 10
  %stream = load ptr, ptr %stream_at
  %use_at = getelementptr %Record, ptr %record, i64 0, i32 11
  %use = load ptr, ptr %use_at
  %context_at = getelementptr %Record, ptr %record, i64 0, i32 12
  %context = load ptr, ptr %context_at
  %state = call ptr @PyEval_SaveThread()                 ; the driver may wait until its queue has room
  %is_only = icmp eq ptr %use, null
  br i1 %is_only, label %enqueue, label %use_gpu
use_gpu:
  %used = call i32 %use(ptr %context)                    ; if it fails, so does the launch
  br label %enqueue
enqueue:
  %status = call i32 %launch(ptr %kernel, i32 %gx, i32 %gy, i32 %gz, i32 %bx, i32 %by, i32 %bz,
                             i32 %shared, ptr %stream, ptr %places, ptr null)
  call void @PyEval_RestoreThread(ptr %state)
  %is_done = icmp eq i32 %status, 0
  br i1 %is_done, label %done, label %long_way
done:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct

long_way:
  %result = call ptr @take_the_long_way(ptr %owner, ptr %values, i64 %length)
  ret ptr %result
}
"""
RECORD = "=QQ8I3Q2q2Q"  # bytes of a `%Record`
KINDS = {"f32": 1, "f64": 2}  # whatever else is 8 bytes wide is an integer
MOST = 64  # values that the record's mask can tell apart


class Driver(NamedTuple):
    """The functions of NVIDIA's driver that a launch takes, by address, and where it goes."""

    launch: int
    stream: int
    use: int = 0  # cuCtxSetCurrent; 0 where there is one GPU only
    context: int = 0


def direct_launch(
    driver: Driver,
    kernel: int,
    grid: Sequence[int],
    block: Sequence[int],
    shared: int,
    kinds: Sequence[str],
    constants: Sequence[int],
    wide: Sequence[int],
    whole: int,
    long_way: Callable[..., Any],
) -> Callable[..., Any] | None:
    """A launch(*values) of a loaded kernel, or None where the values are of a kind that only the long way takes.

    Parameters
    ----------
    driver : Driver
        How to ask.
    kernel : int
        The driver's handle of the function.
    grid, block : sequence of 3 ints
        Blocks, and threads of each.
    shared : int
        Bytes of dynamic shared memory.
    kinds : sequence of str
        Of each value of a call: f32, f64, or a kind of 8 bytes that comes as an integer.
    constants : sequence of int
        The arguments behind the values.
    wide : sequence of int
        Values that are addresses; if all are multiples of 16, one argument more is `whole`, else it is 0. Without any, there
        is no such argument.
    whole : int
        See `wide`.
    long_way : function of the values
        Called in the place of the driver when anything is not as it should be; its result or error is that of the launch.
    """
    if max(wide, default=0) >= MOST or any(kind in ("i32", "u8") for kind in kinds):
        return None
    mask = sum(1 << k for k in set(wide))
    place = driver.launch, kernel, *grid, *block, shared, 0, driver.stream, driver.use, driver.context
    words = record(place, kinds, [*constants, *[0] * bool(wide)], mask, whole)
    return definitions()["launch"].bound((words, long_way))


def direct_run(
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
    words = record((kernel, len(header), *[0] * 8, 0, 0, 0), kinds, constants, 0, count, header)
    return definitions()["run"].bound((words, long_way))


def record(
    place: Sequence[int],
    kinds: Sequence[str],
    constants: Sequence[int],
    mask: int,
    number: int,
    header: Sequence[int] = (),
) -> bytes:
    """The bytes of a `%Record`, and what follows it."""
    total = len(header) + len(kinds) + len(constants)
    numbers = [KINDS.get(kind, 0) for kind in kinds] + [*header, *[0] * len(kinds), *constants]
    return struct.pack(f"{RECORD}{len(numbers)}q", *place, len(kinds), total, mask, number, *numbers)


@cache
def definitions() -> dict[str, MethodDef]:
    """The compiled functions; made at first use, in 10 ms."""
    addresses = link_text(TEXT, ["run", "launch"])
    return {name: MethodDef(name.encode(), address, METH_FASTCALL) for name, address in addresses.items()}
