"""The host side of `numba.cuda`, for scripts that run without a GPU: arrays, streams, `cuda.jit`, launches.

Above the interpreter, which it hands launches to, and below `simt.check`, which runs a script with it. `stand_in` makes the
module that a script sees as `numba.cuda`, `substituted` puts it in place for a while. It knows no graphics processor, no
compiler and no time.
"""

from .arrays import DeviceArray, Line, place, script_line
from .kernels import Kernel, Launch, LaunchJudge
from .module import stand_in, substituted

__all__ = ["DeviceArray", "Kernel", "Launch", "LaunchJudge", "Line", "place", "script_line", "stand_in", "substituted"]
