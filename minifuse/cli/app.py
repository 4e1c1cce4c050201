"""`minifuse app`: serve the visualizer to browsers, by default to those of this machine. It opens no window.

The pages are in `project/`, beside the package in a clone and inside it in a wheel. Streamlit runs them in a separate
process; this file finds the pages and a free port, waits until the server answers, and stops it at the end.
"""

import errno
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
from typing import NoReturn

from ..core.errors import MinifuseError, MissingPartError
from .files import RequestError, file_and_name, find_visualizer
from .output import report_error

HOST, PORT = "127.0.0.1", 8501
MAX_PORTS = 100  # number of ports tried, one after the other
ANY_HOST = ("0.0.0.0", "::")  # all interfaces of the machine
KERNEL_VARIABLE = "MINIFUSE_APP_KERNEL"  # environment variable read by the pages: /absolute/FILE.py:name
PUBLIC_VARIABLE = "MINIFUSE_APP_PUBLIC"  # environment variable read by the pages: the server has visitors
START_TIMEOUT_S, POLL_INTERVAL_S, END_TIMEOUT_S = (
    60.0,
    0.05,
    5.0,
)  # seconds to wait: for the first answer, between two requests, for the end


def run(port: int | None, kernel: str | None, host: str = HOST, is_public: bool = False) -> int:
    """Serve until Ctrl-C; return 1 if the server ends by itself, 2 if the request is invalid."""
    try:
        if kernel and is_public:
            raise RequestError("--kernel cannot be used with --public: a public server shows no code of yours; omit one")
        root = find_visualizer()
        if find_spec("streamlit") is None:
            raise MissingPartError(
                'the visualizer needs streamlit, which is not installed; run: pip install "minifuse[app]"'
            )
        variables = {PUBLIC_VARIABLE: "1"} if is_public else {}
        environment = os.environ | variables | ({KERNEL_VARIABLE: resolve_kernel(kernel)} if kernel else {})
        server_port = free_port(PORT if port is None else port, host)
    except MinifuseError as error:
        return report_error("app", error)
    if port not in (None, server_port):
        print_line(f"port {port} is in use; using port {server_port} instead")
    if host != HOST and not is_public:
        print_line("Other machines can use this server with your rights; --public limits what visitors see and run.")
    local = HOST if host in ANY_HOST else host
    with run_server(server_command(root, server_port, host, is_public), environment) as server:
        if not wait_for(server, server_port, local):
            sys.stderr.write(f"minifuse app: the server ended, or did not answer within {START_TIMEOUT_S:.0f} s\n")
            return 1
        everywhere = " and at all addresses of this machine" if host in ANY_HOST else ""
        print_line(f"The visualizer is at {address_of(local, server_port)}{everywhere}    (Ctrl-C ends it)")
        server.wait()
    return 1


def print_line(text: str) -> None:
    """Print a line and flush it."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def resolve_kernel(text: str) -> str:
    """Return FILE.py:name with an absolute path. The file runs once, which reports its errors before the server starts."""
    from .subjects import load_kernel  # needs greenlet; the pages themselves do not

    try:
        path, name = file_and_name(text, "a kernel in a file, as in --kernel my_kernels.py:scale")
    except RequestError as error:
        raise RequestError(f"--kernel: {error}") from error
    path = path.absolute()
    load_kernel(path, name)
    return f"{path}:{name}"


def address_of(host: str, port: int) -> str:
    """Return the address that a browser opens."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def free_port(first: int, host: str = HOST) -> int:
    """Return the first free port of an interface, starting at `first`.

    Raises
    ------
    MinifuseError
        All are in use, or this machine has no such interface.
    """
    try:
        family = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
    except OSError as error:
        raise MinifuseError(f"--host {host}: {error.strerror}; expected an address of this machine, or 0.0.0.0") from error
    for port in range(first, min(first + MAX_PORTS, 1 << 16)):
        with socket.socket(family) as probe:
            if os.name != "nt":  # on Windows it would share a port in use
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                if error.errno == errno.EADDRNOTAVAIL:
                    raise MinifuseError(f"--host {host} is no address of this machine; use one, or 0.0.0.0") from error
                continue
            return port
    raise MinifuseError(f"--port {first}: this port and the {MAX_PORTS - 1} after it are in use; choose another one")


def server_command(root: Path, port: int, host: str = HOST, is_public: bool = False) -> list[str]:
    """Return the command that starts the server, with the settings of `.streamlit/` from any working directory."""
    files = [root / ".streamlit" / name for name in ("config.toml", *["public.toml"] * is_public)]
    settings = dict[str, str]()
    for file in files:
        settings.update(flatten_settings(tomllib.loads(file.read_text(encoding="utf-8"))))
    settings |= {"server.address": host, "server.port": str(port), "server.headless": "true", "logger.level": "warning"}
    settings["logger.hideWelcomeMessage"] = "true"  # to print it, Streamlit would ask another host for the external address
    options = [f"--{name}={value}" for name, value in settings.items()]
    return [sys.executable, "-m", "streamlit", "run", str(root / "project" / "app.py"), *options]


def flatten_settings(settings: dict[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Flatten nested settings to the full names that options have, such as server.port."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from flatten_settings(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", str(value).lower() if isinstance(value, bool) else str(value)


@contextmanager
def run_server(command: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server during a `with` block. The server also ends if this process is terminated. Its output is dropped."""
    previous_handler = signal.signal(signal.SIGTERM, exit_on_signal)
    try:
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as server:
            try:
                yield server
            finally:
                server.terminate()
                try:
                    server.wait(END_TIMEOUT_S)
                except subprocess.TimeoutExpired:
                    server.kill()
    finally:
        signal.signal(signal.SIGTERM, previous_handler)


def exit_on_signal(number: int, _: object) -> NoReturn:
    """Exit with the status that shells expect after a signal."""
    raise SystemExit(128 + number)


def wait_for(server: subprocess.Popen[bytes], port: int, host: str = HOST) -> bool:
    """Return True if the server answers before it ends and before the timeout."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while server.poll() is None and time.monotonic() < deadline:
        if is_up(port, host):
            return True
        time.sleep(POLL_INTERVAL_S)
    return False


def is_up(port: int, host: str = HOST) -> bool:
    """Return True if the server answers."""
    connection = HTTPConnection(host, port, timeout=START_TIMEOUT_S)
    try:
        connection.request("GET", "/_stcore/health")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
