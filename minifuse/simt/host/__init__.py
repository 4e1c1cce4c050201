"""The host side of `numba.cuda`, for scripts that run without a GPU: arrays, streams, `cuda.jit`, launches.

It passes launches to the interpreter; `simt.check` runs scripts with it. `stand_in_modules` builds the modules that a script
imports as `numba.cuda`, and `substitute_modules` installs them temporarily. It needs no GPU and compiles nothing.
"""

from .arrays import DeviceArray, HostOrDevice, Line, format_line, script_line
from .kernels import LaunchHandler, ScriptKernel, ScriptLaunch
from .module import stand_in_modules, substitute_modules

__all__ = [
    "DeviceArray",
    "HostOrDevice",
    "LaunchHandler",
    "Line",
    "ScriptKernel",
    "ScriptLaunch",
    "format_line",
    "script_line",
    "stand_in_modules",
    "substitute_modules",
]
