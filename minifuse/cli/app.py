"""`minifuse app`: the visualizer, served to a browser on this machine. It prints the address and opens nothing.

The pages lie in `project/`, beside the package in a clone and inside it in a wheel. They run in a process of their own, by
Streamlit; what is here finds them, finds a port, waits until they answer, and ends them.
"""

import os
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from ..core.errors import MinifuseError, MissingPartError
from .files import PLACES
from .subjects import kernel_in

HOST, PORT = "127.0.0.1", 8501
PORTS = 100  # how many are tried, one after the other
KERNEL = "MINIFUSE_APP_KERNEL"  # for the pages: /absolute/FILE.py:name
START_S, PAUSE_S, END_S = 60.0, 0.05, 5.0  # to wait for the first answer, between two questions, for the end


def run(port: int | None, kernel: str | None) -> int:
    """Serve until Ctrl-C; the exit status is 1 where the server ends by itself, 2 where the request makes no sense."""
    try:
        root = visualizer()
        if find_spec("streamlit") is None:
            raise MissingPartError(
                'the visualizer needs streamlit, which is not installed; run: pip install "minifuse[app]"'
            )
        environment = os.environ | ({KERNEL: kernel_of(kernel)} if kernel else {})
        found = free_port(PORT if port is None else port)
    except MinifuseError as error:
        sys.stderr.write(f"minifuse app: {error}\n")
        return 2
    if port not in (None, found):
        say(f"port {port} is taken; the visualizer is at port {found} instead")
    with served(command(root, found), environment) as server:
        if not wait_for(server, found):
            sys.stderr.write(f"minifuse app: the server ended, or did not answer within {START_S:.0f} s\n")
            return 1
        say(f"The visualizer is at http://{HOST}:{found}    (Ctrl-C ends it)")
        server.wait()
    return 1


def say(text: str) -> None:
    """Print a line at once, whatever reads it."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def visualizer() -> Path:
    """The folder in which `project` lies.

    Raises
    ------
    MissingPartError
        There is none.
    """
    for place in PLACES:
        if (place / "project" / "app.py").is_file():
            return place
    raise MissingPartError(
        f"the pages of the visualizer are in neither of {' and '.join(map(str, PLACES))}; "
        "install minifuse from a wheel or a clone: pip install -e '.[app]'"
    )


def kernel_of(text: str) -> str:
    """A kernel in a file of the user's, by an absolute path. The file runs once, so that a mistake is told here."""
    before, dot, name = text.rpartition(".py:")
    path = Path(before + ".py").absolute()
    if not dot or not path.is_file():
        raise MinifuseError(f"--kernel {text}: expected a kernel of a file, as in --kernel my_kernels.py:scale")
    kernel_in(path, name)
    return f"{path}:{name}"


def free_port(first: int) -> int:
    """The first port from `first` on that nobody listens at."""
    for port in range(first, min(first + PORTS, 1 << 16)):
        with socket.socket() as probe:
            if os.name != "nt":  # there it would share a port that is taken
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port
    raise MinifuseError(f"--port {first}: this port and those after it are taken; name another one")


def command(root: Path, port: int) -> list[str]:
    """What starts the server. The settings are those of `.streamlit/`, whatever folder the user is in."""
    settings = tomllib.loads((root / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    options = [f"--{name}={value}" for name, value in flat(settings)]
    address = [f"--server.address={HOST}", f"--server.port={port}", "--server.headless=true", "--logger.level=warning"]
    return [sys.executable, "-m", "streamlit", "run", str(root / "project" / "app.py"), *options, *address]


def flat(settings: dict[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Settings of nested tables by their full names, as options spell them."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", str(value).lower() if isinstance(value, bool) else str(value)


@contextmanager
def served(line: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A server while the block runs; it ends with this process, however that ends. What it greets with is not shown."""
    before = signal.signal(signal.SIGTERM, leave)
    try:
        with subprocess.Popen(line, stdout=subprocess.DEVNULL, env=environment) as server:
            try:
                yield server
            finally:
                server.terminate()
                try:
                    server.wait(END_S)
                except subprocess.TimeoutExpired:
                    server.kill()
    finally:
        signal.signal(signal.SIGTERM, before)


def leave(number: int, _: object) -> NoReturn:
    """End as a shell expects of a process that got a signal."""
    raise SystemExit(128 + number)


def wait_for(server: subprocess.Popen[bytes], port: int) -> bool:
    """Whether the server answers before it ends and before the time is over."""
    end = time.monotonic() + START_S
    while server.poll() is None and time.monotonic() < end:
        if is_up(port):
            return True
        time.sleep(PAUSE_S)
    return False


def is_up(port: int) -> bool:
    """Whether the server answers."""
    connection = HTTPConnection(HOST, port, timeout=START_S)
    try:
        connection.request("GET", "/_stcore/health")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
