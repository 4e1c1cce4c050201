"""Measure how fast the app responds in Chromium: `python -m project.measure_app` measures every page and saves the result.

    python -m project.measure_app                all pages, about twelve minutes
    python -m project.measure_app fusion train   some pages; prints the result, saves nothing
    python -m project.measure_app --load         many visitors at once and many interactions, alone; saves nothing
    python -m project.measure_app --report       prints the saved result

Each page is loaded from a new server without compiled kernels on disk. Then each control is changed once, by keyboard, from
the initial state of the page. This is *cold*. Another session of the same server then does the same: this is *warm*. A
measurement ends when the page has nothing more to draw. Then ten visitors, each on a page, change a control at once, and one
changes a control 500 times, after which neither server nor browser may have grown. Browser and server share this machine.
The numbers are meaningful only on an idle machine; the load is saved with them.
"""

import datetime
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minifuse.runtime.atomic_files import replace_content
from project.benchmarks import machine, report, terminal
from project.benchmarks.row import US
from project.screens import PAGES, Page
from project.screenshots import ROOT, find_chromium, serve_app, wait_until_idle

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator
    from playwright.sync_api import Page as Tab

FOLDER = Path(report.__file__).parent / "results"
PACKAGES = (*machine.PACKAGES[:3], "streamlit", "playwright")
FIRST, CONTROL = "First load of a page", "The answer to a control"
TOGETHER, LONG = "Ten visitors change a control at once", "Many interactions of one visitor"
LATER = {"Train": "picture and facts"}  # on a page that can be used before it is complete
COLD, WARM = "cold", "warm"
LOAD = "--load"
BOUNDS = {
    (FIRST, COLD): 3.0,
    (FIRST, WARM): 2.0,
    (CONTROL, COLD): 1.0,
    (CONTROL, WARM): 0.35,
    (TOGETHER, WARM): 1.0,
    (LONG, WARM): 0.35,
}  # seconds
LOADS = 3  # loads of a warm page; the median is reported
VISITORS, ROUNDS = 10, 3  # at once, each on a page of its own; how often each changes its control
INTERACTIONS, FILLED, WALK = 500, 100, 25  # of one visitor; those that fill the caches; there and back along a slider
MIB = 1 << 20
INSIDE = "[data-testid=stMain] [data-testid={}]"
# Controls, and the keys that change them: the last key submits the choice, those before prepare it.
CONTROLS = {
    "stSelectbox": ("[role=combobox], input", ("ArrowDown", "ArrowDown", "Enter")),
    "stMultiSelect": ("input", ("Backspace",)),
    "stSlider": ("[role=slider], input[type=range]", ("ArrowRight",)),
    "stRadio": ("input:not(:checked)", ("Space",)),
    "stCheckbox": ("input", ("Space",)),
    "stNumberInput": ("input", ("ArrowUp", "Enter")),
    "stTextInput": ("input", ("Enter",)),
}
INDEX = "1, 1"  # for an empty field of an index, whose hint has no example
EXAMPLE, DIGIT = re.compile(r"[\d.,:()\[\]T ]*\d[\d.,:()\[\]T ]*"), re.compile(r"\d(?=\D*$)")
# Record when the page last changed, the picture in its shadow root included. Changes of text nodes are ignored, because
# tables update their text for screen readers long after they are drawn.
WATCH = """() => {
  window.changed = 0;
  const watcher = new MutationObserver(() => { window.changed = Date.now() / 1000 });
  const main = document.querySelector('[data-testid=stMain]');
  for (const root of [main, ...[...main.querySelectorAll('*')].map((e) => e.shadowRoot).filter(Boolean)])
    watcher.observe(root, { subtree: true, childList: true, attributes: true });
}"""
Samples = dict[tuple[str, str, str], list[float]]  # (FIRST or CONTROL, COLD or WARM, name) -> seconds


def time_action(tab: "Tab", action: Callable[[], Any]) -> float:
    """Run an action, and return the seconds until the page has nothing more to draw."""
    began = time.perf_counter()
    action()
    return wait_until_idle(tab) - began


def open_page(browser: "Browser", address: str) -> tuple["Tab", float]:
    """Open a page in a new session, and return it with the seconds that this took."""
    tab = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    return tab, time_action(tab, lambda: tab.goto(address))


def controls(tab: "Tab") -> Iterator[tuple[str, "Locator", tuple[str, ...]]]:
    """Yield the visible controls of a page: the name, the element that gets the keys, and the keys."""
    for kind, (inner, keys) in CONTROLS.items():
        for control in tab.locator(INSIDE.format(kind)).all():
            goal = control.locator(inner).first
            if control.is_visible() and goal.count() and goal.is_enabled():
                label = control.get_by_test_id("stWidgetLabel")
                yield (label.first.inner_text() if label.count() else kind).strip(), goal, keys


def change_control(tab: "Tab", goal: "Locator", keys: Sequence[str]) -> float | None:
    """Press keys, and return the seconds from the last key to the last change of the page, or None without an effect."""
    before = tab.url
    goal.scroll_into_view_if_needed()
    if goal.get_attribute("type") == "text" and goal.get_attribute("role") != "combobox":
        text, hint = goal.input_value(), goal.get_attribute("placeholder") or ""
        goal.fill(INDEX if hint and not text and not EXAMPLE.search(hint) else alternative_text(text or hint))
    last = keys[-1]
    if goal.get_attribute("type") == "range" and goal.get_attribute("value") == goal.get_attribute("max"):
        last = "ArrowLeft"
    goal.focus()
    for key in keys[:-1]:
        tab.keyboard.press(key)
    tab.evaluate(WATCH)
    began = time.time()
    tab.keyboard.press(last)
    wait_until_idle(tab)
    seconds: float = tab.evaluate("() => window.changed") - began
    return seconds if tab.url != before else None


def alternative_text(text: str) -> str:
    """Replace the last digit of the text of a field, or of its example."""
    example = EXAMPLE.search(text)
    return DIGIT.sub(lambda digit: "1" if digit[0] == "2" else "2", example[0].strip() if example else text)


def measure_session(browser: "Browser", address: str, title: str, state: str, found: Samples) -> None:
    """Measure the load of a page and a change of each control from its initial state, and add the times to `found`."""
    tab, seconds = open_page(browser, address)
    found.setdefault((FIRST, state, title), []).append(seconds)
    if title in LATER:
        found.setdefault((FIRST, state, f"{title}, with {LATER[title]}"), []).append(seconds + table_after(tab))
    count = len(list(controls(tab)))
    for k in range(count):
        if k:
            tab.goto(address)
            wait_until_idle(tab)
        name, goal, keys = list(controls(tab))[k]
        if (seconds := change_control(tab, goal, keys)) is None:
            print(f"{title}: {name} has no other choice, or does not respond", file=sys.stderr, flush=True)
        else:
            found.setdefault((CONTROL, state, f"{title}: {name}"), []).append(seconds)
    tab.context.close()


def table_after(tab: "Tab") -> float:
    """Return the seconds until the page has a table."""
    began = time.perf_counter()
    tab.get_by_test_id("stTable").first.wait_for()
    return time.perf_counter() - began


def measure_training(browser: "Browser", address: str, title: str, state: str, found: Samples) -> None:
    """Train for a moment, and stop: the page responds while it trains."""
    tab, _ = open_page(browser, address)
    train, stop = (tab.get_by_role("button", name=name, exact=True) for name in ("Train", "Stop"))
    began = time.perf_counter()
    train.click()
    tab.locator("[data-testid=stMain]").get_by_text(" of 100 epochs, ").filter(has_not_text=", 0 steps").wait_for()
    found.setdefault((CONTROL, state, f"{title}: Train, until a step is seen"), []).append(time.perf_counter() - began)
    tab.wait_for_timeout(700)
    if stop.is_enabled():
        found.setdefault((CONTROL, state, f"{title}: Stop"), []).append(time_action(tab, stop.click))
    tab.context.close()


def measure(browser: "Browser", page: Page, found: Samples) -> None:
    """Measure one page, on its own server."""
    with serve(has_kernels=False) as server:
        address = f"{server}/{page.path}"
        for state in (COLD, WARM):
            measure_session(browser, address, page.title, state, found)
            if page.module == "train":
                measure_training(browser, address, page.title, state, found)
        for _ in range(LOADS - 1):
            tab, seconds = open_page(browser, address)
            found[FIRST, WARM, page.title].append(seconds)
            tab.context.close()


def prepare_control(tab: "Tab") -> str:
    """Focus the first control of a page, prepare its choice, and return the key that submits it."""
    _, goal, keys = next(controls(tab))
    goal.focus()
    for key in keys[:-1]:
        tab.keyboard.press(key)
    tab.evaluate(WATCH)
    return keys[-1]


def measure_visitors(browser: "Browser", found: Samples) -> None:
    """Let visitors change a control at the same time, each on a page of its own."""
    pages = PAGES[1 : VISITORS + 1]
    with serve(has_kernels=True) as server:
        for page in pages:  # kernels and pictures that another visitor has seen
            tab, _ = open_page(browser, f"{server}/{page.path}")
            for _ in range(ROUNDS):
                tab.keyboard.press(prepare_control(tab))
                wait_until_idle(tab)
            tab.context.close()
        tabs = [open_page(browser, f"{server}/{page.path}")[0] for page in pages]
        for _ in range(ROUNDS):
            keys = [prepare_control(tab) for tab in tabs]
            began = []
            for tab, key in zip(tabs, keys, strict=True):
                began.append(time.time())
                tab.keyboard.press(key)
            for page, tab, start in zip(pages, tabs, began, strict=True):
                wait_until_idle(tab)
                seconds = tab.evaluate("() => window.changed") - start
                found.setdefault((TOGETHER, WARM, page.title), []).append(seconds)
        for tab in tabs:
            tab.context.close()


def measure_growth(browser: "Browser", found: Samples) -> dict[str, float]:
    """Change a slider many times, and return by how many MiB server and browser have grown since the caches were filled."""
    page = next(page for page in PAGES if page.module == "threads")
    with serve(has_kernels=True) as server:
        tab, _ = open_page(browser, f"{server}/{page.path}")
        session = tab.context.new_cdp_session(tab)
        goal = next(goal for name, goal, _ in controls(tab) if name == "elements")
        goal.focus()
        sizes = []
        for k in range(INTERACTIONS + 1):
            if k in (FILLED, INTERACTIONS):
                session.send("HeapProfiler.collectGarbage")
                sizes.append((resident_bytes(), session.send("Runtime.getHeapUsage")["usedSize"]))
            tab.evaluate(WATCH)
            began = time.time()
            tab.keyboard.press("ArrowRight" if k // WALK % 2 else "ArrowLeft")
            wait_until_idle(tab)
            found.setdefault((LONG, WARM, page.title), []).append(tab.evaluate("() => window.changed") - began)
        tab.context.close()
    (server_before, heap_before), (server_after, heap_after) = sizes
    growth = {"server": server_after - server_before, "browser": heap_after - heap_before}
    return {f"MiB more in the {who}": round(size / MIB, 1) for who, size in growth.items()}


@contextmanager
def serve(has_kernels: bool) -> Iterator[str]:
    """Serve the app with the kernels that are on disk, or with none, and yield its address."""
    with tempfile.TemporaryDirectory() as folder:
        kernels = {} if has_kernels else {"MINIFUSE_CACHE": str(Path(folder) / "kernels")}
        with serve_app(ROOT / "project" / "app.py", Path(folder) / "log", kernels) as server:
            yield server


def resident_bytes() -> int:
    """Return the memory of the server, the only Python among the children of this process (Linux)."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    (server,) = (pid for pid in children if b"streamlit" in Path(f"/proc/{pid}/cmdline").read_bytes())
    return int(Path(f"/proc/{server}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def result_row(
    group: str, state: str, name: str, seconds: Sequence[float], counts: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """Return a measurement in the form of a benchmark row."""
    median, bound = statistics.median(seconds), BOUNDS[group, state]
    spread = {"median": median, "q1": min(seconds), "q3": max(seconds)}
    return {
        "group": f"{group}, {state}",
        "name": name,
        "rounds": len(seconds),
        "times": {US: {key: round(value, 3) for key, value in spread.items()}},
        "counts": dict(counts or {}),
        "targets": [{"words": f"{bound:g} s", "met": median <= bound}],
    }


def measure_pages(pages: Sequence[Page], has_load: bool) -> dict[str, Any]:
    """Measure pages and, if asked, the load of many visitors, and return the results in the form of the benchmarks."""
    from playwright.sync_api import sync_playwright

    if (path := find_chromium()) is None:
        sys.exit("no browser: install Chromium (apt install chromium), or name one in MINIFUSE_CHROMIUM")
    found, growth, before = Samples(), dict[str, float](), machine.load()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        version = browser.version
        for page in pages:
            measure(browser, page, found)
            print(f"{page.title}: first load {found[FIRST, COLD, page.title][0]:.1f} s", file=sys.stderr, flush=True)
        if has_load:
            measure_visitors(browser, found)
            growth = measure_growth(browser, found)
        browser.close()
    keys = [key for bound in BOUNDS for key in found if key[:2] == bound]
    return {
        "format": 1,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "quick": False,
        "machine": machine.describe(),
        "versions": machine.versions(PACKAGES) | {"chromium": version},
        "threads": {},
        "environment": {},
        "load": {"before": before, "after": machine.load()},
        "missing": {},
        "rows": [result_row(*key, found[key], growth if key[0] == LONG else None) for key in keys],
    }


def print_results(found: dict[str, Any]) -> None:
    """Print results: the machine, and a table for each kind."""
    print("\n".join(report.summary(found)))
    for table in report.tables(found):
        print(f"\n{terminal.plain(table)}")


def main(words: Sequence[str]) -> None:
    """Measure, save and print."""
    path = FOLDER / f"app-{machine.slug()}.json"
    if list(words) == ["--report"]:
        if not path.is_file():
            sys.exit("no results are saved for this processor; run python -m project.measure_app")
        print_results(json.loads(path.read_text(encoding="utf-8")))
        return
    modules = [*(page.module for page in PAGES), LOAD]
    if unknown := set(words) - set(modules):
        sys.exit(f"there is no page {', '.join(sorted(unknown))}; expected some of {', '.join(modules)}, or --report")
    found = measure_pages([page for page in PAGES if not words or page.module in words], not words or LOAD in words)
    print_results(found)
    if not words:
        replace_content(path, json.dumps(found, indent=1) + "\n")
        print(f"\nsaved in {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main(sys.argv[1:])
