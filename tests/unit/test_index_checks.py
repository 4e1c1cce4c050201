"""Checks of indices on a device: in the kernel that reads them, without a copy to the host."""

import numpy as np
import pytest

import minifuse as mf
from minifuse import IndexingError
from minifuse.backends.cuda.device.index_notes import SLOTS, IndexNotes
from minifuse.ir.index_checks import IndexCheck

X = np.arange(12.0, dtype=np.float32).reshape(4, 3)


def on_device(*index):
    return mf.tensor([*index], backend="cuda")


CALLS = {
    "rows": (lambda x, i: x[i], "index: index 4 is out of range for dim 0 of size 4; expected -4 to 3"),
    "elements": (lambda x, i: x[i, i % 3], "index: index 4 is out of range for dim 0 of size 4"),
    "columns": (lambda x, i: x[0:2, i], "index: index 4 is out of range for dim 1 of size 3; expected -3 to 2"),
    "store": (lambda x, i: x.__setitem__(i, 0.0), "index: index 4 is out of range for dim 0 of size 4"),
    "select": (lambda x, i: x.index_select(0, i), "index_select: index 4 is out of range for dim 0 .* expected 0 to 3"),
    "gather": (lambda x, i: mf.gather(x, 0, i.reshape(-1, 1)), "gather: index 4 is out of range for dim 0 of size 4"),
    "add": (lambda x, i: mf.index_add(x, 0, i, mf.ones(3, 3, backend="cuda")), "index_add: index 4 is out of range"),
    "NumPy": (lambda x, i: np.take(x, i, 1), "np.take: index 4 is out of range for dim 1 of size 3"),
    "embedding": (lambda x, i: mf.nn.functional.embedding(i, x), "embedding: index 4 is out of range for dim 0 of size 4"),
    "one hot": (lambda x, i: mf.nn.functional.one_hot(i, 4), "one_hot: index 4 is out of range for dim 1 of size 4"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_kernel_notes_an_index_that_is_out_of_range(name):
    call, message = CALLS[name]
    x = mf.tensor(X, backend="cuda")
    call(x, on_device(0, 1, 2))
    with pytest.raises(IndexingError, match=message):
        call(x, on_device(0, 4, 1))
    call(x, on_device(2, 1, 0))  # the note is cleared


def test_the_index_of_a_checked_call_is_not_copied_to_the_host(monkeypatch):
    x, index = mf.tensor(X, backend="cuda"), on_device(0, 3, -1)
    copied, backend = [], type(x.meta.backend)
    monkeypatch.setattr(backend, "to_numpy", lambda self, *operand: copied.append(operand))
    assert x[index].shape == (3, 3)
    assert not copied


def test_a_checked_call_is_one_launch_and_has_a_gradient():
    x, index = mf.tensor(X, backend="cuda", requires_grad=True), on_device(0, 3, -1)
    with mf.profile() as profile:
        y = x[index]
    assert len(profile.events) == 1
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy()[:, 0], [1, 0, 0, 2])


def test_an_index_of_a_closure_is_checked_while_a_function_is_traced():
    x = mf.tensor(X, backend="cuda")
    for good in (on_device(3, 0), on_device(-1, 2)):
        np.testing.assert_array_equal(mf.grad(lambda x, i=good: x[i].sum())(x).numpy().sum(), 6)
        f = mf.vmap(lambda row, i=good % 3: row[i])
        np.testing.assert_array_equal(f(x).numpy(), X[:, (good % 3).numpy()])
    with pytest.raises(IndexingError, match=r"index 5 at \[1\] is out of range for dim 0 of size 3"):
        mf.vmap(lambda row: row[on_device(0, 5)])(x)


def test_elements_of_a_wrong_index_are_not_stored():
    x = mf.tensor(X, backend="cuda")
    with pytest.raises(IndexingError):
        x[on_device(1, 9)] = 5.0
    assert np.isin(x.numpy(), [*X.flat, 5]).all()


def test_notes_are_raised_once_and_slots_run_out():
    notes = IndexNotes(lambda count: np.zeros(count, np.int64), advice="; see above")
    notes.raise_first()
    addresses = [notes.address_of(IndexCheck("f", k, 0, -k)) for k in range(1, SLOTS + 2)]
    assert addresses[:2] == [notes.slots.ctypes.data, notes.slots.ctypes.data + 8]
    assert addresses[-1] is None  # such a check is made before the call
    assert notes.address_of(IndexCheck("f", 1, 0, -1)) == addresses[0]
    notes.slots[6] = -9
    with pytest.raises(IndexingError, match="f: index -9 is out of range for dim 0 of size 7; expected -7 to 6; see above"):
        notes.raise_first()
    notes.raise_first()
