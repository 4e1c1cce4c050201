"""Mutants are found in a source file, once each, and change what they name and nothing else."""

import ast

from .sites import KINDS, engine_files, mutated, sites

SOURCE = '''"""A module."""
LIMIT = 4

def clip(x: int, é: str = "é") -> int:
    """Clip x."""
    if é == "é" and x > LIMIT:
        x = LIMIT
    return x + 1 if x > LIMIT else x
'''
EXPECTED = [
    ("", "constant", "4", "5"),
    ("clip", "operator", "é == 'é' and x > LIMIT", "(é == 'é' or x > LIMIT)"),
    ("clip", "comparison", "é == 'é'", "é != 'é'"),
    ("clip", "comparison", "x > LIMIT", "x >= LIMIT"),
    ("clip", "deleted statement", "x = LIMIT", "pass"),
    ("clip", "deleted statement", "return x + 1 if x > LIMIT else x", "pass"),
    ("clip", "comparison", "x > LIMIT", "x >= LIMIT"),
    ("clip", "operator", "x + 1", "(x - 1)"),
    ("clip", "constant", "1", "2"),
]


def sites_of(text, monkeypatch, tmp_path):
    monkeypatch.setattr("tests.mutants.sites.ROOT", tmp_path)
    (tmp_path / "module.py").write_text(text)
    return sites(tmp_path / "module.py")


def test_each_place_is_a_mutant_of_one_kind(monkeypatch, tmp_path):
    found = [site.mutant for site in sites_of(SOURCE, monkeypatch, tmp_path)]
    assert sorted((x.function, x.kind, x.before, x.after) for x in found) == sorted(EXPECTED)
    assert sorted(x.nth for x in found if x.before == "x > LIMIT") == [0, 1]
    assert {x.kind for x in found} == {*KINDS}
    assert len({*found}) == len(found)


def test_a_mutant_changes_its_own_place_only(monkeypatch, tmp_path):
    for site in sites_of(SOURCE, monkeypatch, tmp_path):
        before, after = SOURCE.splitlines(), mutated(site).splitlines()
        changed = [k for k, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
        assert changed == [site.line - 1]
        ast.parse(mutated(site))


def test_what_only_type_checkers_read_is_no_place(monkeypatch, tmp_path):
    text = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    N = 1\ndef f(x: 'tuple[int, 3]' = 5) -> 'list[4]': ...\n"
    )
    assert [site.mutant.before for site in sites_of(text, monkeypatch, tmp_path) if site.mutant.kind == "constant"] == ["5"]


def test_every_folder_of_the_engine_has_files():
    assert len({path.relative_to(path.parents[-1]).parts[-2] for path in engine_files()}) > 10
