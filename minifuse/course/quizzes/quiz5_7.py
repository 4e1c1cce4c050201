"""Questions on task 5.7: sectors of a warp, waves, idle threads, tiles, and a split reduction."""

from math import ceil
from random import Random

from ..drawn_nests import MACHINE
from ..nests import Nest, Schedule
from ..oracle import function
from .question import Question


def sectors(rng: Random) -> Question:
    """Ask for the sectors of a request."""
    columns, along, threads = rng.choice([64, 96, 200]), rng.randrange(2), rng.choice([4, 8, 16, 32])
    nest = Nest((64, columns), (False, False), ((columns, 1),), (columns, 1))
    block = (threads, 32 // threads) if along == 0 else (32 // threads, threads)
    answer = function("request_sectors")((columns, 1), nest, Schedule(along, block, (1, 1)), MACHINE)
    return Question(
        f"A block has {block[0]} x {block[1]} threads over the rows and columns of a (64, {columns}) array in row-major "
        "order, and a sector has 8 elements. How many sectors do the 32 threads touch?",
        answer,
        f"{block[0]} rows, and {block[1]} adjacent elements of each: {block[0]} * {max(block[1] // 8, 1)} = {answer}.",
        {32: "adjacent elements share a sector", 4: "only if all 32 are in one row"},
        numbers={"rows": block[0], "width": block[1], "columns": columns},
    )


def waves(rng: Random) -> Question:
    """Ask for the number of waves."""
    size, threads, tile, multiprocessors = (
        rng.randint(900, 5000),
        rng.choice([32, 64]),
        rng.choice([1, 2, 4]),
        rng.choice([4, 8]),
    )
    blocks = ceil(size / (threads * tile))
    answer = ceil(blocks / multiprocessors)
    return Question(
        f"A dim of {size} elements has {threads} threads in a block, and a tile of {tile}. {multiprocessors} "
        "multiprocessors run one block each at a time. How many waves of blocks are there?",
        answer,
        f"{size} / ({threads} * {tile}) rounded up is {blocks} blocks; / {multiprocessors} rounded up is {answer}.",
        {blocks: "this is the number of blocks", blocks // multiprocessors: "the last wave need not be full"},
        numbers={"size": size, "whole": threads * tile, "multiprocessors": multiprocessors},
    )


def idle(rng: Random) -> Question:
    """Ask how many threads of the last block are idle."""
    size, threads = rng.randint(33, 900), rng.choice([32, 64, 128])
    answer = ceil(size / threads) * threads - size
    return Question(
        f"A dim of {size} elements has {threads} threads in a block, and a tile of 1. How many threads of the last block "
        "are outside of the nest?",
        answer,
        f"{ceil(size / threads)} blocks have {ceil(size / threads) * threads} threads, for {size} elements.",
        {size % threads: "these are the threads inside"},
        numbers={"size": size, "threads": threads},
    )


def loads(rng: Random) -> Question:
    """Ask for the loads of a thread with a tile."""
    m, n = rng.choice([2, 4, 8]), rng.choice([1, 2, 4])
    return Question(
        f"out[i, j] is the sum over k of a[i, k] * b[k, j]. A thread has a tile of {m} x {n} elements of out. How many "
        "loads does it need for each k?",
        m + n,
        f"{m} of a, which does not depend on j, and {n} of b, which does not depend on i.",
        {2 * m * n: "stride 0 along a dim: one load for all elements of the tile along it"},
        numbers={"m": m, "n": n},
    )


def split(rng: Random) -> Question:
    """Ask for the steps of a thread after a split."""
    size, threads, chunks = rng.randint(2000, 20000), rng.choice([32, 64, 128]), rng.choice([2, 4, 8])
    length = ceil(size / chunks)
    answer = ceil(length / threads)
    return Question(
        f"A reduced dim of {size} elements is split into {chunks} chunks, and a block has {threads} threads along it. How "
        "many steps does a thread take?",
        answer,
        f"A chunk has {length} elements, and {length} / {threads} rounded up is {answer}.",
        {ceil(size / threads): "each block has one chunk only", length: "the threads share a chunk"},
        numbers={"size": size, "threads": threads, "chunks": chunks},
    )


QUESTIONS = (sectors, waves, idle, loads, split)
