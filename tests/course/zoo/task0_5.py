"""Wrong solutions of task 0.5, one a cell: `# %% name: the mistake that the check must name`."""


# %% a_single_line: a single line is to separate what no line can
def network_for_split():
    return [(-1.0, 0.0, 0.25)], (1.0, -0.01)


# %% bias_with_the_wrong_sign: the bias has the wrong sign
def line_for_diagonal():
    return (-1.0, -2.0, -1.5)


# %% border_bent: the border is right only where the points of the picture are
def line_for_simple():
    return (-1.422, 0.265, 0.519)


# %% no_bias: the line has no bias
def line_for_simple():
    return (-1.0, 0.4, 0.0)


# %% sides_exchanged: the two sides are exchanged
def line_for_simple():
    return (1.0, 0.0, -0.4)


# %% silent_in_the_middle: the network says 0 where it should say less
def network_for_split():
    return [(-1.0, 0.0, 0.25), (1.0, 0.0, -0.7)], (1.0, 1.0, 0.0)


# %% two_numbers: the answer has the wrong number of numbers
def line_for_simple():
    return (-1.0, 0.4)


# %% weights_exchanged: the weights of x and y are exchanged
def line_for_diagonal():
    return (-2.0, -1.0, 1.5)
