"""Commands of `minifuse course` for teachers: grade a student or a class, find similar solutions, write a workflow."""

import json as json_
import os
import secrets
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..core.errors import CourseError
from ..core.wording import format_count
from ..course import classes, classroom, gradebooks, gradescope, report, similarity, task_folder, workspace
from ..course import grade as grades
from ..course.registry import all_modules, files, tasks_of
from ..course.scoring import count_points
from ..course.student_process import TIME_S
from ..course.task import Effort, Task
from ..course.verdicts import Result
from .course_options import Json, Limit, Strict, TaskNames, Tasks, parse_path
from .output import new_console, print_json


def output_file(help_text: str) -> Any:
    """Return an option for a file that the command writes."""
    return typer.Option(metavar="FILE", parser=parse_path, help=help_text)


def grade(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", parser=parse_path, help="Folder of a student, or of a class: a folder with one for each student."
        ),
    ],
    names: TaskNames = None,
    out: Annotated[
        Path | None,
        output_file(
            "Write the results in exercism's format, version 3; for a class, a folder with one file for each student."
        ),
    ] = None,
    csv: Annotated[Path | None, output_file("Write a row for each student: points of each task, total, notes.")] = None,
    canvas: Annotated[Path | None, output_file("Write a CSV file for the import into Canvas's gradebook.")] = None,
    moodle: Annotated[Path | None, output_file("Write a CSV file for Moodle's grade import.")] = None,
    roster: Annotated[
        Path | None,
        output_file("Read who is who for --canvas and --moodle: CSV with a column `folder` and the gradebook's columns."),
    ] = None,
    gradescope_: Annotated[
        Path | None,
        typer.Option(
            "--gradescope", metavar="FILE", parser=parse_path, help="Write results.json of Gradescope's autograder."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of the examples, the same for each student. Default: class.toml's, or a new one."),
    ] = None,
    examples: Annotated[
        int | None,
        typer.Option(min=1, help=f"Number of examples for each check. Default: class.toml's, or {Effort.examples}."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Judge this many tasks at the same time.")] = 1,
    limit: Limit = TIME_S,
    strict: Strict = False,
    own_tasks: Tasks = None,
) -> None:
    """Grade a folder or a class with new examples, each task in a process with limits on time and memory.

    Every check of a task runs, and each that passes earns its points. For a folder, exits with 0 if at least one check of
    each task could call the student's functions, whatever its result, else with 1; for a class, exits with 0.
    """
    if not folder.is_dir():
        raise CourseError(f"{folder} is not a folder; write the path of the one with the student's files")
    place = workspace.absolute(folder)
    is_class = classes.is_class(place)
    if is_class and gradescope_:
        raise CourseError("Gradescope grades one submission at a time; name the folder of one student, not of a class")
    if not (is_class or gradescope_ or classes.is_solution(place)):  # Gradescope needs its file in any case
        raise CourseError(
            f"{folder} has no folder of a student and no file of the course; {classes.describe_contents(place)}. "
            f"Make a folder for each student, with the file names that `minifuse course init` gives, such as {files()[0]}"
        )
    settings = classes.read_settings(place) if is_class else classes.ClassSettings()
    use_tasks_of_class(place, settings, own_tasks)
    chosen_seed = settings.seed if seed is None else seed
    tasks = tasks_of(names or settings.tasks)
    effort = Effort(
        examples or settings.examples or Effort.examples, secrets.randbelow(1 << 32) if chosen_seed is None else chosen_seed
    )
    who = gradebooks.read_roster(roster) if roster else {}
    check_outputs([path for path in (None if is_class else out, csv, canvas, moodle, gradescope_) if path])
    grader = classes.ClassGrader(tasks, effort, is_strict=strict, time_s=limit, jobs=jobs)
    if is_class:
        gradings = grade_class(grader, classes.student_folders(place), out)
    else:
        results = list(grader.judge(place, tasks).values())
        gradings = [classes.Grading(classes.printable(place.name), {result.task: result for result in results})]
        if out:
            workspace.write(out, to_json(grades.results(tasks, results, effort, strict)))
        if gradescope_:
            workspace.write(gradescope_, to_json(gradescope.results(tasks, results, effort)))
    warn_of_names(gradings, who)
    if csv:
        workspace.write(csv, gradebooks.plain_csv(gradings, tasks, effort.seed))
    if canvas:
        workspace.write(canvas, gradebooks.canvas_csv(gradings, tasks, who))
    if moodle:
        workspace.write(moodle, gradebooks.moodle_csv(gradings, tasks, who))
    if is_class:
        print_class(gradings, tasks, effort.seed)
        return
    print_grades(tasks, results, effort.seed)
    raise typer.Exit(int(not all(result.has_run for result in results)))


def use_tasks_of_class(folder: Path, settings: classes.ClassSettings, own_tasks: Path | None) -> None:
    """Use the tasks that class.toml names, unless the command line names others."""
    if settings.task_folder and own_tasks is None:
        task_folder.use(classes.find_tasks(folder, settings.task_folder))


def to_json(content: object) -> str:
    """Return the text of a JSON file."""
    return json_.dumps(content, indent=2) + "\n"


def warn_of_names(gradings: Sequence[classes.Grading], roster: gradebooks.Roster) -> None:
    """Print names that only the class or only the roster has to standard error."""
    students, known = {one.student for one in gradings}, set(roster)
    for names, what in ((students - known, "have no row in the roster"), (known - students, "have a row, but no folder")):
        if roster and names:
            typer.echo(f"{', '.join(sorted(names))} {what}", err=True)


def check_outputs(paths: Sequence[Path]) -> None:
    """Raise `CourseError` for a file that cannot be written, before hours of grading."""
    for path in paths:
        if path.is_dir():
            raise CourseError(f"{path} is a folder, expected the name of a file")
        existing = next((parent for parent in path.absolute().parents if parent.exists()), Path())
        if not existing.is_dir() or not os.access(existing, os.W_OK):
            raise CourseError(f"{path} cannot be written: you may not write in {existing}; choose another place")


def grade_class(grader: classes.ClassGrader, folders: Sequence[Path], out: Path | None) -> list[classes.Grading]:
    """Grade students one after the other. Print progress to standard error, and write the results of each to `out`."""
    if out and out.exists() and not out.is_dir():
        raise CourseError(f"{out} is a file; for a class, --out is a folder with a file for each student")
    progress, gradings = Console(stderr=True, highlight=False), []
    for number, folder in enumerate(folders, 1):
        name = classes.printable(folder.name)
        with progress.status(Text(f"{number} of {len(folders)}: {name}")) as line:
            counted: list[Task] = []

            def done(task: Task, counted: list[Task] = counted, name: str = name, number: int = number) -> None:
                counted.append(task)
                line.update(Text(f"{number} of {len(folders)}: {name}, {len(counted)} of {len(grader.tasks)} tasks"))

            grading = grader.grade(folder, done)
        gradings.append(grading)
        progress.print(Text(f"{number} of {len(folders)}: {name}, {grading.points(grader.tasks)} points"), soft_wrap=True)
        if out:
            content = grades.results(grader.tasks, list(grading.results.values()), grader.effort, grader.is_strict)
            workspace.write(out / f"{name}.json", to_json(content))
    return gradings


def print_class(gradings: Sequence[classes.Grading], tasks: Sequence[Task], seed: int | None) -> None:
    """Print a table of a class: points of each module, the total, and notes."""
    modules = [module for module in all_modules() if any(task.module == module for task in tasks)]
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("student")
    for module in modules:
        table.add_column(str(module), justify="right")
    table.add_column("total", justify="right")
    table.add_column("notes", style="dim", ratio=1)
    totals = [count_points({}, [task for task in tasks if task.module == module]).of for module in modules]
    table.add_row("of", *(f"{of:g}" for of in totals), f"{sum(totals):g}", style="dim")
    for one in gradings:
        parts = [count_points(one.results, [task for task in tasks if task.module == module]).got for module in modules]
        notes = "; ".join(gradebooks.notes(one))
        table.add_row(Text(one.student), *(f"{got:g}" for got in parts), f"{one.points(tasks).got:g}", Text(notes))
    out = new_console()
    out.print(table)
    out.print(Text(f"{format_count(len(gradings), 'student')}; repeat with --seed {seed}", style="bold"))


def print_grades(tasks: Sequence[Task], results: Sequence[Result], seed: int | None) -> None:
    """Print the failed tasks, then the points."""
    out = new_console()
    for task, result in zip(tasks, results, strict=True):
        if result.verdict not in ("passed", "pending"):
            out.print(report.render_result(task, result))
            out.print()
    by_id = {result.task: result for result in results}
    out.print(report.render_status(by_id, tasks=tasks))
    not_run = [result.task for result in results if not result.has_run]
    out.print(Text(f"{count_points(by_id, tasks)} points; repeat with --seed {seed}", style="bold"))
    if not_run:
        out.print(Text(f"no check could call the functions of {', '.join(not_run)}", style="red"))


def similar(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", parser=parse_path, help="Folder of a class: a folder with one for each student.")
    ],
    names: TaskNames = None,
    share: Annotated[
        float, typer.Option(min=0.1, max=1, help="Report pairs that have at least this part of a solution in common.")
    ] = 0.6,
    out: Annotated[Path | None, output_file("Also write the pairs to this file, as JSON.")] = None,
    json: Json = False,
    own_tasks: Tasks = None,
) -> None:
    """Find pairs of students whose solutions of a task are alike, whatever their names, comments and layout.

    The stub and what most of a class has do not count. Read both files before you conclude anything: short tasks have few
    solutions.
    """
    if not folder.is_dir() or not classes.is_class(workspace.absolute(folder)):
        raise CourseError(f"{folder} is not the folder of a class; expected a folder with a folder for each student")
    if out:
        check_outputs([out])
    place = workspace.absolute(folder)
    use_tasks_of_class(place, classes.read_settings(place), own_tasks)
    tasks, texts = tasks_of(names or []), {}
    for student in classes.student_folders(place):
        with tempfile.TemporaryDirectory(prefix="minifuse-class-") as copy:
            classes.collect(student, Path(copy))
            texts[classes.printable(student.name)] = similarity.read_texts(Path(copy), files())
    pairs = similarity.similar_pairs(texts, tasks, share)
    facts = [pair._asdict() for pair in pairs]
    if out:
        workspace.write(out, to_json(facts))
    if json:
        print_json(facts)
    else:
        print_pairs(pairs, len(texts), share)


def print_pairs(pairs: Sequence[similarity.Pair], count: int, share: float) -> None:
    """Print pairs of similar solutions, with their lines."""
    console = new_console()
    for pair in pairs:
        file = next(task.file for task in tasks_of([pair.task]))
        console.print(Text(f"{pair.share:.0%} of {pair.task}: {' and '.join(pair.students)}", style="bold"))
        for student, lines in zip(pair.students, pair.lines, strict=True):
            console.print(report.indent(f"{student}: {file}, lines {similarity.format_lines(lines)}"))
    found = f"{len(pairs)} pairs" if len(pairs) != 1 else "1 pair"
    console.print(Text(f"{found} of {count} students have at least {share:.0%} of a solution in common", style="bold"))


def workflow(
    names: TaskNames = None,
    folder: Annotated[
        Path, typer.Option("--dir", metavar="DIR", parser=parse_path, help="Root of the students' repository.")
    ] = Path(),
    seed: Annotated[int | None, typer.Option(help="Seed of the examples. Default: a new one at each push.")] = None,
    requirement: Annotated[str, typer.Option(metavar="TEXT", help="What pip installs in the run.")] = classroom.REQUIREMENT,
) -> None:
    """Write .github/workflows/classroom.yml, with which GitHub grades each push of a student."""
    if not folder.is_dir():
        raise CourseError(f"{folder} is not a folder that exists; name the root of a repository")
    chosen = names or []
    tasks_of(chosen)  # an unknown name is an error here, not in the run
    path = classroom.write_workflow(folder, classroom.workflow(chosen, seed, requirement))
    new_console().print(f"{path} grades each push; commit it", soft_wrap=True)
