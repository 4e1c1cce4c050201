"""One GPU through cuda.core: memory from its stream-ordered pool, copies, compiled kernels, and launches.

All work is enqueued in the legacy default stream, as in torch and CuPy by default, so arrays can be exchanged with them
without waiting. The data that all launches of a kernel share is computed once, in `prepare`.
"""

import ctypes
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from ....core.errors import OutOfMemoryError
from ....runtime.kernel_cache import cache as kernel_cache
from ....runtime.memory_pool import MemoryBuffer, Pool, VersionCounter
from ...fast_call import CallValue, DriverAddresses, FastLaunch, make_fast_launch
from ..codegen.select import FindSchedule
from ..compiler import CubinCompiler, compiler_fingerprint
from ..geometry import LaunchGeometry
from ..launch_plan import DeviceLaunch, KernelArgument
from ..tuned_schedules import TunedSchedules
from . import driver
from .index_notes import IndexNotes
from .tensor_maps import TensorMaps

if TYPE_CHECKING:
    from cuda.core import Kernel

# A kernel with more bytes of dynamic shared memory requests them. CUDA requires this if static and dynamic shared memory
# together exceed 48 KB; 8 KB are left for static arrays.
SHARED_OPT_IN_BYTES = 40 * 1024
SYNCHRONIZING_STREAMS = (-1, 0, 1, 2)  # DLPack's numbers for no stream and for the default streams, which wait for this one
LATE_ERROR = "; a kernel found it after the call had returned: call mf.synchronize() after calls to find the line"
_current = threading.local()


class DeviceBuffer(MemoryBuffer):
    """Memory of a GPU. It is freed when `owner` is garbage-collected."""

    __slots__ = ()

    def __init__(self, owner: object, address: int, nbytes: int) -> None:
        self.owner, self.address, self.nbytes = owner, address, nbytes
        self.version, self.is_writable = VersionCounter(), True

    @property
    def __array_interface__(self) -> dict[str, object]:
        """Raise AttributeError: NumPy cannot access GPU memory."""
        raise AttributeError("__array_interface__")


class GpuDevice:
    """GPU number `index`."""

    is_simulated: Literal[False] = False

    def __init__(self, index: int) -> None:
        from cuda.bindings import driver as bindings
        from cuda.core import Device as Core

        self.index, self.count = index, driver.query_driver().gpus
        self.core, self.bindings = Core(index), bindings
        try:
            self.use()
        except Exception as error:
            translated = driver.translate_error(error)
            if isinstance(translated, OutOfMemoryError):
                raise OutOfMemoryError(
                    f"cuda:{index} has too little free memory to start; find the processes that use it with nvidia-smi, "
                    "or use another GPU"
                ) from None
            raise translated from None
        self.stream = self.core.default_stream
        self.name = str(self.core.name)
        self.capability = tuple(self.core.compute_capability)
        self.multiprocessors = int(self.core.properties.multiprocessor_count)
        self.max_shared_bytes = int(self.core.properties.max_shared_memory_per_block_optin)  # bytes
        total = driver.check(bindings.cuMemGetInfo())[1]
        self.pool = Pool(self.allocate, keep=total // 2)
        self.index_notes = IndexNotes(self.allocate_mapped, LATE_ERROR)

    def use(self) -> None:
        """Make this the GPU of the calling thread. With several GPUs, other libraries may have selected another one."""
        if self.count > 1 or not getattr(_current, "is_set", False):
            self.core.set_current()
            _current.is_set = True

    @property
    def tensor_cores(self) -> str:
        """Return the tensor core instructions for matrix products: "wgmma", "mma", or "" on old GPUs."""
        return "wgmma" if self.capability == (9, 0) else "mma" if self.capability >= (8, 0) else ""

    @cached_property
    def schedules(self) -> TunedSchedules:
        """Return the tuned schedules of this kind of GPU."""
        return TunedSchedules(self.name, self.capability, self.multiprocessors)

    @cached_property
    def find_schedule(self) -> FindSchedule:
        """Return the function that finds the tuned schedule of a kernel."""
        return self.schedules.find

    @cached_property
    def tensor_maps(self) -> TensorMaps:
        """Return the cache of tensor maps, which describe operands to the copy engine."""
        return TensorMaps(self)

    # Memory.

    def allocate(self, nbytes: int) -> DeviceBuffer:
        """Allocate memory.

        Raises
        ------
        OutOfMemoryError
            The GPU has not enough free memory.
        """
        self.use()
        try:
            owner = self.core.memory_resource.allocate(nbytes, stream=self.stream)
        except Exception as error:
            translated = driver.translate_error(error)
            if not isinstance(translated, OutOfMemoryError):
                raise translated from None
            free, total = driver.check(self.bindings.cuMemGetInfo())
            raise OutOfMemoryError(
                f"cuda:{self.index}: cannot allocate {nbytes:,} bytes; {free:,} of {total:,} bytes are free, and "
                f"tensors and the memory pool hold {self.pool.reserved:,}; delete tensors, "
                "use smaller batches, or find other processes on the GPU with nvidia-smi"
            ) from None
        return DeviceBuffer(owner, int(owner.handle), nbytes)

    def allocate_mapped(self, count: int) -> np.ndarray:
        """Return an array of zeros of int64 in host memory that kernels can write."""
        self.use()
        flags = self.bindings.CU_MEMHOSTALLOC_PORTABLE | self.bindings.CU_MEMHOSTALLOC_DEVICEMAP
        address = int(driver.check(self.bindings.cuMemHostAlloc(8 * count, flags)))
        array = np.ctypeslib.as_array((ctypes.c_int64 * count).from_address(address))
        array[:] = 0
        return array

    def copy_in(self, array: np.ndarray, address: int) -> None:
        """Copy the bytes of a contiguous array to an address."""
        self.use()
        if array.nbytes:
            driver.check(self.bindings.cuMemcpyHtoD(address, array.ctypes.data, array.nbytes))

    def copy_in_async(self, array: np.ndarray, address: int) -> None:
        """Copy without waiting for earlier kernels. The array may be changed or freed as soon as this returns."""
        self.use()
        driver.check(self.bindings.cuMemcpyHtoDAsync(address, array.ctypes.data, array.nbytes, int(self.stream.handle)))

    def copy_out(self, address: int, array: np.ndarray) -> None:
        """Copy bytes at an address to a contiguous array, once all earlier kernels have ended.

        Raises
        ------
        IndexingError
            A kernel has noted an index that is out of range.
        """
        self.use()
        if array.nbytes:
            driver.check(self.bindings.cuMemcpyDtoH(array.ctypes.data, address, array.nbytes))
            self.index_notes.raise_first()

    def fill(self, address: int, count: int, value: np.generic) -> bool:
        """Set `count` adjacent elements to a number of 1 or 4 bytes. Return False if the driver has no function for it."""
        self.use()
        bits = int.from_bytes(value.tobytes(), "little")
        if bits == 0:
            memset, count = self.bindings.cuMemsetD8Async, count * value.itemsize
        elif value.itemsize in (1, 4):
            memset = self.bindings.cuMemsetD8Async if value.itemsize == 1 else self.bindings.cuMemsetD32Async
        else:
            return False
        driver.check(memset(address, bits, count, int(self.stream.handle)))
        return True

    def make_stream_wait(self, stream: int | None) -> None:
        """Make another library's stream, numbered as in DLPack, wait for all work enqueued here so far."""
        if stream is not None and stream not in SYNCHRONIZING_STREAMS:
            self.use()
            from cuda.core import Stream

            Stream.from_handle(stream).wait(self.stream)

    def synchronize(self) -> None:
        """Wait until the GPU has completed all enqueued work. Errors of kernels are raised here."""
        self.use()
        try:
            self.stream.sync()
        except Exception as error:
            raise driver.translate_error(error) from None
        self.index_notes.raise_first()

    # Kernels.

    def load(
        self,
        text: str,
        make_kernel: Callable[[], Callable[..., None]],
        signature: Sequence[str],
        threads: int,
        min_blocks_per_multiprocessor: int = 0,
        use_cache: bool = True,
        is_arch_specific: bool = False,
    ) -> "Kernel":
        """Return the compiled kernel of a text, from the cache or by compiling `make_kernel()`.

        The cache assumes that `text` and this package's sources determine the kernel. If they do not, set use_cache=False.
        """

        bounds = threads, min_blocks_per_multiprocessor
        build = CubinCompiler(make_kernel, tuple(signature), *bounds, self.capability, is_arch_specific)
        if not use_cache:
            return self._load_payload("", build("", text))
        limits = f"{threads} {min_blocks_per_multiprocessor}"
        flags = f"{compiler_fingerprint(self.capability)}\n{self.index} {limits} {' '.join(signature)}"
        return kernel_cache.find(text, flags, build, self._load_payload)

    def _load_payload(self, name: str, payload: bytes) -> "Kernel":
        from cuda.core import ObjectCode

        entry, _, cubin = payload.partition(b"\n")
        self.use()
        kernel = ObjectCode.from_cubin(cubin).get_kernel(entry.decode())
        kernel.attributes.num_regs  # noqa: B018  # reading this loads the kernel, so that a damaged file is detected here
        return kernel

    def prepare(self, kernel: "Kernel", geometry: LaunchGeometry, shared: int = 0) -> DeviceLaunch:
        """Return launch(*arguments) for a loaded kernel. Pointers and int64 are passed as ints, others as NumPy scalars."""
        from cuda.core import LaunchConfig, launch

        if shared > SHARED_OPT_IN_BYTES:
            bindings = self.bindings
            attribute = bindings.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            index = bindings.CUdevice(self.index)
            if driver.check(bindings.cuKernelGetAttribute(attribute, kernel.handle, index)) < shared:  # never lower it
                driver.check(bindings.cuKernelSetAttribute(attribute, shared, kernel.handle, index))
        config = LaunchConfig(grid=geometry.grid, block=geometry.block, shmem_size=shared)
        prepared = DeviceLaunch(launch if self.count == 1 else self.launch, self.stream, config, kernel)
        prepared.kernel, prepared.geometry, prepared.shared = kernel, geometry, shared
        return prepared

    def fast_entry(
        self,
        prepared_launches: Sequence[tuple[DeviceLaunch, Sequence[CallValue | int]]],
        kinds: Sequence[str],
        fallback: Callable[..., None],
        aligned_addresses: Iterable[int] = (),
        aligned_value: int | None = None,
    ) -> Callable[..., None] | None:
        """Return the fast launch path of prepared launches (see `fast_call.make_fast_launch`), or None if there is none."""
        self.use()
        launches = []
        for launch, arguments in prepared_launches:
            function = int(driver.check(self.bindings.cuKernelGetFunction(launch.kernel.handle)))
            launches.append(FastLaunch(function, arguments, launch.geometry.grid, launch.geometry.block, launch.shared))
        return make_fast_launch(self.launch_functions, kinds, launches, fallback, aligned_addresses, aligned_value)

    @cached_property
    def launch_functions(self) -> DriverAddresses:
        """Return the addresses of the driver's functions that launch kernels, and of the stream and context."""

        def address_of(name: bytes) -> int:
            return int(driver.check(self.bindings.cuGetProcAddress(name, 12000, 0))[0])

        self.use()
        launch, stream = address_of(b"cuLaunchKernel"), int(self.stream.handle)
        if self.count == 1:
            return DriverAddresses(launch, stream)
        return DriverAddresses(
            launch, stream, address_of(b"cuCtxSetCurrent"), int(driver.check(self.bindings.cuCtxGetCurrent()))
        )

    def launch(self, *arguments: KernelArgument) -> None:
        """Select this GPU and launch. This replaces `cuda.core.launch` if there are several GPUs."""
        from cuda.core import launch

        self.use()
        launch(*arguments)

    def recover(self, run: Callable[..., None], arguments: Sequence[KernelArgument], error: Exception) -> None:
        """Handle a failed launch: repeat it if the thread had not selected its GPU, else raise the error with advice."""
        was_unselected = not getattr(_current, "is_set", False)
        self.use()
        try:
            if not was_unselected:
                raise error
            run(*arguments)
        except Exception as failure:
            raise driver.translate_error(failure) from None
