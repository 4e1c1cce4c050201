"""GPUs, real and simulated: memory, copies, launches, CUDA graphs."""

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .gpu import GpuDevice
    from .simulated_device import SimulatedDevice

    CudaDevice: TypeAlias = GpuDevice | SimulatedDevice
