"""The page Your kernel, for the kernel of `minifuse app --kernel FILE.py:name`."""

import os

from minifuse.core.errors import MinifuseError

from ..frame import PageContent, show_error, show_head, show_page
from ..views import thread_pictures, threads, user_kernel

KERNEL = "MINIFUSE_APP_KERNEL"  # environment variable that `minifuse app` sets


def page() -> None:
    """Draw a launch of the user's kernel, and the timeline of one of its threads."""
    what = os.environ.get(KERNEL, "")
    text = f"`{what}`, run lane by lane by the interpreter. Arrays get random elements."
    zero, one, two, three, four = show_head("Your kernel", text, 1.6, 0.6, 0.6, 0.7, 0.7)
    try:
        example = user_kernel.example(what)
    except MinifuseError as error:
        show_error(error)
        return
    arguments = zero.text_input("arguments", placeholder=example.arguments, key="own_arguments", bind="query-params")
    grid = one.text_input("blocks", placeholder=example.grid, key="own_grid", bind="query-params")
    block = two.text_input("threads of a block", placeholder=example.block, key="own_block", bind="query-params")
    of_block = three.number_input("look at block", 0, user_kernel.MAX_THREADS, 0, key="own_of_block", bind="query-params")
    thread = four.number_input("and its thread", 0, user_kernel.MAX_THREADS, 0, key="own_thread", bind="query-params")
    try:
        launch = grid or example.grid, block or example.block, arguments or example.arguments
        seen = user_kernel.run_launch(what, *launch, (int(of_block), int(thread)))
    except MinifuseError as error:
        show_error(error)
        return
    show_page(
        PageContent(
            "own",
            thread_pictures.picture(seen),
            user_kernel.kernel_facts(seen),
            threads.source(seen),
            "Your kernel: lanes of this warp; other counts of the launch",
            user_kernel.command(seen, arguments or example.arguments),
            {"warps.perfetto.json": threads.chrome_trace_json(seen)},
        )
    )
