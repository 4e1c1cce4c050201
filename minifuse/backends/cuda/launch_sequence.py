"""A launcher of several launchers in turn, each of which takes some of the operands."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..executable import Launcher, fastest_entry
from .launch_plan import ReadyLaunch
from .launcher import CudaLauncher

if TYPE_CHECKING:
    from .device import CudaDevice


class LaunchSequence(CudaLauncher):
    """Launchers, and the operands of each by index."""

    def __init__(self, device: "CudaDevice", parts: Sequence[tuple[CudaLauncher, Sequence[int]]]) -> None:
        self.device, self.parts = device, parts

    def ready_launches(self, *values: Any) -> list[ReadyLaunch]:
        """Return all launches, for use in a graph."""
        return [x for launcher, operands in self.parts for x in launcher.ready_launches(*[values[k] for k in operands])]

    def fast_entry(self) -> Launcher:
        """Return the fast launch path of each launcher, in turn."""
        entries = [(fastest_entry(launcher), operands) for launcher, operands in self.parts]

        def launch(*values: Any) -> None:
            for entry, operands in entries:
                entry(*[values[k] for k in operands])

        return launch
