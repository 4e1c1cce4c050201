"""data.char_vocab: characters, windows of text, and the bundled sonnets."""

import re
import string
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse.core.errors import DataError, DTypeError, ShapeError
from minifuse.data import Characters, Loader, Text, sonnets, windows


def test_the_sonnets_are_complete():
    text = sonnets()
    poems = [poem.splitlines() for poem in text.removesuffix("\n").split("\n\n")]
    assert len(poems) == 154
    lengths = {k: len(poem) for k, poem in enumerate(poems, 1)}
    assert {k: n for k, n in lengths.items() if n != 14} == {99: 15, 126: 12}
    assert poems[0][0] == "From fairest creatures we desire increase,"
    assert poems[17][0] == "Shall I compare thee to a summer's day?"
    assert poems[153][13] == "  Love's fire heats water, water cools not love."


def test_the_sonnets_are_clean():
    text = sonnets()
    assert set(text) <= set(string.ascii_letters + " \n!'(),-.:;?")
    assert Counter(text)["\n"] == 2154 + 154
    for line in filter(None, text.splitlines()):
        assert line == line.rstrip()
        assert "  " not in line.strip()
        assert len(line) - len(line.lstrip()) in (0, 2)
        assert 20 <= len(line) <= 62
        assert line.lstrip(" '(")[0].isupper()
        assert not re.search(r"[,;:.!?][A-Za-z,;:.]| [,;:.!?)]|--|\( ", line), line


@given(text=st.text(min_size=1))
def test_text_is_decoded_unchanged(text):
    letters = Characters(text)
    assert letters.letters == "".join(sorted(set(text)))
    codes = letters.encode(text, backend="python")
    assert (codes.shape, codes.dtype, codes.backend) == ((len(text),), mf.int64, "python")
    assert [letters.letters[code] for code in codes.tolist()] == list(text)
    assert letters.decode(codes) == letters.decode(codes.tolist()) == text
    assert set(codes.tolist()) == set(range(len(letters)))


def test_letters_that_are_not_known():
    letters = Characters("bd")
    assert letters.encode("").tolist() == []
    assert letters.decode([]) == ""
    for text, place in (("a", 0), ("bc", 1), ("dbe", 2), ("b\N{GRINNING FACE}d", 1)):
        with pytest.raises(DataError, match=f"got {text[place]!r} at index {place}, expected one of the 2 characters 'bd'"):
            letters.encode(text)
    for codes in ([2], [0, -1], mf.tensor([0, 7])):
        with pytest.raises(DataError, match=r"got .*, expected numbers from 0 to 1"):
            letters.decode(codes)
    with pytest.raises(DataError, match="empty text"):
        Characters("")


@given(n=st.integers(2, 40), context=st.integers(1, 12), step=st.integers(1, 12))
def test_windows_are_stretches_and_the_same_one_on(n, context, step):
    codes = mf.arange(n)
    if n <= context:
        with pytest.raises(ShapeError, match=f"got {n} codes for context={context}"):
            windows(codes, context, step)
        return
    x, y = windows(codes, context, step)
    starts = range(0, n - context, step)
    assert x.tolist() == [list(range(s, s + context)) for s in starts]
    assert y.tolist() == [list(range(s + 1, s + context + 1)) for s in starts]
    assert len(x) == 1 + (n - 1 - context) // step
    assert x.dtype is y.dtype is mf.int64


def test_windows_take_no_memory():
    codes = mf.arange(1000)
    x, y = windows(codes, 100)
    assert np.shares_memory(x.numpy(), codes.numpy())
    assert y.address == x.address + 8
    assert x.strides == y.strides == (1, 1)


@pytest.mark.parametrize("backend", ["python", "parallel", "cuda"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_windows_in_batches_on_a_backend(backend, shuffle):
    x, y = windows(mf.tensor(np.arange(20), backend="python"), 4, 2)
    seen = []
    for a, b in Loader(x, y, batch_size=3, shuffle=shuffle, seed=1, backend=backend):
        assert a.backend == b.backend == backend
        assert a.is_contiguous()
        assert b.is_contiguous()
        assert (a.numpy() + 1 == b.numpy()).all()
        seen += a.numpy()[:, 0].tolist()
    assert sorted(seen) == list(range(0, 16, 2))
    assert (seen == sorted(seen)) != shuffle


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: windows(mf.ones(3, 3), 2), ShapeError, r"codes of shape \(3, 3\), context=2, step=1; expected 1-D codes"),
        (lambda: windows(mf.arange(9), 0), ShapeError, "context=0"),
        (lambda: windows(mf.arange(9), 2, 0), ShapeError, "step=0"),
        (lambda: windows(np.arange(9), 2), DTypeError, "expected a tensor, got ndarray"),
        (lambda: Text("", 3), DataError, "empty text"),
        (lambda: Text("a" * 30, 3), ShapeError, "got 3 codes for context=3"),
        (lambda: Text("a" * 30, 20), ShapeError, "got 3 codes for context=20"),
    ],
)
def test_windows_that_do_not_exist(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_text_and_its_split():
    text = Text(string.ascii_lowercase * 4, context=5, held_out=0.25, backend="python")
    assert text.characters.letters == string.ascii_lowercase
    (x, y), (a, b) = text.train, text.test
    assert (x.shape, y.shape, x.backend) == ((73, 5), (73, 5), "python")
    assert (a.shape, b.shape) == ((5, 5), (5, 5))
    assert [text.characters.decode(row) for row in a] == ["abcde", "fghij", "klmno", "pqrst", "uvwxy"]
    assert [text.characters.decode(row) for row in b] == ["bcdef", "ghijk", "lmnop", "qrstu", "vwxyz"]
    assert text.characters.decode(y[-1]) == "vwxyz"
