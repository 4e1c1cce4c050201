"""Rules for the sources of the visualizer that a test can check."""

import ast
import re

import pytest

from tests.sources import ROOT

APP = ROOT / "project"
FILES = [
    APP / "app.py",
    APP / "frame.py",
    *(file for name in ("components", "screens", "views") for file in (APP / name).glob("*.py")),
]
TREES = {str(file.relative_to(ROOT)): ast.parse(file.read_text(encoding="utf-8")) for file in FILES}
FORBIDDEN = {"eval", "exec", "compile", "literal_eval", "__import__"}
WIDGETS = {
    *("selectbox", "radio", "select_slider", "slider", "number_input", "text_input", "text_area", "checkbox", "toggle"),
    *("segmented_control", "pills", "multiselect"),
}

each_file = pytest.mark.parametrize("name", TREES)


def named_calls(tree):
    """Yield each call with the last part of its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            yield name, node


def imported_packages(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").split(".")[0]


@each_file
def test_sources_evaluate_no_user_text(name):
    tree = TREES[name]
    bare = {call.func.id for _, call in named_calls(tree) if isinstance(call.func, ast.Name)}
    methods = {n for n, call in named_calls(tree) if isinstance(call.func, ast.Attribute)}
    assert not (bare & FORBIDDEN | methods & {"literal_eval", "system", "popen"})
    assert not {"pickle", "marshal", "shelve", "subprocess"} & set(imported_packages(tree))


@each_file
def test_views_do_not_import_streamlit(name):
    if "/views/" in name:
        assert "streamlit" not in set(imported_packages(TREES[name]))


@each_file
def test_every_widget_has_a_key_and_is_bound_to_the_address(name):
    for widget, call in named_calls(TREES[name]):
        if widget in WIDGETS:
            given = {keyword.arg for keyword in call.keywords}
            assert None in given or {"key", "bind"} <= given, f"{name}:{call.lineno}: {widget} needs key= and bind="


@each_file
def test_caches_are_bounded(name):
    tree = TREES[name]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for decorator in map(ast.unparse, node.decorator_list):
                if "cache_data" in decorator or "cache_resource" in decorator:
                    assert "max_entries=" in decorator, f"{name}:{node.lineno}: give the cache max_entries="
                if "lru_cache" in decorator:
                    assert "maxsize=None" not in decorator, f"{name}:{node.lineno}: give the cache a size"


def test_sources_contain_no_external_url():
    for file in [*FILES, *(APP / "components").iterdir()]:
        if file.is_file():
            found = re.findall(r"https?://(?!www\.w3\.org/)[^\s\"'`)]+", file.read_text(encoding="utf-8"))
            assert not [link for link in found if not link.startswith("http://127.0.0.1")], file.name
