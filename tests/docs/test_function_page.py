"""The page on the library of functions shows the table as it is."""

import ast
from pathlib import Path

from docs.make_functions import BEGIN, END, PAGE, page
from minifuse import functions
from minifuse.functions import load


def test_the_page_shows_the_table_as_it_is():
    text = PAGE.read_text(encoding="utf-8")
    assert BEGIN in text
    assert END in text
    assert page(text) == text, "docs/guide/functions.md is behind the table; run: python docs/make_functions.py"


def test_each_function_says_what_it_does():
    assert not [name for name, entry in load().items() if not (entry.__doc__ or "").strip()]


def test_each_function_is_defined_in_one_module():
    """Otherwise the module that is imported last has it, and the order of imports depends on the program."""
    modules = {}
    for path in Path(functions.__file__).parent.glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            decorators = [ast.unparse(x) for x in getattr(node, "decorator_list", ())]
            for names in (x.removeprefix("function") for x in decorators if x.startswith("function(")):
                arguments = ast.parse(names.strip("()") and f"f{names}").body
                given = [x.value for x in arguments[0].value.args] if arguments else []
                for name in given or [node.name]:
                    modules.setdefault(name, []).append(path.name)
    assert len(modules) > 200
    assert not {name: found for name, found in modules.items() if len(found) > 1}
