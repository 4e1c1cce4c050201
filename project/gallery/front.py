"""The picture of the front page: sixteen threads run one fused kernel, four at a time.

Each thread loads an element, computes three operations in a register, and stores the result. What goes down is the value in
the register: between the load and the store, nothing touches memory. The numbers are computed by minifuse.
"""

from html import escape

import minifuse as mf
from project.gallery.animation import allow_motion, colors, keyframes

WARPS, LANES = 4, 4
THREADS = WARPS * LANES
SECONDS = 4.8  # of one turn
START, STAGGER, HOP, MOVE = 0.3, 0.6, 0.5, 0.3  # seconds: of the first load, between warps, of a stage, of its motion
PITCH, CELL, LEFT = 36, 32, 24  # units
STOPS = (16, 78, 136, 194, 256)  # the top of a value in memory, after each operation, and in memory again
WIDTH, HEIGHT = LEFT + THREADS * PITCH + 80, 304
STILL = (4, 3, 2, 1)  # the stop of each warp where nothing moves
TIMES, MINUS = "\u00d7", "\u2212"
OPERATIONS = (f"{TIMES} 3", f"{MINUS} 8", "max 0")


@mf.fuse
def kernel(x: mf.Tensor) -> tuple[mf.Tensor, mf.Tensor, mf.Tensor]:
    """Return the value of each element after each of the three operations."""
    scaled = x * 3
    shifted = scaled - 8
    return scaled, shifted, shifted.relu()


def draw_front() -> str:
    """Return the picture as SVG."""
    x = mf.tensor([(7 * k + 1) % 10 for k in range(THREADS)])
    values = [[round(float(v)) for v in column] for column in (x, *kernel(x))]
    texts = [[f"{stage[k]}".replace("-", MINUS) for stage in values] for k in range(THREADS)]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">',
        "<title>Sixteen threads run one fused kernel, four at a time.</title>",
        f"<style>{colors()}{STYLE}{motion()}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}" rx="12"/>',
        f'<rect class="kernel" x="{LEFT - 10}" y="{STOPS[1] - 12}" width="{WIDTH - LEFT - 4}" height="170" rx="12"/>',
    ]
    for name, y in zip(OPERATIONS, STOPS[1:4], strict=True):
        parts.append(f'<path class="stage" d="M{LEFT} {y + CELL / 2}h{THREADS * PITCH - 4}"/>')
        parts.append(f'<text class="name" x="{WIDTH - 48}" y="{y + CELL / 2}">{escape(name)}</text>')
    for warp in range(WARPS):
        lanes = range(warp * LANES, (warp + 1) * LANES)
        parts.append(f'<g class="w{warp}">')
        parts += [cell("memory", k, STOPS[0], texts[k][0]) for k in lanes]
        parts.append('<g class="read">' + "".join(cell("load", k, STOPS[0], texts[k][0]) for k in lanes) + "</g>")
        parts += [cell("memory", k, STOPS[4], "") for k in lanes]
        parts.append('<g class="register">' + "".join(cell("value", k, 0) for k in lanes))
        for stage in range(4):
            inside = "".join(f'<text x="{middle(k)}" y="{CELL / 2}">{texts[k][stage]}</text>' for k in lanes)
            parts.append(f'<g class="s{stage}">{inside}</g>')
        parts.append("</g>")
        parts.append('<g class="written">' + "".join(cell("store", k, STOPS[4], texts[k][3]) for k in lanes) + "</g></g>")
    return "\n".join([*parts, "</svg>", ""])


def middle(k: int) -> int:
    """Return the middle of the column of a thread."""
    return LEFT + k * PITCH + CELL // 2


def cell(kind: str, k: int, y: int, text: str = "") -> str:
    """Return a cell in the column of a thread."""
    box = f'<rect class="{kind}" x="{LEFT + k * PITCH}" y="{y}" width="{CELL}" height="{CELL}" rx="5"/>'
    return box + (f'<text x="{middle(k)}" y="{y + CELL / 2}">{text}</text>' if text else "")


STYLE = """
.kernel{fill:var(--pale-shared);stroke:var(--shared);stroke-width:2}
.stage{stroke:var(--shared);stroke-width:2;stroke-dasharray:2 6}
text{font:600 15px ui-monospace,Menlo,Consolas,monospace;fill:var(--ink);text-anchor:middle;dominant-baseline:central}
.name{fill:var(--shared)}
.memory{fill:var(--paper);stroke:var(--line)}
.load{fill:var(--pale-load);stroke:var(--load);stroke-width:2.5}
.value{fill:var(--paper);stroke:var(--ink);stroke-width:2}
.store{fill:var(--pale-store);stroke:var(--store);stroke-width:2.5}
"""


def motion() -> str:
    """Return the rules of the still picture, and, for readers who allow motion, those of the moving one."""
    still, moving = [], []
    for warp, at in enumerate(STILL):
        start = START + STAGGER * warp
        hops = [start + HOP * stage for stage in range(5)]
        shows = {f"s{stage}": stage == min(at, 3) for stage in range(4)} | {"register": 0 < at < 4, "written": at == 4}
        shows["read"] = at == 1
        still.append(f".w{warp} .register{{transform:translateY({STOPS[at]}px)}}")
        still += [f".w{warp} .{name}{{visibility:hidden}}" for name, is_shown in shows.items() if not is_shown]
        spans = {f"s{stage}": (hops[stage - 1] + MOVE if stage else 0, hops[stage] + MOVE) for stage in range(4)}
        spans |= {
            "register": (start, hops[3] + MOVE),
            "written": (hops[3] + MOVE, SECONDS),
            "read": (start - 0.2, start + MOVE),
        }
        for name, (begin, end) in spans.items():
            moving.append(keyframes(f".w{warp} .{name}", [(begin, end)], SECONDS))
        moving.append(fall(warp, hops))
    return "".join(still) + allow_motion("".join(moving))


def fall(warp: int, hops: list[float]) -> str:
    """Return the rules by which the values of a warp go down from stop to stop."""
    steps = [(0.0, STOPS[0])]
    for k in range(4):
        steps += [(hops[k], STOPS[k]), (hops[k] + MOVE, STOPS[k + 1])]
    inside = "".join(f"{100 * t / SECONDS:.4g}%{{transform:translateY({y}px)}}" for t, y in steps)
    # A second animation of the element: the first shows it.
    return f"@keyframes fall{warp}{{{inside}100%{{transform:translateY({STOPS[4]}px)}}}}" + (
        f".w{warp} .register{{animation:w{warp}-register {SECONDS}s step-end infinite,"
        f"fall{warp} {SECONDS}s ease-in-out infinite}}"
    )
