"""LLVM text of the C functions that launch kernels: `run` on the CPU, `launch` on a GPU.

`fast_call` writes the records that they read, and documents them. The functions allocate no heap memory and raise no errors.

References
----------
.. [1] NVIDIA, "CUDA Driver API", cuLaunchKernel: `kernelParams` is an array of pointers to the arguments, which are copied
   before the function returns.
.. [2] LLVM, "LLVM Language Reference Manual".
"""

FAST_CALL_TEXT = """
%Record = type {
  ptr, ptr,        ; 0 on a GPU: cuLaunchKernel, the stream
  ptr, ptr,        ; 2 cuCtxSetCurrent (null if there is one GPU), the context
  i64, i64, i64,   ; 4 number of values in a call, number of launches, largest number of arguments of a launch
  i64, i64         ; 7 value -1 if all checked addresses are multiples of 16 (0 if not); 1 if they must be, else 0
}                  ; it is followed by the kind of each value, then the launches

%Launch = type {
  ptr,             ; 0 the kernel
  i32, i32, i32,   ; 1 blocks along x, y, z
  i32, i32, i32,   ; 4 threads along x, y, z
  i32, i32,        ; 7 bytes of dynamic shared memory; padding
  i64, i64         ; 9 on the CPU: size of the first axis; number of arguments
}                  ; it is followed by its arguments

%Argument = type { i64, i64 }  ; index of a value, number added to it; value -2 is 0

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

define internal ptr @record_of(ptr %owner) {
  %bytes = call ptr @PyTuple_GetItem(ptr %owner, i64 0)
  %record = call ptr @PyBytes_AsString(ptr %bytes)
  ret ptr %record
}

define internal i64 @load_of(ptr %record, i32 %field) {
  %first = getelementptr %Record, ptr %record, i64 0, i32 4
  %at = getelementptr i64, ptr %first, i32 %field
  %number = load i64, ptr %at
  ret i64 %number
}

define internal i32 @size_of(ptr %launch, i32 %field) {
  %first = getelementptr %Launch, ptr %launch, i64 0, i32 1
  %at = getelementptr i32, ptr %first, i32 %field
  %number = load i32, ptr %at
  ret i32 %number
}

; Converts the values of a call to 8 bytes each, and sets values -2 and -1. Returns false if the fallback must run.
define internal i1 @convert(ptr %record, ptr %objects, i64 %length, ptr %values) {
entry:
  %count = call i64 @load_of(ptr %record, i32 0)
  %kinds = getelementptr %Record, ptr %record, i64 1
  %is_count = icmp eq i64 %length, %count
  br i1 %is_count, label %next, label %failed

next:
  %k = phi i64 [ 0, %entry ], [ %k_next, %store ]
  %ored = phi i64 [ 0, %entry ], [ %ored_next, %store ]
  %is_converted = icmp eq i64 %k, %count
  br i1 %is_converted, label %converted, label %one
one:
  %object_at = getelementptr ptr, ptr %objects, i64 %k
  %object = load ptr, ptr %object_at
  %kind_at = getelementptr i64, ptr %kinds, i64 %k
  %kind = load i64, ptr %kind_at
  switch i64 %kind, label %failed [ i64 0, label %whole  i64 1, label %single  i64 2, label %double  i64 3, label %checked ]
whole:
  %integer = call i64 @PyLong_AsLongLong(ptr %object)
  br label %store
checked:
  %address = call i64 @PyLong_AsLongLong(ptr %object)
  br label %store
single:
  %wide = call double @PyFloat_AsDouble(ptr %object)
  %narrow = fptrunc double %wide to float
  %narrow_bits = bitcast float %narrow to i32
  %narrow_word = zext i32 %narrow_bits to i64
  br label %store
double:
  %number = call double @PyFloat_AsDouble(ptr %object)
  %number_word = bitcast double %number to i64
  br label %store
store:
  %word = phi i64 [ %integer, %whole ], [ %address, %checked ], [ %narrow_word, %single ], [ %number_word, %double ]
  %bits = phi i64 [ 0, %whole ], [ %address, %checked ], [ 0, %single ], [ 0, %double ]
  %value = getelementptr i64, ptr %values, i64 %k
  store i64 %word, ptr %value
  %ored_next = or i64 %ored, %bits
  %k_next = add i64 %k, 1
  br label %next

converted:
  %low = and i64 %ored, 15
  %is_aligned = icmp eq i64 %low, 0
  %if_aligned = call i64 @load_of(ptr %record, i32 3)
  %aligned = select i1 %is_aligned, i64 %if_aligned, i64 0
  %aligned_at = getelementptr i64, ptr %values, i64 -1
  store i64 %aligned, ptr %aligned_at
  %zero_at = getelementptr i64, ptr %values, i64 -2
  store i64 0, ptr %zero_at
  %must_be = call i64 @load_of(ptr %record, i32 4)
  %need_not_be = icmp eq i64 %must_be, 0
  %fits = or i1 %is_aligned, %need_not_be
  %error = call ptr @PyErr_Occurred()
  %is_valid = icmp eq ptr %error, null
  %result = and i1 %is_valid, %fits
  ret i1 %result
failed:
  ret i1 0
}

; Computes the arguments of a launch. Returns their end in the record, where the next launch begins.
define internal ptr @fill(ptr %launch, ptr %values, ptr %slots) {
entry:
  %count_at = getelementptr %Launch, ptr %launch, i64 0, i32 10
  %count = load i64, ptr %count_at
  %arguments = getelementptr %Launch, ptr %launch, i64 1
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i_next, %one ]
  %argument = getelementptr %Argument, ptr %arguments, i64 %i
  %is_filled = icmp eq i64 %i, %count
  br i1 %is_filled, label %filled, label %one
one:
  %index = load i64, ptr %argument
  %offset_at = getelementptr %Argument, ptr %argument, i64 0, i32 1
  %offset = load i64, ptr %offset_at
  %value_at = getelementptr i64, ptr %values, i64 %index
  %value = load i64, ptr %value_at
  %sum = add i64 %value, %offset
  %slot = getelementptr i64, ptr %slots, i64 %i
  store i64 %sum, ptr %slot
  %i_next = add i64 %i, 1
  br label %next
filled:
  ret ptr %argument
}

define internal ptr @call_fallback(ptr %owner, ptr %objects, i64 %length) {
  call void @PyErr_Clear()
  %function = call ptr @PyTuple_GetItem(ptr %owner, i64 1)
  %result = call ptr @PyObject_Vectorcall(ptr %function, ptr %objects, i64 %length, ptr null)
  ret ptr %result
}

; run(*values) and launch(*values), with the calling convention of Python. %owner is a tuple: record, fallback.

define ptr @run(ptr %owner, ptr %objects, i64 %length) {
entry:
  %record = call ptr @record_of(ptr %owner)
  %count = call i64 @load_of(ptr %record, i32 0)
  %max_arguments = call i64 @load_of(ptr %record, i32 2)
  %words = add i64 %count, 2
  %before = alloca i64, i64 %words
  %values = getelementptr i64, ptr %before, i64 2
  %slots = alloca i64, i64 %max_arguments
  %is_valid = call i1 @convert(ptr %record, ptr %objects, i64 %length, ptr %values)
  br i1 %is_valid, label %go, label %fallback
go:
  %kinds = getelementptr %Record, ptr %record, i64 1
  %launch = getelementptr i64, ptr %kinds, i64 %count
  %end = call ptr @fill(ptr %launch, ptr %values, ptr %slots)
  %kernel = load ptr, ptr %launch
  %points_at = getelementptr %Launch, ptr %launch, i64 0, i32 9
  %points = load i64, ptr %points_at
  call void %kernel(i64 0, i64 %points, ptr %slots)
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
fallback:
  %result = call ptr @call_fallback(ptr %owner, ptr %objects, i64 %length)
  ret ptr %result
}

define ptr @launch(ptr %owner, ptr %objects, i64 %length) {
entry:
  %record = call ptr @record_of(ptr %owner)
  %count = call i64 @load_of(ptr %record, i32 0)
  %launches = call i64 @load_of(ptr %record, i32 1)
  %max_arguments = call i64 @load_of(ptr %record, i32 2)
  %words = add i64 %count, 2
  %before = alloca i64, i64 %words
  %values = getelementptr i64, ptr %before, i64 2
  %slots = alloca i64, i64 %max_arguments
  %pointers = alloca ptr, i64 %max_arguments
  %is_valid = call i1 @convert(ptr %record, ptr %objects, i64 %length, ptr %values)
  br i1 %is_valid, label %point, label %fallback

point:                                                   ; a pointer to each argument
  %i = phi i64 [ 0, %entry ], [ %i_next, %point_one ]
  %is_complete = icmp eq i64 %i, %max_arguments
  br i1 %is_complete, label %setup, label %point_one
point_one:
  %slot = getelementptr i64, ptr %slots, i64 %i
  %pointer = getelementptr ptr, ptr %pointers, i64 %i
  store ptr %slot, ptr %pointer
  %i_next = add i64 %i, 1
  br label %point

setup:
  %launch_kernel = load ptr, ptr %record
  %stream_at = getelementptr %Record, ptr %record, i64 0, i32 1
  %stream = load ptr, ptr %stream_at
  %set_context_at = getelementptr %Record, ptr %record, i64 0, i32 2
  %set_context = load ptr, ptr %set_context_at
  %context_at = getelementptr %Record, ptr %record, i64 0, i32 3
  %context = load ptr, ptr %context_at
  %kinds = getelementptr %Record, ptr %record, i64 1
  %first = getelementptr i64, ptr %kinds, i64 %count
  %state = call ptr @PyEval_SaveThread()                 ; the driver may wait until its queue has space
  %is_only_gpu = icmp eq ptr %set_context, null
  br i1 %is_only_gpu, label %begin, label %use_gpu
use_gpu:
  %set_status = call i32 %set_context(ptr %context)      ; if it fails, so does the launch
  br label %begin
begin:
  br label %next

next:
  %k = phi i64 [ 0, %begin ], [ %k_next, %enqueue ]
  %launch = phi ptr [ %first, %begin ], [ %end, %enqueue ]
  %failure = phi i32 [ 0, %begin ], [ %status, %enqueue ]
  %is_last = icmp eq i64 %k, %launches
  %is_failed = icmp ne i32 %failure, 0
  %is_over = or i1 %is_last, %is_failed
  br i1 %is_over, label %over, label %enqueue
enqueue:
  %end = call ptr @fill(ptr %launch, ptr %values, ptr %slots)
  %kernel = load ptr, ptr %launch
  %gx = call i32 @size_of(ptr %launch, i32 0)
  %gy = call i32 @size_of(ptr %launch, i32 1)
  %gz = call i32 @size_of(ptr %launch, i32 2)
  %bx = call i32 @size_of(ptr %launch, i32 3)
  %by = call i32 @size_of(ptr %launch, i32 4)
  %bz = call i32 @size_of(ptr %launch, i32 5)
  %shared = call i32 @size_of(ptr %launch, i32 6)
  %status = call i32 %launch_kernel(ptr %kernel, i32 %gx, i32 %gy, i32 %gz, i32 %bx, i32 %by, i32 %bz,
                                 i32 %shared, ptr %stream, ptr %pointers, ptr null)
  %k_next = add i64 %k, 1
  br label %next
over:
  call void @PyEval_RestoreThread(ptr %state)
  br i1 %is_failed, label %fallback, label %done
done:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct

fallback:
  %result = call ptr @call_fallback(ptr %owner, ptr %objects, i64 %length)
  ret ptr %result
}
"""
