"""Runs the commands of the two Dockerfiles without Docker, each in a bare Debian, and then what their containers are for.

    make docker-commands ARGS=new-folder

The app's server has to answer its health check; the course's container has to make a student's folder and to check it. The
folder contains the two Debians, made by debootstrap; this needs root and Debian's mirror. Only the instructions that the
Dockerfiles have are known; any other one is an error.
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
COURSE = (("init .", 0), ("status", 0), ("check 0.1", 1))  # arguments and status; the task of a new folder is unsolved


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
        self.entry_point, self.command, self.health = list[str](), list[str](), list[str]()

    def start(self, command: list[str]) -> "subprocess.Popen[bytes]":
        """Start a command in the root, as the present user and in the present folder."""
        given = {name: os.environ[name] for name in FROM_HOST if name in os.environ}
        _, _, _, group, _, home, _ = (self.find_user() or ":::0::/:").split(":")
        line = [
            "chroot",
            f"--userspec={self.user}:{group}",
            str(self.root),
            "sh",
            "-c",
            f"cd {self.folder} && exec {shlex.join(command)}",
        ]
        return subprocess.Popen(line, env={"HOME": home} | self.variables | given)

    def find_user(self) -> str:
        """Return the line of the present user in /etc/passwd; nothing for a user without one."""
        users = (self.root / "etc/passwd").read_text(encoding="utf-8").splitlines()
        return next((user for user in users if user.split(":")[2] == self.user), "")

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
                folder = self.root / rest.lstrip("/")
                if not folder.exists():
                    folder.mkdir(parents=True)
                    os.chown(folder, int(self.user), -1)  # as a folder of their own that students mount
            case "COPY" if rest == ". .":
                for file in context_files():
                    target = self.root / self.folder.lstrip("/") / file
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(ROOT / file, target)
            case "USER":
                self.user = rest
            case "ENV":
                self.variables |= dict(word.split("=", 1) for word in shlex.split(rest))
            case "EXPOSE":
                pass
            case "HEALTHCHECK":
                self.health = json.loads(rest.partition(" CMD ")[2])
            case "ENTRYPOINT":
                self.entry_point = json.loads(rest)
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


def runs_the_course(debian: Debian) -> bool:
    """Run commands of the course one after the other, and return True if each ends with the status that it should."""
    return all(debian.start([*debian.entry_point, *line.split()]).wait() == status for line, status in COURSE)


def main(folder: str) -> int:
    """Perform all instructions of both Dockerfiles, and report which container does what it should."""
    faults = 0
    for dockerfile, works in (("Dockerfile", wait_until_healthy), ("project/course.Dockerfile", runs_the_course)):
        debian = Debian(Path(folder).absolute() / Path(dockerfile).stem)
        debian.root.mkdir(parents=True)
        for name, rest in instructions((ROOT / dockerfile).read_text(encoding="utf-8")):
            debian.perform(name, rest)
        is_working = works(debian)
        print(f"{dockerfile}: {'works' if is_working else 'does not work'}", flush=True)
        faults += not is_working
    return faults


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
