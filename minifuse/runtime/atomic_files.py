"""Atomic replacement of files: a reader finds the old content or the new content, never a part of either.

The library writes every file through `replacement`, so concurrent writers of one path are safe, too.
"""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

MAX_NAME_PART = 40  # characters of the target's name that a temporary file's name contains; names have at most 255 bytes

REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space, or ask for a larger quota",
    errno.EFBIG: "raise the limit on file sizes (ulimit -f)",
    errno.ENOENT: "create the folder first",
    errno.EEXIST: "choose a path where no file is",
    errno.ENOTDIR: "choose a path through folders",
    errno.EISDIR: "name a file in it",
    errno.EACCES: "choose a folder that this user may write in",
    errno.EPERM: "choose a folder that this user may write in",
    errno.EINVAL: "name a regular file",
    errno.EROFS: "choose a file system that is not read-only",
    errno.ENAMETOOLONG: "choose a shorter name",
}


def reason(error: OSError) -> str:
    """Return the system's description of an error, without the path."""
    return error.strerror or str(error)


def remedy(error: OSError) -> str:
    """Return an instruction that removes the cause of a failed write."""
    return REMEDIES.get(error.errno or 0, "free some space, or choose another place")


def is_temporary_of(name: str, target: str) -> bool:
    """Return True for the name of a temporary file that `replacement` creates for a target of this name."""
    return name.startswith(f".{target[:MAX_NAME_PART]}.") and name.endswith(".tmp")


@contextmanager
def replacement(path: str | os.PathLike[str], is_durable: bool = True) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces another file when the block ends without an error.

    Parameters
    ----------
    path : path
        The file to create or replace. A symbolic link is kept, and the file that it points to is replaced.
    is_durable : bool
        Whether to wait until the file and its folder are on disk, so that a power failure leaves the old or the new content.

    Yields
    ------
    binary file
        The temporary file, in the same folder. Its name begins with a dot and ends with `.tmp`.

    Raises
    ------
    OSError
        The file cannot be written. The old content is unchanged and the temporary file is removed.

    Notes
    -----
    The permissions of a replaced file are kept. A process that is killed inside the block leaves the temporary file.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if target.exists() and not target.is_file():  # a rename would remove /dev/null
        raise OSError(errno.EINVAL, "it is a device or a pipe, not a regular file")
    temporary = target.with_name(f".{target.name[:MAX_NAME_PART]}.{secrets.token_hex(4)}.tmp")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    handle = os.open(temporary, flags, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            if is_durable:
                os.fsync(handle)
        with suppress(FileNotFoundError):
            temporary.chmod(target.stat().st_mode & 0o777)
        temporary.replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise
    if is_durable:
        with suppress(OSError):  # not every system can synchronize a folder
            folder = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def replace_content(path: str | os.PathLike[str], content: str | bytes, is_durable: bool = True) -> None:
    """Replace the content of a file atomically, as `replacement` does. Text is encoded as UTF-8.

    Raises
    ------
    OSError
        The file cannot be written. The old content is unchanged.
    """
    with replacement(path, is_durable) as file:
        file.write(content.encode() if isinstance(content, str) else content)
