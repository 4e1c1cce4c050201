"""Module 0: properties of the operators that are true for all numbers.

A property is a function of the operators, as ops.add, ops.mul, ops.is_close and so on, and of three numbers, of which it
may use only some. It must return True for right operators, and False at some numbers for wrong ones: each of these
functions is tried on operators with bugs.
"""

from minifuse.course import todo

# Task 0.2


def about_add(ops, x, y, z):
    """Test laws of addition."""
    # begin 0.2a
    is_symmetric = ops.is_close(ops.add(x, y), ops.add(y, x))
    is_grouped_anyhow = ops.is_close(ops.add(ops.add(x, y), z), ops.add(x, ops.add(y, z)))
    has_a_zero = ops.eq(ops.add(x, 0.0), x)
    has_a_way_back = ops.eq(ops.add(x, ops.neg(x)), 0.0)
    return all([is_symmetric, is_grouped_anyhow, has_a_zero, has_a_way_back])
    # end


def about_mul(ops, x, y, z):
    """Test laws of multiplication."""
    # begin 0.2b
    is_symmetric = ops.is_close(ops.mul(x, y), ops.mul(y, x))
    is_distributed = ops.is_close(ops.mul(x, ops.add(y, z)), ops.add(ops.mul(x, y), ops.mul(x, z)))
    has_a_one = ops.eq(ops.mul(x, 1.0), x)
    return all([is_symmetric, is_distributed, has_a_one])
    # end


def about_maximum(ops, x, y, z):
    """Test laws of the maximum of two numbers."""
    # begin 0.2c
    largest = ops.maximum(x, y)
    is_below_none = not ops.lt(largest, x) and not ops.lt(largest, y)
    is_one_of_them = ops.eq(largest, x) or ops.eq(largest, y)
    return bool(is_below_none and is_one_of_them)
    # end


def about_is_close(ops, x, y, z):
    """Test laws of is_close, for close numbers and others."""
    # begin 0.2d
    near, far = x + 1e-12, x + 1e-3
    says_yes = ops.is_close(x, near) and ops.is_close(near, x)
    says_no = not ops.is_close(x, far) and not ops.is_close(far, x)
    return bool(says_yes and says_no)
    # end


def about_relu(ops, x, y, z):
    """Test laws of relu."""
    # begin 0.2e
    right, left = ops.relu(x), ops.relu(ops.neg(x))
    is_split = ops.is_close(ops.add(right, ops.neg(left)), x)
    is_one_side_silent = ops.eq(ops.mul(right, left), 0.0)
    return all([is_split, is_one_side_silent])
    # end


def about_sigmoid(ops, x, y, z):
    """Test laws of sigmoid."""
    # begin 0.2f
    right, left = ops.sigmoid(x), ops.sigmoid(ops.neg(x))
    is_symmetric = ops.is_close(ops.add(right, left), 1.0)
    has_the_right_odds = ops.is_close(right, ops.mul(ops.exp(x), left))
    return all([is_symmetric, has_the_right_odds])
    # end


def about_exp_and_log(ops, x, y, z):
    """Test laws of exp and log together."""
    # begin 0.2g
    is_undone = ops.is_close(ops.log(ops.exp(x)), x)
    makes_products_of_sums = ops.is_close(ops.exp(ops.add(x, y)), ops.mul(ops.exp(x), ops.exp(y)))
    return all([is_undone, makes_products_of_sums])
    # end


def about_inv(ops, x, y, z):
    """Test laws of 1 / x; x may be 0, or so near to it that 1 / x is inf."""
    # begin 0.2h
    return abs(x) < 1e-300 or ops.is_close(ops.mul(x, ops.inv(x)), 1.0)
    # end
