"""Wrong solutions of task 4.7 that were written to get past its checks. Each is appended to the reference."""

# %% batch_counted_after: a batch counts as generated only when the next one is asked for
# promise: 'which batches have been generated'
class DataLoader:
    def __init__(self, dataset, batch_size, seed=None, drop_last=False, collate=collate):
        self.dataset, self.batch_size, self.seed = dataset, batch_size, seed
        self.drop_last, self.collate = drop_last, collate
        self.epoch, self.batch, self.is_loaded = -1, 0, False

    def __len__(self):
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self):
        if self.is_loaded and self.batch < len(self):
            first = self.batch
        else:
            self.epoch, self.batch, first = self.epoch + 1, 0, 0
        self.is_loaded = False
        return self.batches(self.epoch, first)

    def state_dict(self):
        return {"epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.epoch, self.batch, self.is_loaded = state["epoch"], state["batch"], True

    def batches(self, epoch, first):
        order = list(range(len(self.dataset)))
        if self.seed is not None:
            Random(f"{self.seed} {epoch}").shuffle(order)
        for k in range(first, len(self)):
            some = order[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k
            yield self.collate([self.dataset[i] for i in some])
            self.batch = k + 1

# %% batch_is_the_data_set: collate returns a view of the storage of the first row
# promise: 'rows is a new Strided'
def collate(examples):
    rows = [row for row, _ in examples]
    step = rows[1].offset - rows[0].offset if len(rows) > 1 else 0
    return Strided(rows[0].storage, (len(rows), *rows[0].shape), (step, *rows[0].strides), rows[0].offset), [k for _, k in examples]

# %% column_major_batch: a batch has the layout of the data set
# promise: 'in row-major order'
def collate(examples):
    rows = np.asfortranarray([row.array() for row, _ in examples])
    strides = tuple(step // rows.itemsize for step in rows.strides)
    return Strided(rows.ravel('K'), rows.shape, strides, 0), [label for _, label in examples]

# %% constant_by_deviation: a column is constant if its deviation is exactly 0: 0.1 three times is not
# promise: '1.0 if all elements are equal'
def column_statistics(x):
    rows = x.array()
    means, scales = rows.mean(0), rows.std(0)
    is_constant = scales == 0
    return means.tolist(), np.where(is_constant, 1.0, scales).tolist()

# %% drop_last_drops_whole_batches: drop_last leaves out the last batch also if it is whole
# promise: 'drop_last leaves it out'
class DataLoader:
    def __init__(self, dataset, batch_size, seed=None, drop_last=False, collate=collate):
        self.dataset, self.batch_size, self.seed = dataset, batch_size, seed
        self.drop_last, self.collate = drop_last, collate
        self.epoch, self.batch, self.is_loaded = -1, 0, False

    def __len__(self):
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return max(whole + (rest > 0) - self.drop_last, 0)

    def __iter__(self):
        if self.is_loaded and self.batch < len(self):
            first = self.batch
        else:
            self.epoch, self.batch, first = self.epoch + 1, 0, 0
        self.is_loaded = False
        return self.batches(self.epoch, first)

    def state_dict(self):
        return {"epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.epoch, self.batch, self.is_loaded = state["epoch"], state["batch"], True

    def batches(self, epoch, first):
        order = list(range(len(self.dataset)))
        if self.seed is not None:
            Random(f"{self.seed} {epoch}").shuffle(order)
        for k in range(first, len(self)):
            some = order[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            yield self.collate([self.dataset[i] for i in some])

# %% empty_epoch_after_a_complete_one: a state at the end of an epoch is followed by an epoch without batches
# promise: 'a new epoch, if the epoch of the state was complete'
class DataLoader:
    def __init__(self, dataset, batch_size, seed=None, drop_last=False, collate=collate):
        self.dataset, self.batch_size, self.seed = dataset, batch_size, seed
        self.drop_last, self.collate = drop_last, collate
        self.epoch, self.batch, self.is_loaded = -1, 0, False

    def __len__(self):
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self):
        if self.is_loaded:
            first = self.batch
        else:
            self.epoch, self.batch, first = self.epoch + 1, 0, 0
        self.is_loaded = False
        return self.batches(self.epoch, first)

    def state_dict(self):
        return {"epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.epoch, self.batch, self.is_loaded = state["epoch"], state["batch"], True

    def batches(self, epoch, first):
        order = list(range(len(self.dataset)))
        if self.seed is not None:
            Random(f"{self.seed} {epoch}").shuffle(order)
        for k in range(first, len(self)):
            some = order[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            yield self.collate([self.dataset[i] for i in some])

# %% even_batches: the examples are spread over batches of nearly equal sizes
# promise: 'The last batch has fewer examples'
class DataLoader:
    def __init__(self, dataset, batch_size, seed=None, drop_last=False, collate=collate):
        self.dataset, self.batch_size, self.seed = dataset, batch_size, seed
        self.drop_last, self.collate = drop_last, collate
        self.epoch, self.batch, self.is_loaded = -1, 0, False

    def __len__(self):
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self):
        if self.is_loaded and self.batch < len(self):
            first = self.batch
        else:
            self.epoch, self.batch, first = self.epoch + 1, 0, 0
        self.is_loaded = False
        return self.batches(self.epoch, first)

    def state_dict(self):
        return {"epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.epoch, self.batch, self.is_loaded = state["epoch"], state["batch"], True

    def batches(self, epoch, first):
        order = list(range(len(self.dataset)))
        if self.seed is not None:
            Random(f"{self.seed} {epoch}").shuffle(order)
        for k in range(first, len(self)):
            n = len(self) if not self.drop_last else len(order) // self.batch_size
            some = order[k::n] if not self.drop_last else order[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            yield self.collate([self.dataset[i] for i in some])

# %% key_error: an index that is out of range raises KeyError
# promise: 'raises IndexError for any other'
class TensorDataset:
    def __init__(self, x, labels):
        self.x, self.labels = x, labels

    def __len__(self):
        return self.x.shape[0]

    def __getitem__(self, k):
        if not -len(self) <= k < len(self):
            raise KeyError(f"example {k} of {len(self)}")
        return sliced(self.x, k), self.labels[k]

# %% labels_as_a_tuple: labels are a tuple
# promise: 'labels a list'
def collate(examples):
    rows = np.array([row.array() for row, _ in examples])
    strides = tuple(step // rows.itemsize for step in rows.strides)
    return Strided(rows.reshape(-1), rows.shape, strides, 0), tuple(label for _, label in examples)

# %% naive_variance: the variance is the mean of squares minus the square of the mean
# promise: 'also far from 0'
def column_statistics(x):
    rows = x.array()
    means, scales = rows.mean(0), np.sqrt(np.maximum((rows * rows).mean(0) - rows.mean(0) ** 2, 0.0))
    is_constant = rows.min(0) == rows.max(0)
    return means.tolist(), np.where(is_constant, 1.0, scales).tolist()

# %% negative_from_the_end_only_minus_one: dataset[-k] is the last example for every k
# promise: 'ints from -len(dataset)'
class TensorDataset:
    def __init__(self, x, labels):
        self.x, self.labels = x, labels

    def __len__(self):
        return self.x.shape[0]

    def __getitem__(self, k):
        if not -len(self) <= k < len(self):
            raise IndexError(f"example {k} of {len(self)}")
        k = max(k, -1)
        return sliced(self.x, k), self.labels[k]

# %% no_index_error: an index that is too large begins again from the front
# promise: 'raises IndexError for any other'
class TensorDataset:
    def __init__(self, x, labels):
        self.x, self.labels = x, labels

    def __len__(self):
        return self.x.shape[0]

    def __getitem__(self, k):
        k = k % len(self)
        return sliced(self.x, k), self.labels[k]

# %% one_scale_for_all: all columns share the scale of the first
# promise: 'of each column'
def column_statistics(x):
    rows = x.array()
    means, scales = rows.mean(0), rows.std(0)
    is_constant = rows.min(0) == rows.max(0)
    return means.tolist(), [np.where(is_constant, 1.0, scales).tolist()[0]] * len(scales)

# %% reads_at_construction: the constructor reads the data set
# promise: 'asked when the batch is due'
class DataLoader:
    def __init__(self, dataset, batch_size, seed=None, drop_last=False, collate=collate):
        self.dataset, self.batch_size, self.seed = dataset, batch_size, seed
        self.dataset = [dataset[k] for k in range(len(dataset))]
        self.drop_last, self.collate = drop_last, collate
        self.epoch, self.batch, self.is_loaded = -1, 0, False

    def __len__(self):
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self):
        if self.is_loaded and self.batch < len(self):
            first = self.batch
        else:
            self.epoch, self.batch, first = self.epoch + 1, 0, 0
        self.is_loaded = False
        return self.batches(self.epoch, first)

    def state_dict(self):
        return {"epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.epoch, self.batch, self.is_loaded = state["epoch"], state["batch"], True

    def batches(self, epoch, first):
        order = list(range(len(self.dataset)))
        if self.seed is not None:
            Random(f"{self.seed} {epoch}").shuffle(order)
        for k in range(first, len(self)):
            some = order[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            yield self.collate([self.dataset[i] for i in some])

# %% reads_in_iter: iter reads the first batch
# promise: 'asked when the batch is due'
class DataLoader:
    def __init__(self, dataset, batch_size, seed=None, drop_last=False, collate=collate):
        self.dataset, self.batch_size, self.seed = dataset, batch_size, seed
        self.drop_last, self.collate = drop_last, collate
        self.epoch, self.batch, self.is_loaded = -1, 0, False

    def __len__(self):
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self):
        if self.is_loaded and self.batch < len(self):
            first = self.batch
        else:
            self.epoch, self.batch, first = self.epoch + 1, 0, 0
        self.is_loaded = False
        found = self.batches(self.epoch, first)
        start = next(found, None)
        return iter(([] if start is None else [start]) + list(found))

    def state_dict(self):
        return {"epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.epoch, self.batch, self.is_loaded = state["epoch"], state["batch"], True

    def batches(self, epoch, first):
        order = list(range(len(self.dataset)))
        if self.seed is not None:
            Random(f"{self.seed} {epoch}").shuffle(order)
        for k in range(first, len(self)):
            some = order[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            yield self.collate([self.dataset[i] for i in some])

# %% reads_one_ahead: the examples of the next batch are read before a batch is returned
# promise: 'dataset[k] is asked for the examples of a batch when the batch is due'
class DataLoader:
    def __init__(self, dataset, batch_size, seed=None, drop_last=False, collate=collate):
        self.dataset, self.batch_size, self.seed = dataset, batch_size, seed
        self.drop_last, self.collate = drop_last, collate
        self.epoch, self.batch, self.is_loaded = -1, 0, False

    def __len__(self):
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self):
        if self.is_loaded and self.batch < len(self):
            first = self.batch
        else:
            self.epoch, self.batch, first = self.epoch + 1, 0, 0
        self.is_loaded = False
        return self.batches(self.epoch, first)

    def state_dict(self):
        return {"epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.epoch, self.batch, self.is_loaded = state["epoch"], state["batch"], True

    def batches(self, epoch, first):
        order = list(range(len(self.dataset)))
        if self.seed is not None:
            Random(f"{self.seed} {epoch}").shuffle(order)
        for k in range(first, len(self)):
            some = order[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            ahead = [self.dataset[i] for i in some]
            later = order[(k + 1) * self.batch_size : (k + 2) * self.batch_size]
            [self.dataset[i] for i in later]
            yield self.collate(ahead)

# %% reads_what_is_skipped: after loading, the batches that are done are read again
# promise: 'asked for the examples of a batch when the batch is due'
class DataLoader:
    def __init__(self, dataset, batch_size, seed=None, drop_last=False, collate=collate):
        self.dataset, self.batch_size, self.seed = dataset, batch_size, seed
        self.drop_last, self.collate = drop_last, collate
        self.epoch, self.batch, self.is_loaded = -1, 0, False

    def __len__(self):
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self):
        if self.is_loaded and self.batch < len(self):
            first = self.batch
        else:
            self.epoch, self.batch, first = self.epoch + 1, 0, 0
        self.is_loaded = False
        return self.batches(self.epoch, first)

    def state_dict(self):
        return {"epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.epoch, self.batch, self.is_loaded = state["epoch"], state["batch"], True

    def batches(self, epoch, first):
        order = list(range(len(self.dataset)))
        if self.seed is not None:
            Random(f"{self.seed} {epoch}").shuffle(order)
        [self.dataset[i] for i in order[: first * self.batch_size]]
        for k in range(first, len(self)):
            some = order[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            yield self.collate([self.dataset[i] for i in some])

# %% rest_is_filled_up: the last batch is filled up with the first examples
# promise: 'each example occurs once'
class DataLoader:
    def __init__(self, dataset, batch_size, seed=None, drop_last=False, collate=collate):
        self.dataset, self.batch_size, self.seed = dataset, batch_size, seed
        self.drop_last, self.collate = drop_last, collate
        self.epoch, self.batch, self.is_loaded = -1, 0, False

    def __len__(self):
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self):
        if self.is_loaded and self.batch < len(self):
            first = self.batch
        else:
            self.epoch, self.batch, first = self.epoch + 1, 0, 0
        self.is_loaded = False
        return self.batches(self.epoch, first)

    def state_dict(self):
        return {"epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.epoch, self.batch, self.is_loaded = state["epoch"], state["batch"], True

    def batches(self, epoch, first):
        order = list(range(len(self.dataset)))
        if self.seed is not None:
            Random(f"{self.seed} {epoch}").shuffle(order)
        for k in range(first, len(self)):
            some = (order + order)[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            yield self.collate([self.dataset[i] for i in some])

# %% rotates_after_shuffle_once: one shuffled order is rotated by the number of the epoch
# promise: 'each epoch has an order of its own'
class DataLoader:
    def __init__(self, dataset, batch_size, seed=None, drop_last=False, collate=collate):
        self.dataset, self.batch_size, self.seed = dataset, batch_size, seed
        self.drop_last, self.collate = drop_last, collate
        self.epoch, self.batch, self.is_loaded = -1, 0, False

    def __len__(self):
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self):
        if self.is_loaded and self.batch < len(self):
            first = self.batch
        else:
            self.epoch, self.batch, first = self.epoch + 1, 0, 0
        self.is_loaded = False
        return self.batches(self.epoch, first)

    def state_dict(self):
        return {"epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.epoch, self.batch, self.is_loaded = state["epoch"], state["batch"], True

    def batches(self, epoch, first):
        order = list(range(len(self.dataset)))
        if self.seed is not None:
            Random(self.seed).shuffle(order)
            start = epoch % max(len(order), 1)
            order = order[start:] + order[:start]
        for k in range(first, len(self)):
            some = order[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            yield self.collate([self.dataset[i] for i in some])

# %% sample_deviation: the deviation is divided by n - 1
# promise: 'the root of the mean'
def column_statistics(x):
    rows = x.array()
    means, scales = rows.mean(0), rows.std(0, ddof=min(1, len(rows) - 1))
    is_constant = rows.min(0) == rows.max(0)
    return means.tolist(), np.where(is_constant, 1.0, scales).tolist()

# %% scaled_in_place: train and test are scaled where they are stored
# promise: 'two new Strided'
def prepare(train, test):
    means, scales = column_statistics(train)
    for x in (train, test):
        x.array()[...] = (x.array() - np.array(means)) / np.array(scales)
    return train, test

# %% second_load_is_late: a state that is loaded counts for every iteration that follows
# promise: 'the next iteration'
class DataLoader:
    def __init__(self, dataset, batch_size, seed=None, drop_last=False, collate=collate):
        self.dataset, self.batch_size, self.seed = dataset, batch_size, seed
        self.drop_last, self.collate = drop_last, collate
        self.epoch, self.batch, self.is_loaded = -1, 0, False

    def __len__(self):
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self):
        if self.is_loaded and self.batch < len(self):
            first = self.batch
        else:
            self.epoch, self.batch, first = self.epoch + 1, 0, 0
        return self.batches(self.epoch, first)

    def state_dict(self):
        return {"epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.epoch, self.batch, self.is_loaded = state["epoch"], state["batch"], True

    def batches(self, epoch, first):
        order = list(range(len(self.dataset)))
        if self.seed is not None:
            Random(f"{self.seed} {epoch}").shuffle(order)
        for k in range(first, len(self)):
            some = order[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            yield self.collate([self.dataset[i] for i in some])

# %% seed_0_is_none: a seed of 0 does not shuffle
# promise: 'With a seed, each epoch has an order of its own'
class DataLoader:
    def __init__(self, dataset, batch_size, seed=None, drop_last=False, collate=collate):
        self.dataset, self.batch_size, self.seed = dataset, batch_size, seed
        self.drop_last, self.collate = drop_last, collate
        self.epoch, self.batch, self.is_loaded = -1, 0, False

    def __len__(self):
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self):
        if self.is_loaded and self.batch < len(self):
            first = self.batch
        else:
            self.epoch, self.batch, first = self.epoch + 1, 0, 0
        self.is_loaded = False
        return self.batches(self.epoch, first)

    def state_dict(self):
        return {"epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.epoch, self.batch, self.is_loaded = state["epoch"], state["batch"], True

    def batches(self, epoch, first):
        order = list(range(len(self.dataset)))
        if self.seed:
            Random(f"{self.seed} {epoch}").shuffle(order)
        for k in range(first, len(self)):
            some = order[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            yield self.collate([self.dataset[i] for i in some])

# %% seed_added_to_epoch: the order follows from seed + epoch: epoch 1 of seed 0 is epoch 0 of seed 1
# promise: 'an order of its own, which follows from the seed and the number of the epoch'
class DataLoader:
    def __init__(self, dataset, batch_size, seed=None, drop_last=False, collate=collate):
        self.dataset, self.batch_size, self.seed = dataset, batch_size, seed
        self.drop_last, self.collate = drop_last, collate
        self.epoch, self.batch, self.is_loaded = -1, 0, False

    def __len__(self):
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self):
        if self.is_loaded and self.batch < len(self):
            first = self.batch
        else:
            self.epoch, self.batch, first = self.epoch + 1, 0, 0
        self.is_loaded = False
        return self.batches(self.epoch, first)

    def state_dict(self):
        return {"epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.epoch, self.batch, self.is_loaded = state["epoch"], state["batch"], True

    def batches(self, epoch, first):
        order = list(range(len(self.dataset)))
        if self.seed is not None:
            Random(self.seed + epoch).shuffle(order)
        for k in range(first, len(self)):
            some = order[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            yield self.collate([self.dataset[i] for i in some])

# %% shuffles_blocks: blocks of 100 are shuffled, and examples in a block; a block stays together
# promise: 'each epoch has an order of its own'
class DataLoader:
    def __init__(self, dataset, batch_size, seed=None, drop_last=False, collate=collate):
        self.dataset, self.batch_size, self.seed = dataset, batch_size, seed
        self.drop_last, self.collate = drop_last, collate
        self.epoch, self.batch, self.is_loaded = -1, 0, False

    def __len__(self):
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self):
        if self.is_loaded and self.batch < len(self):
            first = self.batch
        else:
            self.epoch, self.batch, first = self.epoch + 1, 0, 0
        self.is_loaded = False
        return self.batches(self.epoch, first)

    def state_dict(self):
        return {"epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.epoch, self.batch, self.is_loaded = state["epoch"], state["batch"], True

    def batches(self, epoch, first):
        order = list(range(len(self.dataset)))
        if self.seed is not None:
            random = Random(f"{self.seed} {epoch}")
            blocks = [order[k : k + 100] for k in range(0, len(order), 100)]
            for block in blocks:
                random.shuffle(block)
            order = [k for block in blocks for k in block]
        for k in range(first, len(self)):
            some = order[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            yield self.collate([self.dataset[i] for i in some])

# %% small_is_constant: a deviation below 1e-6 counts as 0
# promise: '1.0 if all elements are equal'
def column_statistics(x):
    rows = x.array()
    means, scales = rows.mean(0), rows.std(0)
    is_constant = scales < 1e-6
    return means.tolist(), np.where(is_constant, 1.0, scales).tolist()

# %% state_in_the_class: the place stays in the class, and the state is empty
# promise: 'state_dict returns a few numbers'
class DataLoader:
    def __init__(self, dataset, batch_size, seed=None, drop_last=False, collate=collate):
        self.dataset, self.batch_size, self.seed = dataset, batch_size, seed
        self.drop_last, self.collate = drop_last, collate
        self.epoch, self.batch, self.is_loaded = -1, 0, False

    def __len__(self):
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self):
        if self.is_loaded and self.batch < len(self):
            first = self.batch
        else:
            self.epoch, self.batch, first = self.epoch + 1, 0, 0
        self.is_loaded = False
        return self.batches(self.epoch, first)

    def state_dict(self):
        DataLoader.kept = self
        return {}

    def load_state_dict(self, state):
        self.epoch, self.batch, self.is_loaded = DataLoader.kept.epoch, DataLoader.kept.batch, True

    def batches(self, epoch, first):
        order = list(range(len(self.dataset)))
        if self.seed is not None:
            Random(f"{self.seed} {epoch}").shuffle(order)
        for k in range(first, len(self)):
            some = order[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            yield self.collate([self.dataset[i] for i in some])

# %% state_is_the_order: the state has all that is left of the order
# promise: 'a few numbers'
class DataLoader:
    def __init__(self, dataset, batch_size, seed=None, drop_last=False, collate=collate):
        self.dataset, self.batch_size, self.seed = dataset, batch_size, seed
        self.drop_last, self.collate = drop_last, collate
        self.epoch, self.batch, self.is_loaded = -1, 0, False

    def __len__(self):
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self):
        if self.is_loaded and self.batch < len(self):
            first = self.batch
        else:
            self.epoch, self.batch, first = self.epoch + 1, 0, 0
        self.is_loaded = False
        return self.batches(self.epoch, first)

    def state_dict(self):
        return {"epoch": self.epoch, "batch": self.batch, "left": list(range(len(self.dataset)))}

    def load_state_dict(self, state):
        self.epoch, self.batch, self.is_loaded = state["epoch"], state["batch"], True

    def batches(self, epoch, first):
        order = list(range(len(self.dataset)))
        if self.seed is not None:
            Random(f"{self.seed} {epoch}").shuffle(order)
        for k in range(first, len(self)):
            some = order[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            yield self.collate([self.dataset[i] for i in some])

# %% statistics_of_both: statistics are those of training and test data together
# promise: 'the statistics of train'
def prepare(train, test):
    both = np.concatenate([train.array(), test.array()])
    means, scales = column_statistics(Strided(both.reshape(-1), both.shape, (both.shape[1], 1), 0))
    return tuple(scaled(x, means, scales) for x in (train, test))

# %% swaps_with_any: each place is exchanged with any other: some orders are twice as likely
# promise: 'all orders are equally likely'
class DataLoader:
    def __init__(self, dataset, batch_size, seed=None, drop_last=False, collate=collate):
        self.dataset, self.batch_size, self.seed = dataset, batch_size, seed
        self.drop_last, self.collate = drop_last, collate
        self.epoch, self.batch, self.is_loaded = -1, 0, False

    def __len__(self):
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self):
        if self.is_loaded and self.batch < len(self):
            first = self.batch
        else:
            self.epoch, self.batch, first = self.epoch + 1, 0, 0
        self.is_loaded = False
        return self.batches(self.epoch, first)

    def state_dict(self):
        return {"epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.epoch, self.batch, self.is_loaded = state["epoch"], state["batch"], True

    def batches(self, epoch, first):
        order = list(range(len(self.dataset)))
        if self.seed is not None:
            random = Random(f"{self.seed} {epoch}")
            for k in range(len(order)):
                j = random.randrange(max(k - 1, 0), len(order))
                order[k], order[j] = order[j], order[k]
        for k in range(first, len(self)):
            some = order[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            yield self.collate([self.dataset[i] for i in some])

# %% two_orders_in_turns: epoch 2 has the order of epoch 0
# promise: 'each epoch has an order of its own'
class DataLoader:
    def __init__(self, dataset, batch_size, seed=None, drop_last=False, collate=collate):
        self.dataset, self.batch_size, self.seed = dataset, batch_size, seed
        self.drop_last, self.collate = drop_last, collate
        self.epoch, self.batch, self.is_loaded = -1, 0, False

    def __len__(self):
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self):
        if self.is_loaded and self.batch < len(self):
            first = self.batch
        else:
            self.epoch, self.batch, first = self.epoch + 1, 0, 0
        self.is_loaded = False
        return self.batches(self.epoch, first)

    def state_dict(self):
        return {"epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.epoch, self.batch, self.is_loaded = state["epoch"], state["batch"], True

    def batches(self, epoch, first):
        order = list(range(len(self.dataset)))
        if self.seed is not None:
            Random(f"{self.seed} {epoch % 2}").shuffle(order)
        for k in range(first, len(self)):
            some = order[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            yield self.collate([self.dataset[i] for i in some])
