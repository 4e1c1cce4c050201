"""Decide which files may be executed: only files that no one but this user and root can have written.

A file is trusted if it and its folder belong to this user or root, and no other user may write to them. In addition, no
parent folder and no symbolic link in the path may let another user replace it. Windows has no such permission bits: there
the profile folder is private by default, and nothing is checked.
"""

import errno
import os
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePath

MAX_LINKS = 40  # symbolic links in a path, as in Linux
PRIVATE, OWN_FILE = 0o700, 0o644  # permissions of new folders and files, before the umask
ACCESS_LIST = "system.posix_acl_access"  # the file attribute in which Linux stores the permissions of further users
HAS_OWNERS = hasattr(os, "geteuid")


def why_distrusted(folder: Path) -> str:
    """Return why files in a folder must not be executed.

    Parameters
    ----------
    folder : Path
        The folder need not exist if this user could create it where no one else can replace it.

    Returns
    -------
    str
        "" if the folder is trusted, else the reason, to be used in a sentence after "since".

    Notes
    -----
    Parent folders may be writable by all users if they have the sticky bit, such as /tmp: only the owner of an entry can
    replace it there. A folder that cannot be examined is not distrusted, since nothing can be read from it.
    """
    if not HAS_OWNERS:
        return ""
    path, link_count = Path("/"), 0
    try:
        system = {0, path.stat().st_uid}  # in a user namespace, root may have another number
        parts = list(reversed((folder if folder.is_absolute() else Path.cwd() / folder).parts[1:]))
        reason = why_others_may_change(path, path.stat(), is_ancestor=bool(parts), system=system)
        while parts and not reason:
            part = parts.pop()
            path = path.parent if part == ".." else path / part
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                link_count += 1
                if link_count > MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                if status.st_uid not in {os.geteuid(), *system}:
                    return f"the link {path} belongs to user {status.st_uid}, not to user {os.geteuid()} or root"
                target = path.readlink()
                path = Path("/") if target.is_absolute() else path.parent
                parts += reversed(target.parts[target.is_absolute() :])
            else:
                reason = why_others_may_change(path, status, is_ancestor=bool(parts), system=system)
    except OSError:  # it is missing, or cannot be examined
        return ""
    return reason


def why_others_may_change(path: PurePath, status: os.stat_result, *, is_ancestor: bool, system: set[int]) -> str:
    """Return why other users may change a folder or a file; "" if they may not.

    Parameters
    ----------
    path : PurePath
    status : os.stat_result
    is_ancestor : bool
        Whether `path` is a parent of the examined folder. If so, the system may own it, and it may have the sticky bit.
    system : set of int
        User numbers of the system.
    """
    if status.st_uid not in {0, os.geteuid(), *(system if is_ancestor else ())}:
        return f"{path} belongs to user {status.st_uid}, not to user {os.geteuid()} or root"
    is_sticky = is_ancestor and status.st_mode & stat.S_ISVTX
    if not is_sticky and others_may_write(path, status):
        return f"other users may write to {path} (mode {stat.S_IMODE(status.st_mode):04o}, `chmod go-w` changes it)"
    return ""


def others_may_write(path: PurePath, status: os.stat_result) -> bool:
    """Return True if a user other than the owner and root may write to a file or folder.

    Notes
    -----
    Systems where each user has a private group set the umask to 002, so folders are writable by that group. A private group
    is treated like its user, as in OpenSSH on Debian. With an access list, the group's bits are an upper bound for named
    users.
    """
    if status.st_mode & stat.S_IWOTH:
        return True
    if not status.st_mode & stat.S_IWGRP:
        return False
    return not is_private_group(status.st_uid, status.st_gid) or has_access_list(path)


@cache
def is_private_group(user: int, group: int) -> bool:
    """Return True for the primary group of a user that has the user's name and no other member."""
    import grp
    import pwd

    try:
        owner, entry = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return False
    return owner.pw_gid == group and entry.gr_name == owner.pw_name and {*entry.gr_mem} <= {owner.pw_name}


def has_access_list(path: PurePath) -> bool:
    """Return True if an access list gives permissions to further users or groups."""
    try:
        return ACCESS_LIST in os.listxattr(path)
    except (AttributeError, OSError):  # another system, or a file system without access lists
        return False


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents, accessible to this user only, for any umask.

    Raises
    ------
    OSError
        The folder cannot be created.
    """
    for path in reversed([folder, *folder.parents]):
        with suppress(FileExistsError):
            if not path.is_dir():
                path.mkdir(PRIVATE)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))


def read(path: Path) -> bytes:
    """Return the content of a trusted file in a trusted folder.

    Raises
    ------
    OSError
        The file cannot be read, is a link or not a regular file, or another user may have written it.

    Notes
    -----
    The check examines the open file, not its path, so no one can replace the file between the check and the reading.
    """
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise PermissionError(errno.EPERM, "it is not a regular file")
        if HAS_OWNERS and (reason := why_others_may_change(path, status, is_ancestor=False, system=set())):
            raise PermissionError(errno.EPERM, reason)
        return file.read()


def write_new(path: Path, data: bytes) -> None:
    """Create a file that no other user may write to, for any umask.

    Raises
    ------
    OSError
        The file exists, or cannot be written.
    """
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags, OWN_FILE), "wb") as file:
        file.write(data)


def remove_distrusted(folder: Path) -> None:
    """Remove files and links from a trusted folder that another user may have put there before it was trusted."""
    for path in folder.iterdir():
        with suppress(FileNotFoundError):  # another process removed it first
            status = path.lstat()
            is_foreign = HAS_OWNERS and why_others_may_change(path, status, is_ancestor=False, system=set())
            if not stat.S_ISDIR(status.st_mode) and (is_foreign or not stat.S_ISREG(status.st_mode)):
                path.unlink()
