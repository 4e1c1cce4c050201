"""data.word_vocab: words, padding, the bundled sentences, and a small network that classifies them."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse.core.errors import DataError, ShapeError
from minifuse.data import Words, sentences, split, split_words


def test_the_sentences_are_clean_and_of_four_kinds():
    texts, y, names = sentences(backend="python")
    assert names == ("weather", "cooking", "music", "travel")
    assert (y.dtype, y.backend, Counter(y.tolist())) == (mf.int64, "python", dict.fromkeys(range(4), 120))
    assert len(set(texts)) == len(texts) == 480
    for text in texts:
        assert re.fullmatch(r"[A-Z][A-Za-z0-9 ,;:']+[.?!]", text), text
        assert 3 <= len(text.split()) <= 20
        assert "  " not in text
    openings = Counter(" ".join(text.split()[:3]) for text in texts)
    assert openings.most_common(1)[0][1] <= 8  # no template


def test_a_bag_of_words_classifies_nine_in_ten():
    """Least squares on which words occur, in NumPy, five times with another fifth held out."""
    texts, y, _ = sentences()
    index, right = mf.arange(len(texts)), 0
    for seed in range(5):
        (known,), (held_out,) = split(index, fraction=0.8, seed=seed, stratify=y)
        words = Words(texts[i] for i in known.tolist())

        def bags(rows, words=words):
            bag = np.zeros((len(rows), len(words)))
            np.put_along_axis(bag, words.encode([texts[i] for i in rows.tolist()]).numpy(), 1, 1)
            bag[:, :2] = 0
            return bag

        x, t = bags(known), np.eye(4)[y.numpy()[known.numpy()]] - 0.25
        weight = x.T @ np.linalg.solve(x @ x.T + 2 * np.eye(len(x)), t)
        right += ((bags(held_out) @ weight).argmax(1) == y.numpy()[held_out.numpy()]).mean() / 5
    assert right >= 0.9


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("The cat's 2 toys, one-eyed!", ["the", "cat's", "2", "toys", "one", "eyed"]),
        ("'quoted' rock'n'roll", ["quoted", "rock'n", "roll"]),
        ("snake_case \N{LATIN CAPITAL LETTER E WITH ACUTE}t\N{LATIN SMALL LETTER E WITH ACUTE}", ["snake", "case", "été"]),
    ],
)
def test_words_are_split_at_punctuation(text, words):
    assert split_words(text) == words


def test_the_most_frequent_words_have_the_lowest_indices():
    texts = ["b a", "a c b", "a"]
    assert Words(texts).words == ("<pad>", "<unknown>", "a", "b", "c")
    assert Words(texts, most=1).words == ("<pad>", "<unknown>", "a")
    assert Words(texts, fewest=2).words == ("<pad>", "<unknown>", "a", "b")
    assert Words([]).words == ("<pad>", "<unknown>")
    assert Words(iter(texts)).words == Words(texts).words


@given(
    texts=st.lists(st.lists(st.sampled_from("abcd"), max_size=6).map(" ".join), max_size=5),
    length=st.none() | st.integers(1, 7),
)
def test_texts_are_padded_or_truncated(texts, length):
    words = Words(["a b", "c"])
    x = words.encode(texts, length, backend="python")
    wide = length or max((len(text.split()) for text in texts), default=0)
    assert (x.shape, x.dtype, x.backend) == ((len(texts), wide), mf.int64, "python")
    for row, text in zip(x, texts, strict=True):
        expected = text.replace("d", "<unknown>").split()[:wide]
        assert words.decode(row) == words.decode(row.tolist()) == " ".join(expected)
        assert (row.numpy() == 0).tolist() == [k >= len(expected) for k in range(wide)]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Words("one text"), DataError, "got one text, expected a list"),
        (lambda: Words(["a"]).encode("one text"), DataError, "got one text, expected a list"),
        (lambda: Words(["a"]).encode(["a"], 0), ShapeError, "got length=0, expected at least 1"),
        (lambda: Words(["a"]).decode([3]), DataError, "got 3, expected numbers from 0 to 2 for 3 words"),
        (lambda: Words(["a"]).decode([-1]), DataError, "got -1"),
    ],
)
def test_mistakes(call, error, words):
    with pytest.raises(error, match=words):
        call()
