"""Task 4.1: convolution along one dim."""

from typing import TYPE_CHECKING

from .. import oracle
from ..cases import among
from ..check import agreement, in_turn
from ..conv_cases import (
    agrees,
    kernel_flipped,
    last_channel,
    last_image,
    padding_behind,
    padding_in_gradient,
    store_result,
    stride_ignored,
    unguarded,
)
from ..questions.calling import calls
from ..questions.convolution import Case
from ..task import Mistake, Task

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SIZE = "a kernel has as many places as fit on the padded input"
Sizes = tuple[int, int, int, int]
FORWARD = "each place is the sum of the products of kernel and input, over all channels"
BY_INPUT = "the gradient of the input comes from each place that an element took part in"
BY_WEIGHT = "the gradient of the weight is summed over all images and places"


def sizes() -> "SearchStrategy[Sizes]":
    """Draw (size, kernel, stride, padding) for which the kernel fits."""
    from hypothesis import strategies as st

    four = st.tuples(st.integers(1, 40), st.integers(1, 9), st.integers(1, 5), st.integers(0, 4))
    return four.filter(lambda c: c[1] <= c[0] + 2 * c[3])


def large_sizes() -> "SearchStrategy[Sizes]":
    """Draw (size, kernel, stride, padding) of many places, or of a few places that are far from each other."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Sizes:
        many = draw(among(False, False, False, True))
        stride = draw(st.integers(1, 3)) if many else (1 << draw(among(31, 53, 60, 90))) + draw(st.integers(-9, 9))
        places = draw(st.integers(1_000_000, 2_000_000)) if many else draw(st.integers(2, 40))
        kernel, padding = draw(st.integers(1, 1 << 40)), draw(st.integers(0, 1 << 30))
        rest = draw(among(stride - 1, 0))
        return max(1, (places - 1) * stride + rest + kernel - 2 * padding), kernel, stride, padding

    return case()


def right_size(case: Sizes) -> int:
    """Return the number of places."""
    return int(oracle.function("conv_size")(*case))


def leaves_storage(case: Case) -> bool:
    """Return whether an index below 0 leads out of the storage, even counted from its end."""
    try:
        unguarded(case, guards="end")
    except IndexError:
        return True
    return False


def describe_sizes(case: Sizes) -> str:
    """Return a case as text."""
    return f"size {case[0]}, kernel {case[1]}, stride {case[2]}, padding {case[3]}"


TASK = Task(
    id="4.1",
    title="Convolution along one dim",
    file="convolution.py",
    slots=("conv_size", "conv1d", "conv1d_input_gradient", "conv1d_weight_gradient"),
    points=6,
    text=(
        "A kernel is laid on an input at each of its places; the sum of products is one element of the output. Write how "
        "many places there are, the convolution over strided operands with a stride and a padding, and its two gradients. "
        "The kernel is not flipped. The zeros of the padding are not stored: leave them out of the sum. Write each element "
        "of `out`, which may contain anything before, and nothing else."
    ),
    hints=(
        "out[b, o, x] reads inputs[b, c, i] and weight[o, c, k] with i = x * stride + k - padding. All three functions are "
        "this one equation: each of them sums over what its output does not have.",
        "The gradient of weight[o, c, k]: the sum over b and x of gradient[b, o, x] * inputs[b, c, i], with that i; "
        "that of inputs[b, c, i]: the sum over o and k of gradient[b, o, x] * weight[o, c, k], for each k for which "
        "x = (i + padding - k) / stride is a place. In all three, i outside the input is left out.",
        "docs/course/4.1-conv1d.md draws the places, and which products belong to which of them.",
    ),
    reads=("docs/course/4.1-conv1d.md",),
    checks=(
        in_turn(
            SIZE,
            [
                agreement(SIZE, sizes, calls("conv_size"), right_size, describe=describe_sizes),
                agreement(SIZE, large_sizes, calls("conv_size"), right_size, describe=describe_sizes, share=0.3),
            ],
        ),
        agrees(FORWARD, "conv1d"),
        agrees(BY_INPUT, "conv1d_input_gradient"),
        agrees(BY_WEIGHT, "conv1d_weight_gradient"),
    ),
    mistakes=(
        Mistake(
            "the last place is counted although the kernel does not fit there",
            "Of a size of 6, a kernel of 3 with stride 2 has the places 0 and 2; at 4 it would stand out. Round down.",
            wrong_answer=lambda c: -(-(c[0] + 2 * c[3] - c[1]) // c[2]) + 1,
            check=SIZE,
        ),
        Mistake(
            "the padding is counted on one side only",
            "There are `padding` zeros before the input, and as many behind it.",
            wrong_answer=lambda c: (c[0] + c[3] - c[1]) // c[2] + 1,
            check=SIZE,
        ),
        Mistake(
            "the kernel is flipped",
            "What signal processing calls convolution turns the kernel round; networks do not, since it is learnt anyway. "
            "weight[0] meets the first element of the window.",
            wrong_answer=store_result(kernel_flipped),
            check=FORWARD,
        ),
        Mistake(
            "all of the padding stands behind the input",
            "The first place begins before the input: at index -padding.",
            wrong_answer=store_result(padding_behind),
            check=FORWARD,
        ),
        Mistake(
            "the stride is left out",
            "Place x begins x * stride elements further on, not x.",
            wrong_answer=store_result(stride_ignored),
            check=FORWARD,
        ),
        Mistake(
            "only one channel is summed",
            "An output sums over the kernel and over all channels. Where does its sum begin anew?",
            wrong_answer=store_result(last_channel),
            check=FORWARD,
        ),
        Mistake(
            "index -1 is read, beside the first element",
            "You test that the index is below the width. It may be below 0, too: Python does not complain about "
            "storage[-1], and an element of another image or channel may be there. Test both ends before you read.",
            wrong_answer=lambda c: unguarded(c, guards="end"),
            when=lambda w: w.kind == "IndexError" and leaves_storage(w.case),
            check=FORWARD,
        ),
        Mistake(
            "elements beside the input are read",
            "At index -1 lies another row, or another tensor; Python even reads from the end of the storage. Ask whether "
            "the index lies in the input before you read.",
            wrong_answer=unguarded,
            when=lambda w: w.kind == "IndexError",
            check=FORWARD,
        ),
        Mistake(
            "the gradient of the input does not know of the padding",
            "Place x met input element i with kernel element k where i = x * stride + k - padding. Solve it for x.",
            wrong_answer=store_result(padding_in_gradient),
            check=BY_INPUT,
        ),
        Mistake(
            "the gradient of the weight is that of one image",
            "All images of the batch met the same weight: its gradient is the sum of what each of them gives.",
            wrong_answer=store_result(last_image),
            check=BY_WEIGHT,
        ),
    ),
)
