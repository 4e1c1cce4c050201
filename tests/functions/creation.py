"""Cases of minifuse/functions/creation.py."""

CASES = """
eye: mf.eye(3, 4, dtype=mf.float64) * x = np.eye(3, 4) * x
linspace: mf.linspace(-1, 2, 7, dtype=mf.float64) = np.linspace(-1, 2, 7)
logspace: mf.logspace(0, 2, 5, base=2.0, dtype=mf.float64) = np.logspace(0, 2, 5, base=2)
range: mf.range(1, 3, 0.5) = np.arange(1, 3.5, 0.5)
full_like: mf.full_like(x, 2) = np.full_like(x, 2)
as_tensor: mf.as_tensor([[1, 2], [3, 4]]) = np.array([[1, 2], [3, 4]])
asarray: mf.asarray(x) * 2 = x * 2
new_ones: a.new_ones(2, 3) = np.ones((2, 3), int)
new_tensor: x.new_tensor([1, 2]) = np.array([1.0, 2.0])
new_full: x.new_full((2,), 3.5) = np.full(2, 3.5)
tril_indices: mf.tril_indices(3, 4, -1) = np.stack(np.tril_indices(3, -1, 4))
triu_indices: mf.triu_indices(3, 4) = np.stack(np.triu_indices(3, 0, 4))
hann_window: mf.hann_window(6, dtype=mf.float64) = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(6) / 6)
bartlett_window: mf.bartlett_window(7, periodic=False, dtype=mf.float64) = np.bartlett(7)
hamming_window: mf.hamming_window(5, False, dtype=mf.float64) = np.hamming(5)
kaiser_window: mf.kaiser_window(5, False, 8.0, dtype=mf.float64) = np.kaiser(5, 8.0)
blackman_window: mf.blackman_window(5, False, dtype=mf.float64) = np.blackman(5)
"""
