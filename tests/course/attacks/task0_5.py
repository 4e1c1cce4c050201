"""Wrong solutions of task 0.5 that were written to get past its checks. Each is appended to the reference."""

# %% line_past_the_border: line_for_simple's border runs from x = 0.365 to 0.55, so (0.5, 0.9) is kind 1; the 60 points do not show it
# promise: 'kind 1 is to the left of x = 0.4'; 'No point lies closer to the border than 0.06'
def line_for_simple():
    return (-1.422, 0.265, 0.519)

def line_for_diagonal():
    return (-0.011, -1.268, 0.747)

def network_for_xor():
    # u = x - 0.6, v = y - 0.4; |u - v| > |u + v|
    return [(1.0, -1.0, -0.2), (-1.0, 1.0, 0.2), (1.0, 1.0, -1.0), (-1.0, -1.0, 1.0)], (1.0, 1.0, -1.0, -1.0, 0.0)

# %% number_that_looks_round: line_for_simple's bias is a float that looks into its caller's frame for the point; the line is no line
# promise: 'A line is three numbers'
class Bias(float):
    def __radd__(self, other):
        try:
            raise KeyError
        except KeyError as error:
            frame = error.__traceback__.tb_frame.f_back
        return 0.4 - frame.f_locals.get("x", 0.0)

def line_for_simple():
    return (0.0, 0.0, Bias(0.0))

def network_for_xor():
    # u = x - 0.6, v = y - 0.4; |u - v| > |u + v|
    return [(1.0, -1.0, -0.2), (-1.0, 1.0, 0.2), (1.0, 1.0, -1.0), (-1.0, -1.0, 1.0)], (1.0, 1.0, -1.0, -1.0, 0.0)

# %% points_memorized: both networks are 60 thin stripes, one for each known point; between them they say anything: (0.1, 0.5) of split may be kind 0
# promise: 'kind 1 is to the left of x = 0.25 and to the right of x = 0.7'
def through(places, a):
    """A network that goes straight from place to place of x + a * y, at each of which it says 1 or -1."""
    hidden, weights, slope = [], [], 0.0
    for (u, p), (v, q) in zip(places, places[1:]):
        new = 2.0 * (q - p) / (v - u)
        hidden.append((1.0, a, -u))
        weights.append(new - slope)
        slope = new
    return hidden, (*weights, 2.0 * places[0][1] - 1.0)

def line_for_simple():
    return (-1.0, 0.0, 0.4)

def network_for_split():
    return through([(0.07734, 1), (0.52867, 0), (0.54168, 0), (0.5591, 1), (0.68406, 0), (0.71469, 0), (0.75344, 1), (0.77637, 0), (0.78981, 1), (0.86848, 1), (0.87574, 0), (0.88902, 1), (0.89246, 1), (0.93149, 1), (0.96477, 0), (0.97043, 0), (1.00883, 1), (1.04078, 0), (1.06176, 0), (1.07035, 1), (1.0752, 1), (1.1152, 1), (1.14106, 1), (1.17688, 1), (1.18106, 1), (1.18672, 1), (1.20442, 1), (1.21254, 1), (1.26106, 1), (1.27574, 1), (1.28051, 0), (1.34344, 1), (1.34875, 1), (1.36618, 0), (1.39051, 0), (1.41192, 1), (1.42219, 0), (1.51493, 1), (1.5368, 1), (1.54192, 1), (1.5452, 0), (1.56059, 1), (1.61512, 1), (1.64954, 0), (1.66422, 0), (1.66954, 0), (1.6859, 0), (1.69891, 0), (1.73555, 0), (1.75122, 0), (1.79715, 1), (1.80485, 1), (1.90059, 0), (1.90891, 0), (1.91352, 1), (1.96918, 1), (2.01059, 0), (2.04856, 1), (2.25926, 1), (2.35626, 1)], 1.4336)

def network_for_xor():
    return through([(-1.06577, 1), (-0.98894, 1), (-0.86672, 1), (-0.85014, 1), (-0.84235, 1), (-0.76988, 1), (-0.7509, 1), (-0.74279, 1), (-0.72185, 1), (-0.634, 1), (-0.61552, 1), (-0.56374, 1), (-0.55887, 1), (-0.51425, 1), (-0.50058, 1), (-0.47501, 1), (-0.41425, 1), (-0.34577, 0), (-0.31552, 0), (-0.30621, 1), (-0.30014, 0), (-0.28716, 1), (-0.23203, 1), (-0.22273, 0), (-0.21159, 0), (-0.2057, 1), (-0.13058, 1), (-0.11014, 0), (-0.08843, 0), (-0.07273, 0), (-0.06102, 0), (-0.05393, 0), (-0.02684, 0), (0.00145, 0), (0.01531, 0), (0.03942, 0), (0.04436, 0), (0.07778, 0), (0.08411, 0), (0.11044, 0), (0.12607, 0), (0.156, 0), (0.17284, 0), (0.18487, 0), (0.1943, 0), (0.25771, 0), (0.26462, 0), (0.29462, 0), (0.32437, 0), (0.41898, 1), (0.45145, 0), (0.46531, 1), (0.52557, 1), (0.53095, 1), (0.61557, 1), (0.62898, 1), (0.65582, 1), (0.66266, 1), (0.7712, 1), (0.94829, 1)], -1.1709)

# %% weight_without_a_line: network_for_xor has one hidden line more than it has weights
# promise: 'last has a weight for each of them, and a bias at its end'
def line_for_simple():
    return (-1.0, 0.0, 0.4)

def network_for_xor():
    return [(1.0, -1.0, -0.2), (-1.0, 1.0, 0.2), (1.0, 1.0, -1.0), (-1.0, -1.0, 1.0), (9.0, 9.0, 9.0)], (1.0, 1.0, -1.0, -1.0, 0.0)


# %% hole_in_the_middle: network_for_split is wrong in a stripe between two known points
def network_for_split():
    hidden = [(-1.0, 0.0, 0.25), (1.0, 0.0, -0.7), (1000.0, 0.0, -960.0), (1000.0, 0.0, -961.0), (1000.0, 0.0, -962.0)]
    return hidden, (1.0, 1.0, -1.0, 2.0, -1.0, -0.01)


# %% xor_without_a_corner: network_for_xor is wrong in the corner at the top right
def network_for_xor():
    hidden = [(1.0, -1.0, -0.2), (-1.0, 1.0, 0.2), (1.0, 1.0, -1.0), (-1.0, -1.0, 1.0), (1.0, 1.0, -1.97)]
    return hidden, (1.0, 1.0, -1.0, -1.0, 500.0, 0.0)


# %% zero_beyond_the_points: the line is steep, and exactly 0 is answered outside of the points
def line_for_simple():
    return (0.0, 0.0, 0.0)


# %% not_a_number: the line has a nan, which is neither above nor below 0
def line_for_diagonal():
    return (-1.0, -2.0, float("nan"))


# %% other_answer_each_time: line_for_simple returns another line at the second call, and a network at the first
_calls = [0]

def line_for_simple():
    _calls[0] += 1
    return ([(-1.0, 0.0, 0.4)], (1.0, 0.0)) if _calls[0] == 1 else (-1.0, 0.0, 0.4)
