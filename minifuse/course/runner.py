"""Judge a task in a subprocess with limits of time and memory, so that an endless loop becomes a verdict.

The subprocess reads its options as JSON from standard input. To standard output it writes one line of JSON when a check
begins, when it ends, and for the result. Output of the student's code is captured. When the time limit is exceeded, the
process reports the check, the case and the line that was running, and is killed.
"""

import faulthandler
import io
import json
import linecache
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from .task import Effort, Task
from .verdicts import Outcome, Result

TIME_S, MEMORY_BYTES = 60.0, 4 << 30
GRACE_S = 2.0  # for the process to report which line it is running
START_S = 30.0  # for the process to start
MAX_PRINTED_CHARACTERS = 4000  # of the captured output
TIMEOUT_MESSAGE = "stopped after {limit:g} s; is there a loop that does not end?"


def run(
    folder: Path,
    tasks: Sequence[Task],
    *,
    effort: Effort | None = None,
    is_strict: bool = False,
    runs_all_checks: bool = False,
    time_s: float = TIME_S,
    memory_bytes: int = MEMORY_BYTES,
) -> Iterator[Result]:
    """Judge tasks one after the other, each in a subprocess with limits, and yield the results.

    Parameters
    ----------
    folder : Path
        The student's files.
    tasks : sequence of Task
    effort : Effort, optional
    is_strict : bool
        True to use nothing from the oracle.
    runs_all_checks : bool
        True to continue after a check that fails.
    time_s, memory_bytes : float, int
        The limits of each task.
    """
    for task in tasks:
        process = TaskProcess(
            folder,
            task,
            effort,
            is_strict=is_strict,
            runs_all_checks=runs_all_checks,
            time_s=time_s,
            memory_bytes=memory_bytes,
        )
        try:
            yield process.result()
        finally:
            process.cancel()


class TaskProcess:
    """A subprocess that judges one task. `result` waits for it; `cancel` ends it, also from another thread."""

    def __init__(
        self,
        folder: Path,
        task: Task,
        effort: Effort | None = None,
        *,
        is_strict: bool = False,
        runs_all_checks: bool = False,
        time_s: float = TIME_S,
        memory_bytes: int = MEMORY_BYTES,
        begin: Callable[[str], None] | None = None,
    ) -> None:
        self.folder, self.task, self.time_s = folder.resolve(), task, time_s
        self.begin = begin or (lambda check: None)
        self._token = secrets.token_hex(8)  # each line of the protocol starts with it, lines of the student's code do not
        self._check, self._errors = "its process begins", ""
        self._outcomes: list[Outcome] = []
        options = {
            "task": task.id,
            "folder": str(self.folder),
            "token": self._token,
            "limit": time_s,
            "memory": memory_bytes,
        }
        options |= asdict(effort or Effort()) | {"strict": is_strict, "whole": runs_all_checks}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "minifuse.course.runner"],
            env=environment(self.folder),
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # it does not receive Ctrl-C, and `cancel` can kill the processes that it starts
        )
        self._stdin().write(json.dumps(options).encode())
        self._stdin().close()

    def _stdin(self) -> IO[bytes]:
        assert self._process.stdin
        return self._process.stdin

    def result(self) -> Result:
        """Wait for the result. A run that was cancelled never passes."""
        listener = threading.Thread(target=self._listen, daemon=True)
        timer = threading.Timer(self.time_s + 2 * GRACE_S + START_S, self.cancel)
        timer.daemon = True
        listener.start()
        timer.start()
        try:
            result = self._read()
        finally:
            timer.cancel()
            self.cancel()
            self._process.wait()
            listener.join(GRACE_S)
            for pipe in (self._process.stdout, self._process.stderr):
                assert pipe
                pipe.close()
        return result if result is not None else Result(self.task.id, [*self._outcomes, self._describe_exit()], {})

    def cancel(self) -> None:
        """Kill the process and the processes that it has started."""
        if self._process.poll() is not None and os.name == "nt":
            return
        try:
            os.killpg(self._process.pid, signal.SIGKILL) if os.name != "nt" else self._process.kill()
        except (ProcessLookupError, PermissionError):  # it has ended
            return

    def _listen(self) -> None:
        """Read standard error, and keep the end of it."""
        assert self._process.stderr
        while data := os.read(self._process.stderr.fileno(), 1 << 16):
            self._errors = (self._errors + data.decode(errors="replace"))[-20 * MAX_PRINTED_CHARACTERS :]

    def _read(self) -> Result | None:
        """Read the lines of the protocol until the result; None if the process ends without one."""
        assert self._process.stdout
        for line in self._process.stdout:
            if not line.startswith(self._token.encode()):
                continue
            message = json.loads(line[len(self._token) :])
            if "check" in message:
                self._check = message["check"]
                self.begin(self._check)
            elif "outcome" in message:
                self._outcomes.append(outcome_of(message["outcome"]))
            else:
                message["outcomes"] = [outcome_of(outcome) for outcome in message["outcomes"]] or self._outcomes
                return verify_result(Result(**message), self.task)
        return None

    def _describe_exit(self) -> Outcome:
        """Return the outcome of a process that ended without a result."""
        if "Timeout (" in self._errors:  # from faulthandler: compiled code held the GIL, so the timer's thread could not run
            places = re.findall(r'^  File "(.*)", line (\d+) in ', self._errors.rpartition("Timeout (")[2], re.MULTILINE)
            lines = [
                (Path(file).name, int(line), linecache.getline(file, int(line)).rstrip())
                for file, line in places
                if Path(file).parent == self.folder
            ]
            return Outcome(self._check, "timeout", TIMEOUT_MESSAGE.format(limit=self.time_s), lines=lines[::-1])
        status = self._process.returncode
        how = f"by signal {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
        last = (self._errors.strip().splitlines() or ["it printed no error"])[-1]
        return Outcome(self._check, "error", f"your code ended the whole process, {how}, before it could be judged: {last}")


def outcome_of(message: dict[str, Any]) -> Outcome:
    """Build an outcome from decoded JSON."""
    return Outcome(**(message | {"lines": [tuple(line) for line in message["lines"]]}))


def environment(folder: Path) -> dict[str, str]:
    """Return the environment variables of a subprocess that judges a folder.

    The search path of imports is that of this process without the folder: a student's file may have the name of a module.
    """
    paths = [str(Path(path or ".").resolve()) for path in sys.path]
    return os.environ | {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(path for path in paths if path != str(folder)),
        "PYTHONUTF8": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(Path(tempfile.gettempdir(), "minifuse-course")),  # not in the student's folder
    }


def verify_result(result: Result, task: Task) -> Result:
    """Add an error to a result that passed although a check or a function of the task did not run."""
    missing = [check.name for check in task.checks if check.name not in {o.check for o in result.outcomes}]
    if result.verdict == "passed" and (missing or not task.checks or not all(result.calls.get(s) for s in task.slots)):
        result.outcomes.append(Outcome("every check ran", "error", f"did not run: {', '.join(missing) or 'your functions'}"))
    return result


class CapturedOutput(io.TextIOBase):
    """A text stream that keeps the beginning of the output for the last case that printed something."""

    def __init__(self) -> None:
        super().__init__()
        self._case, self._text = "", ""

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Append text, up to MAX_PRINTED_CHARACTERS per case."""
        from .check import current

        if current[0] is not self._case:  # compared by identity: each case has a new str
            self._case, self._text = current[0], ""
        self._text += text[: max(MAX_PRINTED_CHARACTERS - len(self._text), 0)]
        return len(text)

    def text(self) -> str:
        """Return the output for the current case."""
        from .check import current

        return self._text if current[0] is self._case else ""


def main() -> None:
    """Judge the task that standard input describes."""
    from .check import current
    from .judge import judge, source_lines
    from .registry import TASKS, task_named
    from .student import Student

    chosen = json.load(sys.stdin)
    protocol = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # code may write to the file descriptor itself
    output = sys.stdout = CapturedOutput()
    limit_memory(chosen["memory"])
    task, place = task_named(chosen["task"]), Path(chosen["folder"])
    student = Student(place, TASKS, None if chosen["strict"] else task)
    running_check, main_thread = [""], threading.get_ident()

    def send(message: dict[str, object]) -> None:
        protocol.write(f"{chosen['token']}{json.dumps(message)}\n")
        protocol.flush()

    def begin(check: str) -> None:
        running_check[0] = check
        send({"check": check})

    def end(outcome: Outcome) -> None:
        if outcome.verdict not in ("passed", "pending"):
            outcome.printed = output.text()
        send({"outcome": asdict(outcome)})

    def report_timeout() -> None:
        frame, lines = sys._current_frames().get(main_thread), []
        while frame:
            if Path(frame.f_code.co_filename).parent == place:
                lines.append((Path(frame.f_code.co_filename).name, frame.f_lineno))
            frame = frame.f_back
        message = TIMEOUT_MESSAGE.format(limit=chosen["limit"])
        end(Outcome(running_check[0], "timeout", message, current[0], lines=source_lines(lines[::-1], student)))
        send(asdict(Result(task.id, [], {slot: student.calls[slot] for slot in task.slots})))
        os._exit(3)

    timer = threading.Timer(chosen["limit"], report_timeout)
    timer.daemon = True
    timer.start()
    faulthandler.dump_traceback_later(chosen["limit"] + GRACE_S, exit=True)
    effort = Effort(chosen["examples"], chosen["seed"])
    result = judge(place, task, effort, chosen["strict"], chosen["whole"], begin, end, student)
    timer.cancel()
    send(asdict(result))
    os._exit(0)  # also ends threads that the student's code has started


def limit_memory(nbytes: int) -> None:
    """Limit the bytes of data of this process, on systems that support it."""
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_DATA, (nbytes, nbytes))


if __name__ == "__main__":
    main()
