"""Right solutions of task 7.4 that are written in unusual ways. Each is appended to the reference."""

# %% one_hot_targets: the loss by where and a mask of the targets, and the log of the sum by rows
def cross_entropy(logits, targets):
    vocabulary = logits.shape[-1]
    flat, wanted = logits.reshape(-1, vocabulary), targets.reshape(-1, 1)
    largest = flat.max(-1, keepdims=True)
    logs = (flat - largest).exp().sum(-1, keepdims=True).log() + largest
    chosen = where(arange(vocabulary) == wanted, logs - flat, 0.0)
    return chosen.sum() / wanted.shape[0]


def evaluate(model, codes, context):
    parts = []
    with no_grad():
        while len(codes) > 1:
            row, codes = codes[: context + 1], codes[context:]
            inputs, targets = tensor([row[:-1]]), tensor([row[1:]])
            parts += [cross_entropy(model(inputs), targets).item()] * len(row[1:])
    loss = math.fsum(parts) / len(parts)
    return loss, 2 ** (loss / math.log(2)), loss * math.log2(math.e)

# %% lookup_by_string: a tokenizer without a dict, gradients clipped in place, and samples by subtraction
class Tokenizer:
    def __init__(self, text):
        self.letters = "".join(sorted(dict.fromkeys(text)))

    def __len__(self):
        return len(self.letters)

    def encode(self, text):
        return list(map(self.letters.index, text))

    def decode(self, codes):
        found = ""
        for code in codes:
            if code not in range(len(self.letters)):
                raise ValueError(f"{code} is no code")
            found += self.letters[code]
        return found


def clip_gradients(parameters, max_norm):
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = math.hypot(*[math.hypot(*g.reshape(-1).tolist()) for g in gradients])
    if norm != norm or norm == math.inf:
        raise ValueError("a gradient is nan or inf")
    factor = min(1.0, max_norm / norm) if norm else 1.0
    if factor < 1.0:
        for g in gradients:
            g *= factor
    return norm


def sample_next(logits, random, temperature=1.0, top_k=None):
    largest = max(logits)
    if not temperature:
        return logits.index(largest)
    order = sorted(range(len(logits)), key=lambda k: (-logits[k], k))
    allowed = set(order if top_k is None else order[:top_k])
    weights = [math.exp((x - largest) / temperature) if k in allowed else 0.0 for k, x in enumerate(logits)]
    left = random.random() * math.fsum(weights)
    last = 0
    for k, weight in enumerate(weights):
        if weight > 0.0:
            last = k
            if left < weight:
                return k
            left -= weight
    return last

# %% zero_head: two blocks without an mlp, a head of zeros, and attention in one head of all places by matrices
class SonnetModel:
    def __init__(self, vocabulary, context, seed=0, width=24):
        random = Random(str(seed))

        def drawn(rows, columns, size):
            return tensor([[random.uniform(-size, size) for _ in range(columns)] for _ in range(rows)], dtype="float64")

        self.table = drawn(vocabulary, width, 1.0).requires_grad_()
        self.order = drawn(context, width, 1.0).requires_grad_()
        self.blocks = [[drawn(width, width, 0.3).requires_grad_() for _ in range(3)] for _ in range(2)]
        self.head = tensor([[0.0] * vocabulary] * width, dtype="float64").requires_grad_()

    def parameters(self):
        return [self.table, self.order, self.head] + [w for block in self.blocks for w in block]

    def __call__(self, codes):
        length = codes.shape[-1]
        x = self.table[codes] + self.order[:length]
        hidden = arange(length).unsqueeze(0) > arange(length).unsqueeze(1)
        for first, second, third in self.blocks:
            y = normalized(x)
            scores = where(hidden, -1e300, (y @ first) @ y.permute(0, 2, 1) / 5.0)
            powers = (scores - scores.max(-1, keepdims=True)).exp()
            x = x + powers / powers.sum(-1, keepdims=True) @ (y @ second) @ third
        return normalized(x) @ self.head


def draw_batch(codes, context, count, random):
    text = tensor(codes)
    starts = tensor([int(random.random() * (len(codes) - context)) for _ in range(count)])
    places = starts.unsqueeze(1) + arange(context).unsqueeze(0)
    return text[places], text[places + 1]

# %% functions_of_7_2_and_7_3: layer norm and attention are those of the tasks before
from attention import attention, causal_mask, merge_heads, split_heads
from layer_norm import layer_norm
from minifuse.course.elementary import ones, zeros


class SonnetModel(SonnetModel):
    def __init__(self, vocabulary, context, seed=0, width=32, heads=2):
        super().__init__(vocabulary, context, seed, width, heads)
        self.scale = ones(width, dtype="float64").requires_grad_()
        self.shift = zeros(width, dtype="float64").requires_grad_()

    def parameters(self):
        return [*super().parameters(), self.scale, self.shift]

    def __call__(self, codes):
        length = codes.shape[1]
        x = self.tokens[codes] + self.places[:length]
        y = layer_norm(x, self.scale, self.shift)
        q, k, v = (split_heads(y @ w, self.heads) for w in (self.query, self.key, self.value))
        x = x + merge_heads(attention(q, k, v, causal_mask(length, length))) @ self.out
        x = x + maximum(layer_norm(x, self.scale, self.shift) @ self.up, 0.0) @ self.down
        return layer_norm(x, self.scale, self.shift) @ self.head


# %% factor_of_pytorch: the factor of clip_grad_norm_, with a small number added to the norm
def clip_gradients(parameters, max_norm):
    found = [p for p in parameters if p.grad is not None]
    norm = math.sqrt(sum((p.grad * p.grad).sum().item() for p in found))
    if not math.isfinite(norm):
        raise ValueError(f"the norm of the gradients is {norm}")
    factor = min(1.0, max_norm / (norm + 1e-6))
    for p in found:
        p.grad = p.grad * factor
    return norm
