"""Wrong solutions of task 4.7, one a cell: `# %% name: the mistake that the check must name`."""


# %% begins_anew: a loaded loader begins the epoch anew
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
        self.epoch, self.batch, self.is_loaded = state["epoch"] - 1, 0, False

    def batches(self, epoch, first):
        order = list(range(len(self.dataset)))
        if self.seed is not None:
            Random(f"{self.seed} {epoch}").shuffle(order)
        for k in range(first, len(self)):
            some = order[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            yield self.collate([self.dataset[i] for i in some])


# %% copied_rows: rows are copied
class TensorDataset:
    def __init__(self, x, labels):
        self.x, self.labels = x, labels

    def __len__(self):
        return self.x.shape[0]

    def __getitem__(self, k):
        if not -len(self) <= k < len(self):
            raise IndexError(f"example {k} of {len(self)}")
        row = sliced(self.x, k)
        copy = collate([(row, 0)])[0]
        return sliced(copy, 0), self.labels[k]


# %% divided_by_0: a constant column is divided by 0
def column_statistics(x):
    rows = x.array()
    means, scales = rows.mean(0), rows.std(0)
    is_constant = rows.min(0) == rows.max(0)
    return means.tolist(), np.where(is_constant, 0.0, scales).tolist()


# %% global_random: the order does not follow from the seed
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
            Random().shuffle(order)
        for k in range(first, len(self)):
            some = order[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            yield self.collate([self.dataset[i] for i in some])


# %% goes_on: an iteration continues one that was given up
class DataLoader:
    def __init__(self, dataset, batch_size, seed=None, drop_last=False, collate=collate):
        self.dataset, self.batch_size, self.seed = dataset, batch_size, seed
        self.drop_last, self.collate = drop_last, collate
        self.epoch, self.batch, self.is_loaded = -1, 0, False

    def __len__(self):
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self):
        if self.batch < len(self) and (self.batch or self.is_loaded):
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


# %% last_batch_lost: the last batch is lost
class DataLoader:
    def __init__(self, dataset, batch_size, seed=None, drop_last=False, collate=collate):
        self.dataset, self.batch_size, self.seed = dataset, batch_size, seed
        self.drop_last, self.collate = drop_last, collate
        self.epoch, self.batch, self.is_loaded = -1, 0, False

    def __len__(self):
        return len(self.dataset) // self.batch_size

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


# %% one_order: each epoch has the same order
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
        for k in range(first, len(self)):
            some = order[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            yield self.collate([self.dataset[i] for i in some])


# %% own_statistics: test data are scaled by their own statistics
def prepare(train, test):
    return tuple(scaled(x, *column_statistics(x)) for x in (train, test))


# %% read_at_once: the whole data set is read before the first batch
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
        examples = [self.dataset[i] for i in order]
        for k in range(first, len(self)):
            some = examples[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            yield self.collate(some)


# %% rotated: not all orders are equally likely
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
            start = Random(f"{self.seed} {epoch}").randrange(max(len(order), 1))
            order = order[start:] + order[:start]
        for k in range(first, len(self)):
            some = order[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            yield self.collate([self.dataset[i] for i in some])


# %% sum_of_both: the seed and the epoch are added
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


# %% read_twice: an example is read more than once
class DataLoader(DataLoader):
    def batches(self, epoch, first):
        [self.dataset[i] for i in range(len(self.dataset))]
        yield from super().batches(epoch, first)


# %% counted_late: a batch is counted after the yield
class DataLoader(DataLoader):
    def batches(self, epoch, first):
        self.epoch, self.batch = epoch, first
        for k, batch in enumerate(super().batches(epoch, first), first):
            self.batch = k
            yield batch
            self.batch = k + 1


# %% small_is_constant: a small column is taken for a constant one
def column_statistics(x):
    rows = x.array()
    means, scales = rows.mean(0), rows.std(0)
    scales[scales < 1e-8] = 1.0
    return means.tolist(), scales.tolist()
