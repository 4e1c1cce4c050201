"""Wrong solutions of task 7.4, one a cell: `# %% name: the mistake that the check must name`."""


# %% all_windows_of_one: the last window is never drawn
def draw_batch(codes, context, count, random):
    starts = [random.randrange(max(len(codes) - context - 1, 1)) for _ in range(count)]
    rows = [codes[start : start + context + 1] for start in starts]
    return tensor([row[:-1] for row in rows]), tensor([row[1:] for row in rows])


# %% copies: targets are the inputs themselves
def draw_batch(codes, context, count, random):
    starts = [random.randrange(len(codes) - context) for _ in range(count)]
    rows = tensor([codes[start : start + context] for start in starts])
    return rows, rows


# %% from_the_end: codes out of range are decoded
class Tokenizer:
    def __init__(self, text):
        self.characters = sorted(set(text))
        self.codes = {character: code for code, character in enumerate(self.characters)}

    def __len__(self):
        return len(self.characters)

    def encode(self, text):
        if set(text) - set(self.codes):
            raise ValueError(text)
        return [self.codes[character] for character in text]

    def decode(self, codes):
        if any(code >= len(self) for code in codes):
            raise ValueError(codes)
        return "".join(self.characters[code] for code in codes)


# %% not_shifted: exp overflows
def cross_entropy(logits, targets):
    logs = logits.exp().sum(-1).log()
    return (logs - logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1)).mean()


# %% one_by_one: gradients are clipped one by one
def clip_gradients(parameters, max_norm):
    found = [p for p in parameters if p.grad is not None]
    norms = [math.sqrt((p.grad * p.grad).sum().item()) for p in found]
    norm = math.sqrt(sum(x * x for x in norms))
    if not math.isfinite(norm):
        raise ValueError(f"the norm of the gradients is {norm}")
    for p, own in zip(found, norms):
        if own > max_norm:
            p.grad = p.grad * (max_norm / own)
    return norm


# %% normalized_gradients: small gradients are scaled up
def clip_gradients(parameters, max_norm):
    found = [p for p in parameters if p.grad is not None]
    norm = math.sqrt(sum((p.grad * p.grad).sum().item() for p in found))
    if not math.isfinite(norm):
        raise ValueError(f"the norm of the gradients is {norm}")
    for p in found:
        p.grad = p.grad * (max_norm / norm) if norm else p.grad
    return norm


# %% never_zeroed: gradients of earlier batches are added
def train_step(model, optimizer, inputs, targets, max_norm):
    loss = cross_entropy(model(inputs), targets)
    loss.backward()
    clip_gradients(optimizer.parameters, max_norm)
    optimizer.step()
    return loss.item()


# %% mean_of_means: a short last window counts as much as a whole one
def evaluate(model, codes, context):
    losses = []
    with no_grad():
        for start in range(0, len(codes) - 1, context):
            row = codes[start : start + context + 1]
            losses.append(cross_entropy(model(tensor([row[:-1]])), tensor([row[1:]])).item())
    loss = sum(losses) / len(losses)
    return loss, math.exp(loss), loss / math.log(2)


# %% times_temperature: logits are multiplied by the temperature
def sample_next(logits, random, temperature=1.0, top_k=None):
    best = sorted(range(len(logits)), key=lambda code: -logits[code])
    if temperature == 0:
        return best[0]
    kept = sorted(best[:top_k])
    sums = list(accumulate(math.exp((logits[code] - logits[best[0]]) * temperature) for code in kept))
    u = random.random() * sums[-1]
    return next(code for code, total in zip(kept, sums, strict=True) if total > u)


# %% no_mask: the model sees the future
class SonnetModel(SonnetModel):
    def mix(self, x):
        count, length, width = x.shape
        shape = count, length, self.heads, width // self.heads
        q, k, v = ((x @ w).reshape(*shape).permute(0, 2, 1, 3) for w in (self.query, self.key, self.value))
        scores = q @ k.permute(0, 1, 3, 2) * (width // self.heads) ** -0.5
        powers = (scores - scores.detach().max(-1, keepdims=True)).exp()
        mixed = powers / powers.sum(-1, keepdims=True) @ v
        return mixed.permute(0, 2, 1, 3).reshape(count, length, width) @ self.out


# %% large_head: the loss begins too high
class SonnetModel(SonnetModel):
    def __init__(self, vocabulary, context, seed=0, width=32, heads=2):
        super().__init__(vocabulary, context, seed, width, heads)
        random = Random(seed)
        drawn = [[random.gauss(0.0, 1.0) for _ in range(vocabulary)] for _ in range(width)]
        self.head = tensor(drawn, dtype="float64").requires_grad_()


# %% no_place: the last window is never drawn
def draw_batch(codes, context, count, random):
    starts = [random.randrange(len(codes) - context - 1) for _ in range(count)]
    rows = [codes[start : start + context + 1] for start in starts]
    return tensor([row[:-1] for row in rows]), tensor([row[1:] for row in rows])


# %% mask_of_the_target: 0 is multiplied by -inf, which is nan
def cross_entropy(logits, targets):
    shifted = logits - logits.detach().max(-1, keepdims=True)
    logs = shifted.exp().sum(-1).log()
    is_target = arange(logits.shape[-1]) == targets.unsqueeze(-1)
    return (logs - (shifted * is_target).sum(-1)).mean()


# %% clips_late: gradients are clipped after the step, or not at all
def train_step(model, optimizer, inputs, targets, max_norm):
    optimizer.zero_grad()
    loss = cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
    clip_gradients(optimizer.parameters, max_norm)
    return loss.item()


# %% records: gradients are recorded
def evaluate(model, codes, context):
    total, count = 0.0, len(codes) - 1
    for start in range(0, count, context):
        row = codes[start : start + context + 1]
        loss = cross_entropy(model(tensor([row[:-1]])), tensor([row[1:]]))
        total += loss.item() * (len(row) - 1)
    loss = total / count
    return loss, math.exp(loss), loss / math.log(2)


# %% no_attention: each place sees only itself
class SonnetModel(SonnetModel):
    def mix(self, x):
        return x


# %% no_places: attention does not know places
class SonnetModel(SonnetModel):
    def __call__(self, codes):
        x = self.tokens[codes]
        x = x + self.mix(normalized(x))
        x = x + maximum(normalized(x) @ self.up, 0.0) @ self.down
        return normalized(x) @ self.head
