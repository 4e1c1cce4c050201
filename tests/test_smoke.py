"""Twelve steps through minifuse. Read them from top to bottom, change a number, see what fails."""

import math

import numpy as np

import minifuse as mf


def test_01_a_tensor_is_an_array_of_numbers():
    x = mf.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

    assert x.shape == (2, 3)
    assert x.dtype is mf.float32
    assert x.strides == (3, 1)  # the next row lies three elements further on
    assert x[1, 2].item() == 6


def test_02_operators_work_on_all_elements():
    x = mf.tensor([1.0, 2.0, 3.0])

    y = (x - 1) * 2 + x**2

    assert y.tolist() == [1, 6, 13]
    assert (y > 5).tolist() == [False, True, True]


def test_03_small_shapes_broadcast_to_large_ones():
    column = mf.tensor([[10.0], [20.0]])  # (2, 1)
    row = mf.tensor([1.0, 2.0, 3.0])  # (3,)

    assert (column + row).tolist() == [[11, 12, 13], [21, 22, 23]]


def test_04_views_share_memory():
    x = mf.zeros(2, 3)

    middle = x.T[1]  # a transpose and a slice: no element is copied
    middle += 7

    assert x.tolist() == [[0, 7, 0], [0, 7, 0]]
    assert (middle.strides, middle.offset) == ((3,), 1)


def test_05_a_reduction_makes_one_number_of_many():
    x = mf.tensor([[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]])

    assert x.sum().item() == 21
    assert x.max(dim=1).tolist() == [5, 6]
    assert x.mean(dim=0, keepdim=True).shape == (1, 3)


def test_06_matrices_multiply():
    a = mf.arange(6).reshape(2, 3)
    b = mf.arange(12).reshape(3, 4)

    assert (a @ b).tolist() == [[20, 23, 26, 29], [56, 68, 80, 92]]


def test_07_backward_computes_a_gradient():
    x = mf.tensor([1.0, 2.0, 3.0], requires_grad=True)

    y = (x**2).sum()
    y.backward()

    assert x.grad.tolist() == [2, 4, 6]  # the derivative of x**2 is 2 * x


def test_08_a_gradient_has_a_gradient():
    def cube(x):
        return (x**3).sum()

    def slope(x):
        return mf.grad(cube)(x).sum()

    x = mf.tensor([1.0, 2.0])

    assert mf.grad(cube)(x).tolist() == [3, 12]  # 3 * x**2
    assert mf.grad(slope)(x).tolist() == [6, 12]  # 6 * x


def test_09_two_backends_agree():
    numbers = [[0.5, -1.0, 2.0], [3.0, 0.0, -0.5]]

    slow = mf.tensor(numbers, backend="python").softmax(1)  # plain loops, easy to trust
    fast = mf.tensor(numbers, backend="parallel").softmax(1)  # machine code on all cores

    np.testing.assert_allclose(slow, fast, rtol=1e-6)


def test_10_a_function_becomes_one_kernel():
    text = mf.source(lambda x: mf.exp(x) * 2, mf.ones(2, 3))

    assert "out0[i0] = exp(in0[i0]) * f32(2.0)" in text
    assert text.count("def kernel") == 1


def test_11_a_scalar_is_a_tensor_of_one_number_without_the_tensor():
    a, b = mf.Scalar(3.0), mf.Scalar(4.0)

    length = mf.sqrt(a * a + b * b)
    length.backward()

    assert length.item() == 5
    assert math.isclose(a.grad, 3 / 5)
    assert math.isclose(b.grad, 4 / 5)


def test_12_a_regression_learns():
    mf.manual_seed(0)
    x = mf.rand(100, 2)
    y = x @ mf.tensor([2.0, -3.0]) + 0.5  # what it should find

    weight, bias = mf.zeros(2, requires_grad=True), mf.zeros(1, requires_grad=True)
    for _ in range(300):
        loss = ((x @ weight + bias - y) ** 2).mean()
        loss.backward()
        with mf.no_grad():
            for parameter in (weight, bias):
                parameter -= 0.5 * parameter.grad
                parameter.grad = None

    np.testing.assert_allclose(weight.detach(), [2, -3], atol=0.01)
    np.testing.assert_allclose(bias.detach(), [0.5], atol=0.01)
