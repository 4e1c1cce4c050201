"""The view of a kernel in a file of the user."""

import re

import pytest

from minifuse.core.errors import MinifuseError
from project.views import thread_pictures, threads, user_kernel
from project.views.picture import CHOSEN, RACE, WRONG

SOURCE = """
from numba import cuda

@cuda.jit
def scale(x, y, n=50):
    i = cuda.grid(1)
    if i < n:
        y[i] = 2 * x[i]

@cuda.jit
def race(x):
    x[0] = cuda.threadIdx.x

@cuda.jit
def read_then_write(x, y):
    i = cuda.threadIdx.x
    y[i] = x[0]
    if i == 1:
        x[0] = 7

@cuda.jit
def write_then_read(x, y):
    i = cuda.threadIdx.x
    if i == 1:
        x[0] = 7
    y[i] = x[0]
"""


@pytest.fixture
def kernel_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return path


def test_user_kernel_is_run_and_counted(kernel_file):
    request = f"{kernel_file}:scale"
    example = user_kernel.example(request)
    assert example == user_kernel.Example("2", "32", "x=64:float32 y=64:float32")
    seen = user_kernel.run_launch(request, example.grid, example.block, example.arguments, (1, 20))
    assert "50 of 64 threads touch memory" in thread_pictures.picture(seen).sentence
    counts = {line.text.strip(): dict(line.counts) for line in threads.source(seen)}
    assert counts["y[i] = 2 * x[i]"] == {"lanes": 18, "loads": 50, "stores": 50, "sectors": 14}
    found = {fact.name: fact for fact in user_kernel.kernel_facts(seen)}
    assert found["lines that it ran"].value == "2"
    assert found["threads that touch no memory"].value == "14 of 64"
    assert "the result" not in found
    assert user_kernel.command(seen, "x=64:float32").startswith(f"minifuse trace {request} --grid 2")


def test_race_is_reported(kernel_file):
    seen = user_kernel.run_launch(f"{kernel_file}:race", "1", "2", "x=4:float32")
    assert any("Race" in fact.name for fact in user_kernel.kernel_facts(seen))


def test_threads_of_a_race_are_joined(kernel_file):
    picture = thread_pictures.picture(user_kernel.run_launch(f"{kernel_file}:race", "1", "2", "x=4:float32"))
    [frame] = [frame for frame in picture.frames if frame.sentence.startswith("Race at x[0]: ")]
    assert dict(frame.kinds)["x.0"] == RACE
    [edge] = [edge for edge in frame.edges if edge.kind == RACE]
    assert {edge.start, edge.end} == {("threads", 0, 0), ("threads", 0, 1)}
    clean = thread_pictures.picture(user_kernel.run_launch(f"{kernel_file}:scale", "2", "32", "x=64:float32 y=64:float32"))
    assert RACE not in {edge.kind for frame in clean.frames for edge in frame.edges}


@pytest.mark.parametrize(("name", "order"), [("read_then_write", (0, 1)), ("write_then_read", (1, 0))])
def test_race_is_drawn_from_the_writer_to_the_reader(kernel_file, name, order):
    """The sentence has the accesses in the order of the program."""
    seen = user_kernel.run_launch(f"{kernel_file}:{name}", "1", "2", "x=1:float32 y=2:float32")
    frames = [frame for frame in thread_pictures.picture(seen).frames if frame.sentence.startswith("Race at x[0]: ")]
    verbs = {1: "thread 1 of block 0 writes it", 0: "thread 0 of block 0 reads it"}
    assert frames
    for frame in frames:
        assert frame.sentence == f"Race at x[0]: {verbs[order[0]]}, {verbs[order[1]]}, in any order."
        [edge] = [edge for edge in frame.edges if edge.kind == RACE]
        assert (edge.start, edge.end) == (("threads", 0, 1), ("threads", 0, 0))


USES = """
import math
from numba import cuda, float32

@cuda.jit
def transpose(o, a):
    x, y = cuda.grid(2)
    if y < a.shape[0] and x < a.shape[1]:
        o[x, y] = a[y, x]

@cuda.jit
def sum_rows(o, a, n, scale):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    rows, columns = a.shape
    if i < min(n, rows):
        total = float32(0)
        for k in range(columns):
            total += a[i][k] if k < 0 else a[i, k]
        o[i] = total * math.sqrt(scale)

@cuda.jit
def copy_3d(o, a):
    x, y, z = cuda.grid(3)
    o[z, y, x] = a[z, y, x]

@cuda.jit
def flat(o, a, width):
    o[cuda.threadIdx.y * width + cuda.threadIdx.x] = a[cuda.threadIdx.y * width + cuda.threadIdx.x]

@cuda.jit(device=True)
def store(where, index, value):
    where[index, 0] = value

@cuda.jit
def through_a_device_function(o, counts):
    i = cuda.grid(1)
    store(o, i, 1)
    cuda.atomic.add(counts, (i % 2, 0), 1)
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("transpose", ("2,2", "8,8", "o=16,16:float32 a=16,16:float32")),
        ("sum_rows", ("2", "32", "o=64:float32 a=64,4:float32 n=64 scale=64")),
        ("copy_3d", ("2,2,2", "4,4,2", "o=4,8,8:float32 a=4,8,8:float32")),
        ("flat", ("2,2", "8,8", "o=256:float32 a=256:float32 width=16")),
        ("through_a_device_function", ("2", "32", "o=64,4:float32 counts=64,4:float32")),
    ],
)
def test_launch_to_begin_with_fits_the_source(tmp_path, name, expected):
    path = tmp_path / "mine.py"
    path.write_text(USES)
    example = user_kernel.example(f"{path}:{name}")
    assert example == user_kernel.Example(*expected)
    seen = user_kernel.run_launch(f"{path}:{name}", example.grid, example.block, example.arguments)
    assert seen.trace.is_complete


def test_an_array_of_too_few_dims_is_an_error_that_says_what_to_write(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(USES)
    message = "o has 1 dim, and line 9 has o[x, y]: write o=16,16:float32 in arguments"
    with pytest.raises(MinifuseError, match=re.escape(message)):
        user_kernel.run_launch(f"{path}:transpose", "2", "32", "o=64:float32 a=64:float32")


def test_a_read_of_uninitialized_memory_has_a_sentence_and_a_mark(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        TILES.replace("(32, 32)", "(32, 33)").replace("o[x, y] = s[cuda.threadIdx.y, ", "o[x, y] = s[8 + cuda.threadIdx.y, ")
    )
    arguments = "o=8,8:float32 a=8,8:float32"
    picture = thread_pictures.picture(user_kernel.run_launch(f"{path}:transpose", "1", "8,8", arguments, (0, 9)))
    told = " UninitializedReadError: shared array 's' of shape (32, 33): element (8, 0) is read before it is written, by "
    assert told in picture.sentence
    assert told in picture.frames[-1].sentence
    assert [link for link, kind in picture.frames[-1].kinds if kind == WRONG] == [f"s.{8 * 33}"]
    assert not any("Error" in frame.sentence for frame in picture.frames[1:-1])


def test_hazards_of_a_launch_are_counted_in_its_sentence(kernel_file):
    seen = user_kernel.run_launch(f"{kernel_file}:read_then_write", "1", "2", "x=1:float32 y=2:float32")
    assert " RaceError: global array 'x' element 0: read by thread 0 at " in thread_pictures.picture(seen).sentence


def test_changed_file_is_reloaded(kernel_file):
    request = f"{kernel_file}:scale"
    assert user_kernel.example(request).arguments.count("=") == 2
    kernel_file.write_text(SOURCE.replace("x, y, n=50", "x, y, z, n=5000"))
    assert user_kernel.example(request).arguments.count("=") == 3


@pytest.mark.parametrize(
    ("grid", "block", "arguments", "message"),
    [
        ("0", "32", "", "grid 0: expected one to three positive sizes"),
        ("2", "x", "", "block x: expected"),
        ("16, 16", "8, 8", "", "16 x 16 blocks of 8 x 8 threads are 16,384 threads; expected at most 4,096: take fewer"),
        ("2", "32", "x=9999:float32 y=1:float32", "9,999 elements"),
        ("2", "32", "x=64:float32", "needs --arg for y"),
        ("2", "32", "z=1", "no parameter 'z'"),
        ("2", "32", "x=__import__('os')", "expected shape:dtype or a number"),
        ("2", "32", "x" * 500, "more than 400 characters"),
    ],
)
def test_invalid_launches_are_errors(kernel_file, grid, block, arguments, message):
    with pytest.raises(MinifuseError, match=message):
        user_kernel.run_launch(f"{kernel_file}:scale", grid, block, arguments)


def test_page_draws_the_kernel_and_shows_errors(kernel_file, monkeypatch):
    pytest.importorskip("streamlit", reason="needs minifuse[app]")
    from streamlit.testing.v1 import AppTest

    from minifuse.cli.app import KERNEL_VARIABLE
    from project.screens import user_kernel as screen

    assert screen.KERNEL == KERNEL_VARIABLE
    monkeypatch.setenv(KERNEL_VARIABLE, f"{kernel_file}:scale")

    def draw():
        from project.screens.user_kernel import page

        page()

    app = AppTest.from_function(draw, default_timeout=60).run()
    assert not app.exception
    assert not app.error
    assert app.get("bidi_component")
    app.text_input(key="own_grid").set_value("nonsense").run()
    assert not app.exception
    assert "grid nonsense" in app.error[0].value
    app.text_input(key="own_grid").set_value("1").run()
    assert not app.error


TILES = """
from numba import cuda, float32

@cuda.jit
def transpose(o, a):
    s = cuda.shared.array((32, 32), float32)
    x, y = cuda.grid(2)
    s[cuda.threadIdx.y, cuda.threadIdx.x] = a[y, x]
    cuda.syncthreads()
    o[x, y] = s[cuda.threadIdx.y, cuda.threadIdx.x]

@cuda.jit
def transpose_by_columns(o, a):
    s = cuda.shared.array((32, 32), float32)
    x, y = cuda.grid(2)
    s[cuda.threadIdx.y, cuda.threadIdx.x] = a[y, x]
    cuda.syncthreads()
    o[y, x] = s[cuda.threadIdx.x, cuda.threadIdx.y]
"""


def test_blocks_of_1024_threads_are_drawn_in_part(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(TILES)
    seen = user_kernel.run_launch(f"{path}:transpose", "2,2", "32,32", "o=64,64:float32 a=64,64:float32", (3, 1000))
    picture = thread_pictures.picture(seen)
    assert "4,096 of 4,096 threads touch memory" in picture.sentence
    grids = {grid.name: grid for grid in picture.grids}
    assert grids["threads"].title == "4,096 threads in 4 blocks, of which block (1, 1), threads (0, 24)..(31, 31)"
    assert len(grids["threads"].cells) == 256
    assert grids["warps"].title == "lanes per line: 2 of 128 warps"
    assert grids["s"].title == "s, shared by the block: 32 elements of 1024"
    assert grids["threads"].row_names[0] == "y 56"
    [chosen] = [cell for cell in grids["threads"].cells if cell.kind == CHOSEN]
    assert "thread (8, 31)" in chosen.label


@pytest.mark.parametrize(
    ("name", "sectors", "wavefronts", "excess"),
    [
        ("transpose", 32, 1, "32 sectors, 4 at best"),
        ("transpose_by_columns", 4, 32, "32 wavefronts, 1 at best"),
    ],
)
def test_sectors_and_bank_conflicts_are_shown_by_step_by_line_and_as_facts(tmp_path, name, sectors, wavefronts, excess):
    path = tmp_path / "mine.py"
    path.write_text(TILES)
    seen = user_kernel.run_launch(f"{path}:{name}", "1", "32,32", "o=32,32:float32 a=32,32:float32")
    last, text = thread_pictures.picture(seen).frames[-1], "o[x, y] = s" if name == "transpose" else "o[y, x] = s"
    assert last.sentence.endswith(f" 32 of 32 lanes of its warp do this together: {excess}.")
    assert {(str(sectors), "sectors"), (str(wavefronts), "wavefronts")} <= set(last.numbers)
    [line] = [dict(line.counts) for line in threads.source(seen) if line.text.strip().startswith(text)]
    assert line == {"lanes": 32, "loads": 1024, "stores": 1024, "sectors": 32 * sectors, "wavefronts": 32 * wavefronts}
    [cost] = [fact for fact in user_kernel.kernel_facts(seen) if text in fact.name]
    assert cost.value == f"{32 * sectors} sectors, 128 at best; {32 * wavefronts} wavefronts, 32 at best"


@pytest.mark.parametrize("size", ["", "0", "1", "1,1", "2,0"])
def test_one_element_and_empty_arrays_draw(tmp_path, size):
    path = tmp_path / "mine.py"
    path.write_text("from numba import cuda\n\n@cuda.jit\ndef count(x, out):\n    if x.size:\n        out[0] = x.size\n")
    arguments = f"x={size}:float32 out=1:float32"
    seen = user_kernel.run_launch(f"{path}:count", "1", "1", arguments)
    assert seen.trace.is_complete
    assert thread_pictures.picture(seen).as_data()["sentence"]
    assert user_kernel.kernel_facts(seen)
    assert user_kernel.command(seen, arguments).endswith(f"--arg x={size}:float32 --arg out=1:float32")


def test_an_access_to_an_empty_array_is_out_of_bounds(kernel_file):
    seen = user_kernel.run_launch(f"{kernel_file}:race", "1", "1", "x=0:float32")
    cells = [cell for grid in thread_pictures.picture(seen).grids for cell in grid.cells]
    [place] = [cell for cell in cells if cell.text == "0!" and "lies" in cell.label]
    assert "x[0] lies outside: x has 0 elements" in place.label


@pytest.mark.parametrize(
    "body", ["while True:\n        pass", "while x[0] == x[0]:\n        pass", "while True:\n        cuda.syncthreads()"]
)
def test_endless_kernel_is_reported_with_its_line(tmp_path, body):
    path = tmp_path / "mine.py"
    path.write_text(f"from numba import cuda\n\n@cuda.jit\ndef waits(x):\n    {body}\n")
    seen = user_kernel.run_launch(f"{path}:waits", "1", "2", "x=4:float32")
    assert not seen.is_right
    assert "kernel waits: " in thread_pictures.picture(seen).sentence
    (told,) = [fact for fact in user_kernel.kernel_facts(seen) if fact.name.endswith("LimitError")]
    assert "thread 0 of block 0" in told.value
    assert "mine.py:5" in told.value
