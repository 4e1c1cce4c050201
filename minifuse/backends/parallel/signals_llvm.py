"""LLVM text that handles signals during a long call of the driver. `thread_pool_llvm.py` includes it.

Python runs signal handlers on its main thread, between Python instructions. During a call of the driver, the main thread
runs a kernel instead. So between chunks, about 50 times a second, it acquires the GIL and lets Python run the handlers. If
a handler raises an error, the job is marked as stopped: the address of its arguments is stored. Workers, and kernels that
call `is_stopped`, read this mark.

No handler is installed and no file descriptor is read, so the program's own handlers work as usual. A job that another
thread launched is never stopped.
"""

import ctypes
import platform

# The clock that LLVM reads, and its ticks between two checks for signals: about 20 ms at 3 GHz, or at 24 to 50 MHz on Arm.
CLOCK = "call i64 @llvm.readcyclecounter()"
CLOCKS = {"x86_64": (CLOCK, 1 << 26), "AMD64": (CLOCK, 1 << 26), "aarch64": (CLOCK, 1 << 19), "arm64": (CLOCK, 1 << 19)}
NO_CLOCK = "add i64 0, 0", 0  # without a clock, check every time
ID_MASK = -1 if ctypes.sizeof(ctypes.c_ulong) == 8 else 0xFFFFFFFF  # the bits of an unsigned long, the type of a thread's id


def signals_text() -> str:
    """Return the LLVM text for this machine."""
    clock, ticks = CLOCKS.get(platform.machine(), NO_CLOCK)
    text = SIGNALS_TEXT.replace("CLOCK", clock).replace("CHECK_TICKS", str(ticks))
    return text.replace("ID_MASK", str(ID_MASK))


SIGNALS_TEXT = """
@main_thread = global i64 0                              ; Python's id of its main thread
@last_check = internal global i64 0                      ; time of the main thread's last check for signals
@stopped = internal global ptr null, align 64            ; arguments of a stopped job; only the main thread writes it

declare i64  @PyThread_get_thread_ident()
declare i32  @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32  @PyErr_CheckSignals()
declare i64  @llvm.readcyclecounter()

; Records the time when a job begins, so that short jobs never check for signals.
define internal void @begin_job() {
  %is_main = call i1 @is_main_thread()
  br i1 %is_main, label %record, label %return
record:
  %now = CLOCK
  store i64 %now, ptr @last_check
  br label %return
return:
  ret void
}

define internal i1 @is_main_thread() {
  %id = call i64 @PyThread_get_thread_ident()
  %me = and i64 %id, ID_MASK
  %main = load i64, ptr @main_thread
  %is_main = icmp eq i64 %me, %main
  ret i1 %is_main
}

; Returns whether the job with these arguments should end. Long kernels call it, too. On the main thread it checks for
; signals if the last check was long ago, and runs their handlers. On other threads it takes a few nanoseconds.
define i1 @is_stopped(ptr %args) {
  %stopped = load atomic ptr, ptr @stopped monotonic, align 8
  %was_stopped = icmp eq ptr %stopped, %args
  br i1 %was_stopped, label %yes, label %which_thread
which_thread:
  %is_main = call i1 @is_main_thread()
  br i1 %is_main, label %read_clock, label %no
read_clock:
  %now = CLOCK
  %then = load i64, ptr @last_check
  %passed = sub i64 %now, %then
  %is_time = icmp uge i64 %passed, CHECK_TICKS
  br i1 %is_time, label %check, label %no
check:
  store i64 %now, ptr @last_check
  %state = call i32 @PyGILState_Ensure()
  %result = call i32 @PyErr_CheckSignals()
  call void @PyGILState_Release(i32 %state)
  %is_raised = icmp ne i32 %result, 0
  br i1 %is_raised, label %stop, label %no
stop:
  store atomic ptr %args, ptr @stopped monotonic, align 8
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}
"""
