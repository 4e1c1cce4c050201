"""NCCL's functions: by nccl4py where it is installed with its library, by ctypes on any libnccl otherwise.

Both have the same methods, which take addresses. `find_library` finds the libnccl of an `nvidia-nccl` wheel, of torch's
wheels, or of the system.
"""

import ctypes
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..core.errors import DistributedError, MissingPartError

UNIQUE_ID_NBYTES = 128
DTYPES = {"bool": 1, "int8": 0, "uint8": 1, "int32": 2, "int64": 4, "float16": 6, "float32": 7, "float64": 8}  # nccl.h
OPERATORS = {"add": 0, "maximum": 2, "minimum": 3}


class NcclLibrary:
    """The functions that the engine needs, with the parameters of nccl.h. Sizes are in elements."""

    version: int
    group_start: Callable[[], None]
    group_end: Callable[[], None]
    all_reduce: Callable[[int, int, int, int, int, int, int], None]  # source, target, count, dtype, op, comm, stream
    reduce: Callable[[int, int, int, int, int, int, int, int], None]  # source, target, count, dtype, op, root, comm, stream
    reduce_scatter: Callable[[int, int, int, int, int, int, int], None]  # as all_reduce
    all_gather: Callable[[int, int, int, int, int, int], None]  # source, target, count, dtype, comm, stream
    broadcast: Callable[[int, int, int, int, int, int, int], None]  # source, target, count, dtype, root, comm, stream
    send: Callable[[int, int, int, int, int, int], None]  # source, count, dtype, peer, comm, stream
    recv: Callable[[int, int, int, int, int, int], None]  # target, count, dtype, peer, comm, stream
    comm_abort: Callable[[int], None]

    def unique_id(self) -> bytes:
        """Return the id of a new communicator, which all its ranks need."""
        raise NotImplementedError

    def init_rank(self, size: int, unique_id: bytes, rank: int) -> int:
        """Return the communicator of a rank. All ranks call it."""
        raise NotImplementedError


class UniqueId(ctypes.Structure):
    """The 128 bytes of `ncclUniqueId`, which is passed by value."""

    _fields_ = [("bytes", ctypes.c_char * UNIQUE_ID_NBYTES)]


POINTER, SIZE, INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
SIGNATURES: dict[str, Sequence[Any]] = {  # of nccl.h
    "group_start": (),
    "group_end": (),
    "all_reduce": (POINTER, POINTER, SIZE, INT, INT, POINTER, POINTER),
    "reduce": (POINTER, POINTER, SIZE, INT, INT, INT, POINTER, POINTER),
    "reduce_scatter": (POINTER, POINTER, SIZE, INT, INT, POINTER, POINTER),
    "all_gather": (POINTER, POINTER, SIZE, INT, POINTER, POINTER),
    "broadcast": (POINTER, POINTER, SIZE, INT, INT, POINTER, POINTER),
    "send": (POINTER, SIZE, INT, INT, POINTER, POINTER),
    "recv": (POINTER, SIZE, INT, INT, POINTER, POINTER),
    "comm_abort": (POINTER,),
}


class CtypesNccl(NcclLibrary):
    """NCCL by ctypes: `nccl.all_reduce(...)` calls `ncclAllReduce` and raises its errors."""

    def __init__(self, path: str) -> None:
        try:
            self.library = ctypes.CDLL(path)
        except OSError as error:
            raise MissingPartError(f"nccl: no libnccl ({error}); run: pip install nvidia-nccl-cu13") from None
        self.library.ncclGetErrorString.restype = ctypes.c_char_p
        self.library.ncclCommInitRank.argtypes = [POINTER, INT, UniqueId, INT]
        for name, types in SIGNATURES.items():
            setattr(self, name, self.function("nccl" + name.title().replace("_", ""), types))
        number = INT()
        self.check(self.library.ncclGetVersion(ctypes.byref(number)))
        self.version = number.value

    def function(self, name: str, types: Sequence[Any]) -> Any:
        """Return a function that raises DistributedError if NCCL reports an error."""
        foreign = getattr(self.library, name)
        foreign.argtypes = list(types)

        def call(*values: int) -> None:
            if status := foreign(*values):
                self.check(status)

        return call

    def check(self, status: int) -> None:
        """Raise DistributedError unless a status means success."""
        if status:
            raise DistributedError(f"nccl: {self.library.ncclGetErrorString(status).decode()}; NCCL_DEBUG=INFO says more")

    def unique_id(self) -> bytes:
        """Return the id of a new communicator."""
        buffer = ctypes.create_string_buffer(UNIQUE_ID_NBYTES)
        self.check(self.library.ncclGetUniqueId(buffer))
        return buffer.raw

    def init_rank(self, size: int, unique_id: bytes, rank: int) -> int:
        """Return the communicator of a rank."""
        comm, value = POINTER(), UniqueId()
        ctypes.memmove(ctypes.byref(value), unique_id, UNIQUE_ID_NBYTES)
        self.check(self.library.ncclCommInitRank(ctypes.byref(comm), size, value, rank))
        assert comm.value is not None
        return comm.value


class Nccl4py(NcclLibrary):
    """NCCL by nccl4py's bindings, which have the same functions."""

    def __init__(self) -> None:
        nccl = import_module("nccl.bindings.nccl")

        self.bindings, self.version = nccl, int(nccl.get_version())
        for name in SIGNATURES:
            setattr(self, name, getattr(nccl, name))

    def unique_id(self) -> bytes:
        """Return the id of a new communicator."""
        return ctypes.string_at(self.bindings.get_unique_id().ptr, UNIQUE_ID_NBYTES)

    def init_rank(self, size: int, unique_id: bytes, rank: int) -> int:
        """Return the communicator of a rank."""
        return int(self.bindings.comm_init_rank(size, bytearray(unique_id), rank))


def find_library() -> str:
    """Return the path of a libnccl: that of an installed wheel, or the name that the loader looks for."""
    spec = find_spec("nvidia")
    folders = [] if spec is None else [Path(folder) / "nccl" / "lib" for folder in spec.submodule_search_locations or ()]
    found = (folder / "libnccl.so.2" for folder in folders)
    return str(next((path for path in found if path.exists()), "libnccl.so.2"))


def load_nccl() -> NcclLibrary:
    """Load NCCL: by nccl4py if it and a wheel of libnccl are installed, else by ctypes.

    Raises
    ------
    MissingPartError
        There is no libnccl.
    """
    has_wheel = find_spec("nvidia") is not None and find_library() != "libnccl.so.2"
    if has_wheel and find_spec("nccl") is not None:
        return Nccl4py()
    return CtypesNccl(find_library())
