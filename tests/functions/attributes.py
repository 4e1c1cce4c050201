"""Cases of minifuse/functions/attributes.py."""

CASES = """
dim: x.dim() = 2
numel: mf.numel(x) = 12
size: x.size(-1), x.size() = 4, (3, 4)
stride: x.stride(0), x.T.stride() = 4, (1, 4)
element_size: x.element_size(), x.nbytes, a.itemsize = 8, 96, 8
is_floating_point: x.is_floating_point(), mf.is_floating_point(a) = True, False
is_signed: m.is_signed(), a.is_signed() = False, True
float: a.double() / 2 = a / 2
long: (x * 3).long() = (x * 3).astype(np.int64)
bool: a.bool() = a != 0
type_as: a.type_as(x) = a.astype(float)
cpu: x.cpu() * 2 = x * 2
max: (x * 2).max(1).indices, x.max(0).values = (x * 2).argmax(1), x.max(0)
max: mf.max(x, 1), mf.min(x), mf.max(x, y) = ((x.max(1), x.argmax(1)), x.min(), np.maximum(x, y))
sum: x.sum(axis=1, keepdims=True), x.sum(dtype=mf.float64) = x.sum(axis=1, keepdims=True), x.sum()
var: x.var(unbiased=False), x.std(0, ddof=0) = x.var(), x.std(0)
"""
