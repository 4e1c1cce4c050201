"""Right solutions of task 6.4 that are written in unusual ways. Each is appended to the reference."""

# %% by_pairs: steps are pairs that begin before the first microbatch
def one_forward_one_backward(stage, stages, microbatches):
    ahead = stages - 1 - stage
    pairs = [(("forward", k + ahead), ("backward", k)) for k in range(-ahead, microbatches)]
    return [step for pair in pairs for step in pair if 0 <= step[1] < microbatches]

# %% by_counting: a stage runs forward while it may keep another microbatch
def one_forward_one_backward(stage, stages, microbatches):
    steps, ahead, done = [], 0, 0
    while done < microbatches:
        if ahead < microbatches and ahead - done < stages - stage:
            steps.append(("forward", ahead))
            ahead += 1
        else:
            steps.append(("backward", done))
            done += 1
    return steps

# %% recursive_sums: gradients are collected and added in the end; the order is written out in run_stage
def run_stage(stage, stages, microbatches, layers, send, receive):
    found, results = [], []

    def forward(k):
        results.append(layers.forward(k, layers.input(k) if stage == 0 else receive(stage - 1)))
        if stage + 1 < stages:
            send(stage + 1, results[-1])

    def backward(k):
        d = receive(stage + 1) if stage + 1 < stages else layers.loss_gradient(k, results[k])
        dx, gradients = layers.backward(k, d)
        found.append(gradients)
        if stage:
            send(stage - 1, dx)

    ahead = min(stages - stage - 1, microbatches)
    for k in range(ahead):
        forward(k)
    for k in range(microbatches - ahead):
        forward(k + ahead)
        backward(k)
    for k in range(microbatches - ahead, microbatches):
        backward(k)
    return [sum(parts[1:], parts[0]) for parts in zip(*found)]
