"""Signals during a long call of the driver, as text in LLVM's language: `pool.py` includes it.

Python runs the handlers of signals on its main thread, while that runs Python. In a call of the driver it runs a kernel. So
it looks between chunks, some 50 times a second: it takes Python's lock (the GIL) and has Python run the handlers. If one
raises, the job is marked as stopped, by its arguments. The workers of the pool, and kernels that ask, see the mark.

No handler is installed, and nothing is read from a file descriptor, so this meets no handler of the program. A job that
another thread launched is never stopped.
"""

import platform

X86_CLOCK = "call i64 @llvm.readcyclecounter()"
ARM_CLOCK = 'call i64 asm sideeffect "mrs $0, cntvct_el0", "=r"()'
# The clock, and how many of its ticks pass between two looks for signals: some 20 ms at 3 GHz, and at 24 to 50 MHz.
CLOCKS = {"x86_64": (X86_CLOCK, 1 << 26), "AMD64": (X86_CLOCK, 1 << 26)}
CLOCKS |= {"aarch64": (ARM_CLOCK, 1 << 19), "arm64": (ARM_CLOCK, 1 << 19)}
NO_CLOCK = "add i64 0, 0", 0  # looks each time


def signals_text() -> str:
    """Return the text for this machine."""
    clock, ticks = CLOCKS.get(platform.machine(), NO_CLOCK)
    return TEXT.replace("CLOCK", clock).replace("LOOK_TICKS", str(ticks))


TEXT = """
@main_thread = global i64 0                                 ; Python's main thread
@looked   = internal global i64 0                        ; when it last looked for signals
@stopped  = internal global ptr null, align 64           ; the arguments of a job that a signal stopped; only it writes here

declare i64  @PyThread_get_thread_ident()
declare i32  @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32  @PyErr_CheckSignals()
declare i64  @llvm.readcyclecounter()

; Notes the time when a job begins, so that short jobs never look for signals.
define internal void @begin_job() {
  %is_main = call i1 @is_main_thread()
  br i1 %is_main, label %note, label %return
note:
  %now = CLOCK
  store i64 %now, ptr @looked
  br label %return
return:
  ret void
}

define internal i1 @is_main_thread() {
  %me = call i64 @PyThread_get_thread_ident()
  %main = load i64, ptr @main_thread
  %is_main = icmp eq i64 %me, %main
  ret i1 %is_main
}

; Tells whether the job with these arguments is to end; long kernels may ask too. On the main thread it looks for signals if
; the last look was long ago, and runs their handlers. Elsewhere it takes a few nanoseconds.
define i1 @is_stopped(ptr %args) {
  %stopped = load atomic ptr, ptr @stopped monotonic, align 8
  %was_stopped = icmp eq ptr %stopped, %args
  br i1 %was_stopped, label %yes, label %ask
ask:
  %is_main = call i1 @is_main_thread()
  br i1 %is_main, label %read_clock, label %no
read_clock:
  %now = CLOCK
  %then = load i64, ptr @looked
  %passed = sub i64 %now, %then
  %is_time = icmp uge i64 %passed, LOOK_TICKS
  br i1 %is_time, label %look, label %no
look:
  store i64 %now, ptr @looked
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
