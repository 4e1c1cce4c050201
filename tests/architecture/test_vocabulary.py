"""Names that a stranger can guess: of classes, modules and constants. CONTRIBUTING.md has the rules that need a reader."""

import ast
import re
from collections import defaultdict

from tests.sources import ROOT, Module, modules

PACKAGE = modules()
ENGINE = {name: module for name, module in PACKAGE.items() if not name.startswith("minifuse.course")}
PROJECT = modules(ROOT, "project")

# Names of modules that say how something was done or where it was put, not what it is.
VAGUE_MODULES = re.compile(
    r"adopt|archive|body|bound|calls|choices|columns|common|convolved|counted|decided|decomposed|"
    r"direct|early|emit|emitted|exchange|facts|forms|found|groups|held|keyed|kept|lives|make_ready|"
    r"meant|merging|native|online|own|parts|patches|picked|pieces|places|planted|point|points|"
    r"recorded|remembered|roofs|sharing|side_by_side|spaces|stores|stuck|texts|together|told|toys|"
    r"turned|twenty|votes|watched|ways|windows|words"
)
# Names of public classes in two packages, each of which says it behind its name: mf.testing and mf.training; mf.autograd
PUBLIC_TWINS = {"Recipe", "Function"}
MAX_TEST_NAME_LENGTH = 70  # characters: pytest prints the name of a test that fails on one line, with its file
VAGUE_CONSTANT = re.compile(r"_?(MOST|MANY|FEW|LEAST|ALONE)(_|$)")


def classes(module: Module) -> list[ast.ClassDef]:
    return [node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)]


def constants(module: Module) -> list[str]:
    """The names that a module or one of its classes assigns."""
    found = []
    for scope in (module.tree, *classes(module)):
        for node in scope.body:
            targets = (
                node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
            )
            found += [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    return found


def test_no_class_name_is_used_twice():
    """The course has classes of the library's names on purpose: students write their own Tensor."""
    places = defaultdict(list)
    for module in ENGINE.values():
        for node in classes(module):
            places[node.name].append(f"{module.path}:{node.lineno}")
    repeated = {name: found for name, found in places.items() if len(found) > 1 and name not in PUBLIC_TWINS}
    assert not repeated, "\n".join(f"{name}: {', '.join(found)}" for name, found in sorted(repeated.items()))


def test_every_module_name_describes_its_content():
    paths = [module.path for module in (*PACKAGE.values(), *PROJECT.values())]
    vague = [str(x) for x in paths if VAGUE_MODULES.fullmatch(x.parent.name if x.name == "__init__.py" else x.stem)]
    assert not vague, f"{vague} could contain anything; name the subject, in the field's term"


def test_every_constant_names_its_limit():
    vague = [
        f"{module.path}: {name}"
        for module in (*PACKAGE.values(), *PROJECT.values())
        for name in constants(module)
        if VAGUE_CONSTANT.match(name)
    ]
    assert not vague, f"{vague}: say what is limited: MAX_CACHED_PLANS, MIN_ROWS_PER_CHUNK"


def test_names_of_tests_are_short_enough_to_read_in_one_line():
    places = {
        f"{module.path}:{node.lineno}": node.name
        for module in modules(ROOT, "tests").values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
    assert len(places) > 3000
    long = [f"{place}: {name}" for place, name in places.items() if len(name) > MAX_TEST_NAME_LENGTH]
    assert not long, f"state the behavior in at most {MAX_TEST_NAME_LENGTH} characters:\n" + "\n".join(long)
