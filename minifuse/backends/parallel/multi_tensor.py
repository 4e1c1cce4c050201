"""Run a pointwise kernel over several tensors in one job of the driver (PyTorch: multi_tensor_apply).

The elements of all tensors are numbered consecutively, and threads share them. The kernel is compiled as for one tensor. A
range of elements is split where a tensor ends, and the kernel runs over each part with the addresses of that tensor.
"""

from functools import cache
from itertools import accumulate

from ...ir.kernel_ir import KernelParameter
from ..llvm_linker import copy_function, link_text
from .driver import count_chunks

MULTI_TENSOR_TEXT = """
; Runs a kernel over elements start to stop of several consecutive tensors. args: address of the kernel, number of tensors,
; number of addresses of each tensor, number of numbers; the end of each tensor's elements; the addresses of each tensor; the
; numbers. The arguments of the kernel are the addresses of one tensor, and the numbers.
define void @multi_tensor(i64 %start, i64 %stop, ptr %args) {
entry:
  %address = load i64, ptr %args
  %kernel = inttoptr i64 %address to ptr
  %arrays_at = getelementptr i64, ptr %args, i64 1
  %arrays = load i64, ptr %arrays_at
  %width_at = getelementptr i64, ptr %args, i64 2
  %width = load i64, ptr %width_at
  %numbers_at = getelementptr i64, ptr %args, i64 3
  %numbers = load i64, ptr %numbers_at
  %ends = getelementptr i64, ptr %args, i64 4
  %table = getelementptr i64, ptr %ends, i64 %arrays
  %table_words = mul i64 %arrays, %width
  %given = getelementptr i64, ptr %table, i64 %table_words
  %words = add i64 %width, %numbers
  %inner = alloca i64, i64 %words
  %inner_numbers = getelementptr i64, ptr %inner, i64 %width
  call void @copy(ptr %inner_numbers, ptr %given, i64 %numbers)
  br label %array

array:                                                   ; the part of the range that is in this tensor
  %k = phi i64 [ 0, %entry ], [ %k_next, %array_end ]
  %begin = phi i64 [ 0, %entry ], [ %end, %array_end ]
  %is_over = icmp sge i64 %k, %arrays
  br i1 %is_over, label %return, label %cut
cut:
  %end_at = getelementptr i64, ptr %ends, i64 %k
  %end = load i64, ptr %end_at
  %is_later = icmp sgt i64 %start, %begin
  %from = select i1 %is_later, i64 %start, i64 %begin
  %is_earlier = icmp slt i64 %stop, %end
  %to = select i1 %is_earlier, i64 %stop, i64 %end
  %has_points = icmp slt i64 %from, %to
  br i1 %has_points, label %run, label %array_end
run:
  %offset = mul i64 %k, %width
  %own = getelementptr i64, ptr %table, i64 %offset
  call void @copy(ptr %inner, ptr %own, i64 %width)
  %first = sub i64 %from, %begin
  %last = sub i64 %to, %begin
  call void %kernel(i64 %first, i64 %last, ptr %inner)
  br label %array_end
array_end:
  %k_next = add i64 %k, 1
  br label %array
return:
  ret void
}
"""


@cache
def multi_tensor_kernel() -> int:
    """Return the address of the kernel that runs another kernel over several tensors; linked at first use."""
    return link_text(MULTI_TENSOR_TEXT + copy_function("i64"), ["multi_tensor"])["multi_tensor"]


def make_job(
    kernel: int, sizes: list[int], address_count: int, numbers: list[KernelParameter], cost: float
) -> tuple[int, int, int, list[int]]:
    """Return the arguments of `CpuKernelLauncher` for a compiled kernel over several tensors.

    Parameters
    ----------
    kernel : int
        Address of the compiled kernel.
    sizes : list of int
        Number of elements of each tensor.
    address_count : int
        Number of addresses of each tensor.
    numbers : list of KernelParameter
        The numbers that the kernel takes.
    cost : float
        Cost of the kernel for each element.

    Returns
    -------
    (address, count, chunks, header)
        The address of the kernel that runs `kernel`, the number of elements, the number of chunks, and the arguments
        before the values of a call.
    """
    ends = list(accumulate(sizes))
    header = [kernel, len(sizes), address_count, len(numbers), *ends]
    return multi_tensor_kernel(), ends[-1], count_chunks(ends[-1], ends[-1] * cost), header
