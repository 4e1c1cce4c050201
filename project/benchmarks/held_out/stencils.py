"""Stencils of physics, in one to three dims. The programs with gradients return the interior only."""

from typing import Any

import numpy as np

from .program import Program


def heat(m: Any, u: Any) -> Any:
    y = u.clone()
    y[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return y


def exact_heat(u: Any) -> Any:
    neighbors = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)
    inside = np.zeros(u.shape, bool)
    inside[1:-1, 1:-1] = True
    return np.where(inside, 0.2 * u + 0.2 * neighbors, u)


def wave(m: Any, u: Any, before: Any) -> Any:
    c = u[1:-1, 1:-1, 1:-1]
    around = u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] + u[1:-1, 2:, 1:-1] + u[1:-1, :-2, 1:-1]
    around = around + u[1:-1, 1:-1, 2:] + u[1:-1, 1:-1, :-2]
    return 2 * c - before[1:-1, 1:-1, 1:-1] + 0.25 * (around - 6 * c)


def exact_wave(u: Any, before: Any) -> Any:
    laplacian = sum(
        np.diff(u, 2, axis=axis)[tuple(slice(None) if k == axis else slice(1, -1) for k in range(3))] for axis in range(3)
    )
    return (2 * u - before)[1:-1, 1:-1, 1:-1] + 0.25 * laplacian


def gray_scott(m: Any, u: Any, v: Any) -> Any:
    def laplacian(x: Any) -> Any:
        return x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2] - 4 * x[1:-1, 1:-1]

    a, b = u[1:-1, 1:-1], v[1:-1, 1:-1]
    reaction = a * b * b
    return a + 0.16 * laplacian(u) - reaction + 0.06 * (1 - a), b + 0.08 * laplacian(v) + reaction - (0.06 + 0.062) * b


def exact_gray_scott(u: Any, v: Any) -> Any:
    def laplacian(x: Any) -> Any:
        return np.diff(x[:, 1:-1], 2, axis=0) + np.diff(x[1:-1], 2, axis=1)

    a, b = u[1:-1, 1:-1], v[1:-1, 1:-1]
    return a + 0.16 * laplacian(u) - a * b**2 + 0.06 * (1 - a), b + 0.08 * laplacian(v) + a * b**2 - 0.122 * b


def burgers(m: Any, u: Any, v: Any) -> Any:
    dt, dx, viscosity = 0.01, 0.1, 0.05
    a, b = u[1:-1, 1:-1], v[1:-1, 1:-1]

    def step(x: Any) -> Any:
        c = x[1:-1, 1:-1]
        advection = a * (c - x[1:-1, :-2]) / dx + b * (c - x[:-2, 1:-1]) / dx
        diffusion = (x[1:-1, 2:] - 2 * c + x[1:-1, :-2] + x[2:, 1:-1] - 2 * c + x[:-2, 1:-1]) / dx**2
        return c - dt * advection + dt * viscosity * diffusion

    return step(u) * step(v)


def exact_burgers(u: Any, v: Any) -> Any:
    a, b, steps = u[1:-1, 1:-1], v[1:-1, 1:-1], []
    for x in (u, v):
        slopes = a * np.diff(x, axis=1)[1:-1, :-1] + b * np.diff(x, axis=0)[:-1, 1:-1]
        curvature = np.diff(x[:, 1:-1], 2, axis=0) + np.diff(x[1:-1], 2, axis=1)
        steps.append(x[1:-1, 1:-1] - 0.1 * slopes + 0.05 * curvature)
    return steps[0] * steps[1]


def fdtd(m: Any, ez: Any, hx: Any, hy: Any) -> Any:
    hx, hy, ez = hx.clone(), hy.clone(), ez.clone()
    hx[:, :-1] -= 0.5 * (ez[:, 1:] - ez[:, :-1])
    hy[:-1] += 0.5 * (ez[1:] - ez[:-1])
    ez[1:, 1:] += 0.5 * (hy[1:, 1:] - hy[:-1, 1:] - hx[1:, 1:] + hx[1:, :-1])
    return ez, hx, hy


def exact_fdtd(ez: Any, hx: Any, hy: Any) -> Any:
    hx = hx - 0.5 * np.pad(np.diff(ez, axis=1), ((0, 0), (0, 1)))
    hy = hy + 0.5 * np.pad(np.diff(ez, axis=0), ((0, 1), (0, 0)))
    curl = np.diff(hy, axis=0)[:, 1:] - np.diff(hx, axis=1)[1:]
    return ez + 0.5 * np.pad(curl, ((1, 0), (1, 0))), hx, hy


VELOCITIES = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))
WEIGHTS = (4 / 9, *[1 / 9] * 4, *[1 / 36] * 4)


def lattice_boltzmann(m: Any, f: Any) -> Any:
    density = f.sum(0)
    flow_y = (f[1] - f[3] + f[5] - f[6] - f[7] + f[8]) / density
    flow_x = (f[2] - f[4] + f[5] + f[6] - f[7] - f[8]) / density
    speed, y = flow_y * flow_y + flow_x * flow_x, f.clone()
    h, w = density.shape
    for k, ((down, right), weight) in enumerate(zip(VELOCITIES, WEIGHTS, strict=True)):
        along = 3 * (down * flow_y + right * flow_x)
        collided = f[k] - (f[k] - weight * density * (1 + along + along * along / 2 - 1.5 * speed)) / 0.8
        rows = slice(max(0, down), h + min(0, down)), slice(max(0, -down), h + min(0, -down))
        columns = slice(max(0, right), w + min(0, right)), slice(max(0, -right), w + min(0, -right))
        y[k, rows[0], columns[0]] = collided[rows[1], columns[1]]
    return y


def exact_lattice_boltzmann(f: Any) -> Any:
    velocities, weights = np.array(VELOCITIES), np.array(WEIGHTS)[:, None, None]
    density = f.sum(0)
    flow = np.tensordot(velocities.T, f, 1) / density
    along = np.tensordot(velocities, flow, 1)
    equilibrium = weights * density * (1 + 3 * along + 4.5 * along**2 - 1.5 * (flow**2).sum(0))
    collided = f + (equilibrium - f) / 0.8
    y, (h, w) = f.copy(), density.shape
    rows, columns = np.arange(h), np.arange(w)
    for k, (down, right) in enumerate(VELOCITIES):
        to_rows = rows[(rows >= down) & (rows - down < h)]
        to_columns = columns[(columns >= right) & (columns - right < w)]
        y[k][np.ix_(to_rows, to_columns)] = collided[k][np.ix_(to_rows - down, to_columns - right)]
    return y


def red_black(m: Any, u: Any, f: Any) -> Any:
    u = u.clone()
    for start in (1, 2):
        for row in (1, 2):
            column = start if row == 1 else 3 - start
            center = (slice(row, -1, 2), slice(column, -1, 2))
            h, w = u[center].shape
            rows, columns = slice(row, row + 2 * h - 1, 2), slice(column, column + 2 * w - 1, 2)
            up, down = slice(row - 1, row + 2 * h - 2, 2), slice(row + 1, row + 2 * h, 2)
            west, east = slice(column - 1, column + 2 * w - 2, 2), slice(column + 1, column + 2 * w, 2)
            old = u[rows, columns]
            mean = (u[up, columns] + u[down, columns] + u[rows, west] + u[rows, east] - f[rows, columns]) / 4
            u[center] = old + 1.5 * (mean - old)
    return u


def exact_red_black(u: Any, f: Any) -> Any:
    y, x = np.indices(u.shape)
    inside = (y > 0) & (x > 0) & (y < u.shape[0] - 1) & (x < u.shape[1] - 1)
    for parity in (0, 1):
        around = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)
        u = np.where(inside & ((y + x) % 2 == parity), u + 1.5 * ((around - f) / 4 - u), u)
    return u


def smooth_life(m: Any, u: Any) -> Any:
    rows = u[:-2] + u[1:-1] + u[2:]
    c = u[1:-1, 1:-1]
    around = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:] - c
    growth = 2 * m.exp(-((around - 3) ** 2) / 0.72) - 1
    return m.clip(c + 0.1 * growth, 0.0, 1.0)


def exact_smooth_life(u: Any) -> Any:
    around = np.lib.stride_tricks.sliding_window_view(u, (3, 3)).sum((2, 3)) - u[1:-1, 1:-1]
    growth = 2 * np.exp(-np.square(around - 3) / (2 * 0.6**2)) - 1
    return np.minimum(np.maximum(u[1:-1, 1:-1] + 0.1 * growth, 0), 1)


PROGRAMS = [
    Program(
        "heat equation in 2-d",
        "LeVeque, Finite Difference Methods for Ordinary and Partial Differential Equations, 2007, sec. 9.7",
        heat,
        exact_heat,
        lambda draw, h, w: [draw.normal(h, w)],
        gpu=(4999, 4993),
        cpu=(1511, 1499),
        tiny=(5, 7),
    ),
    Program(
        "wave equation in 3-d",
        "Strikwerda, Finite Difference Schemes and Partial Differential Equations, 2004, eq. 8.2.1 in three dims",
        wave,
        exact_wave,
        lambda draw, d, h, w: [draw.normal(d, h, w), draw.normal(d, h, w)],
        gpu=(257, 263, 269),
        cpu=(113, 127, 131),
        tiny=(4, 5, 4),
        gradients=2,
    ),
    Program(
        "Gray-Scott reaction and diffusion",
        "Pearson, Complex Patterns in a Simple System, 1993, eq. 2",
        gray_scott,
        exact_gray_scott,
        lambda draw, h, w: [draw.uniform(0, 1, h, w), draw.uniform(0, 1, h, w)],
        gpu=(3989, 4001),
        cpu=(1009, 1013),
        tiny=(5, 6),
    ),
    Program(
        "Burgers' equations in 2-d",
        "Barba and Forsyth, CFD Python: the 12 steps to Navier-Stokes equations, 2018, step 8",
        burgers,
        exact_burgers,
        lambda draw, h, w: [draw.normal(h, w), draw.normal(h, w)],
        gpu=(3001, 3011),
        cpu=(997, 1009),
        tiny=(4, 5),
        gradients=2,
    ),
    Program(
        "FDTD step of a transverse magnetic field",
        "Yee, Numerical Solution of Initial Boundary Value Problems Involving Maxwell's Equations, 1966, eq. 13",
        fdtd,
        exact_fdtd,
        lambda draw, h, w: [draw.normal(h, w) for _ in range(3)],
        gpu=(3001, 2999),
        cpu=(881, 883),
        tiny=(4, 5),
    ),
    Program(
        "lattice Boltzmann D2Q9 collision and streaming",
        "Qian, d'Humieres and Lallemand, Lattice BGK Models for Navier-Stokes Equation, 1992, eq. 1 to 3",
        lattice_boltzmann,
        exact_lattice_boltzmann,
        lambda draw, h, w: [draw.uniform(0.5, 1, 9, h, w)],
        gpu=(1511, 1499),
        cpu=(509, 499),
        tiny=(4, 5),
    ),
    Program(
        "red-black overrelaxation",
        "Press, Teukolsky, Vetterling and Flannery, Numerical Recipes, 2007, sec. 20.5.1",
        red_black,
        exact_red_black,
        lambda draw, h, w: [draw.normal(h, w), draw.normal(h, w)],
        gpu=(3001, 3011),
        cpu=(997, 1009),
        tiny=(6, 7),
    ),
    Program(
        "continuous cellular automaton",
        "Chan, Lenia: Biology of Artificial Life, 2019, eq. 1 to 4, with the eight neighbors as the kernel",
        smooth_life,
        exact_smooth_life,
        lambda draw, h, w: [draw.uniform(0, 1, h, w)],
        gpu=(4999, 5003),
        cpu=(1511, 1499),
        tiny=(5, 6),
    ),
]
