"""Write outputs that are too large for the caches with non-temporal (streaming) stores.

An ordinary store reads the cache line first, so an op with three inputs and one output moves five arrays instead of four.
So a kernel runs on one block of its first axis at a time, and writes into a buffer that stays in the L1 cache. From there,
non-temporal stores write whole lines to memory. The kernel is compiled as usual; only the addresses of its outputs differ.
So the backend can decide for each launch, by its sizes, and need not compile another kernel.
"""

from functools import cache
from math import prod

from ...ir.kernel_ir import Kernel, LoopNest, ReadOutput
from ..llvm_linker import copy_function, link_text

MIN_STREAM_BYTES = 1 << 25  # outputs of this total size leave the cache before another kernel reads them
BUFFER_BYTES = 2048  # size of the buffer of one output
MAX_OUTPUTS = 8  # the buffers of more outputs would fill the L1 cache

STREAM_TEXT = """
; Runs another kernel. args: its address, number of its arguments, number of streamed outputs, number of points of a block (a
; power of two), the bytes of a point for each streamed output; then the arguments of the kernel, streamed outputs first.
define void @stream(i64 %start, i64 %stop, ptr %args) {
entry:
  %address = load i64, ptr %args
  %kernel = inttoptr i64 %address to ptr
  %words_at = getelementptr i64, ptr %args, i64 1
  %words = load i64, ptr %words_at
  %outputs_at = getelementptr i64, ptr %args, i64 2
  %outputs = load i64, ptr %outputs_at
  %rows_at = getelementptr i64, ptr %args, i64 3
  %rows = load i64, ptr %rows_at
  %pitches = getelementptr i64, ptr %args, i64 4
  %given = getelementptr i64, ptr %pitches, i64 %outputs
  %inner = alloca i64, i64 %words                        ; the kernel's arguments, for one block
  %bytes = mul i64 %words, 8
  call void @copy(ptr %inner, ptr %given, i64 %bytes)
  %buffers_bytes = mul i64 %outputs, BUFFER_BYTES
  %buffers = alloca i8, i64 %buffers_bytes, align 64
  %mask = sub i64 %rows, 1
  br label %block

block:                                                   ; up to the next multiple of the block size
  %i = phi i64 [ %start, %entry ], [ %next, %block_end ]
  %last = or i64 %i, %mask
  %after = add i64 %last, 1
  %is_inside = icmp slt i64 %after, %stop
  %next = select i1 %is_inside, i64 %after, i64 %stop
  %is_over = icmp sge i64 %i, %stop
  br i1 %is_over, label %finish, label %aim

aim:                                                     ; set each output so that point i is at the start of its buffer
  %a = phi i64 [ 0, %block ], [ %a_next, %aim ]
  %a_pitch_at = getelementptr i64, ptr %pitches, i64 %a
  %a_pitch = load i64, ptr %a_pitch_at
  %a_offset = mul i64 %i, %a_pitch
  %a_buffer_bytes = mul i64 %a, BUFFER_BYTES
  %a_buffer = getelementptr i8, ptr %buffers, i64 %a_buffer_bytes
  %a_at = ptrtoint ptr %a_buffer to i64
  %a_origin = sub i64 %a_at, %a_offset
  %a_slot = getelementptr i64, ptr %inner, i64 %a
  store i64 %a_origin, ptr %a_slot
  %a_next = add i64 %a, 1
  %a_more = icmp slt i64 %a_next, %outputs
  br i1 %a_more, label %aim, label %run

run:
  call void %kernel(i64 %i, i64 %next, ptr %inner)
  %count = sub i64 %next, %i
  br label %flush

flush:
  %f = phi i64 [ 0, %run ], [ %f_next, %flush ]
  %f_pitch_at = getelementptr i64, ptr %pitches, i64 %f
  %f_pitch = load i64, ptr %f_pitch_at
  %f_given_at = getelementptr ptr, ptr %given, i64 %f
  %f_given = load ptr, ptr %f_given_at
  %f_offset = mul i64 %i, %f_pitch
  %f_to = getelementptr i8, ptr %f_given, i64 %f_offset
  %f_buffer_bytes = mul i64 %f, BUFFER_BYTES
  %f_from = getelementptr i8, ptr %buffers, i64 %f_buffer_bytes
  %f_bytes = mul i64 %count, %f_pitch
  call void @copy_nontemporal(ptr %f_to, ptr %f_from, i64 %f_bytes)
  %f_next = add i64 %f, 1
  %f_more = icmp slt i64 %f_next, %outputs
  br i1 %f_more, label %flush, label %block_end
block_end:
  br label %block

finish:
  fence seq_cst                                          ; orders the non-temporal stores before all that follows
  ret void
}

; Copies whole cache lines with non-temporal stores, and the bytes before and after them with ordinary stores.
define internal void @copy_nontemporal(ptr %to, ptr %from, i64 %bytes) {
entry:
  %address = ptrtoint ptr %to to i64
  %negative = sub i64 0, %address
  %missing = and i64 %negative, 63
  %is_short = icmp slt i64 %bytes, %missing
  %head = select i1 %is_short, i64 %bytes, i64 %missing
  call void @copy(ptr %to, ptr %from, i64 %head)
  %rest = sub i64 %bytes, %head
  %whole = and i64 %rest, -256
  %end = add i64 %head, %whole
  %has_whole = icmp sgt i64 %whole, 0
  br i1 %has_whole, label %lines, label %after_lines
lines:                                                   ; four lines at a time
  %k = phi i64 [ %head, %entry ], [ %k_next, %lines ]
  %from0 = getelementptr i8, ptr %from, i64 %k
  %from1 = getelementptr i8, ptr %from0, i64 64
  %from2 = getelementptr i8, ptr %from0, i64 128
  %from3 = getelementptr i8, ptr %from0, i64 192
  %to0 = getelementptr i8, ptr %to, i64 %k
  %to1 = getelementptr i8, ptr %to0, i64 64
  %to2 = getelementptr i8, ptr %to0, i64 128
  %to3 = getelementptr i8, ptr %to0, i64 192
  %line0 = load <16 x float>, ptr %from0, align 1
  %line1 = load <16 x float>, ptr %from1, align 1
  %line2 = load <16 x float>, ptr %from2, align 1
  %line3 = load <16 x float>, ptr %from3, align 1
  store <16 x float> %line0, ptr %to0, align 64, !nontemporal !0
  store <16 x float> %line1, ptr %to1, align 64, !nontemporal !0
  store <16 x float> %line2, ptr %to2, align 64, !nontemporal !0
  store <16 x float> %line3, ptr %to3, align 64, !nontemporal !0
  %k_next = add i64 %k, 256
  %has_more = icmp slt i64 %k_next, %end
  br i1 %has_more, label %lines, label %after_lines
after_lines:
  %tail = sub i64 %bytes, %end
  %to_tail = getelementptr i8, ptr %to, i64 %end
  %from_tail = getelementptr i8, ptr %from, i64 %end
  call void @copy(ptr %to_tail, ptr %from_tail, i64 %tail)
  ret void
}

!0 = !{i32 1}
"""


def stream_arguments(kernel: Kernel, nest: LoopNest, address: int, argument_count: int) -> list[int]:
    """Return the arguments of `stream_kernel` that precede those of the kernel; [] if its outputs should not be streamed.

    Pointwise outputs are streamed if they are contiguous in the order of the loops, and too large for the caches.
    Outputs that are modified in place are not streamed, since their lines are in the cache already.
    """
    elements = kernel.pointwise_outputs
    nbytes = [nest.points * e.dtype.itemsize for e in elements]
    if sum(nbytes) < MIN_STREAM_BYTES or len(elements) > MAX_OUTPUTS or kernel.find_all(ReadOutput):
        return []
    dense = tuple(prod(nest.sizes[axis + 1 :]) for axis in range(len(nest.sizes)))
    if any(strides != dense for strides in nest.strides[: len(elements)]):
        return []
    pitches = [dense[0] * e.dtype.itemsize for e in elements]
    points = BUFFER_BYTES // max(pitches)
    return [address, argument_count, len(pitches), 1 << (points.bit_length() - 1), *pitches] if points else []


@cache
def stream_kernel() -> int:
    """Return the address of the kernel that runs another kernel with non-temporal stores; linked at first use."""
    text = STREAM_TEXT.replace("BUFFER_BYTES", str(BUFFER_BYTES)) + copy_function("i8")
    return link_text(text, ["stream"])["stream"]
