"""LLVM text of the driver and its thread pool. `driver.py` links it with Python, and starts the threads.

A *job* is one call with several chunks. It is valid as long as some of its chunks are unfinished. The *ticket* is the number
of the job times 2^32, plus the number of chunks that no thread has taken yet. A thread that decrements the ticket has taken
a chunk of exactly that job, even if it read the ticket long ago.

The thread that finishes the last chunk ends the job. If it is a worker, it releases the lock `done`, for which the caller
waits. The caller does not wait for a worker that has taken no chunk.

A worker that finds no work sets its flag `asleep`, reads the ticket again, and waits at its lock. The caller publishes the
ticket and then reads the flags, so at least one of the two notices the other. The thread that clears the flag decides
whether to release the lock.

Between chunks, the caller checks whether a signal stopped its job (`signals_llvm.py`). The remaining chunks of such a job
are taken and not run, and `drive` returns the error.

The system schedules threads, not jobs: a worker that shares a processor with the caller may stay there although other
processors are idle, and then two threads are as slow as one. So before it publishes a job, the caller moves workers away
that last ran on its own processor. Once a moved worker runs, it may run on all processors again. This is done on Linux only,
and only if there are at least as many processors as threads.
"""

import platform

from .signals_llvm import signals_text

# Hints to the processor in polling loops.
X86_PAUSE, ARM_YIELD = "call void @llvm.x86.sse2.pause()", "call void @llvm.aarch64.hint(i32 1)"
PAUSE_INSTRUCTIONS = {"x86_64": X86_PAUSE, "AMD64": X86_PAUSE, "aarch64": ARM_YIELD, "arm64": ARM_YIELD}

SIGNAL_CHECK_US = 20_000  # between two checks for signals, while the caller waits for the last chunks


def pool_text() -> str:
    """Return the LLVM text for this machine."""
    text = POOL_TEXT.replace("PAUSE", PAUSE_INSTRUCTIONS.get(platform.machine(), "")).replace(
        "SIGNAL_CHECK_US", str(SIGNAL_CHECK_US)
    )
    return signals_text() + text


POOL_TEXT = """
@kernel   = internal global ptr null, align 64           ; kernel of the job
@args     = internal global ptr null
@count    = internal global i64 0
@chunks   = internal global i64 0
@needed   = internal global i64 0                        ; how many workers to wake for the job
@ticket   = global i64 0, align 64
@finished = internal global i64 0, align 64              ; how many chunks of the job are finished
@busy     = global i64 0, align 64                       ; 1 while the pool has a job
@done     = global ptr null                              ; a lock
@started  = global i64 0                                 ; 1 when there are workers
@workers  = global i64 0
@locks    = global [256 x ptr] zeroinitializer           ; one for each worker, at which it sleeps
@asleep   = global [256 x i64] zeroinitializer, align 64

@get_cpu      = global ptr null                          ; sched_getcpu and sched_setaffinity, null if the system lacks them
@set_affinity = global ptr null
@processors   = global [16 x i64] zeroinitializer        ; affinity mask of this process
@ids          = global [256 x i64] zeroinitializer       ; system ids of the workers; 0 if never moved
@last_cpu     = internal global [256 x i64] zeroinitializer, align 64  ; processor on which each worker ran last, plus one
@is_moved     = internal global [256 x i64] zeroinitializer, align 64  ; 1 from its move to its first chunk

@_Py_NoneStruct  = external global i8
@PyExc_TypeError = external global ptr
@usage = internal constant [54 x i8] c"drive takes 4 arguments: kernel, count, chunks, bytes\\00"

declare i64  @PyLong_AsLongLong(ptr)
declare ptr  @PyBytes_AsString(ptr)
declare ptr  @PyErr_Occurred()
declare void @PyErr_SetString(ptr, ptr)
declare ptr  @PyObject_CallNoArgs(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr  @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32  @PyThread_acquire_lock(ptr, i32)
declare i32  @PyThread_acquire_lock_timed(ptr, i64, i32)
declare void @PyThread_release_lock(ptr)
declare void @llvm.x86.sse2.pause()
declare void @llvm.aarch64.hint(i32)

; drive(kernel, count, chunks, args), with the calling convention of Python; its `self` is a function that starts the
; threads.
define ptr @drive(ptr %start_threads, ptr %values, i64 %length) {
  %is_four = icmp eq i64 %length, 4
  br i1 %is_four, label %unpack, label %explain
explain:
  %type_error = load ptr, ptr @PyExc_TypeError
  call void @PyErr_SetString(ptr %type_error, ptr @usage)
  ret ptr null
unpack:
  %p1 = getelementptr ptr, ptr %values, i64 1
  %p2 = getelementptr ptr, ptr %values, i64 2
  %p3 = getelementptr ptr, ptr %values, i64 3
  %v0 = load ptr, ptr %values
  %v1 = load ptr, ptr %p1
  %v2 = load ptr, ptr %p2
  %v3 = load ptr, ptr %p3
  %address = call i64 @PyLong_AsLongLong(ptr %v0)
  %count = call i64 @PyLong_AsLongLong(ptr %v1)
  %chunks = call i64 @PyLong_AsLongLong(ptr %v2)
  %args = call ptr @PyBytes_AsString(ptr %v3)
  %kernel = inttoptr i64 %address to ptr
  %error = call ptr @PyErr_Occurred()
  %is_wrong = icmp ne ptr %error, null
  br i1 %is_wrong, label %fail, label %choose
choose:
  %is_parallel = icmp sgt i64 %chunks, 1
  br i1 %is_parallel, label %parallel, label %serial
serial:
  call void %kernel(i64 0, i64 %count, ptr %args)
  br label %return
parallel:
  %started = load i64, ptr @started
  %is_started = icmp ne i64 %started, 0
  br i1 %is_started, label %release, label %start
start:
  %none = call ptr @PyObject_CallNoArgs(ptr %start_threads)
  %is_error = icmp eq ptr %none, null
  br i1 %is_error, label %fail, label %is_running
is_running:
  call void @Py_DecRef(ptr %none)
  br label %release
release:                                                 ; the GIL, while the kernel runs
  %state = call ptr @PyEval_SaveThread()
  call void @run_chunks(ptr %kernel, i64 %count, i64 %chunks, ptr %args)
  call void @PyEval_RestoreThread(ptr %state)
  %stopped = load ptr, ptr @stopped
  %is_stopped = icmp eq ptr %stopped, %args
  br i1 %is_stopped, label %forget, label %return
forget:                                                  ; the error of the handler is set
  store atomic ptr null, ptr @stopped monotonic, align 8
  ret ptr null
return:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
fail:
  ret ptr null
}

; Runs a job with the pool, or on this thread alone if the pool is busy.
define internal void @run_chunks(ptr %kernel, i64 %count, i64 %chunks, ptr %args) {
entry:
  call void @begin_job()
  %exchange = cmpxchg ptr @busy, i64 0, i64 1 seq_cst seq_cst
  %is_mine = extractvalue { i64, i1 } %exchange, 1
  br i1 %is_mine, label %publish, label %alone
alone:                                                   ; the pool has a job, and the processors have work
  %chunk = phi i64 [ 0, %entry ], [ %next, %alone ]
  call void @run_chunk(ptr %kernel, i64 %count, i64 %chunk, i64 %chunks, ptr %args)
  %next = add i64 %chunk, 1
  %is_end = icmp eq i64 %next, %chunks
  br i1 %is_end, label %return, label %alone
publish:
  store ptr %kernel, ptr @kernel
  store ptr %args, ptr @args
  store i64 %count, ptr @count
  store i64 %chunks, ptr @chunks
  store i64 0, ptr @finished
  %others = sub i64 %chunks, 1
  %workers = load i64, ptr @workers
  %is_few = icmp slt i64 %others, %workers
  %needed = select i1 %is_few, i64 %others, i64 %workers
  store i64 %needed, ptr @needed
  call void @migrate_workers(i64 %needed)
  %old = load i64, ptr @ticket
  %number = lshr i64 %old, 32
  %new_number = add i64 %number, 1
  %high = shl i64 %new_number, 32
  %ticket = or i64 %high, %chunks
  store atomic i64 %ticket, ptr @ticket seq_cst, align 8
  %is_last = call i1 @take_chunks(i64 0)
  br i1 %is_last, label %free, label %look
look:                                                    ; poll for a while until the workers have finished
  %looks = phi i64 [ 1, %publish ], [ %more, %again ]
  %finished = load atomic i64, ptr @finished acquire, align 8
  %is_all = icmp eq i64 %finished, %chunks
  br i1 %is_all, label %wait, label %again
again:
  PAUSE
  %more = add i64 %looks, 1
  %is_enough = icmp eq i64 %looks, 2000
  br i1 %is_enough, label %wait, label %look
wait:
  %done = load ptr, ptr @done
  %result = call i32 @PyThread_acquire_lock_timed(ptr %done, i64 SIGNAL_CHECK_US, i32 0)
  %is_released = icmp eq i32 %result, 1
  br i1 %is_released, label %free, label %look_for_signals
look_for_signals:
  %is_now_stopped = call i1 @is_stopped(ptr %args)
  br label %wait
free:
  store atomic i64 0, ptr @busy seq_cst, align 8
  br label %return
return:
  ret void
}

; Takes chunks until none is left. Thread 0 is the caller; for it, returns whether it finished the last chunk of its job.
define internal i1 @take_chunks(i64 %me) {
entry:
  %is_caller = icmp eq i64 %me, 0
  %twice = shl i64 %me, 1
  %left_child = add i64 %twice, 1
  %right_child = add i64 %twice, 2
  br label %next
next:
  %known = phi i64 [ 0, %entry ], [ %number, %finish ], [ %number, %tell ]
  %latest = load atomic i64, ptr @ticket seq_cst, align 8
  br label %look
look:
  %ticket = phi i64 [ %latest, %next ], [ %found, %take ]
  %left = and i64 %ticket, 4294967295
  %is_none = icmp eq i64 %left, 0
  br i1 %is_none, label %return, label %take
take:
  %lower = sub i64 %ticket, 1
  %exchange = cmpxchg ptr @ticket, i64 %ticket, i64 %lower seq_cst seq_cst
  %found = extractvalue { i64, i1 } %exchange, 0
  %is_taken = extractvalue { i64, i1 } %exchange, 1
  br i1 %is_taken, label %taken, label %look
taken:
  %number = lshr i64 %ticket, 32
  %is_known = icmp eq i64 %known, %number
  br i1 %is_known, label %run, label %wake
wake:                                                    ; each wakes two others, so all are awake after few steps
  call void @begin_on_worker(i64 %me)
  call void @wake(i64 %left_child)
  call void @wake(i64 %right_child)
  br label %run
run:
  %kernel = load ptr, ptr @kernel
  %args = load ptr, ptr @args
  %count = load i64, ptr @count
  %chunks = load i64, ptr @chunks
  %chunk = sub i64 %chunks, %left
  call void @run_chunk(ptr %kernel, i64 %count, i64 %chunk, i64 %chunks, ptr %args)
  %before = atomicrmw add ptr @finished, i64 1 seq_cst   ; after the last chunk, a new job may begin
  %finished = add i64 %before, 1
  %is_last = icmp eq i64 %finished, %chunks
  br i1 %is_last, label %finish_last, label %finish
finish_last:
  br i1 %is_caller, label %return, label %tell
tell:
  %done = load ptr, ptr @done
  call void @PyThread_release_lock(ptr %done)
  br label %next
finish:
  br label %next
return:
  %result = phi i1 [ false, %look ], [ true, %finish_last ]
  ret i1 %result
}

define internal void @run_chunk(ptr %kernel, i64 %count, i64 %chunk, i64 %chunks, ptr %args) {
  %is_over = call i1 @is_stopped(ptr %args)
  br i1 %is_over, label %return, label %run
run:
  %before = mul i64 %count, %chunk
  %after = add i64 %before, %count
  %start = sdiv i64 %before, %chunks
  %stop = sdiv i64 %after, %chunks
  call void %kernel(i64 %start, i64 %stop, ptr %args)
  br label %return
return:
  ret void
}

; Wakes a worker if it is needed and asleep.
define internal void @wake(i64 %worker) {
  %needed = load i64, ptr @needed
  %is_needed = icmp sle i64 %worker, %needed
  br i1 %is_needed, label %look, label %return
look:
  %place = getelementptr i64, ptr @asleep, i64 %worker
  %was_asleep = atomicrmw xchg ptr %place, i64 0 seq_cst
  %is_asleep = icmp ne i64 %was_asleep, 0
  br i1 %is_asleep, label %release, label %return
release:
  %lock_place = getelementptr ptr, ptr @locks, i64 %worker
  %lock = load ptr, ptr %lock_place
  call void @PyThread_release_lock(ptr %lock)
  br label %return
return:
  ret void
}

; Returns the processor that runs this thread, plus one; 0 if unknown.
define internal i64 @current_cpu() {
  %get_cpu = load ptr, ptr @get_cpu
  %is_none = icmp eq ptr %get_cpu, null
  br i1 %is_none, label %return, label %ask
ask:
  %processor = call i32 %get_cpu()
  %known = add i32 %processor, 1
  %wide = sext i32 %known to i64
  br label %return
return:
  %place = phi i64 [ 0, %0 ], [ %wide, %ask ]
  ret i64 %place
}

define internal void @record_cpu(i64 %me) {
  %here = call i64 @current_cpu()
  %place = getelementptr i64, ptr @last_cpu, i64 %me
  store atomic i64 %here, ptr %place monotonic, align 8
  ret void
}

; Moves those of the first `count` workers that last ran on the caller's processor to other processors.
define internal void @migrate_workers(i64 %count) {
entry:
  %here = call i64 @current_cpu()
  %processor = sub i64 %here, 1
  %is_known = icmp ult i64 %processor, 1024              ; unsigned: unknown is the largest value
  br i1 %is_known, label %next, label %return
next:
  %worker = phi i64 [ 1, %entry ], [ %following, %skip ]
  %is_end = icmp sgt i64 %worker, %count
  br i1 %is_end, label %return, label %look
look:
  %place = getelementptr i64, ptr @last_cpu, i64 %worker
  %there = load atomic i64, ptr %place monotonic, align 8
  %is_here = icmp eq i64 %there, %here
  %id_place = getelementptr i64, ptr @ids, i64 %worker
  %id = load i64, ptr %id_place
  %has_id = icmp ne i64 %id, 0
  %is_on_caller_cpu = and i1 %is_here, %has_id
  br i1 %is_on_caller_cpu, label %move, label %skip
move:                                                    ; no chunk is published yet, so no one else reads the mask
  %index = lshr i64 %processor, 6
  %word = getelementptr i64, ptr @processors, i64 %index
  %bits = load i64, ptr %word
  %shift = and i64 %processor, 63
  %bit = shl i64 1, %shift
  %others = xor i64 %bit, -1
  %without = and i64 %bits, %others
  store i64 %without, ptr %word
  %set_affinity = load ptr, ptr @set_affinity
  %thread = trunc i64 %id to i32
  %result = call i32 %set_affinity(i32 %thread, i64 128, ptr @processors)
  store i64 %bits, ptr %word
  %mark = getelementptr i64, ptr @is_moved, i64 %worker
  store i64 1, ptr %mark
  br label %skip
skip:
  %following = add i64 %worker, 1
  br label %next
return:
  ret void
}

; A worker calls this when it begins a job. If it was moved, it may run on all processors again, so that the system can move
; it to an idle one if another process takes this one.
define internal void @begin_on_worker(i64 %me) {
  call void @record_cpu(i64 %me)
  %mark = getelementptr i64, ptr @is_moved, i64 %me
  %moved = load i64, ptr %mark
  %is_moved = icmp ne i64 %moved, 0
  br i1 %is_moved, label %open, label %return
open:
  store i64 0, ptr %mark
  %set_affinity = load ptr, ptr @set_affinity
  %result = call i32 %set_affinity(i32 0, i64 128, ptr @processors)
  br label %return
return:
  ret void
}

; The main loop of a worker: takes chunks, polls for more for a while, sleeps until woken. Never returns.
define ptr @work(ptr %unused, ptr %object) {
entry:
  %me = call i64 @PyLong_AsLongLong(ptr %object)
  %place = getelementptr i64, ptr @asleep, i64 %me
  %lock_place = getelementptr ptr, ptr @locks, i64 %me
  %lock = load ptr, ptr %lock_place
  %state = call ptr @PyEval_SaveThread()
  br label %take
take:
  %result = call i1 @take_chunks(i64 %me)
  call void @record_cpu(i64 %me)                         ; the system may have moved the worker
  br label %look
look:
  %looks = phi i64 [ 1, %take ], [ %more, %again ]
  %ticket = load atomic i64, ptr @ticket acquire, align 8
  %left = and i64 %ticket, 4294967295
  %is_none = icmp eq i64 %left, 0
  br i1 %is_none, label %again, label %take
again:
  PAUSE
  %more = add i64 %looks, 1
  %is_enough = icmp eq i64 %looks, 2000
  br i1 %is_enough, label %fall_asleep, label %look
fall_asleep:
  store atomic i64 1, ptr %place seq_cst, align 8
  %last_ticket = load atomic i64, ptr @ticket seq_cst, align 8
  %last_left = and i64 %last_ticket, 4294967295
  %is_idle = icmp eq i64 %last_left, 0
  br i1 %is_idle, label %sleep, label %wake_up
wake_up:
  %was_asleep = atomicrmw xchg ptr %place, i64 0 seq_cst
  %is_unwoken = icmp ne i64 %was_asleep, 0
  br i1 %is_unwoken, label %take, label %sleep           ; if it was woken already, the lock is released and must be acquired
sleep:
  %taken = call i32 @PyThread_acquire_lock(ptr %lock, i32 1)
  br label %take
}
"""
