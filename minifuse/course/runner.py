"""A task in a process of its own, with limits: a loop without end, or all memory taken, is a verdict like any other.

The process gets what it is to do on its standard input, and says on its standard output, a line of JSON each, which check
begins and what became of the task. What the student's code prints is kept apart. Who waits too long ends the process and
tells the check, the case and the line where it stood.
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
GRACE_S = 2.0  # for the process to say where it stands
START_S = 30.0  # for the process to begin
MAX_PRINTED_CHARACTERS = 4000  # characters that are kept
LATE = "stopped after {limit:g} s; is there a loop that does not end?"


def run(
    folder: Path,
    tasks: Sequence[Task],
    *,
    effort: Effort | None = None,
    is_strict: bool = False,
    is_whole: bool = False,
    time_s: float = TIME_S,
    memory_bytes: int = MEMORY_BYTES,
) -> Iterator[Result]:
    """Results of tasks, one after the other, each from a process with limits.

    Parameters
    ----------
    folder : Path
        The student's files.
    tasks : sequence of Task
    effort : Effort, optional
    is_strict : bool
        Whether nothing comes from the oracle.
    is_whole : bool
        Whether the checks behind one that does not hold run too.
    time_s, memory_bytes : float, int
        The limits of each task.
    """
    for task in tasks:
        one = Run(folder, task, effort, is_strict=is_strict, is_whole=is_whole, time_s=time_s, memory_bytes=memory_bytes)
        try:
            yield one.result()
        finally:
            one.cancel()


class Run:
    """One task that is judged now; `result` waits for it, `cancel` ends it from another thread."""

    def __init__(
        self,
        folder: Path,
        task: Task,
        effort: Effort | None = None,
        *,
        is_strict: bool = False,
        is_whole: bool = False,
        time_s: float = TIME_S,
        memory_bytes: int = MEMORY_BYTES,
        begin: Callable[[str], None] | None = None,
    ) -> None:
        self.folder, self.task, self.time_s = folder.resolve(), task, time_s
        self.begin = begin or (lambda check: None)
        self._token = secrets.token_hex(8)  # no line is ours without it, whatever the student's code writes
        self._check, self._errors = "its process begins", ""
        self._outcomes: list[Outcome] = []
        options = {
            "task": task.id,
            "folder": str(self.folder),
            "token": self._token,
            "limit": time_s,
            "memory": memory_bytes,
        }
        options |= asdict(effort or Effort()) | {"strict": is_strict, "whole": is_whole}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "minifuse.course.runner"],
            env=environment(self.folder),
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is ours alone, and whatever it starts ends with it
        )
        self._stdin().write(json.dumps(options).encode())
        self._stdin().close()

    def _stdin(self) -> IO[bytes]:
        assert self._process.stdin
        return self._process.stdin

    def result(self) -> Result:
        """Return the result. A run that was cancelled has an outcome of its own, never passed."""
        listener = threading.Thread(target=self._listen, daemon=True)
        timer = threading.Timer(self.time_s + 2 * GRACE_S + START_S, self.cancel)
        timer.daemon = True
        listener.start()
        timer.start()
        try:
            found = self._read()
        finally:
            timer.cancel()
            self.cancel()
            self._process.wait()
            listener.join(GRACE_S)
            for pipe in (self._process.stdout, self._process.stderr):
                assert pipe
                pipe.close()
        return found if found is not None else Result(self.task.id, [*self._outcomes, self._lost()], {})

    def cancel(self) -> None:
        """End the process, and all that it has started."""
        if self._process.poll() is not None and os.name == "nt":
            return
        try:
            os.killpg(self._process.pid, signal.SIGKILL) if os.name != "nt" else self._process.kill()
        except (ProcessLookupError, PermissionError):  # it has ended
            return

    def _listen(self) -> None:
        """Keep the end of what it complains of."""
        assert self._process.stderr
        while data := os.read(self._process.stderr.fileno(), 1 << 16):
            self._errors = (self._errors + data.decode(errors="replace"))[-20 * MAX_PRINTED_CHARACTERS :]

    def _read(self) -> Result | None:
        """Its lines, until it says what became of the task."""
        assert self._process.stdout
        for line in self._process.stdout:
            if not line.startswith(self._token.encode()):
                continue
            said = json.loads(line[len(self._token) :])
            if "check" in said:
                self._check = said["check"]
                self.begin(self._check)
            elif "outcome" in said:
                self._outcomes.append(outcome_of(said["outcome"]))
            else:
                said["outcomes"] = [outcome_of(outcome) for outcome in said["outcomes"]] or self._outcomes
                return believed(Result(**said), self.task)
        return None

    def _lost(self) -> Outcome:
        """Return the outcome of a process that ended without a result."""
        if "Timeout (" in self._errors:  # faulthandler: the code held Python back, so that nobody could ask it
            places = re.findall(r'^  File "(.*)", line (\d+) in ', self._errors.rpartition("Timeout (")[2], re.MULTILINE)
            lines = [
                (Path(file).name, int(line), linecache.getline(file, int(line)).rstrip())
                for file, line in places
                if Path(file).parent == self.folder
            ]
            return Outcome(self._check, "timeout", LATE.format(limit=self.time_s), lines=lines[::-1])
        status = self._process.returncode
        how = f"by signal {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
        last = (self._errors.strip().splitlines() or ["it left no word"])[-1]
        return Outcome(self._check, "error", f"your code ended the whole process, {how}, before it could be judged: {last}")


def outcome_of(said: dict[str, Any]) -> Outcome:
    """An outcome from JSON."""
    return Outcome(**(said | {"lines": [tuple(line) for line in said["lines"]]}))


def environment(folder: Path) -> dict[str, str]:
    """Of the process: it finds what we find, but nothing in the student's folder, where a file may be called as ours is."""
    places = [str(Path(place or ".").resolve()) for place in sys.path]
    return os.environ | {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(place for place in places if place != str(folder)),
        "PYTHONUTF8": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(Path(tempfile.gettempdir(), "minifuse-course")),  # not in the student's folder
    }


def believed(result: Result, task: Task) -> Result:
    """The result, and an outcome against it where it says "passed" of a task that was not asked."""
    missing = [check.name for check in task.checks if check.name not in {o.check for o in result.outcomes}]
    if result.verdict == "passed" and (missing or not task.checks or not all(result.calls.get(s) for s in task.slots)):
        result.outcomes.append(Outcome("every check ran", "error", f"did not run: {', '.join(missing) or 'your functions'}"))
    return result


class Heard(io.TextIOBase):
    """The output of the student's code: the beginning of it, for the last case that printed."""

    def __init__(self) -> None:
        super().__init__()
        self._case, self._text = "", ""

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, text: str) -> int:
        """Keep it, as far as there is room."""
        from .check import current

        if current[0] is not self._case:  # a new object for each case, alike or not
            self._case, self._text = current[0], ""
        self._text += text[: max(MAX_PRINTED_CHARACTERS - len(self._text), 0)]
        return len(text)

    def text(self) -> str:
        """Return the output for the current case."""
        from .check import current

        return self._text if current[0] is self._case else ""


def main() -> None:
    """Judge one task, as the input says."""
    from .check import current
    from .judge import judge, texts
    from .registry import TASKS, task_named
    from .student import Student

    chosen = json.load(sys.stdin)
    ours = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what is written past Python is no line of ours
    heard = sys.stdout = Heard()
    limit_memory(chosen["memory"])
    task, place = task_named(chosen["task"]), Path(chosen["folder"])
    student = Student(place, TASKS, None if chosen["strict"] else task)
    now, me = [""], threading.get_ident()

    def say(what: dict[str, object]) -> None:
        ours.write(f"{chosen['token']}{json.dumps(what)}\n")
        ours.flush()

    def begin(check: str) -> None:
        now[0] = check
        say({"check": check})

    def end(outcome: Outcome) -> None:
        if outcome.verdict not in ("passed", "pending"):
            outcome.printed = heard.text()
        say({"outcome": asdict(outcome)})

    def late() -> None:
        frame, lines = sys._current_frames().get(me), []
        while frame:
            if Path(frame.f_code.co_filename).parent == place:
                lines.append((Path(frame.f_code.co_filename).name, frame.f_lineno))
            frame = frame.f_back
        said = LATE.format(limit=chosen["limit"])
        end(Outcome(now[0], "timeout", said, current[0], lines=texts(lines[::-1], student)))
        say(asdict(Result(task.id, [], {slot: student.calls[slot] for slot in task.slots})))
        os._exit(3)

    timer = threading.Timer(chosen["limit"], late)
    timer.daemon = True
    timer.start()
    faulthandler.dump_traceback_later(chosen["limit"] + GRACE_S, exit=True)
    effort = Effort(chosen["examples"], chosen["seed"])
    result = judge(place, task, effort, chosen["strict"], chosen["whole"], begin, end, student)
    timer.cancel()
    say(asdict(result))
    os._exit(0)  # whatever the student's code has started ends here


def limit_memory(nbytes: int) -> None:
    """At most so many bytes of data, where the system can limit them."""
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_DATA, (nbytes, nbytes))


if __name__ == "__main__":
    main()
