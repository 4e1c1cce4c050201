"""Wrong solutions of task 7.4 that were written to get past its checks. Each is appended to the reference."""

# %% bigram_model: a table of the next character's logits: no attention at all
# promise: 'The logits at a place depend on the codes at this place and before it'
class SonnetModel:
    def __init__(self, vocabulary, context, seed=0):
        random = Random(seed)
        drawn = [[random.gauss(0.0, 0.02) for _ in range(vocabulary)] for _ in range(vocabulary)]
        self.table = tensor(drawn, dtype="float64").requires_grad_()

    def parameters(self):
        return [self.table]

    def __call__(self, codes):
        return self.table[codes]

# %% bag_of_characters: no embedding of places: the past is seen, its order is not
# promise: 'and on their order'
class SonnetModel(SonnetModel):
    def __call__(self, codes):
        x = self.tokens[codes] + self.places[:1]
        x = x + self.mix(normalized(x))
        x = x + maximum(normalized(x) @ self.up, 0.0) @ self.down
        return normalized(x) @ self.head

# %% clamped_logits: logits are clamped to 700 in place of a shift
# promise: 'Logits may be large'
def cross_entropy(logits, targets):
    logits = minimum_of(maximum(logits, -700.0), 700.0)
    logs = logits.exp().sum(-1).log()
    return (logs - logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1)).mean()


def minimum_of(x, y):
    return -maximum(-x, -y)

# %% shifted_by_the_whole: one maximum of all rows, so that small rows underflow
# promise: 'Logits may be large'
def cross_entropy(logits, targets):
    shifted = logits - logits.detach().max()
    logs = shifted.exp().sum(-1).log()
    return (logs - shifted.gather(-1, targets.unsqueeze(-1)).squeeze(-1)).mean()

# %% one_hot_product: targets are chosen by a product with 0 and 1, which makes nan of -inf
# promise: '-inf where they are not a target's'
def cross_entropy(logits, targets):
    shifted = logits - logits.detach().max(-1, keepdims=True)
    logs = shifted.exp().sum(-1).log()
    chosen = where(arange(logits.shape[-1]) == targets.unsqueeze(-1), 1.0, 0.0)
    return (logs - (shifted * chosen).sum(-1)).mean()

# %% with_epsilon: a small number is added below the log
# promise: 'Return the mean of -log(softmax(logits)[target])'
def cross_entropy(logits, targets):
    shifted = (logits - logits.detach().max(-1, keepdims=True)).exp()
    shares = shifted / shifted.sum(-1, keepdims=True)
    return -(shares.gather(-1, targets.unsqueeze(-1)).squeeze(-1) + 1e-8).log().mean()

# %% library_loss: the library's log_softmax
# promise: 'Only elementary calls'
def cross_entropy(logits, targets):
    return -logits.log_softmax(-1).gather(-1, targets.unsqueeze(-1)).mean()

# %% detached_sum: the gradient of the normalizing sum is left out
# promise: 'Return the mean of -log(softmax(logits)[target])'
def cross_entropy(logits, targets):
    shifted = logits - logits.detach().max(-1, keepdims=True)
    logs = shifted.detach().exp().sum(-1).log()
    return (logs - shifted.gather(-1, targets.unsqueeze(-1)).squeeze(-1)).mean()

# %% clips_values: elements are clamped, the norm is right
# promise: 'by one factor'
def clip_gradients(parameters, max_norm):
    found = [p for p in parameters if p.grad is not None]
    norm = math.sqrt(sum((p.grad * p.grad).sum().item() for p in found))
    if not math.isfinite(norm):
        raise ValueError(norm)
    if norm > max_norm:
        for p in found:
            p.grad = -maximum(-maximum(p.grad, -max_norm), -max_norm)
    return norm

# %% norm_after: the norm after clipping is returned
# promise: 'return the norm before'
def clip_gradients(parameters, max_norm):
    found = [p for p in parameters if p.grad is not None]
    norm = math.sqrt(sum((p.grad * p.grad).sum().item() for p in found))
    if not math.isfinite(norm):
        raise ValueError(norm)
    for p in found:
        p.grad = p.grad * min(max_norm / max(norm, 1e-300), 1.0)
    return min(norm, max_norm)

# %% nan_to_zero: gradients that are nan are set to 0, with no error
# promise: 'Raise ValueError, and change nothing'
def clip_gradients(parameters, max_norm):
    found = [p for p in parameters if p.grad is not None]
    norm = math.sqrt(sum((p.grad * p.grad).sum().item() for p in found))
    if not math.isfinite(norm):
        for p in found:
            p.grad = p.grad * 0.0
        return 0.0
    if norm > max_norm:
        for p in found:
            p.grad = p.grad * (max_norm / norm)
    return norm

# %% clips_after_the_step: the gradients are clipped when the step is done
# promise: 'Gradients are those of this batch alone, and clipped'
def train_step(model, optimizer, inputs, targets, max_norm):
    optimizer.zero_grad()
    loss = cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
    clip_gradients(optimizer.parameters, max_norm)
    return loss.item()

# %% loss_after: the loss after the step is returned
# promise: 'return the loss before it'
def train_step(model, optimizer, inputs, targets, max_norm):
    optimizer.zero_grad()
    cross_entropy(model(inputs), targets).backward()
    clip_gradients(optimizer.parameters, max_norm)
    optimizer.step()
    with no_grad():
        return cross_entropy(model(inputs), targets).item()

# %% one_start: all windows of a batch follow each other
# promise: 'all that leave room for both are equally likely'
def draw_batch(codes, context, count, random):
    room = len(codes) - context
    first = random.randrange(room)
    rows = [codes[(first + k) % room :][: context + 1] for k in range(count)]
    return tensor([row[:-1] for row in rows]), tensor([row[1:] for row in rows])

# %% own_source: a random source of its own
# promise: 'The places come from `random`'
def draw_batch(codes, context, count, random):
    own = Random()
    rows = [codes[start:][: context + 1] for start in (own.randrange(len(codes) - context) for _ in range(count))]
    return tensor([row[:-1] for row in rows]), tensor([row[1:] for row in rows])

# %% drops_the_rest: the last window is left out if it is shorter
# promise: 'over all characters but the first'
def evaluate(model, codes, context):
    total, count = 0.0, max((len(codes) - 1) // context, 1) * min(context, len(codes) - 1)
    with no_grad():
        for start in range(0, count, context):
            row = codes[start : start + context + 1]
            total += cross_entropy(model(tensor([row[:-1]])), tensor([row[1:]])).item() * (len(row) - 1)
    loss = total / count
    return loss, math.exp(loss), loss / math.log(2)

# %% records_gradients: the evaluation records gradients
# promise: 'No gradients are computed'
def evaluate(model, codes, context):
    total, count = 0.0, len(codes) - 1
    for start in range(0, count, context):
        row = codes[start : start + context + 1]
        total += cross_entropy(model(tensor([row[:-1]])), tensor([row[1:]])).item() * (len(row) - 1)
    loss = total / count
    return loss, math.exp(loss), loss / math.log(2)

# %% last_of_equal_ones: of equal logits the last ones are kept
# promise: 'of equal ones those with smaller codes are kept'
def sample_next(logits, random, temperature=1.0, top_k=None):
    best = sorted(range(len(logits)), key=lambda code: (-logits[code], -code))
    if temperature == 0:
        return logits.index(max(logits))
    kept = sorted(best[:top_k])
    sums = list(accumulate(math.exp((logits[code] - logits[best[0]]) / temperature) for code in kept))
    u = random.random() * sums[-1]
    return next(code for code, total in zip(kept, sums, strict=True) if total > u)

# %% most_likely_first: codes are summed by probability, not by code
# promise: 'from code 0 on'
def sample_next(logits, random, temperature=1.0, top_k=None):
    kept = sorted(range(len(logits)), key=lambda code: -logits[code])[:top_k]
    if temperature == 0:
        return kept[0]
    sums = list(accumulate(math.exp((logits[code] - logits[kept[0]]) / temperature) for code in kept))
    u = random.random() * sums[-1]
    return next(code for code, total in zip(kept, sums, strict=True) if total > u)

# %% draws_at_zero: a number is drawn at temperature 0, too
# promise: 'and draws nothing'
def sample_next(logits, random, temperature=1.0, top_k=None):
    best = sorted(range(len(logits)), key=lambda code: -logits[code])
    u = random.random()
    if temperature == 0:
        return best[0]
    kept = sorted(best[:top_k])
    sums = list(accumulate(math.exp((logits[code] - logits[best[0]]) / temperature) for code in kept))
    return next(code for code, total in zip(kept, sums, strict=True) if total > u * sums[-1])

# %% frozen_model: the parameters that are named are not those that are used
# promise: 'Return all weights'
class SonnetModel(SonnetModel):
    def parameters(self):
        return [*super().parameters()[:-1], tensor([0.0], dtype="float64").requires_grad_()]

# %% first_code_after_rounding: code 0 is returned if no sum is greater than u
# promise: 'the last code that can be drawn'
def sample_next(logits, random, temperature=1.0, top_k=None):
    best = sorted(range(len(logits)), key=lambda code: -logits[code])
    if temperature == 0:
        return best[0]
    kept = sorted(best[:top_k])
    weights = [math.exp((logits[code] - logits[best[0]]) / temperature) for code in kept]
    sums = list(accumulate(weight / sum(weights) for weight in weights))
    u = random.random()
    return next((code for code, total in zip(kept, sums, strict=True) if total > u), 0)
