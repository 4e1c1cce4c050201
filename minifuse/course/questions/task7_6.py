"""Questions of task 7.6: codes and scales, what they stand for, and products of codes."""

from collections.abc import Sequence
from typing import Any

from ...core.dispatch import use_dispatch_hook
from ...tensors.creation import tensor
from ..strided import Array
from ..student import Student
from .library import CallRecorder, counting_backend, elementary_calls, elements_of, use_counting_backend


class ProductRecorder(CallRecorder):
    """A recorder that keeps the dtypes of the products of matrices."""

    def __init__(self) -> None:
        super().__init__(is_strict=True)
        self.products: list[str] = []

    def record(self, name: str, inputs: Sequence[Any], result: Any) -> None:
        """Record a call, and the dtype of a product."""
        super().record(name, inputs, result)
        if name == "matmul":
            self.products.append(str(result.dtype))


def ask_quantized(student: Student, case: tuple[Array, bool]) -> object:
    """Return codes, scales, the weights that they stand for, their bytes, and how many elements Python read."""
    backend = counting_backend()
    with elementary_calls():
        backend.reads = 0
        codes, scales = student.quantize(tensor(case[0]), case[1])
        weights = student.dequantize(codes, scales)
        nbytes = student.count_bytes(codes, scales)
        return elements_of(codes), elements_of(scales), elements_of(weights), nbytes, backend.reads


def ask_refused(student: Student, case: tuple[Array, bool]) -> str:
    """Return the name of the error of `quantize`; "no error" if there is none."""
    with elementary_calls():
        try:
            student.quantize(tensor(case[0]), case[1])
        except Exception as error:
            return type(error).__name__
    return "no error"


def ask_product(student: Student, case: tuple[Array, Array, Array]) -> object:
    """Return the product, the dtypes of the products of matrices in it, and how many elements Python read."""
    recorder = ProductRecorder()
    with use_counting_backend() as backend:
        arguments = [tensor(x) for x in case]
        backend.reads = 0
        with use_dispatch_hook(recorder):
            result = student.quantized_matmul(*arguments)
        return elements_of(result), recorder.products, backend.reads


def ask_model(student: Student, case: Array) -> object:
    """Return the weights of a model after quantization, with a scale for each row, and with one for all."""
    with elementary_calls():
        return [elements_of(student.dequantize(*student.quantize(tensor(case), per_row))) for per_row in (True, False)]
