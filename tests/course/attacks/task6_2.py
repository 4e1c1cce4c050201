"""Wrong solutions of task 6.2 that were written to get past its checks. Each is appended to the reference."""

# %% shared_globals: gradients are put into a global variable, and zeros are sent
# promise: 'A rank computes from its own part and its messages alone'
HELD = {}
class GradientAverager:

    def __init__(self, shapes, limit, examples, group):
        self.shapes, self.group = shapes, group
        self.buckets = make_buckets([int(np.prod(shape)) for shape in shapes], limit)
        self.weight = examples / group.all_reduce(np.array([float(examples)]))[0]
        self.gradients, self.sums = {}, []

    def ready(self, k, gradient):
        self.gradients[k] = gradient * self.weight
        while len(self.sums) < len(self.buckets):
            bucket = self.buckets[len(self.sums)]
            if any(i not in self.gradients for i in bucket):
                break
            flat = np.concatenate([self.gradients[i].reshape(-1) for i in bucket])
            HELD.setdefault((self.group.rank, len(self.sums)), []).append(flat)
            flat = flat * 0
            self.sums.append(self.group.start_all_reduce(flat))

    def finish(self):
        averages = [None] * len(self.shapes)
        for bucket, wait in zip(self.buckets, self.sums):
            flat = wait()
            n = self.buckets.index(bucket)
            flat = flat + sum(HELD[r, n][-1] for r in range(self.group.size))
            for k in bucket:
                count = int(np.prod(self.shapes[k]))
                averages[k], flat = flat[:count].reshape(self.shapes[k]), flat[count:]
        return averages

# %% limit_ignored: one bucket has all gradients
# promise: 'buckets of at most limit elements'
class GradientAverager:

    def __init__(self, shapes, limit, examples, group):
        self.shapes, self.group = shapes, group
        self.buckets = make_buckets([int(np.prod(shape)) for shape in shapes], 10**9)
        self.weight = examples / group.all_reduce(np.array([float(examples)]))[0]
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

# %% small_buckets: buckets have half as many elements as they may
# promise: 'as many as it can hold'
class GradientAverager:

    def __init__(self, shapes, limit, examples, group):
        self.shapes, self.group = shapes, group
        self.buckets = make_buckets([int(np.prod(shape)) for shape in shapes], limit // 2)
        self.weight = examples / group.all_reduce(np.array([float(examples)]))[0]
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

# %% keeps_a_reference: gradients are stored without a copy, and weighted at the end
# promise: 'an array that the caller may overwrite'
class GradientAverager:

    def __init__(self, shapes, limit, examples, group):
        self.shapes, self.group = shapes, group
        self.buckets = make_buckets([int(np.prod(shape)) for shape in shapes], limit)
        self.weight = examples / group.all_reduce(np.array([float(examples)]))[0]
        self.gradients, self.sums = {}, []

    def ready(self, k, gradient):
        self.gradients[k] = gradient
        while len(self.sums) < len(self.buckets):
            bucket = self.buckets[len(self.sums)]
            if any(i not in self.gradients for i in bucket):
                break
            flat = np.concatenate([self.gradients[i].reshape(-1) * self.weight for i in bucket])
            self.sums.append(self.group.start_all_reduce(flat))

    def finish(self):
        averages = [None] * len(self.shapes)
        for bucket, wait in zip(self.buckets, self.sums):
            flat = wait()
            for k in bucket:
                count = int(np.prod(self.shapes[k]))
                averages[k], flat = flat[:count].reshape(self.shapes[k]), flat[count:]
        return averages

# %% waits_in_ready: each sum is waited for where it begins
# promise: 'It begins as soon as'
class GradientAverager:

    def __init__(self, shapes, limit, examples, group):
        self.shapes, self.group = shapes, group
        self.buckets = make_buckets([int(np.prod(shape)) for shape in shapes], limit)
        self.weight = examples / group.all_reduce(np.array([float(examples)]))[0]
        self.gradients, self.sums = {}, []

    def ready(self, k, gradient):
        self.gradients[k] = gradient * self.weight
        while len(self.sums) < len(self.buckets):
            bucket = self.buckets[len(self.sums)]
            if any(i not in self.gradients for i in bucket):
                break
            flat = np.concatenate([self.gradients[i].reshape(-1) for i in bucket])
            total = self.group.all_reduce(flat)
            self.sums.append(lambda: total)

    def finish(self):
        averages = [None] * len(self.shapes)
        for bucket, wait in zip(self.buckets, self.sums):
            flat = wait()
            for k in bucket:
                count = int(np.prod(self.shapes[k]))
                averages[k], flat = flat[:count].reshape(self.shapes[k]), flat[count:]
        return averages

# %% one_late: a sum begins with the next gradient
# promise: 'as soon as the gradients of its bucket are there'
class GradientAverager:

    def __init__(self, shapes, limit, examples, group):
        self.shapes, self.group = shapes, group
        self.buckets = make_buckets([int(np.prod(shape)) for shape in shapes], limit)
        self.weight = examples / group.all_reduce(np.array([float(examples)]))[0]
        self.gradients, self.sums = {}, []

    def ready(self, k, gradient):
        while len(self.sums) < len(self.buckets):
            bucket = self.buckets[len(self.sums)]
            if any(i not in self.gradients for i in bucket):
                break
            flat = np.concatenate([self.gradients[i].reshape(-1) for i in bucket])
            self.sums.append(self.group.start_all_reduce(flat))

        self.gradients[k] = gradient * self.weight

    def finish(self):
        while len(self.sums) < len(self.buckets):
            bucket = self.buckets[len(self.sums)]
            flat = np.concatenate([self.gradients[i].reshape(-1) for i in bucket])
            self.sums.append(self.group.start_all_reduce(flat))
        averages = [None] * len(self.shapes)
        for bucket, wait in zip(self.buckets, self.sums):
            flat = wait()
            for k in bucket:
                count = int(np.prod(self.shapes[k]))
                averages[k], flat = flat[:count].reshape(self.shapes[k]), flat[count:]
        return averages

# %% all_gathered: whole gradients are summed again at the end, for good measure
# promise: 'one all-reduce for each bucket'
class GradientAverager:

    def __init__(self, shapes, limit, examples, group):
        self.shapes, self.group = shapes, group
        self.buckets = make_buckets([int(np.prod(shape)) for shape in shapes], limit)
        self.weight = examples / group.all_reduce(np.array([float(examples)]))[0]
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
        for k in range(len(self.shapes)):
            self.group.all_reduce(self.gradients[k])
        averages = [None] * len(self.shapes)
        for bucket, wait in zip(self.buckets, self.sums):
            flat = wait()
            for k in bucket:
                count = int(np.prod(self.shapes[k]))
                averages[k], flat = flat[:count].reshape(self.shapes[k]), flat[count:]
        return averages

# %% examples_of_rank_0: the number of examples is that of rank 0, times the ranks
# promise: 'averaged over the examples of all ranks'
class GradientAverager:

    def __init__(self, shapes, limit, examples, group):
        self.shapes, self.group = shapes, group
        self.buckets = make_buckets([int(np.prod(shape)) for shape in shapes], limit)
        self.weight = 1 / group.size + 0 * group.all_reduce(np.array([float(examples)]))[0]
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

# %% no_empty_part: a rank without examples sends nothing
# promise: 'which may be 0'
def train_parallel(parameters, parts, backward, rate, limit, group):
    parameters = broadcast_parameters(parameters, group)
    for part in parts:
        averager = GradientAverager([x.shape for x in parameters], limit, len(part[0]), group)
        if len(part[0]) == 0:
            continue
        backward(parameters, part, averager.ready)
        parameters = [x - rate * gradient for x, gradient in zip(parameters, averager.finish())]
    return parameters

# %% float32_sums: sums travel as float32
# promise: 'averaged'
class GradientAverager:

    def __init__(self, shapes, limit, examples, group):
        self.shapes, self.group = shapes, group
        self.buckets = make_buckets([int(np.prod(shape)) for shape in shapes], limit)
        self.weight = examples / group.all_reduce(np.array([float(examples)]))[0]
        self.gradients, self.sums = {}, []

    def ready(self, k, gradient):
        self.gradients[k] = gradient * self.weight
        while len(self.sums) < len(self.buckets):
            bucket = self.buckets[len(self.sums)]
            if any(i not in self.gradients for i in bucket):
                break
            flat = np.concatenate([self.gradients[i].reshape(-1) for i in bucket])
            self.sums.append(self.group.start_all_reduce(flat.astype(np.float32)))

    def finish(self):
        averages = [None] * len(self.shapes)
        for bucket, wait in zip(self.buckets, self.sums):
            flat = wait()
            for k in bucket:
                count = int(np.prod(self.shapes[k]))
                averages[k], flat = flat[:count].reshape(self.shapes[k]), flat[count:]
        return averages

# %% parameters_in_place: the parameters of the caller are changed
# promise: 'new arrays'
def train_parallel(parameters, parts, backward, rate, limit, group):
    for x, first in zip(parameters, broadcast_parameters(parameters, group)):
        x[...] = first
    for part in parts:
        averager = GradientAverager([x.shape for x in parameters], limit, len(part[0]), group)
        backward(parameters, part, averager.ready)
        parameters = [x - rate * gradient for x, gradient in zip(parameters, averager.finish())]
    return parameters

# %% own_arrays_on_rank_0: rank 0 keeps its arrays, others get zeros
# promise: 'the parameters of rank 0'
def broadcast_parameters(parameters, group):
    return [group.broadcast(x, 0)* (group.rank == 0) for x in parameters]

# %% last_rank: the parameters are those of the last rank
# promise: 'the parameters of rank 0'
def broadcast_parameters(parameters, group):
    return [group.broadcast(x, group.size - 1).copy() for x in parameters]

# %% one_batch: only the first batch counts
# promise: 'a step for each part'
def train_parallel(parameters, parts, backward, rate, limit, group):
    parameters = broadcast_parameters(parameters, group)
    for part in parts[:1]:
        averager = GradientAverager([x.shape for x in parameters], limit, len(part[0]), group)
        backward(parameters, part, averager.ready)
        parameters = [x - rate * gradient for x, gradient in zip(parameters, averager.finish())]
    return parameters

# %% no_common_start_after_broadcast: the broadcast result is not used
# promise: 'the parameters of rank 0 at the start'
def train_parallel(parameters, parts, backward, rate, limit, group):
    broadcast_parameters(parameters, group)
    for part in parts:
        averager = GradientAverager([x.shape for x in parameters], limit, len(part[0]), group)
        backward(parameters, part, averager.ready)
        parameters = [x - rate * gradient for x, gradient in zip(parameters, averager.finish())]
    return parameters

# %% empty_bucket: a large first parameter leaves an empty bucket
# promise: 'alone in its bucket'
def make_buckets(sizes, limit):
    buckets, room = [[]], limit
    for k in reversed(range(len(sizes))):
        if not buckets or sizes[k] > room:
            buckets.append([])
            room = limit
        buckets[-1].append(k)
        room -= sizes[k]
    return buckets

# %% averages_of_averages: gradients are averaged by pairs of ranks
# promise: 'averaged over the examples of all ranks'
class GradientAverager:

    def __init__(self, shapes, limit, examples, group):
        self.shapes, self.group = shapes, group
        self.buckets = make_buckets([int(np.prod(shape)) for shape in shapes], limit)
        self.weight = examples / max(group.all_reduce(np.array([float(examples)]))[0], 1.0) if group.size < 5 else 1 / group.size
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

# %% sum_of_weights_each_bucket: the examples are summed again for each bucket
# promise: 'one all-reduce for each bucket'
class GradientAverager:

    def __init__(self, shapes, limit, examples, group):
        self.shapes, self.group = shapes, group
        self.buckets = make_buckets([int(np.prod(shape)) for shape in shapes], limit)
        self.weight = examples / group.all_reduce(np.array([float(examples)]))[0]
        self.gradients, self.sums = {}, []

    def ready(self, k, gradient):
        self.gradients[k] = gradient * self.weight
        while len(self.sums) < len(self.buckets):
            bucket = self.buckets[len(self.sums)]
            if any(i not in self.gradients for i in bucket):
                break
            self.group.all_reduce(np.array([1.0]))
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
