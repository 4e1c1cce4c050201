"""Runs the commands of the Dockerfile without Docker, in a bare Debian, until its health check answers.

    make docker-commands ARGS=new-folder

The folder becomes the root of a new Debian, made by debootstrap; this needs root and Debian's mirror. Only the instructions
that the Dockerfile has are known; any other one is an error.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from tests.sources import ROOT

MINUTES = 2  # for the first answer
SYSTEM = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
FROM_HOST = ("PIP_INDEX_URL", "http_proxy", "https_proxy")  # how this machine reaches packages
CERTIFICATES = "/host-certificates.pem"  # a copy of PIP_CERT


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Yield each instruction of a Dockerfile with its arguments; continued lines are joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            name, _, rest = line.strip().partition(" ")
            yield name, rest.strip()


def context_files(root: Path = ROOT) -> Iterator[Path]:
    """Yield the files that .dockerignore sends to Docker, relative to the root."""
    lines = [line for line in (root / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[:1] not in ("", "#")]
    kept, dropped = [line[1:] for line in lines if line[0] == "!"], [line for line in lines if line[:3] == "**/"]
    for name in kept:
        path = root / name
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            parts = file.relative_to(root).parts
            if file.is_file() and not any(fnmatch(part, line[3:]) for part in parts for line in dropped):
                yield file.relative_to(root)


class Debian:
    """A root folder in which instructions run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.user, self.folder, self.variables = "0", "/", dict(SYSTEM)
        self.command, self.health = list[str](), list[str]()

    def start(self, command: list[str]) -> "subprocess.Popen[bytes]":
        """Start a command in the root, as the present user and in the present folder."""
        given = {name: os.environ[name] for name in FROM_HOST if name in os.environ}
        home = {"HOME": self.call(["getent", "passwd", self.user]).split(":")[5]} if self.user != "0" else {"HOME": "/root"}
        group = self.call(["id", "-g", self.user]).strip() if self.user != "0" else "0"
        line = [
            "chroot",
            f"--userspec={self.user}:{group}",
            str(self.root),
            "sh",
            "-c",
            f"cd {self.folder} && exec {shlex.join(command)}",
        ]
        return subprocess.Popen(line, env=self.variables | given | home)

    def call(self, command: list[str]) -> str:
        """Return what a command says to root."""
        line = ["chroot", str(self.root), *command]
        return subprocess.run(line, env=self.variables, capture_output=True, text=True, check=True).stdout

    def perform(self, name: str, rest: str) -> None:
        """Perform one instruction."""
        print(f"{name} {rest}"[:160], flush=True)
        match name:
            case "FROM":
                suite = rest.removeprefix("debian:").removesuffix("-slim")
                subprocess.run(
                    ["debootstrap", "--variant=minbase", suite, str(self.root)], check=True, stdout=subprocess.DEVNULL
                )
                shutil.copy("/etc/resolv.conf", self.root / "etc" / "resolv.conf")
                if certificates := os.environ.get("PIP_CERT"):
                    shutil.copy(certificates, self.root / CERTIFICATES.lstrip("/"))
                    self.variables["PIP_CERT"] = CERTIFICATES
            case "RUN":
                if self.start(["sh", "-c", rest]).wait():
                    sys.exit(f"failed: RUN {rest}")
            case "WORKDIR":
                self.folder = rest
                (self.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
            case "COPY" if rest == ". .":
                for file in context_files():
                    target = self.root / self.folder.lstrip("/") / file
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(ROOT / file, target)
            case "USER":
                self.user = rest
            case "EXPOSE":
                pass
            case "HEALTHCHECK":
                self.health = json.loads(rest.partition(" CMD ")[2])
            case "CMD":
                self.command = json.loads(rest)
            case _:
                sys.exit(f"{name} {rest}: expected one of the instructions that tests/app/run_dockerfile.py performs")


def wait_until_healthy(debian: Debian) -> bool:
    """Start the server, and return True if its health check answers in time. The server is ended in any case."""
    server, end = debian.start(debian.command), time.monotonic() + 60 * MINUTES
    try:
        while server.poll() is None and time.monotonic() < end:
            if debian.start(debian.health).wait() == 0:
                return True
            time.sleep(1)
        return False
    finally:
        server.terminate()
        print(f"the server ended with status {server.wait()}")


def main(folder: str) -> int:
    """Perform all instructions, and report whether the server is healthy."""
    debian = Debian(Path(folder).absolute())
    for name, rest in instructions((ROOT / "Dockerfile").read_text(encoding="utf-8")):
        debian.perform(name, rest)
    is_healthy = wait_until_healthy(debian)
    print("the health check answers" if is_healthy else "the health check does not answer")
    return not is_healthy


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
