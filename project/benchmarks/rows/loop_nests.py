"""Rows of programs with very different loop nests, beside torch and torch.compile."""

from ..gpu import on_device
from ..loop_nests import PROGRAMS
from .held_out import forward_row

ROWS = [forward_row(program, False, "loop-nests") for program in PROGRAMS]
GPU_ROWS = [on_device(forward_row(program, True, "loop-nests")) for program in PROGRAMS]
