"""A launch from Python straight to the driver: what is left of it once all that can be is done before.

One C function serves all kernels. It belongs to a record that holds the address of the driver's `cuLaunchKernel`, the
kernel, grid and block, and the arguments that do not change. It writes the values of a call behind those, on its own stack,
and asks the driver. Where anything is not as it should be (a value of another type, a number that does not fit, an error of
the driver, a thread without a GPU) it starts anew, the long way, which says what is wrong or puts it right.

    addresses and numbers of a call -> slots of 8 bytes -> cuLaunchKernel(kernel, grid, block, ..., slots)

The way through `cuda.core` takes 1 to 2 us longer, of 4 to 6: it looks at every argument anew.

References
----------
.. [1] NVIDIA, "CUDA Driver API", cuLaunchKernel: `kernelParams` points to pointers, one to each argument.
"""

import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from ..native import METH_FASTCALL, MethodDef, link_text

TEXT = """
%Record = type {
  ptr, ptr,        ;  0 cuLaunchKernel, the kernel
  i32, i32, i32,   ;  2 blocks along x, y, z
  i32, i32, i32,   ;  5 threads along x, y, z
  i32, i32,        ;  8 bytes of dynamic shared memory; nothing
  ptr, ptr, ptr,   ; 10 stream; cuCtxSetCurrent, or null where there is one GPU; context
  i64, i64,        ; 13 how many values a call brings, how many arguments there are
  i64, i64         ; 15 bit k: value k is an address on which it depends whether the last argument is this, or 0
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

; launch(*values), as Python calls it. It belongs to a tuple: the record as bytes, and the long way as a function.
define ptr @launch(ptr %owner, ptr %values, i64 %length) {
entry:
  %bytes = call ptr @PyTuple_GetItem(ptr %owner, i64 0)
  %record = call ptr @PyBytes_AsString(ptr %bytes)
  %count_at = getelementptr %Record, ptr %record, i64 0, i32 13
  %count = load i64, ptr %count_at
  %total_at = getelementptr %Record, ptr %record, i64 0, i32 14
  %total = load i64, ptr %total_at
  %kinds = getelementptr %Record, ptr %record, i64 1
  %constants = getelementptr i64, ptr %kinds, i64 %count
  %slots = alloca i64, i64 %total
  %places = alloca ptr, i64 %total
  %is_count = icmp eq i64 %length, %count
  br i1 %is_count, label %copy, label %long_way

copy:                                                    ; the arguments as they stand, and a pointer to each
  %i = phi i64 [ 0, %entry ], [ %i_next, %copy_one ]
  %is_copied = icmp eq i64 %i, %total
  br i1 %is_copied, label %convert, label %copy_one
copy_one:
  %from = getelementptr i64, ptr %constants, i64 %i
  %to = getelementptr i64, ptr %slots, i64 %i
  %constant = load i64, ptr %from
  store i64 %constant, ptr %to
  %place = getelementptr ptr, ptr %places, i64 %i
  store ptr %to, ptr %place
  %i_next = add i64 %i, 1
  br label %copy

convert:                                                 ; the values of this call, over the first of them
  %k = phi i64 [ 0, %copy ], [ %k_next, %convert_next ]
  %ored = phi i64 [ 0, %copy ], [ %ored_next, %convert_next ]
  %is_converted = icmp eq i64 %k, %count
  br i1 %is_converted, label %choose, label %convert_one
convert_one:
  %object_at = getelementptr ptr, ptr %values, i64 %k
  %object = load ptr, ptr %object_at
  %slot = getelementptr i64, ptr %slots, i64 %k
  %kind_at = getelementptr i64, ptr %kinds, i64 %k
  %kind = load i64, ptr %kind_at
  switch i64 %kind, label %long_way [ i64 0, label %whole  i64 1, label %single  i64 2, label %double ]
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
  %mask_at = getelementptr %Record, ptr %record, i64 0, i32 15
  %mask = load i64, ptr %mask_at
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

choose:                                                  ; are all addresses that count multiples of 16?
  %error = call ptr @PyErr_Occurred()
  %is_error = icmp ne ptr %error, null
  br i1 %is_error, label %long_way, label %is_one_to_choose
is_one_to_choose:
  %chosen_by_at = getelementptr %Record, ptr %record, i64 0, i32 15
  %chosen_by = load i64, ptr %chosen_by_at
  %is_fixed = icmp eq i64 %chosen_by, 0
  br i1 %is_fixed, label %ask, label %choose_one
choose_one:
  %low = and i64 %ored, 15
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
  call void @PyErr_Clear()
  %function = call ptr @PyTuple_GetItem(ptr %owner, i64 1)
  %result = call ptr @PyObject_Vectorcall(ptr %function, ptr %values, i64 %length, ptr null)
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
    slots = [0] * len(kinds) + list(constants) + [0] * bool(wide)
    head = struct.pack(
        RECORD,
        *(driver.launch, kernel, *grid, *block, shared, 0, driver.stream, driver.use, driver.context),
        *(len(kinds), len(slots), mask, whole),
    )
    words = struct.pack(f"={len(kinds) + len(slots)}q", *[KINDS.get(kind, 0) for kind in kinds], *slots)
    return definition().bound((head + words, long_way))


@cache
def definition() -> MethodDef:
    """The compiled function; made at first use, in 8 ms."""
    return MethodDef(b"launch", link_text(TEXT, ["launch"])["launch"], METH_FASTCALL)
