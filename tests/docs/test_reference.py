"""The API reference: each public name has a page, and an example that runs."""

import doctest
from types import MemberDescriptorType

import numpy as np
import pytest

import minifuse as mf
from docs.site.element_types import TOPICS as WITH_TYPES
from docs.site.element_types import element_types
from docs.site.examples import FOLDER, examples, has_own
from docs.site.public_names import PLAIN, docstring, entries, modules, names_in, public_module
from docs.site.reference import GROUPS, MODULES, TOPICS, entries_of, index, page, topic_of

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
each_topic = pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)


def test_each_public_name_has_a_section_on_one_page():
    sections = [name for topic in TOPICS for entry in entries_of(topic) for name in entry.names]
    assert sorted(sections) == sorted(name for entry in entries() for name in entry.names)
    assert len(sections) == len(set(sections))
    assert {f"mf.{name}" for name in mf.__all__} <= {*sections, *modules()}


def test_each_public_module_has_a_page():
    assert MODULES.keys() == modules()
    assert {*MODULES.values()} <= {topic.name for topic in TOPICS}
    assert all(docstring(public_module(name)) for name in MODULES)


def test_the_index_leads_to_each_section():
    text = index()
    for topic in TOPICS:
        sections = page(topic)
        for entry in entries_of(topic):
            assert f"]({topic.name}.md#{entry.title})" in text
            assert f'<span id="{entry.title}">' in sections


def test_pages_without_names_are_found():
    assert all(entries_of(topic) for topic in TOPICS)
    assert sum(map(len, GROUPS.values())) == len(TOPICS) == len({topic.name for topic in TOPICS})


def test_an_object_of_an_unknown_module_is_refused():
    entry = entries()[0]._replace(module="minifuse.nowhere")
    with pytest.raises(LookupError, match=r"minifuse\.nowhere, which no page of TOPICS has"):
        topic_of(entry)


def test_a_twin_in_place_that_was_called_has_no_section():
    mf.ones(1).cosh_()
    assert hasattr(mf.Tensor, "cosh_")
    assert "cosh_" not in names_in("mf.Tensor")


@each_topic
def test_each_name_has_a_docstring_and_an_example(topic):
    found = entries_of(topic)
    explained = [
        entry for entry in found if docstring(entry.value) or isinstance(entry.value, (*PLAIN, MemberDescriptorType))
    ]
    assert [entry.title for entry in found if entry not in explained] == [], "add docstrings, which the reference prints"
    without = [entry.title for entry in found if not has_own(entry) and entry.title not in examples(topic.name)]
    assert without == [], (
        f"add to docs/site/examples/{topic.name}.txt a paragraph for each, its name and a doctest: {', '.join(without)}"
    )


@each_topic
def test_examples_are_of_names_that_need_them(topic):
    needed = {entry.title for entry in entries_of(topic) if not has_own(entry)}
    assert examples(topic.name).keys() - needed == set(), (
        f"remove these from docs/site/examples/{topic.name}.txt: they are not public, or their docstring has an example"
    )


def test_each_file_of_examples_belongs_to_a_page():
    assert {path.stem for path in FOLDER.glob("*.txt")} <= {topic.name for topic in TOPICS}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("topic", sorted(path.stem for path in FOLDER.glob("*.txt")))
def test_the_examples_of_a_page_are_right(topic, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = []
    for name, text in examples(topic).items():
        test = doctest.DocTestParser().get_doctest(text + "\n", {"mf": mf, "np": np}, name, f"{topic}.txt", 0)
        doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=report.append)
    assert not report, "".join(report)


WITHOUT_TYPES = {  # functions that take or return no tensor
    *("mf.allclose", "mf.equal", "mf.is_nonzero", "mf.broadcast_shapes", "mf.fft.fftfreq", "mf.fft.rfftfreq"),
    "mf.nn.multi_head_attention_forward",  # its example calls it through a module
}
ARROW = "\N{RIGHTWARDS ARROW}"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mf.exp", "bool, int64, float64 > float64; float32 > float32"),
        ("mf.isnan", "bool, int64, float32, float64 > bool"),
        ("mf.pairwise_distance", "int64, float64 > float64; float32 > float32; bool > DTypeError"),
        ("mf.take_along_dim", "bool > bool; int64 > int64; float32 > float32; float64 > float64"),  # the index stays int64
        ("mf.topk", "bool > bool, int64; int64 > int64; float32 > float32, int64; float64 > float64, int64"),
        ("mf.allclose", ""),  # returns no tensor
    ],
)
def test_element_types_are_those_of_operands_and_results(name, expected):
    entry = next(entry for entry in entries() if name in entry.names)
    line = f"**Element types:** {expected}\n".replace(">", ARROW) if expected else ""
    assert element_types(entry, topic_of(entry).name) == line


def test_nearly_each_function_of_tensors_says_its_element_types():
    found = [entry for topic in TOPICS if topic.name in WITH_TYPES for entry in entries_of(topic)]
    functions = [entry for entry in found if entry.title.rpartition(".")[2].islower()]
    assert {entry.title for entry in functions if not element_types(entry, topic_of(entry).name)} == WITHOUT_TYPES
