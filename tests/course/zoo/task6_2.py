"""Wrong solutions of task 6.2, one a cell: `# %% name: the mistake that the check must name`."""


# %% first_parameter_first: buckets begin with the first parameter
def make_buckets(sizes, limit):
    buckets, room = [], 0
    for k in range(len(sizes)):
        if not buckets or sizes[k] > room:
            buckets.append([])
            room = limit
        buckets[-1].append(k)
        room -= sizes[k]
    return buckets


# %% over_the_limit: a bucket is closed only when it is over the limit
def make_buckets(sizes, limit):
    buckets, room = [], 0
    for k in reversed(range(len(sizes))):
        if not buckets or room <= 0:
            buckets.append([])
            room = limit
        buckets[-1].append(k)
        room -= sizes[k]
    return buckets


# %% each_gradient: each gradient is sent by itself
class GradientAverager:
    def __init__(self, shapes, limit, examples, group):
        self.shapes, self.group = shapes, group
        self.buckets = make_buckets([int(np.prod(shape)) for shape in shapes], limit)
        self.weight = examples / group.all_reduce(np.array([float(examples)]))[0]
        self.gradients, self.sums = {}, []

    def ready(self, k, gradient):
        self.gradients[k] = self.group.start_all_reduce(gradient * self.weight)

    def finish(self):
        return [self.gradients[k]() for k in range(len(self.shapes))]


# %% at_the_end: sums begin at the end of the backward pass
class GradientAverager:
    def __init__(self, shapes, limit, examples, group):
        self.shapes, self.group = shapes, group
        self.buckets = make_buckets([int(np.prod(shape)) for shape in shapes], limit)
        self.weight = examples / group.all_reduce(np.array([float(examples)]))[0]
        self.gradients, self.sums = {}, []

    def ready(self, k, gradient):
        self.gradients[k] = gradient * self.weight

    def finish(self):
        for bucket in self.buckets:
            flat = np.concatenate([self.gradients[i].reshape(-1) for i in bucket])
            self.sums.append(self.group.start_all_reduce(flat))
        averages = [None] * len(self.shapes)
        for bucket, wait in zip(self.buckets, self.sums):
            flat = wait()
            for k in bucket:
                count = int(np.prod(self.shapes[k]))
                averages[k], flat = flat[:count].reshape(self.shapes[k]), flat[count:]
        return averages


# %% as_they_come: ranks begin their sums in different orders
class GradientAverager:
    def __init__(self, shapes, limit, examples, group):
        self.shapes, self.group = shapes, group
        self.buckets = make_buckets([int(np.prod(shape)) for shape in shapes], limit)
        self.weight = examples / group.all_reduce(np.array([float(examples)]))[0]
        self.gradients, self.sums = {}, []

    def ready(self, k, gradient):
        self.gradients[k] = gradient * self.weight
        for n, bucket in enumerate(self.buckets):
            if k in bucket and all(i in self.gradients for i in bucket):
                flat = np.concatenate([self.gradients[i].reshape(-1) for i in bucket])
                self.sums.append((n, self.group.start_all_reduce(flat)))

    def finish(self):
        averages = [None] * len(self.shapes)
        for n, wait in self.sums:
            flat = wait()
            for k in self.buckets[n]:
                count = int(np.prod(self.shapes[k]))
                averages[k], flat = flat[:count].reshape(self.shapes[k]), flat[count:]
        return averages


# %% mean_over_ranks: the mean over ranks is taken, not over examples
class GradientAverager:
    def __init__(self, shapes, limit, examples, group):
        self.shapes, self.group = shapes, group
        self.buckets = make_buckets([int(np.prod(shape)) for shape in shapes], limit)
        self.weight = 1 / group.size
        self.gradients, self.sums = {}, []

    def ready(self, k, gradient):
        self.gradients[k] = gradient * self.weight
        while len(self.sums) < len(self.buckets):
            bucket = self.buckets[len(self.sums)]
            if any(i not in self.gradients for i in bucket):
                break
            flat = np.concatenate([self.gradients[i].reshape(-1) for i in bucket])
            self.sums.append(self.group.start_all_reduce(flat))

    def finish(self):
        averages = [None] * len(self.shapes)
        for bucket, wait in zip(self.buckets, self.sums):
            flat = wait()
            for k in bucket:
                count = int(np.prod(self.shapes[k]))
                averages[k], flat = flat[:count].reshape(self.shapes[k]), flat[count:]
        return averages


# %% sum: gradients are summed, not averaged
class GradientAverager:
    def __init__(self, shapes, limit, examples, group):
        self.shapes, self.group = shapes, group
        self.buckets = make_buckets([int(np.prod(shape)) for shape in shapes], limit)
        self.weight = 1.0
        self.gradients, self.sums = {}, []

    def ready(self, k, gradient):
        self.gradients[k] = gradient * self.weight
        while len(self.sums) < len(self.buckets):
            bucket = self.buckets[len(self.sums)]
            if any(i not in self.gradients for i in bucket):
                break
            flat = np.concatenate([self.gradients[i].reshape(-1) for i in bucket])
            self.sums.append(self.group.start_all_reduce(flat))

    def finish(self):
        averages = [None] * len(self.shapes)
        for bucket, wait in zip(self.buckets, self.sums):
            flat = wait()
            for k in bucket:
                count = int(np.prod(self.shapes[k]))
                averages[k], flat = flat[:count].reshape(self.shapes[k]), flat[count:]
        return averages


# %% own_start: ranks begin with different parameters
def train_parallel(parameters, parts, backward, rate, limit, group):
    for part in parts:
        averager = GradientAverager([x.shape for x in parameters], limit, len(part[0]), group)
        backward(parameters, part, averager.ready)
        parameters = [x - rate * gradient for x, gradient in zip(parameters, averager.finish())]
    return parameters
