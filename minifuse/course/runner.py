"""A task in a process of its own, with limits: a loop without end, or all memory taken, is a verdict like any other.

    python -m minifuse.course.runner FOLDER TASK ...     one JSON line for each beginning check, one for each result

Whoever waits too long ends the process, and tells the check and the line where it stood.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .task import Effort, Outcome, Result, Task

TIME_S, MEMORY_BYTES = 60.0, 4 << 30
GRACE_S = 2.0  # for the process to say where it stands
READS_LATE = "ran for more than {limit:g} s and was stopped; is there a loop that does not end?"


def run(
    folder: Path,
    tasks: Sequence[Task],
    *,
    effort: Effort | None = None,
    is_strict: bool = False,
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
    time_s, memory_bytes : float, int
        The limits of each task.
    """
    effort = effort or Effort()
    for task in tasks:
        options = {"seed": effort.seed, "examples": effort.examples, "strict": is_strict, "limit": time_s}
        yield one(folder, task, json.dumps(options | {"memory": memory_bytes}), time_s)


def one(folder: Path, task: Task, options: str, time_s: float) -> Result:
    """The result of one task."""
    command = [sys.executable, "-m", "minifuse.course.runner", str(folder.resolve()), task.id, options]
    env = os.environ | {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(Path(tempfile.gettempdir(), "minifuse-course")),  # not in the student's folder
    }
    with subprocess.Popen(
        command, env=env, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            out, err = process.communicate(timeout=time_s + GRACE_S + 10)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            return Result(task.id, [Outcome("it comes to an end", "timeout", READS_LATE.format(limit=time_s))], {})
    said = [json.loads(line[len(MARK) :]) for line in out.split("\n") if line.startswith(MARK)]
    if said and "outcomes" in said[-1]:
        found = said[-1]
        outcomes = [Outcome(**(o | {"lines": [tuple(x) for x in o["lines"]]})) for o in found.pop("outcomes")]
        return Result(outcomes=outcomes, **found)
    check = next((s["check"] for s in reversed(said) if "check" in s), "its file can be run")
    last = (err.strip().splitlines() or [f"the process ended with status {process.returncode}"])[-1]
    return Result(task.id, [Outcome(check, "error", last)], {})


MARK = "\x1eminifuse "  # before our lines, among what a student prints


def say(what: dict[str, Any], to: Any) -> None:
    """One line for the parent."""
    to.write(f"{MARK}{json.dumps(what)}\n")
    to.flush()


def main(folder: str, name: str, options: str) -> None:
    """What the process does."""
    from .check import current
    from .judge import judge, texts
    from .registry import TASKS, task_named
    from .student import Student

    chosen = json.loads(options)
    limit_memory(chosen["memory"])
    task, out, place = task_named(name), sys.stdout, Path(folder)
    now = [""]
    me = threading.get_ident()

    def late() -> None:
        frame, lines = sys._current_frames().get(me), []
        while frame:
            if Path(frame.f_code.co_filename).parent == place:
                lines.append((Path(frame.f_code.co_filename).name, frame.f_lineno))
            frame = frame.f_back
        found = texts(lines[::-1], Student(place, TASKS, task))
        outcome = Outcome(now[0], "timeout", READS_LATE.format(limit=chosen["limit"]), case=current[0], lines=found)
        say(asdict(Result(task.id, [outcome], {})), out)
        os._exit(3)

    def begin(check: str) -> None:
        now[0] = check
        say({"check": check}, out)

    timer = threading.Timer(chosen["limit"], late)
    timer.daemon = True
    timer.start()
    result = judge(place, task, Effort(chosen["examples"], chosen["seed"]), chosen["strict"], begin)
    timer.cancel()
    say(asdict(result), out)


def limit_memory(nbytes: int) -> None:
    """At most so many bytes more than there are now, where the system can limit them."""
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_DATA, (nbytes, nbytes))


if __name__ == "__main__":
    main(*sys.argv[1:])
