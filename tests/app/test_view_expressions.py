"""The parser of shapes and views: valid text means the same as in NumPy, other text is an error with its position."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from project.views import expressions
from project.views.expressions import Call, Index, InputError, format_steps, parse_chain, parse_shape
from tests.examples import share

BOUNDS = st.none() | st.integers(-9, 9)
ENTRIES = st.integers(-9, 9) | st.builds(slice, BOUNDS, BOUNDS, st.none() | st.integers(-4, 4)) | st.none()
NUMBERS = st.lists(st.integers(-9, 9), max_size=5).map(tuple)
CALLS = (
    st.builds(Call, st.sampled_from(("permute", "flip", "expand", "reshape")), NUMBERS)
    | st.builds(Call, st.just("squeeze"), NUMBERS.filter(lambda x: len(x) < 2))
    | st.builds(Call, st.just("unsqueeze"), NUMBERS.filter(lambda x: len(x) == 1))
    | st.sampled_from((Call("T", ()), Call("contiguous", ())))
)
STEPS = CALLS | st.builds(Index, st.lists(ENTRIES | st.just(Ellipsis), max_size=4).map(tuple))


@given(st.lists(st.integers(0, 10**9 - 1), max_size=8), st.booleans())
@share(1.2)
def test_shape_round_trips_through_text(sizes, is_tuple):
    text = str(tuple(sizes)) if is_tuple else ", ".join(map(str, sizes))
    assert parse_shape(text) == tuple(sizes)


@given(st.lists(STEPS, max_size=5))
@share(3)
def test_chain_round_trips_through_text(steps):
    assert parse_chain("".join(format_steps(steps))) == tuple(steps)


X = np.arange(24).reshape(4, 6)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1:, ::2]", X[1:, ::2]),
        ("[-1]", X[-1]),
        ("[..., 0]", X[..., 0]),
        ("[None, ::-1]", X[None, ::-1]),
        ("[:, 1:3]", X[:, 1:3]),
        ("[1, 2]", X[1, 2]),
        ("[0:0]", X[0:0]),
        ("[]", X),
    ],
)
def test_parsed_index_matches_numpy(text, expected):
    (step,) = parse_chain(text)
    np.testing.assert_array_equal(step.apply(X), expected)


@pytest.mark.parametrize("text", [" .permute ( (1, 0) ) [ :: 2 ] ", ".permute(1, 0,)[::2]", ".permute(1,0)[::2,]"])
def test_spaces_parentheses_and_trailing_commas_are_ignored(text):
    assert format_steps(parse_chain(text)) == [".permute(1, 0)", "[::2]"]


@pytest.mark.parametrize(
    ("read", "text", "at", "what"),
    [
        (parse_shape, "3, x", 3, "got 'x'; expected a whole number"),
        (parse_shape, "3, -4", 3, "a size is -4"),
        (parse_shape, "3 4", 2, "got '4'; expected the end"),
        (parse_shape, "(3, 4", 5, r"it ends here; expected '\)'"),
        (parse_shape, "2, 3; import os", 4, "';' means nothing here"),
        (parse_shape, "1,1,1,1,1,1,1,1,1", 16, "9 dims; expected at most 8"),
        (parse_shape, "9999999999", 0, "a number of 10 digits"),
        (parse_shape, "1" * 201, 200, "201 characters"),
        (parse_chain, ".T.__class__", 3, "'__class__' is no view that is known here"),
        (parse_chain, "T", 0, "got 'T'; expected a view such as"),
        (parse_chain, ".permute(1, 0", 13, r"it ends here; expected '\)'"),
        (parse_chain, ".permute(a)", 9, "got 'a'; expected a whole number"),
        (parse_chain, "[::2", 4, "it ends here"),
        (parse_chain, "[1:2:3:4]", 6, "at most two colons"),
        (parse_chain, "[,]", 1, "an entry is missing"),
        (parse_chain, ".unsqueeze()", 1, "unsqueeze got 0 arguments; expected 1"),
        (parse_chain, ".squeeze(0, 1)", 1, "squeeze got 2 arguments; expected 0 or 1"),
        (parse_chain, ".contiguous(1)", 1, "contiguous got 1 arguments; expected 0"),
        (parse_chain, ".T" * 13, 24, "more than 12 views"),
    ],
)
def test_syntax_errors_name_the_problem_and_its_position(read, text, at, what):
    with pytest.raises(InputError, match=what) as caught:
        read(text)
    assert caught.value.at == at
    *_, line, caret = str(caught.value).splitlines()
    assert caret.index("^") == at + 4
    assert line[4:] == text[: expressions.MAX_CHARACTERS]


@given(st.text(st.sampled_from("0123456789-.,:()[] \n\tTxpermutflisqhakcongdw\u0663\u00b2_'\"\\")) | st.text(max_size=250))
@share(10)
def test_any_text_parses_or_raises_input_error(text):
    for read in (parse_shape, parse_chain):
        try:
            read(text)
        except InputError as error:
            at = error.at
        else:
            at = 0
        assert 0 <= at <= len(text)
