"""data.tables: CSV numbers are read as they were written, and every error names line and column."""

import contextlib
import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import minifuse as mf
from minifuse.core.errors import DataError
from minifuse.data import read_csv

FLOATS = st.floats(width=32, allow_nan=False)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("data") / "table.csv"


def read(path, text, **options):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_csv(path, **options)


@given(
    table=arrays.arrays(np.float32, arrays.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=FLOATS),
    delimiter=st.sampled_from(",;\t |"),
    header=st.booleans(),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    end=st.sampled_from(["\n", "\r\n"]),
    mark=st.sampled_from(["", "\ufeff"]),
)
def test_numbers_are_read_bit_by_bit(table, delimiter, header, quoting, end, mark, path):
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, quoting=quoting, lineterminator=end)
    if header:
        writer.writerow([f"name {k}, {delimiter}" for k in range(table.shape[1])])
    writer.writerows(table.tolist())
    text = mark + stream.getvalue()
    for told in (None, header):
        x = read(path, text, delimiter=delimiter, header=told, backend="python")
        assert (x.shape, x.dtype, x.backend) == (table.shape, mf.float32, "python")
        np.testing.assert_array_equal(x.numpy(), table)
    for k in range(table.shape[1]) if table.shape[1] > 1 else ():
        x, y = read_csv(path, target=k - table.shape[1], delimiter=delimiter)
        np.testing.assert_array_equal(x.numpy(), np.delete(table, k, 1))
        np.testing.assert_array_equal(y.numpy(), table[:, k])
        assert y.dtype is mf.float32


def test_targets(path):
    text = "a, b ,c\n1,2,3\n4,5,6.5\n"
    for target in ("b", 1, -2):
        x, y = read(path, text, target=target, backend="python")
        assert (x.tolist(), y.tolist(), y.dtype, y.backend) == ([[1, 3], [4, 6.5]], [2, 5], mf.int64, "python")
    x, y = read_csv(path, target="c")
    assert (x.tolist(), y.tolist(), y.dtype) == ([[1, 2], [4, 5]], [3, 6.5], mf.float32)
    x, y = read(path, "1,9007199254740993\n2,-9223372036854775808\n", target=1)
    assert y.tolist() == [2**53 + 1, -(2**63)]  # integers keep all their digits
    x, y = read(path, "1,9223372036854775808\n", target=1)
    assert y.dtype is mf.float32
    x, y = read(path, f"1,{10**30}\n", target=1)
    assert y.dtype is mf.float32


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("1,2\n3,4", {}, [[1, 2], [3, 4]]),
        ("\n\n1,2\n\r\n3,4\n\n", {}, [[1, 2], [3, 4]]),
        ("1 , 2\n", {}, [[1, 2]]),
        ('"1","2"\n', {}, [[1, 2]]),
        ("1,2\n3,4\n", {"header": True}, [[3, 4]]),
        ("x\n1\n2\n", {}, [[1], [2]]),
        ("1e3,-.5,+7,nan,inf\n", {}, [[1000, -0.5, 7, np.nan, np.inf]]),
        ("1_000,2\n3,4\n", {}, [[3, 4]]),  # names, for they are no numbers
    ],
)
def test_valid_tables_are_read(text, options, expected, path):
    np.testing.assert_array_equal(read(path, text, **options).numpy(), np.array(expected, np.float32))


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("", {}, "is empty, expected rows of numbers; is it the right file"),
        ("\n\n", {}, "is empty"),
        ("a,b\n", {}, "has a header and no rows"),
        ("1,2\n", {"header": True}, "has a header and no rows"),
        ("a,b\n1,2\n3,x\n", {}, r"line 3, column 2 \(b\): got 'x', expected a number; correct the entry"),
        ("a,b\n\n\n1,2\n,4\n", {}, r"line 5, column 1 \(a\): got '', expected a number"),
        ("1,2\n3,1_000\n", {}, "line 2, column 2: got '1_000', expected a number"),
        ("a,b\n1,2\n", {"header": False}, "line 1, column 1: got 'a', expected a number"),
        ("1,2\n3\n", {}, "line 2: got 1 entries, expected 2 as in the first row; .* another delimiter="),
        ("1,2\n3,4,5\n", {}, "line 2: got 3 entries, expected 2"),
        ("1;2\n3;4\n", {"header": False}, "line 1, column 1: got '1;2', expected a number"),
        ('1,"2\n3,4\n', {}, "line 2: unexpected end of data; expected one row in each line"),
        ('1,"2"x\n', {}, "line 1: .*expected after"),
        (b"1,2\n3,\xff\n", {}, "line 2: invalid start byte at byte 2 of the line; expected text in UTF-8"),
        (b"1,2\n3,\0\n", {}, r"line 2, column 2: got '\\x00', expected a number"),
        ("1,2\r3,4\r", {}, "line 1: new-line character"),
        ("1,1e39\n", {}, "line 1, column 2: got 1e[+]39, expected at most 3.4e38, the largest float32"),
        ("a,b,c\n\n1,2,3\n4,1,-1e39\n", {"target": "a"}, r"line 4, column 3 \(c\): got -1e[+]39"),
        ("1,2.5\n1,1e39\n", {"target": 1}, "line 2, column 2: got 1e[+]39"),
        ("a,b\n1,2\n", {"target": "c"}, "does not have exactly one column 'c', expected one of a, b"),
        ("a,a\n1,2\n", {"target": "a"}, "does not have exactly one column 'a'"),
        ("1,2\n", {"target": "c"}, "does not have exactly one column 'c', expected a number"),
        ("1,2\n", {"target": 2}, "has 2 columns, got target=2; expected -2 to 1"),
        ("1,2\n", {"target": -3}, "target=-3; expected -2 to 1"),
        ("1,2\n", {"delimiter": ""}, "got delimiter='', expected one character"),
        ("1,2\n", {"delimiter": ", "}, "got delimiter=', '"),
        ("1,2\n", {"delimiter": "\n"}, "got delimiter="),
    ],
)
def test_errors_name_line_and_column(text, options, words, path):
    with pytest.raises(DataError, match=words) as caught:
        read(path, text, **options)
    assert "delimiter" in options or str(path) in str(caught.value)


@given(
    content=st.binary(max_size=60) | st.text('0123456789,.\n"\r-e ax', max_size=60).map(str.encode),
    target=st.none() | st.just(0),
)
def test_any_bytes_are_a_table_or_a_clear_error(content, target, path):
    with contextlib.suppress(DataError):
        found = read(path, content, target=target)
        x = found if target is None else found[0]
        assert x.ndim == 2
        assert len(x) >= 1
