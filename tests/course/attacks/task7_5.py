"""Wrong solutions of task 7.5 that were written to get past its checks. Each is appended to the reference."""

# %% numbers_in_lists: keys are kept as lists of numbers, and become a tensor for each reading
# promise: 'two views'
class KeyValueCache:
    def __init__(self, layers, heads, size):
        self.shape = heads, size
        self.pairs = [[] for _ in range(layers)]

    def __len__(self):
        return len(self.pairs[-1])

    def append(self, layer, key, value):
        self.pairs[layer].append((key.tolist(), value.tolist()))

    def read(self, layer):
        heads, size = self.shape
        found = zeros(2, heads, len(self.pairs[layer]), size, dtype=float64)
        for t, pair in enumerate(self.pairs[layer]):
            found[0, :, t], found[1, :, t] = tensor(pair[0], dtype=float64), tensor(pair[1], dtype=float64)
        return found[0], found[1]

    def reset(self):
        self.pairs = [[] for _ in self.pairs]


from minifuse.course.elementary import tensor

# %% stacked_at_reading: a list of tensors, stacked for each reading
# promise: 'nothing is copied'
class KeyValueCache:
    def __init__(self, layers, heads, size):
        self.empty = zeros(heads, 0, size, dtype=float64)
        self.pairs = [[] for _ in range(layers)]

    def __len__(self):
        return len(self.pairs[-1])

    def append(self, layer, key, value):
        self.pairs[layer].append((key, value))

    def read(self, layer):
        if not self.pairs[layer]:
            return self.empty, self.empty
        return tuple(stack(list(part), 1) for part in zip(*self.pairs[layer]))

    def reset(self):
        self.pairs = [[] for _ in self.pairs]

# %% grows_by_eight: memory grows by eight tokens each time
# promise: 'at most 8 times'
class KeyValueCache(KeyValueCache):
    def append(self, layer, key, value):
        memory, length = self.memory[layer], self.lengths[layer]
        if length == memory.shape[2]:
            larger = zeros(2, self.shape[0], length + 8, self.shape[1], dtype=float64)
            larger[:, :, :length] = memory
            memory = self.memory[layer] = larger
        memory[0, :, length] = key
        memory[1, :, length] = value
        self.lengths[layer] = length + 1

# %% huge_from_the_start: memory for thousands of tokens is made at once
# promise: 'memory'
class KeyValueCache(KeyValueCache):
    def __init__(self, layers, heads, size):
        self.shape = heads, size
        self.memory = [zeros(2, heads, 100000, size, dtype=float64) for _ in range(layers)]
        self.lengths = [0] * layers

# %% float32_cache: keys are kept in half the precision
# promise: 'in float64'
class KeyValueCache(KeyValueCache):
    def __init__(self, layers, heads, size):
        self.shape = heads, size
        self.memory = [zeros(2, heads, 512, size) for _ in range(layers)]
        self.lengths = [0] * layers

# %% resets_the_last_layer: reset forgets one layer
# promise: 'in every layer'
class KeyValueCache(KeyValueCache):
    def reset(self):
        self.lengths[-1] = 0

# %% forgets_the_oldest: a window of the last eight tokens
# promise: 'All tokens of a layer'
class KeyValueCache(KeyValueCache):
    def read(self, layer):
        first = max(self.lengths[layer] - 4, 0)
        memory = self.memory[layer][:, :, first : self.lengths[layer]]
        return memory[0], memory[1]

# %% wrong_axis: the softmax is over heads
# promise: 'softmax(query . keys / sqrt(size))'
def attend(query, keys, values):
    scores = (keys @ query.unsqueeze(-1)).squeeze(-1) * (1 / math.sqrt(query.shape[-1]))
    powers = (scores - scores.max(0, keepdims=True)).exp()
    return ((powers / powers.sum(0, keepdims=True)).unsqueeze(1) @ values).squeeze(1)

# %% clamped_scores: scores are clamped to 30
# promise: 'Scores may be large'
def attend(query, keys, values):
    scores = (keys @ query.unsqueeze(-1)).squeeze(-1) * (1 / math.sqrt(query.shape[-1]))
    powers = (-((-scores).relu() - 0.0) + scores.relu()).clamp(-30.0, 30.0).exp()
    return ((powers / powers.sum(-1, keepdims=True)).unsqueeze(1) @ values).squeeze(1)

# %% one_call_each: the model is called once for each sequence
# promise: 'for all N at once'
def decode_step(model, codes, caches):
    rows = []
    for code, cache in zip(codes, caches):
        x = model.embed([code], [len(cache)])
        for layer in range(model.layers):
            query, key, value = model.project(layer, x)
            cache.append(layer, key[0], value[0])
            x = model.finish(layer, x, attend(query[0], *cache.read(layer)).unsqueeze(0))
        rows.append(model.logits(x).squeeze(0))
    return stack(rows)

# %% all_queries: the queries of all tokens attend in each step, and the last is taken
# promise: 'for the newest token'
def attend(query, keys, values):
    scores = keys @ keys.permute(0, 2, 1)
    own = (keys @ query.unsqueeze(-1)).squeeze(-1) * (1 / math.sqrt(query.shape[-1]))
    own = own + scores.sum(-1) * 0.0
    powers = (own - own.max(-1, keepdims=True)).exp()
    return ((powers / powers.sum(-1, keepdims=True)).unsqueeze(1) @ values).squeeze(1)

# %% feeds_the_last_code: the last code of all is fed, too
# promise: 'the last code of each sequence not at all'
def generate(model, prompts, count, choose):
    caches = [KeyValueCache(model.layers, model.heads, model.size) for _ in prompts]
    found = [list(prompt) for prompt in prompts]
    lengths = [len(prompt) + count for prompt in prompts]
    while active := [k for k, cache in enumerate(caches) if len(cache) < lengths[k]]:
        logits = decode_step(model, [found[k][len(caches[k])] for k in active], [caches[k] for k in active])
        for k, row in zip(active, logits.tolist()):
            if len(caches[k]) == len(found[k]) < lengths[k]:
                found[k].append(choose(row))
    return [codes[len(prompt) :] for codes, prompt in zip(found, prompts)]

# %% extends_the_prompts: codes are appended to the prompts
# promise: 'Return, for each prompt, a list'
def generate(model, prompts, count, choose, inner=generate):
    found = inner(model, prompts, count, choose)
    for prompt, codes in zip(prompts, found):
        prompt += codes
    return found

# %% copies_the_first_eight: only the tokens of the first memory are copied, so the second growth loses tokens
# promise: 'All tokens of a layer'
class KeyValueCache(KeyValueCache):
    def append(self, layer, key, value):
        memory, length = self.memory[layer], self.lengths[layer]
        if length == memory.shape[2]:
            larger = zeros(2, self.shape[0], 2 * length, self.shape[1], dtype=float64)
            larger[:, :, :8] = memory[:, :, :8]
            memory = self.memory[layer] = larger
        memory[0, :, length] = key
        memory[1, :, length] = value
        self.lengths[layer] = length + 1

# %% copies_the_keys: the values are not copied when the memory grows
# promise: 'the keys and values'
class KeyValueCache(KeyValueCache):
    def append(self, layer, key, value):
        memory, length = self.memory[layer], self.lengths[layer]
        if length == memory.shape[2]:
            larger = zeros(2, self.shape[0], 2 * length, self.shape[1], dtype=float64)
            larger[0, :, :length] = memory[0]
            memory = self.memory[layer] = larger
        memory[0, :, length] = key
        memory[1, :, length] = value
        self.lengths[layer] = length + 1

# %% loses_at_128: the copy is left out once the memory is large
# promise: 'All tokens of a layer'
class KeyValueCache(KeyValueCache):
    def append(self, layer, key, value):
        memory, length = self.memory[layer], self.lengths[layer]
        if length == memory.shape[2]:
            larger = zeros(2, self.shape[0], 2 * length, self.shape[1], dtype=float64)
            if length < 128:
                larger[:, :, :length] = memory
            memory = self.memory[layer] = larger
        memory[0, :, length] = key
        memory[1, :, length] = value
        self.lengths[layer] = length + 1

# %% attends_to_thirty: attention sees the last thirty tokens
# promise: 'for the newest token'
def attend(query, keys, values):
    keys, values = keys[:, -30:], values[:, -30:]
    scores = (keys @ query.unsqueeze(-1)).squeeze(-1) * (1 / math.sqrt(query.shape[-1]))
    powers = (scores - scores.max(-1, keepdims=True)).exp()
    return ((powers / powers.sum(-1, keepdims=True)).unsqueeze(1) @ values).squeeze(1)

# %% a_new_cache_at_24: generation forgets what is before place 24
# promise: 'in float64'
def decode_step(model, codes, caches):
    places = [len(cache) for cache in caches]
    for cache, place in zip(caches, places):
        if place == 24:
            cache.start = 24
            cache.reset()
    x = model.embed(codes, [place + getattr(cache, "start", 0) for cache, place in zip(caches, map(len, caches))])
    for layer in range(model.layers):
        query, key, value = model.project(layer, x)
        mixed = []
        for k, cache in enumerate(caches):
            cache.append(layer, key[k], value[k])
            mixed.append(attend(query[k], *cache.read(layer)))
        x = model.finish(layer, x, stack(mixed))
    return model.logits(x)
