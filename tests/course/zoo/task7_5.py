"""Wrong solutions of task 7.5, one a cell: `# %% name: the mistake that the check must name`."""


# %% not_copied: old keys are not copied into the larger memory
class KeyValueCache(KeyValueCache):
    def append(self, layer, key, value):
        memory, length = self.memory[layer], self.lengths[layer]
        if length == memory.shape[2]:
            memory = self.memory[layer] = zeros(2, self.shape[0], 2 * length, self.shape[1], dtype=float64)
        memory[0, :, length] = key
        memory[1, :, length] = value
        self.lengths[layer] = length + 1


# %% resets_one_layer: reset leaves tokens in a layer
class KeyValueCache(KeyValueCache):
    def reset(self):
        self.lengths[-1] = 0


# %% attends_before: the new token does not see itself
def decode_step(model, codes, caches):
    x = model.embed(codes, [len(cache) for cache in caches])
    for layer in range(model.layers):
        query, key, value = model.project(layer, x)
        mixed = []
        for k, cache in enumerate(caches):
            mixed.append(attend(query[k], *cache.read(layer)))
            cache.append(layer, key[k], value[k])
        x = model.finish(layer, x, stack(mixed))
    return model.logits(x)


# %% concatenated: all tokens are copied for each new one
class KeyValueCache:
    def __init__(self, layers, heads, size):
        self.empty = zeros(heads, 0, size, dtype=float64)
        self.reset_to(layers)

    def reset_to(self, layers):
        self.pairs = [[] for _ in range(layers)]
        self.found = [(self.empty, self.empty) for _ in range(layers)]

    def __len__(self):
        return len(self.pairs[-1])

    def append(self, layer, key, value):
        self.pairs[layer].append((key, value))
        self.found[layer] = tuple(stack(list(part), 1) for part in zip(*self.pairs[layer], strict=True))

    def read(self, layer):
        return self.found[layer]

    def reset(self):
        self.reset_to(len(self.pairs))


# %% not_scaled: scores are not divided by the root of size
def attend(query, keys, values):
    scores = (keys @ query.unsqueeze(-1)).squeeze(-1)
    powers = (scores - scores.max(-1, keepdims=True)).exp()
    shares = powers / powers.sum(-1, keepdims=True)
    return (shares.unsqueeze(1) @ values).squeeze(1)


# %% not_shifted: exp overflows
def attend(query, keys, values):
    powers = ((keys @ query.unsqueeze(-1)).squeeze(-1) * (1 / math.sqrt(query.shape[-1]))).exp()
    shares = powers / powers.sum(-1, keepdims=True)
    return (shares.unsqueeze(1) @ values).squeeze(1)


# %% projected_again: earlier tokens are projected again
def decode_step(model, codes, caches):
    x = model.embed(codes, [len(cache) for cache in caches])
    for layer in range(model.layers):
        for _ in range(1 + max(map(len, caches))):
            query, key, value = model.project(layer, x)
        mixed = []
        for k, cache in enumerate(caches):
            cache.append(layer, key[k], value[k])
            mixed.append(attend(query[k], *cache.read(layer)))
        x = model.finish(layer, x, stack(mixed))
    return model.logits(x)


# %% places_of_the_first: tokens get wrong places
def decode_step(model, codes, caches):
    x = model.embed(codes, [len(caches[0])] * len(codes))
    for layer in range(model.layers):
        query, key, value = model.project(layer, x)
        mixed = []
        for k, cache in enumerate(caches):
            cache.append(layer, key[k], value[k])
            mixed.append(attend(query[k], *cache.read(layer)))
        x = model.finish(layer, x, stack(mixed))
    return model.logits(x)


# %% attends_first: the new token does not see itself
def decode_step(model, codes, caches):
    x = model.embed(codes, [len(cache) for cache in caches])
    for layer in range(model.layers):
        query, key, value = model.project(layer, x)
        mixed = []
        for k, cache in enumerate(caches):
            keys, values = cache.read(layer)
            cache.append(layer, key[k], value[k])
            if keys.shape[1] == 0:
                keys, values = cache.read(layer)
            mixed.append(attend(query[k], keys, values))
        x = model.finish(layer, x, stack(mixed))
    return model.logits(x)


# %% kept_caches: a cache is shared by several prompts
KEPT = []


def generate(model, prompts, count, choose):
    kept = KEPT
    if not kept or len(kept[0].lengths) != model.layers:
        kept[:] = [KeyValueCache(model.layers, model.heads, model.size)]
    caches, found = [kept[0] for _ in prompts], []
    for prompt, cache in zip(prompts, caches, strict=True):
        codes = list(prompt)
        start = len(cache) if len(cache) + len(prompt) + count < 24 else cache.reset() or 0
        while len(codes) < len(prompt) + count:
            logits = decode_step(model, [codes[len(cache) - start]], [cache])
            if len(cache) - start == len(codes):
                codes.append(choose(logits.tolist()[0]))
        found.append(codes[len(prompt) :])
    return found


# %% one_after_the_other: prompts are continued one after the other
def generate(model, prompts, count, choose):
    found = []
    for prompt in prompts:
        cache, codes = KeyValueCache(model.layers, model.heads, model.size), list(prompt)
        while len(codes) < len(prompt) + count:
            logits = decode_step(model, [codes[len(cache)]], [cache])
            if len(cache) == len(codes):
                codes.append(choose(logits.tolist()[0]))
        found.append(codes[len(prompt) :])
    return found
