"""inspect/report.py as HTML: explanations and profiles in notebooks show what their texts say."""

import pytest

import minifuse as mf
from minifuse.inspect.report import FoldedText, InspectionReport, Paragraph, make_table, number_column
from tests.well_formed import Document, numbers

HOSTILE = "<script>x</script>"


def scores(x, weights, bias):
    return (mf.relu(x @ weights + bias) * 2).softmax(1)


def explain(requires_grad=False, name="scores", backend="parallel"):
    def function(x, weights, bias):
        return scores(x, weights, bias)

    function.__name__ = name
    inputs = mf.ones(64, 32), mf.ones(32, 10, requires_grad=requires_grad), mf.ones(10)
    return mf.fuse(function).explain(*[x.to(backend) for x in inputs])


def words(text):
    return text.replace("...", "").split()


def without_sources(document):
    return " ".join(
        text for path, text in document.texts if "pre" not in path.split("/") and not text.startswith("source of")
    )


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("backend", ["parallel", "cuda"])
def test_an_explanation_says_what_its_text_says(requires_grad, backend):
    found = explain(requires_grad, backend=backend)
    assert words(without_sources(Document(found._repr_html_()))) == words(str(found))


def test_an_explanation_unfolds_the_source_of_each_kernel():
    found = explain(requires_grad=True)
    kernels = [*found.forward.kernels, *found.backward.run.kernels]
    assert all("def kernel" in kernel.source or kernel.source for kernel in kernels)
    sources = [text for path, text in Document(found._repr_html_()).texts if path.endswith("/pre")]
    assert sources == [kernel.source for kernel in kernels]


def test_the_text_of_an_explanation_has_no_sources():
    assert "def kernel" not in str(explain())


def test_names_of_functions_are_escaped():
    document = Document(explain(name=HOSTILE)._repr_html_())
    assert HOSTILE in document.text("b")


def test_a_profile_has_the_numbers_of_its_text():
    x = mf.rand(64, 32)
    with mf.profile() as profile:
        x.exp().sum()
    document = Document(profile._repr_html_())
    assert sorted(numbers(document.text())) == sorted(numbers(str(profile)))
    assert document.count("tr") == 1 + len(profile.rows)


def test_sections_without_content_are_left_out():
    table = make_table([number_column("size", "B")], [[1234]])
    report = InspectionReport(
        "head", {"": [table], "empty": [], "rest": [Paragraph("a < b"), FoldedText("more", "x")]}, ["end"]
    )
    document = Document(report._repr_html_())
    assert [text for path, text in document.texts if path.split("/")[-1] in ("b", "summary")] == ["head", "rest", "more"]
    assert document.text() == "head size B 1,234 rest a < b more x end"
    assert str(report) == "head\n\nsize B\n 1,234\n\nrest\n  a < b\n\nend"


def test_long_tables_are_folded_and_long_sections_cut():
    rows = [[k] for k in range(31)]
    column = [number_column("size")]
    report = InspectionReport("", {"short": [make_table(column, rows[:30])], "long": [make_table(column, rows)]})
    opened = ["open" in found for tag, found in Document(report._repr_html_()).elements if tag == "details"]
    assert opened == [True, False]
    cut = InspectionReport("", {"kernels": [Paragraph("x")] * 1605})
    assert "and 1,005 more lines, which print shows" in Document(cut._repr_html_()).text()


def test_a_summary_of_a_model_has_the_numbers_of_its_text():
    model = mf.nn.Sequential(mf.nn.Linear(3, 5), mf.nn.ReLU(), mf.nn.Linear(5, 2))
    found = mf.nn.summary(model, (7, 3))
    document = Document(found._repr_html_())
    assert numbers(document.text()) == numbers(str(found))
    assert document.count("tr") == 1 + len(found.layers)
