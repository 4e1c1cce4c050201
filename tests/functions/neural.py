"""Cases of minifuse/functions/neural.py, and of the layers made from it."""

CASES = """
hardshrink: mf.hardshrink(x, 0.3) = np.where(np.abs(x) > 0.3, x, 0)
hardshrink: nn.Hardshrink()(x) = np.where(np.abs(x) > 0.5, x, 0)
prelu: mf.prelu(x, v) = np.where(x > 0, x, x * v)
prelu: F.prelu(img, v) = np.where(img > 0, img, img * v.reshape(4, 1, 1))
prelu: mf.prelu(x, v[:1]) = np.where(x > 0, x, x * v[0])
bilinear: mf.bilinear(x, y, t[:1, 0, :, None] * v, v[:1]) = np.einsum("ni,i,j,nj->n", x, t[0, 0], v, y)[:, None] + v[0]
cosine_similarity: F.cosine_similarity(x, y) = (x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(1))
cosine_similarity: nn.CosineSimilarity(dim=0)(x, v) = (x * v).sum(0) / np.sqrt((x * x).sum(0) * 3 * v * v)
cosine_similarity: F.cosine_similarity(x * 0, y) = ~0 * x[:, 0]
pairwise_distance: F.pairwise_distance(x, y) = np.sqrt(((x - y + 1e-6) ** 2).sum(1))
pairwise_distance: nn.PairwiseDistance(p=1.0, keepdim=True)(x, y) = np.abs(x - y + 1e-6).sum(1, keepdims=True)
cdist: mf.cdist(x, y) = np.sqrt(((x[:, None] - y) ** 2).sum(-1))
cdist: mf.cdist(t, t + 1, p=3) = (np.abs(t[:, :, None] - t[:, None] - 1) ** 3).sum(-1) ** (1 / 3)
cdist: mf.cdist(x, x, p=float("inf")) = ~np.abs(x[:, None] - x).max(-1)
pdist: F.pdist(t[:, 0]) = np.sqrt(((t[:1, 0] - t[1:, 0]) ** 2).sum(-1))
pdist: mf.pdist(s.T, p=0) = ~np.array([3.0, 3.0, 3.0])
pdist: mf.pdist(x, p=1) = np.abs(x[[0, 0, 1]] - x[[1, 2, 2]]).sum(-1)
normalize: F.normalize(x) = x / np.sqrt((x * x).sum(1, keepdims=True))
normalize: F.normalize(x, p=1, dim=0) = x / np.abs(x).sum(0)
normalize: F.normalize(x * 0) = ~x * 0
one_hot: F.one_hot(i, num_classes=5) = np.eye(5, dtype=int)[i]
one_hot: F.one_hot(i) = !np.eye(4, dtype=int)[i]
"""
