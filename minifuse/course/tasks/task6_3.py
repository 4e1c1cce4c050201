"""Task 6.3: tensor-parallel layers."""

from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.wording import format_count
from ..check import check_each, in_turn
from ..questions.task6_3 import Layers, ask_columns, ask_cuts, ask_layers, ask_layers_alone, ask_pair, ask_rows
from ..rank_cases import draw_floats, has_kind, is_near, with_sizes
from ..ranks import Array, RankRun
from ..task import Check, Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SPLIT, PAIR, FORWARD, BACKWARD, COUNTED, ISOLATED = (
    "the parts of all ranks are the weight, by columns and by rows",
    "one of the pair sums backward, the other forward",
    "all ranks have the result of both layers",
    "each rank has the gradients of its parts, and the whole one of x",
    "one all-reduce forward and one backward, no larger than they have to be",
    "a rank computes from its own parts and its messages alone",
)
NAMES = ("x", "w1", "b1", "w2", "b2")


def draw_layers(chance: Random, size: int, hidden: int, most: int = 4) -> Layers:
    """Draw two layers with some hidden values between them."""
    batch, inputs, outputs = (chance.randint(1, most) for _ in range(3))
    return Layers(
        size,
        draw_floats(chance, batch, inputs),
        draw_floats(chance, inputs, hidden),
        draw_floats(chance, hidden),
        draw_floats(chance, hidden, outputs),
        draw_floats(chance, outputs),
        draw_floats(chance, batch, outputs),
    )


def layers() -> "SearchStrategy[Layers]":
    """Draw two layers, also with fewer hidden elements than ranks."""
    return with_sizes(draw_layers, (2, 3, 1, 4, 5), (2, 1, *range(3, 11)))


def large_layers() -> "SearchStrategy[Layers]":
    """Draw wide layers for many ranks."""
    return with_sizes(partial(draw_layers, most=30), range(9, 13), range(20, 60))


def pairs() -> "SearchStrategy[tuple[Layers, Layers, int]]":
    """Draw two networks, and a rank of the first."""

    def draw(chance: Random, size: int, hidden: int) -> tuple[Layers, Layers, int]:
        return draw_layers(chance, size, hidden), draw_layers(chance, size, hidden), chance.randrange(size)

    return with_sizes(draw, (2, 3, 4), range(2, 8))


def arrays() -> "SearchStrategy[list[Array]]":
    """Draw an array for each rank."""

    def draw(chance: Random, ranks: int, rows: int, columns: int) -> list[Array]:
        return [draw_floats(chance, rows, columns) for _ in range(ranks)]

    return with_sizes(draw, (2, 3, 1, 4), (1, 2, 3), (1, 2, 3, 4))


def describe(case: Layers) -> str:
    """Return two layers as text."""
    return f"{format_count(case.size, 'rank')}, x {case.x.shape}, w1 {case.w1.shape}, w2 {case.w2.shape}"


def describe_pair(case: tuple[Layers, Layers, int]) -> str:
    """Return the first of two networks as text."""
    return f"rank {case[2]} of {describe(case[0])}"


def describe_arrays(case: list[Array]) -> str:
    """Return the arrays of all ranks as text."""
    return f"{format_count(len(case), 'rank')}: " + ", ".join(str(x.round(2).tolist()) for x in case)


def check_widths(widths: list[int], count: int) -> None:
    """Raise `Wrong` if parts of these sizes leave something out, or differ too much."""
    if sum(widths) != count:
        is_lost = widths == [count // len(widths)] * len(widths)
        raise Wrong(f"the parts have {widths} of {count}", kind="lost" if is_lost else "widths")
    if max(widths) - min(widths) > 1:
        raise Wrong(f"the parts have {widths} of {count}; they differ by more than one", kind="uneven")


def check_columns(case: Layers, answer: Any) -> None:
    """Raise `Wrong` if the columns and biases of all ranks are not those of the layer."""
    for w, b in answer:
        if w.ndim == 2 and w.shape[1] == case.w1.shape[1] and len(w) < len(case.w1):
            raise Wrong("split_columns returns rows", kind="rows")
        if len(b) != w.shape[1]:
            raise Wrong(f"a part has {w.shape[1]} columns and {len(b)} elements of the bias", kind="bias")
    check_widths([w.shape[1] for w, _ in answer], len(case.b1))
    check_parts([w.T for w, _ in answer], case.w1.T, "columns")
    if not np.array_equal(np.concatenate([b for _, b in answer]), case.b1):
        raise Wrong("the biases of all ranks, in their order, are not the bias")


def check_rows(case: Layers, answer: Any) -> None:
    """Raise `Wrong` if the rows of all ranks are not those of the layer."""
    if not np.array_equal([w.shape[1] for w in answer], [case.w2.shape[1]] * case.size):
        raise Wrong("a part of split_rows does not have all columns")
    check_widths([len(w) for w in answer], len(case.w2))
    check_parts(answer, case.w2, "rows")


def check_parts(parts: list[Array], whole: Array, what: str) -> None:
    """Raise `Wrong` if parts, in their order, are not the rows of a weight."""
    if np.array_equal(np.concatenate(parts), whole):
        return
    places = [[next((k for k, row in enumerate(whole) if np.array_equal(row, one)), None) for one in part] for part in parts]
    found = [k for part in places for k in part]
    if None in found:
        raise Wrong(
            f"the {what} of all ranks, in their order, are not the weight", expected=whole, got=np.concatenate(parts)
        )
    is_permuted = sorted(k for k in found if k is not None) == list(range(len(whole)))
    raise Wrong(
        f"ranks have {what} {', '.join(map(str, places))}; in their order, they are not the weight",
        kind="order" if is_permuted else "",
    )


def same_cuts(case: Layers, answer: Any) -> None:
    """Raise `Wrong` if rows are cut in other places than columns."""
    columns, rows = answer
    if columns != rows:
        raise Wrong(f"ranks have {columns} columns of w1, but {rows} rows of w2", kind="cuts")


def check_pair(is_sum: bool, name: str, case: list[Array], run: RankRun) -> None:
    """Raise `Wrong` if a function of the pair does not sum, or sums where it should not."""
    total = np.sum(case, 0)
    for rank, got in enumerate(run.results):
        expected = total if is_sum else case[rank]
        if not is_near(got, expected):
            kind = "pair" if is_near(got, case[rank] if is_sum else total) else ""
            raise Wrong(f"{name} returns another array on rank {rank}", expected=expected, got=got, kind=kind)
        count = sum(event.name == "all_reduce" for event in run.events[rank])
        if count != is_sum and len(case) > 1:
            raise Wrong(f"{name} calls all_reduce {count} times", kind="count")


def pair_checks() -> list[Check]:
    """Return a check for each function of the pair."""
    return [
        check_each(
            PAIR,
            arrays,
            partial(ask_pair, slot, method),
            partial(check_pair, is_sum, f"{slot}.{method}"),
            describe=describe_arrays,
            share=0.2,
        )
        for slot, method, is_sum in (
            ("CopyToRanks", "forward", False),
            ("CopyToRanks", "backward", True),
            ("SumOverRanks", "forward", True),
            ("SumOverRanks", "backward", False),
        )
    ]


def whole(case: Layers) -> list[Array]:
    """Return the result and the gradients of both layers on one device."""
    hidden = np.maximum(case.x @ case.w1 + case.b1, 0)
    before = (case.d @ case.w2.T) * (hidden > 0)
    return [
        hidden @ case.w2 + case.b2,
        before @ case.w1.T,
        case.x.T @ before,
        before.sum(0),
        hidden.T @ case.d,
        case.d.sum(0),
    ]


def check_forward(case: Layers, run: RankRun) -> None:
    """Raise `Wrong` if a rank has a wrong result, or other bits than rank 0."""
    expected = whole(case)[0]
    for rank, (y, *_) in enumerate(run.results):
        if not is_near(y, expected):
            kind = "bias" if is_near(y, expected + (case.size - 1) * case.b2) else ""
            kind = "hidden" if is_near(y, of_summed_hidden(case)) else kind
            raise Wrong(f"y is wrong on rank {rank}", expected=expected, got=y, kind=kind)
        if y.tobytes() != run.results[0][0].tobytes():
            raise Wrong(
                f"ranks 0 and {rank} have different bits of y: expected is that of rank 0, got that of rank {rank}",
                expected=run.results[0][0],
                got=y,
                kind="bits",
            )


def of_summed_hidden(case: Layers) -> Array:
    """Return y if ranks with equally many hidden values sum these, and then the products; no elements for other parts."""
    if len(case.b1) % case.size:
        return np.zeros(0)
    hidden = np.maximum(case.x @ case.w1 + case.b1, 0).reshape(len(case.x), case.size, -1).sum(1)
    return np.asarray(np.tile(hidden, case.size) @ case.w2 + case.b2)


def check_backward(case: Layers, run: RankRun) -> None:
    """Raise `Wrong` if a rank has a wrong gradient."""
    _, dx, dw1, db1, dw2, db2 = whole(case)
    widths = [len(result[3]) for result in run.results]
    for name in ("w2", "b2", "b1", "w1", "x"):  # those that need no sum first
        for rank, (_, *got) in enumerate(run.results):
            part = slice(sum(widths[:rank]), sum(widths[: rank + 1]))
            place = NAMES.index(name)
            one, right = got[place], (dx, dw1[:, part], db1[part], dw2[part], db2)[place]
            if not is_near(one, right):
                kind = kind_of_gradient(case, part, name, one, right)
                raise Wrong(f"the gradient of {name} is wrong on rank {rank}", expected=right, got=one, kind=kind)


def kind_of_gradient(case: Layers, part: slice, name: str, got: Any, right: Array) -> str:
    """Return which mistake leads to the wrong gradient of a rank with these hidden values; "" if it is unknown."""
    if case.size > 1 and is_near(got, case.size * right):
        return "times"
    hidden = case.x @ case.w1[:, part] + case.b1[part]
    inner = case.d @ case.w2[part].T
    if name == "x":
        return "partial" if is_near(got, (inner * (hidden > 0)) @ case.w1[:, part].T) else ""
    for before in (inner, inner * (case.x @ case.w1[:, part] > 0)):
        if is_near(got, before.sum(0) if name == "b1" else case.x.T @ before) and name in ("b1", "w1"):
            return "relu"
    return ""


def check_counts(case: Layers, run: RankRun) -> None:
    """Raise `Wrong` if the ranks sum more arrays, or larger ones, than they have to."""
    if case.size == 1:
        return
    for rank, events in enumerate(run.events):
        names = [event.name for event in events]
        at = names.index("forward")
        for what, part, most in (("forward", events[:at], case.d.size), ("backward", events[at:], case.x.size)):
            sums = [event.array.size for event in part if event.name == "all_reduce"]
            if len(sums) != 1:
                kind = "none" if not sums else "calls"
                raise Wrong(f"rank {rank} sums {len(sums)} arrays in the {what} pass; one is enough", kind=kind)
            if sums[0] > most:
                raise Wrong(f"rank {rank} sums {sums[0]} elements in the {what} pass; {most} are enough", kind="size")
        if [event.name for event in events if event.name in ("send", "receive", "broadcast")]:
            raise Wrong(f"rank {rank} communicates by more than all_reduce", kind="calls")


def check_alone(case: tuple[Layers, Layers, int], answer: Any) -> None:
    """Raise `Wrong` if a rank alone, with the messages of another run, has another result."""
    together, alone = answer
    if [x.tobytes() for x in together] != [x.tobytes() for x in alone]:
        raise Wrong(
            "with the same parts and the same messages, the rank returns something else after another run; a rank has no "
            "variables of other ranks",
            kind="alone",
        )


TASK = Task(
    id="6.3",
    title="Tensor parallel",
    file="tensor_parallel.py",
    slots=("split_columns", "split_rows", "CopyToRanks", "SumOverRanks", "mlp_forward", "mlp_backward"),
    points=6,
    text=(
        "A layer is too large for one device. Share the columns of its weight among ranks, and the rows of the next one: "
        "then the values between them never travel. One all-reduce forward and one backward are enough for both layers."
    ),
    hints=(
        "With some columns of w1, a rank computes some columns of the hidden values, all by itself. Those are what the same "
        "rows of w2 are multiplied by. Which sum is missing, and where is the same x used on all ranks?",
        "Forward: relu(x @ w1 + b1) @ w2 on each rank, an all-reduce of the products, then b2 once. Backward: d is the "
        "gradient of each rank's product, too. Only dx needs a sum, since all ranks used the same x.",
        "docs/course/6.3-tensor-parallel.md; docs/guide/sharding-models.md.",
    ),
    reads=("docs/course/6.3-tensor-parallel.md", "docs/guide/sharding-models.md"),
    checks=(
        in_turn(
            SPLIT,
            (
                check_each(SPLIT, layers, ask_columns, check_columns, describe=describe, share=0.4),
                check_each(SPLIT, layers, ask_rows, check_rows, describe=describe, share=0.4),
                check_each(SPLIT, layers, ask_cuts, same_cuts, describe=describe, share=0.4),
            ),
        ),
        in_turn(PAIR, pair_checks()),
        check_each(FORWARD, layers, ask_layers, check_forward, large=large_layers, describe=describe, share=0.6),
        check_each(BACKWARD, layers, ask_layers, check_backward, large=large_layers, describe=describe, share=0.6),
        check_each(COUNTED, layers, ask_layers, check_counts, describe=describe, share=0.4),
        check_each(ISOLATED, pairs, ask_layers_alone, check_alone, describe=describe_pair, share=0.2),
    ),
    mistakes=(
        Mistake(
            "the rest of the division is lost",
            "7 columns for 2 ranks are 3 and 4, not twice 3.",
            when=has_kind("lost"),
            check=SPLIT,
        ),
        Mistake(
            "ranks do not have neighboring columns or rows",
            "Of three columns, rank 0 has 0 and 1, and rank 1 has 2; not 0 and 2, and then 1.",
            when=has_kind("order"),
            check=SPLIT,
        ),
        Mistake(
            "columns and rows are exchanged",
            "A column of w has a weight for each input: w[:, k].",
            when=has_kind("rows"),
            check=SPLIT,
        ),
        Mistake(
            "each rank has the whole bias of the first layer",
            "An element of the bias belongs to a column: a rank has as many elements as columns.",
            when=has_kind("bias"),
            check=SPLIT,
        ),
        Mistake(
            "the sum is in the wrong direction",
            "Where x is copied to all ranks, gradients are summed. Where terms are summed, the gradient is copied.",
            when=has_kind("pair"),
            check=PAIR,
        ),
        Mistake(
            "the bias is added on each rank",
            "Then the sum has it once for each rank. Add b2 after the all-reduce.",
            when=has_kind("bias"),
            check=FORWARD,
        ),
        Mistake(
            "a gradient passes relu where the hidden value is 0",
            "relu(x @ w1 + b1) is 0 where its argument is negative. There the gradient is 0, too.",
            when=has_kind("relu"),
            check=BACKWARD,
        ),
        Mistake(
            "the gradient of x is that of one rank",
            "All ranks used x, so the gradients that they send back are added.",
            when=has_kind("partial"),
            check=BACKWARD,
        ),
        Mistake(
            "gradients are summed that all ranks have already",
            "d is the same on all ranks; its sum is size times as large.",
            when=has_kind("times"),
            check=BACKWARD,
        ),
        Mistake(
            "ranks sum arrays that belong to their own parts",
            "The hidden values of other ranks are never needed, and neither are gradients of their parts: only y and the "
            "gradient of x are sums over ranks.",
            when=has_kind("mismatch", "hidden"),
        ),
        Mistake(
            "more is sent than the two sums",
            "The hidden values of other ranks are never needed, and neither are gradients of their parts.",
            when=has_kind("calls", "size"),
            check=COUNTED,
        ),
    ),
    allows=frozenset({"numpy"}),
)
