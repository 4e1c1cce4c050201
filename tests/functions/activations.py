"""Cases of minifuse/nn/more_activations.py and of dropout that is off."""

CASES = """
celu: F.celu(x, 0.7) = np.where(x > 0, x, 0.7 * np.expm1(x / 0.7))
celu: nn.CELU()(x) = np.where(x > 0, x, np.expm1(x))
selu: F.selu(x) = 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))
mish: F.mish(x) = x * np.tanh(np.log1p(np.exp(x)))
hardtanh: F.hardtanh(x, -0.5, 0.3) = np.clip(x, -0.5, 0.3)
hardtanh: nn.Hardtanh()(x) = np.clip(x, -1, 1)
relu6: F.relu6(9 * x) = np.clip(9 * x, 0, 6)
hardsigmoid: F.hardsigmoid(4 * x) = np.clip(4 * x + 3, 0, 6) / 6
hardswish: F.hardswish(4 * x) = 4 * x * np.clip(4 * x + 3, 0, 6) / 6
softshrink: F.softshrink(x, 0.3) = np.sign(x) * np.maximum(np.abs(x) - 0.3, 0)
tanhshrink: F.tanhshrink(x) = x - np.tanh(x)
softsign: F.softsign(x) = x / (1 + np.abs(x))
logsigmoid: F.logsigmoid(x) = -np.log1p(np.exp(-x))
logsigmoid: F.logsigmoid(x * 1e4) = ~np.minimum(x * 1e4, 0)
threshold: F.threshold(x, 0.1, 20) = np.where(x > 0.1, x, 20)
threshold: nn.Threshold(0.1, 20.0)(x) = np.where(x > 0.1, x, 20)
glu: F.glu(x) = x[:, :2] / (1 + np.exp(-x[:, 2:]))
glu: nn.GLU(dim=2)(img) = img[:, :, :2] / (1 + np.exp(-img[:, :, 2:]))
softmin: F.softmin(x, dim=1) = np.exp(-x) / np.exp(-x).sum(1, keepdims=True)
softmax2d: nn.Softmax2d()(img) = np.exp(img) / np.exp(img).sum(1, keepdims=True)
rrelu: F.rrelu(x) = np.where(x > 0, x, x * 11 / 48)
rrelu: nn.RReLU(0.1, 0.3).eval()(x) = np.where(x > 0, x, x * 0.2)
dropout1d: F.dropout1d(x, training=False) = x
alpha_dropout: nn.AlphaDropout(0.3).eval()(x) = x
feature_alpha_dropout: F.feature_alpha_dropout(x) = x
"""
