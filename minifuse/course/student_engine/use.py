"""Make a student's functions the engine of this process."""

import os
from functools import cache
from pathlib import Path

from ...backends.registry import registry, set_default_backend
from ...core import autograd, dispatch, scalar
from ...core.errors import CourseError
from ..overlay import Overlay
from .backend import COMPILED, IN_PYTHON, MATMUL, StudentBackend
from .backpropagation import SLOT, Backpropagation
from .dispatch_hook import StudentCalls
from .engine import StudentEngine
from .operators import OPERATORS
from .scalar_functions import CLASSES, replaced_operators

VARIABLE = "MINIFUSE_ENGINE_FOLDER"
"""The environment variable with the folder of the engine, for the processes that a command starts."""


def use_engine(folder: Path | str) -> StudentEngine:
    """Run minifuse on the functions of a student's folder: the backend "yours", Scalars, and all backward passes.

    The backend becomes the default one. Processes that are started later find the folder in the environment.

    Parameters
    ----------
    folder : Path or str
        The folder of the student's files, as `minifuse course init` makes it.

    Raises
    ------
    CourseError
        It is not such a folder, or one of its files cannot be loaded.

    Examples
    --------
    >>> engine = use_engine("my-engine")  # doctest: +SKIP
    >>> mf.tensor([1.0, 2.0]).backend     # doctest: +SKIP
    'yours'
    """
    from ..registry import TASKS  # the process of a student's code has no list of tasks
    from ..workspace import find_folder

    found = find_folder(Path(folder), advice="create one: minifuse course init DIR")
    engine = StudentEngine(Overlay(found, TASKS))
    for name in (SLOT, *OPERATORS, *IN_PYTHON.values(), *COMPILED.values(), MATMUL, *CLASSES.values()):
        try:
            engine.slot(name)  # loads its file, whose errors are shown before anything runs
        except SyntaxError as error:
            file = engine.student.home[name].file
            raise CourseError(f"{file}:{error.lineno}: {error.msg}; mend this line, and start again") from None
    backend = StudentBackend(engine)
    registry.factories[backend.name], registry.instances[backend.name] = lambda: backend, backend
    set_default_backend(backend.name)
    autograd.algorithm.run = Backpropagation(engine).run
    dispatch.set_default_hook(StudentCalls(backend))
    scalar.functions.clear()
    scalar.functions.update(replaced_operators(engine))
    os.environ[VARIABLE] = str(found)
    return engine


@cache
def use_engine_once(folder: str) -> StudentEngine:
    """Do what `use_engine` does, at the first call of a process: a page of the visualizer calls it whenever it is drawn."""
    return use_engine(folder)
