"""The items of the gallery: views of the app, in the order of the page, each with its address."""

from typing import NamedTuple

SCAN = "project/views/kernels.py:scan"


class Item(NamedTuple):
    """A view of the app, as a picture: of one step, or moving through several."""

    name: str
    """The name of the file, docs/images/gallery/NAME.svg."""
    title: str
    said: str
    """A sentence that says what the view shows."""
    alt: str
    """A sentence for readers who do not see the picture."""
    address: str
    """The path of the page and its parameters, the step of the still picture among them, counted from 0."""
    steps: tuple[int, ...] = ()
    """The steps that a moving picture plays; empty: the picture shows the step of the address."""
    seconds: float = 5.0
    """The time of one turn of a moving picture."""
    width: int = 900
    """The width of the window in pixels."""
    kernel: str = ""
    """The kernel that the app is started with, for the page "Your kernel"."""

    @property
    def is_moving(self) -> bool:
        """True if the picture moves."""
        return bool(self.steps)

    @property
    def still(self) -> int:
        """The place among `steps` of the step in the address."""
        return self.steps.index(int(self.address.rpartition("_step=")[2])) if self.steps else 0


ITEMS = (
    Item(
        "strides",
        "A strided view",
        "Index times stride, plus the offset, is the position in storage: a view copies nothing.",
        "A storage of 15 numbers in a row, and a (2, 3) view of it. Step by step, an arrow joins an element of the "
        "view to its position: each row is 2 further on, each column 5.",
        "strides?shape=3,5&views=[:,1::2].T&strides_step=4",
        (0, 1, 2, 3, 4, 5),
        4.8,
    ),
    Item(
        "broadcasting",
        "Broadcasting",
        "A size of 1 is read again and again (hatched), and its gradient is the sum over all readers.",
        "x of shape (3, 1) and y of shape (4,) are repeated to (3, 4). Element (1, 2) of the result is 2 + 30 = 32. "
        "Below, each element of x has gradient 4, and each of y 3.",
        "broadcasting?broadcasting_x=3,1&broadcasting_y=4&broadcasting_step=6",
    ),
    Item(
        "reduction",
        "A reduction tree",
        "Each thread adds four numbers; then lanes exchange partial sums in pairs, until one number is left.",
        "Twelve numbers of a row are added by three threads to 58, 90 and 74; lanes add them in pairs to 148 and 74, "
        "then to 222, which is stored.",
        "folds?folds_operation=reduce:+the+sum+of+each+row&folds_backend=cuda&folds_rows=2&folds_columns=12&folds_cell=1"
        "&folds_step=5",
        (0, 1, 2, 3, 4, 5),
        4.8,
    ),
    Item(
        "threads",
        "Threads and blocks",
        "Every thread computes its own index from its block and its number; threads past the end do nothing.",
        "24 threads in three blocks for 21 elements. Thread 3 of block 1 computes 1 * 8 + 3 = 11, reads a[11], and "
        "writes out[11]. Three threads of the last block are hatched.",
        "threads?threads_kernel=a+thread+for+each+element&threads_elements=21&threads_block=8&threads_of_block=1"
        "&threads_thread=3&threads_step=3",
    ),
    Item(
        "coalescing",
        "Coalescing",
        "Lanes that read every second number make memory move twice the sectors, and half of the bytes for nothing.",
        "32 lanes read every second number. Eight sectors of 32 bytes are moved, and the hatched half of them is not "
        "used. Bars compare strides 1, 2, 4 and 8: 100, 50, 25 and 12 percent are used.",
        "memory?memory_stride=2",
    ),
    Item(
        "banks",
        "Bank conflicts",
        "A column of a 32 x 32 tile is in one bank of shared memory, so 32 lanes are served one after the other.",
        "All arrows from 32 lanes lead to bank 0; the others are idle. 32 wavefronts serve a lane each.",
        "memory?memory_space=shared&memory_width=32&memory_reads=column",
    ),
    Item(
        "padding",
        "No bank conflicts",
        "One unused column in each row of the tile shifts the banks: all 32 lanes are served at once.",
        "32 lanes read a column of a tile with rows of 33 numbers. Each lane has a bank of its own, and one wavefront"
        " serves all.",
        "memory?memory_space=shared&memory_width=33&memory_reads=column",
    ),
    Item(
        "matmul",
        "A tiled matmul",
        "A block copies a tile of a and of b to shared memory, and all its threads compute with these; then the next tiles.",
        "Block 0 copies 4 x 4 tiles of a and b to shared memory. Element (1, 2) of out adds the products of a row of "
        "one tile and a column of the other, one at a time, first of the first tiles, then of the second ones.",
        "matmul?matmul_kernel=shared_tiles&matmul_M=4&matmul_N=4&matmul_K=8&matmul_tile=4&matmul_block=0"
        "&matmul_element=1,2&matmul_step=5",
        (1, 2, 4, 5, 6, 7, 9, 10, 12, 13, 14, 15),
        7.2,
    ),
    Item(
        "race",
        "A race, found",
        "Without the barrier, a thread reads a tile before another one has written it: the interpreter names both.",
        "The first barrier of the matmul is missing. Two red arrows join the thread that writes tile_a[1, 0] and the "
        "thread that reads it with no barrier between; cells with a race have dashed red frames.",
        "matmul?matmul_kernel=first+barrier+missing&matmul_M=4&matmul_N=4&matmul_K=8&matmul_tile=4&matmul_block=0"
        "&matmul_element=1,2&matmul_step=3",
    ),
    Item(
        "scan",
        "A scan",
        "In each round, every thread adds the partial sum that is 1, 2, then 4 places before its own.",
        "Eight threads of a block compute running sums in shared memory. Step by step, arrows join thread 5 to the "
        "elements that it reads and writes.",
        "own?own_arguments=out=8:float32+a=8:float32&own_grid=1&own_block=8&own_thread=5&own_step=15",
        (3, 7, 9, 13, 15, 19, 21, 24),
        6.4,
        900,
        SCAN,
    ),
    Item(
        "passes",
        "Fusion, pass by pass",
        "The compiler puts all of softmax, with its two reductions, into one kernel: a quarter of the bytes are moved.",
        "The graph of softmax before and after passes of the compiler: at last one outline surrounds all operations, "
        "and the bar of bytes moved has shrunk from 263,168 to 65,536.",
        "fusion?fusion_function=softmax&fusion_size=64&fusion_play=pass+by+pass&fusion_step=4",
        (0, 1, 2, 3, 4),
        5.0,
    ),
    Item(
        "two-kernels",
        "What does not fuse",
        "exp and + cannot share a kernel, because the matmul between them needs all of exp: so there are two launches.",
        "Two outlines. launch0 computes exp and stores it; launch1 computes the product and the addition, which both "
        "read it.",
        "fusion?fusion_function=your+own&fusion_own=x.exp()@w%2Bx.exp()&fusion_shapes=x:+n,+n;+w:+n,+n&fusion_size=8",
    ),
    Item(
        "backward",
        "The backward graph",
        "The gradient starts at the sum, and every call passes on what its inputs receive; a bias receives a sum.",
        "The graph of relu(x @ w + b), summed. Step by step, backward, each call receives a gradient and passes "
        "gradients on, and the table beside it fills up.",
        "autodiff?autodiff_own=(x@w%2Bb).relu()&autodiff_shapes=x:n,2;w:2,2;b:2&autodiff_size=2&autodiff_step=4",
        (0, 1, 2, 3, 4),
        5.0,
        1100,
    ),
    Item(
        "schedule",
        "A schedule",
        "With a thread for each row, a request of the warp moves eight columns and uses one: 4,100 sectors in place of 528.",
        "A matrix of 32 x 128. 32 lanes read a column, one number a row; seven of eight columns that are moved for it"
        " are hatched. A table compares the counts of this schedule and of the compiler's.",
        "schedules?schedules_kernel=row+sum&schedules_schedule=a+thread+for+each+row&schedules_step=8",
        (),
        5.0,
        1100,
    ),
    Item(
        "ring",
        "A ring all-reduce",
        "Each device passes one part on to its neighbor: after three rounds each has one complete sum, after six all "
        "of them.",
        "Four devices, each with four parts. In each round every device sends one part to the next device, which adds"
        " it; after six rounds all devices have all sums.",
        "devices?devices_what=ring+all-reduce&devices_count=4&devices_step=3",
        (0, 1, 2, 3, 4, 5, 6),
        4.9,
    ),
    Item(
        "pipeline",
        "A pipeline",
        "A stage runs forward and backward passes in turns, as they arrive; hatched, it waits.",
        "The timelines of four stages and five microbatches, forward in blue, backward in orange, idle times hatched."
        " At 12 ms, stage a runs microbatch 4 forward, b 1 backward, c 2 backward and d 3 forward.",
        "devices?devices_what=pipeline:+1f1b&devices_count=4&devices_pieces=5&devices_step=12",
    ),
)
