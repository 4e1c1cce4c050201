"""Make the pictures of the course in Chromium: `python -m project.course_pictures` writes docs/images/course/*.svg.

`python -m project.course_pictures 2.1 2.2` makes those of some tasks only.

A picture is what the button "Save SVG" of a page of the app saves at an address of PICTURES, which includes the step. So a
reader who opens that address sees the same state, and can play its other steps. The page of the task shows the picture with
the sentence as its alternative text, and a link to the address below it; tests compare all three.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from project.screenshots import ROOT, find_chromium, serve_app, wait_until_complete

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FOLDER = ROOT / "docs" / "images" / "course"
VIEWPORT = {"width": 1280, "height": 900}


class CoursePicture(NamedTuple):
    """A state of a page of the app that shows what a task is about."""

    address: str
    """The path of the page and its parameters, the step among them: "strides?shape=2,3&views=.T&strides_step=4"."""
    alt: str
    """A sentence that says what the picture shows, for readers who do not see it."""


PICTURES: dict[str, CoursePicture] = {
    "0.3": CoursePicture(
        "folds?folds_operation=reduce:+the+sum+of+all&folds_backend=python&folds_rows=1&folds_columns=4&folds_cell=0",
        "The sum of 1, 2, 3, 4, from the left: from the start 0 to 1, 3, 6 and 10.",
    ),
    "1.2": CoursePicture(
        "autodiff?autodiff_own=x*y&autodiff_shapes=x:();y:()&autodiff_size=1&autodiff_step=2",
        "The call x * y with x = 0.5 and y = 1.43 receives 1. It passes 1.43, the value of y, to x, and 0.5, the "
        "value of x, to y.",
    ),
    "1.3": CoursePicture(
        "autodiff?autodiff_own=x*x%2B5*x&autodiff_shapes=x:()&autodiff_size=1&autodiff_step=4",
        "The function x * x + 5 * x at x = 0.5. The call x * x receives 1 and passes 0.5 to x twice; x has received 5 "
        "before: 6 in all.",
    ),
    "1.4": CoursePicture(
        "autodiff?autodiff_function=centred+rows&autodiff_size=1&autodiff_step=4",
        "The variable %2 sub was used three times. It has received three gradients; now it passes their sum on to x "
        "and to the mean.",
    ),
    "1.5": CoursePicture(
        "autodiff?autodiff_own=-(w*x%2Bb).sigmoid().log()&autodiff_shapes=x:();w:();b:()&autodiff_size=1&autodiff_step=6",
        "A unit w * x + b, sigmoid and -log. Backward, the loss passes -0.173 to the weighted sum, and -0.246 to the "
        "weight w.",
    ),
    "2.1": CoursePicture(
        "strides?shape=2,4&views=[:,1:].T&strides_step=3",
        "A storage of eight numbers and a (3, 2) view of it, with strides (1, 4) and offset 1. Element (1, 1) of the view "
        "is at position 1 + 1 * 1 + 1 * 4 = 6.",
    ),
    "2.2": CoursePicture(
        "broadcasting?broadcasting_x=3,1&broadcasting_y=4&broadcasting_step=6",
        "Shapes (3, 1) and (4,) give (3, 4). Element (1, 2) of the result is x[1, 0] + y[2] = 2 + 30 = 32.",
    ),
    "2.3": CoursePicture(
        "folds?folds_operation=reduce:+the+sum+of+each+column&folds_backend=python&"
        "folds_rows=3&folds_columns=4&folds_cell=2",
        "The sum of each column of a (3, 4) matrix. Element 2 of the output reads 3, 7 and 11, which are 4 apart in "
        "memory: 21.",
    ),
    "2.4": CoursePicture(
        "broadcasting?broadcasting_x=2,3&broadcasting_y=3&broadcasting_step=13",
        "A row y of shape (3,) was added to a (2, 3) matrix. Each element of y was read twice, so its gradient is 1 + "
        "1 = 2.",
    ),
    "2.5": CoursePicture(
        "autodiff?autodiff_own=(x@w%2Bb).relu()&autodiff_shapes=x:n,2;w:2,2;b:2&autodiff_size=2&autodiff_step=3",
        "A layer, relu(x @ w + b), for two points. Backward, the bias receives the sum over the two rows: 2 for each "
        "element.",
    ),
    "2.6": CoursePicture(
        "strides?shape=4,5&views=[1:,::2]&strides_step=5",
        "The view x[1:, ::2] of a (4, 5) tensor has shape (3, 3), strides (5, 2) and offset 5. Element (1, 2) of it is at "
        "position 5 + 1 * 5 + 2 * 2 = 14.",
    ),
    "3.1": CoursePicture(
        "folds?folds_operation=reduce:+the+sum+of+each+row&folds_backend=parallel&folds_rows=3&folds_columns=6&folds_cell=1",
        "A sum over each row of three. Output 1 is computed from row 1 alone, one element after the other, so each"
        " row can have its own thread.",
    ),
    "3.2": CoursePicture(
        "matmul?matmul_kernel=naive&matmul_M=3&matmul_N=4&matmul_K=5&matmul_tile=4&matmul_block=0&matmul_element=1,2",
        "Two matrices and their product. Element (1, 2) of out adds up the products of row 1 of a and column 2 of "
        "b, one at a time.",
    ),
    "3.3": CoursePicture(
        "threads?threads_kernel=a+thread+for+each+element&threads_elements=5"
        "&threads_block=3&threads_of_block=1&threads_thread=1",
        "Six threads in two blocks of three, for five elements. Thread 1 of block 1 computes i = 1 * 3 + 1 = 4, "
        "reads a[4] and writes out[4]. Thread 5 does nothing.",
    ),
    "3.4": CoursePicture(
        "matmul?matmul_kernel=shared_tiles&matmul_M=4&matmul_N=5&matmul_K=6"
        "&matmul_tile=4&matmul_block=0&matmul_element=1,2&matmul_step=4",
        "Block 0 has copied 4 x 4 tiles of a and b to shared memory. Element (1, 2) of out adds a product of an "
        "element of tile_a and one of tile_b; columns 4 and 5 of a come with the next tiles.",
    ),
    "3.6": CoursePicture(
        "matmul?matmul_kernel=strips&matmul_M=4&matmul_N=4&matmul_K=4"
        "&matmul_tile=4&matmul_block=0&matmul_element=1,2&matmul_step=4",
        "Block 0 has copied a 4 x 2 tile of a and a 2 x 4 tile of b to shared memory. Each thread reads one element "
        "of tile_b into a register, and uses it for all elements of out that it computes.",
    ),
    "4.4": CoursePicture(
        "autodiff?autodiff_function=your+own&autodiff_own=(x.exp()/x.exp().sum())[:1]&autodiff_shapes=x:+3&autodiff_step=9",
        "The gradient of the first of three probabilities. It reaches the scores on two paths, through the dividend"
        " and through the sum. The first score receives 0.161, the others -0.103 and -0.0581.",
    ),
    "5.1": CoursePicture(
        "fusion?fusion_function=softmax&fusion_size=8&fusion_play=pass+by+pass",
        "The captured graph of softmax: x, max, expand, sub, exp, sum, expand and div, with an arrow from each "
        "operand to its user.",
    ),
    "5.2": CoursePicture(
        "fusion?fusion_function=your+own&fusion_own=exp(-(x*x))*2.0%2By&fusion_shapes=x:+n,+4;+y:+4&fusion_size=8",
        "Five operations in one outline, launch0. It reads x and y and stores the result of the last operation: "
        "272 bytes instead of 1,296.",
    ),
    "5.3": CoursePicture(
        "fusion?fusion_function=softmax&fusion_size=8",
        "All operations of softmax in one outline, with the two reductions max and sum inside. The kernel reads x "
        "and stores the quotient: 1,024 bytes instead of 4,224.",
    ),
    "5.5": CoursePicture(
        "autodiff?autodiff_function=your+own&autodiff_own=x.exp()/x.exp().sum()&autodiff_shapes=x:+3&autodiff_step=2",
        "The backward pass of exp(x) / sum(exp(x)) at the division. The dividend receives 0.122 for each element; "
        "the divisor, which was repeated, receives one sum, -0.122.",
    ),
    "5.6": CoursePicture(
        "fusion?fusion_function=your+own&fusion_own=x.exp()@w%2Bx.exp()&fusion_shapes=x:+n,+n;+w:+n,+n&fusion_size=8",
        "Two outlines. launch0 computes exp and stores it; launch1 computes the product and the addition, which "
        "both read it. exp and + cannot share a kernel, because the product is between them.",
    ),
    "6.1": CoursePicture(
        "devices?devices_what=ring+all-reduce&devices_count=4&devices_step=3",
        "Four devices in a ring after three rounds. Each has received the complete sum of one of four parts; three more "
        "rounds pass the sums on.",
    ),
    "6.2": CoursePicture(
        "devices?devices_what=buckets+of+gradients&devices_count=2&devices_pieces=3&devices_step=14",
        "Two devices run the backward pass from layer 7 to layer 0. At 3.5 ms both compute layer 4, and the bucket of "
        "layers 7 to 5 is on its way.",
    ),
    "6.4": CoursePicture(
        "devices?devices_what=pipeline:+1f1b&devices_count=4&devices_pieces=5&devices_step=12",
        "A pipeline of four stages and five microbatches. At 12 ms, stage a runs microbatch 4 forward, b runs 1 backward, c "
        "runs 2 backward and d runs 3 forward.",
    ),
}
"""The picture of each task that the app can show."""


def save_picture(browser: "Browser", address: str) -> str:
    """Return the SVG that the page at an address saves."""
    context = browser.new_context(viewport=VIEWPORT, color_scheme="light", reduced_motion="reduce")
    page = context.new_page()
    page.goto(address)
    wait_until_complete(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save SVG", exact=True).click()
    text = download.value.path().read_text(encoding="utf-8")
    context.close()
    return text + "\n"


def main(ids: Sequence[str]) -> None:
    """Write the pictures of these tasks, or of all tasks, and print their sizes."""
    from playwright.sync_api import sync_playwright

    if unknown := set(ids) - set(PICTURES):
        sys.exit(f"there is no picture for {', '.join(sorted(unknown))}; expected some of {', '.join(PICTURES)}")
    if (path_of_chromium := find_chromium()) is None:
        sys.exit("no browser: install Chromium (apt install chromium), or name one in MINIFUSE_CHROMIUM")
    FOLDER.mkdir(parents=True, exist_ok=True)
    log = Path(tempfile.gettempdir()) / "minifuse-app.log"
    with serve_app(ROOT / "project" / "app.py", log) as address, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path_of_chromium, args=["--no-sandbox"])
        for name in ids or PICTURES:
            path = FOLDER / f"{name}.svg"
            path.write_text(save_picture(browser, f"{address}/{PICTURES[name].address}"), encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1024:.0f} KiB")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
