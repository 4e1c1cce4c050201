"""Cases of minifuse/nn/more_losses.py."""

CASES = """
binary_cross_entropy: F.binary_cross_entropy(p, m.to(p.dtype)) = -np.log(np.where(m, p, 1 - p)).mean()
binary_cross_entropy: nn.BCELoss(reduction="sum")(p, p) = -(p * np.log(p) + (1 - p) * np.log(1 - p)).sum()
binary_cross_entropy: F.binary_cross_entropy(p, p, weight=v) = -(v * (p * np.log(p) + (1 - p) * np.log(1 - p))).mean()
binary_cross_entropy: F.binary_cross_entropy(m.to(x.dtype), p, reduction="none") = ~np.where(m, 100 - 100 * p, 100 * p)
kl_div: F.kl_div(x, p) = (p * (np.log(p) - x)).mean()
kl_div: F.kl_div(x, p, reduction="batchmean") = (p * (np.log(p) - x)).sum() / 3
kl_div: nn.KLDivLoss(reduction="sum", log_target=True)(x, y) = (np.exp(y) * (y - x)).sum()
kl_div: F.kl_div(x, m.to(x.dtype), reduction="none") = ~np.where(m, -x, 0)
poisson_nll_loss: F.poisson_nll_loss(x, p) = (np.exp(x) - p * x).mean()
poisson_nll_loss: F.poisson_nll_loss(p, y, log_input=False, reduction="sum") = (p - y * np.log(p + 1e-8)).sum()
poisson_nll_loss: F.poisson_nll_loss(x, 1 + p, full=True) = ~(np.exp(x) - (1 + p) * x + (1 + p) * np.log(1 + p) - 1 - \
p + np.log(2 * np.pi * (1 + p)) / 2).mean()
gaussian_nll_loss: F.gaussian_nll_loss(x, y, p) = (np.log(p) + (x - y) ** 2 / p).mean() / 2
gaussian_nll_loss: F.gaussian_nll_loss(x, y, p[:, 0], full=True) = (np.log(2 * np.pi * p[:, :1]) + (x - y) ** 2 / \
p[:, :1]).mean() / 2
gaussian_nll_loss: nn.GaussianNLLLoss(eps=0.1)(x, y, 0.5) = (np.log(0.5) + (x - y) ** 2 / 0.5).mean() / 2
gaussian_nll_loss: F.gaussian_nll_loss(x, y, p * 0, eps=0.1) = ~(np.log(0.1) + (x - y) ** 2 / 0.1).mean() / 2
hinge_embedding_loss: F.hinge_embedding_loss(x, mf.where(m, 1, -1)) = np.where(m, x, np.maximum(0, 1 - x)).mean()
margin_ranking_loss: F.margin_ranking_loss(x, y, mf.where(m, 1, -1), 0.2) = np.maximum(0, np.where(m, y - x, x - y) + \
0.2).mean()
soft_margin_loss: F.soft_margin_loss(x, mf.where(m, 1, -1)) = np.log1p(np.exp(np.where(m, -x, x))).mean()
cosine_embedding_loss: F.cosine_embedding_loss(x, x * p, 2 * m[:, 0] - 1) = np.where(m[:, 0], 1 - (x * x * p).sum(1) \
/ np.sqrt((x * x).sum(1) * (x * x * p * p).sum(1)), np.maximum(0, (x * x * p).sum(1) / np.sqrt((x * x).sum(1) * (x * \
x * p * p).sum(1)))).mean()
multi_margin_loss: F.multi_margin_loss(x, i) = ((np.maximum(0, 1 - x[range(3), i][:, None] + x)).sum(1) - 1).mean() / 4
multi_margin_loss: nn.MultiMarginLoss(2, 0.5)(x, i) = ((np.maximum(0, 0.5 - x[range(3), i][:, None] + x) ** 2).sum(1) \
- 0.25).mean() / 4
multi_margin_loss: F.multi_margin_loss(x, i, weight=v, reduction="none") = ((np.maximum(0, 1 - x[range(3), i][:, \
None] + x)).sum(1) - 1) * v[i] / 4
multilabel_margin_loss: F.multilabel_margin_loss(v, mf.tensor([3, 0, -1, 1])) = np.maximum(0, 1 - v[[3, 0, 3, 0]] + \
v[[1, 1, 2, 2]]).sum() / 4
multilabel_margin_loss: F.multilabel_margin_loss(x, 0 * i[:, None] + mf.tensor([2, -1, 0, 1]), reduction="none") = \
(np.maximum(0, 1 - x[:, 2:3] + x).sum(1) - 1) / 4
multilabel_soft_margin_loss: F.multilabel_soft_margin_loss(x, m.to(x.dtype), v) = (v * np.log1p(np.exp(np.where(m, \
-x, x)))).mean()
triplet_margin_loss: F.triplet_margin_loss(x, y, p) = np.maximum(0, 1 + np.sqrt(((x - y + 1e-6) ** 2).sum(1)) - \
np.sqrt(((x - p + 1e-6) ** 2).sum(1))).mean()
triplet_margin_loss: F.triplet_margin_loss(x, y, p, p=1, swap=True) = np.maximum(0, 1 + np.abs(x - y + 1e-6).sum(1) - \
np.minimum(np.abs(x - p + 1e-6).sum(1), np.abs(y - p + 1e-6).sum(1))).mean()
triplet_margin_with_distance_loss: nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a * b).sum(1))(x, \
y, p) = np.maximum(0, 1 + (x * y).sum(1) - (x * p).sum(1)).mean()
cross_entropy: F.cross_entropy(x, i, v * v) = -((x - np.log(np.exp(x).sum(1, keepdims=True)))[range(3), i] * v[i] ** 2)\
.sum() / (v[i] ** 2).sum()
cross_entropy: F.cross_entropy(x, i, v * v, label_smoothing=0.2, reduction="sum") = -((x - np.log(np.exp(x).sum(1, \
keepdims=True))) * v * v * (0.05 + 0.8 * np.eye(4)[i])).sum()
cross_entropy: F.cross_entropy(x, p, reduction="none") = -((x - np.log(np.exp(x).sum(1, keepdims=True))) * p).sum(1)
cross_entropy: F.cross_entropy(x, p, v, label_smoothing=0.4) = -((x - np.log(np.exp(x).sum(1, keepdims=True))) * v * \
(0.1 + \
0.6 * p)).sum() / 3
cross_entropy: F.cross_entropy(v, i[0]) = np.log(np.exp(v).sum()) - v[2]
nll_loss: F.nll_loss(x, i, v * v, ignore_index=0) = -(x[[0, 2], [2, 3]] * v[[2, 3]] ** 2).sum() / (v[[2, 3]] ** 2).sum()
binary_cross_entropy_with_logits: F.binary_cross_entropy_with_logits(x, p, v) = (v * (np.log1p(np.exp(x)) - p * x)).mean()
linear_cross_entropy: F.linear_cross_entropy(x, s[:, :1] * v, i * 0, linear_bias=v[:3]) = np.log(np.exp(x @ (s[:, :1] \
* v).T \
+ v[:3]).sum(1)).mean() - (x @ (s[0, 0] * v) + v[0]).mean()
softplus: F.softplus(x, 2, 0.5) = ~np.where(2 * x > 0.5, x, np.log1p(np.exp(2 * x)) / 2)
embedding_bag: F.embedding_bag(a % 3, x) = x[a % 3].mean(1)
embedding_bag: F.embedding_bag(a % 3, x, mode="max") = x[a % 3].max(1)
embedding_bag: F.embedding_bag(a % 3, x, mode="sum", per_sample_weights=y) = (x[a % 3] * y[..., None]).sum(1)
embedding_bag: F.embedding_bag(b[0] % 3, x, i[1:] // 3, mode="sum") = np.stack([x[b[0, :1] % 3].sum(0), x[b[0, 1:] % \
3].sum(0)])
embedding_bag: F.embedding_bag(b[0] % 3, x, i[1:] // 3) = np.stack([x[b[0, :1] % 3].mean(0), x[b[0, 1:] % 3].mean(0)])
embedding_bag: F.embedding_bag(b[0] % 3, x, i[1:] // 3, mode="max") = np.stack([x[b[0, :1] % 3].max(0), x[b[0, 1:] % \
3].max(0)])
embedding_bag: F.embedding_bag(a % 3, x, padding_idx=1, mode="sum") = (x[a % 3] * (a % 3 != 1)[..., None]).sum(1)
"""
