"""Wrong solutions of task 6.4, one a cell: `# %% name: the mistake that the check must name`."""


# %% of_the_work: the idle share is that of the work, not of the time
def idle_share(stages, microbatches):
    return (stages - 1) / microbatches


# %% gpipe: all microbatches go forward before the first goes backward
def one_forward_one_backward(stage, stages, microbatches):
    return [(name, k) for name in ("forward", "backward") for k in range(microbatches)]


# %% equally_many: all stages begin with equally many forward passes
def one_forward_one_backward(stage, stages, microbatches):
    ahead = min(stages - 1, microbatches)
    steps = [("forward", k) for k in range(ahead)]
    for k in range(microbatches):
        if k + ahead < microbatches:
            steps.append(("forward", k + ahead))
        steps.append(("backward", k))
    return steps


# %% one_by_one: a microbatch begins when the one before is done
def one_forward_one_backward(stage, stages, microbatches):
    return [(name, k) for k in range(microbatches) for name in ("forward", "backward")]


# %% first_stage_gets_none: a stage waits for an array that nobody sends
def run_stage(stage, stages, microbatches, layers, send, receive):
    results, sums = {}, None
    for name, k in one_forward_one_backward(stage, stages, microbatches):
        if name == "forward":
            y = layers.forward(k, receive(stage - 1) if stage > 0 else layers.input(k))
            if stage < stages - 1:
                send(stage + 1, y)
            else:
                results[k] = y
        else:
            d = receive(stage + 1) if stage < stages - 1 else layers.loss_gradient(k, results.pop(k))
            dx, gradients = layers.backward(k, d)
            if stage > 1:
                send(stage - 1, dx)
            sums = gradients if sums is None else [a + b for a, b in zip(sums, gradients)]
    return sums


# %% not_added: the gradients are those of the last microbatch
def run_stage(stage, stages, microbatches, layers, send, receive):
    results, sums = {}, None
    for name, k in one_forward_one_backward(stage, stages, microbatches):
        if name == "forward":
            y = layers.forward(k, receive(stage - 1) if stage > 0 else layers.input(k))
            if stage < stages - 1:
                send(stage + 1, y)
            else:
                results[k] = y
        else:
            d = receive(stage + 1) if stage < stages - 1 else layers.loss_gradient(k, results.pop(k))
            dx, gradients = layers.backward(k, d)
            if stage > 0:
                send(stage - 1, dx)
            sums = gradients
    return sums


# %% mean: gradients are divided by the number of microbatches
def run_stage(stage, stages, microbatches, layers, send, receive):
    results, sums = {}, None
    for name, k in one_forward_one_backward(stage, stages, microbatches):
        if name == "forward":
            y = layers.forward(k, receive(stage - 1) if stage > 0 else layers.input(k))
            if stage < stages - 1:
                send(stage + 1, y)
            else:
                results[k] = y
        else:
            d = receive(stage + 1) if stage < stages - 1 else layers.loss_gradient(k, results.pop(k))
            dx, gradients = layers.backward(k, d)
            if stage > 0:
                send(stage - 1, dx)
            sums = gradients if sums is None else [a + b for a, b in zip(sums, gradients)]
    return [x / microbatches for x in sums]


# %% sends_its_sums: a message is sent that nobody receives
def run_stage(stage, stages, microbatches, layers, send, receive):
    results, sums = {}, None
    for name, k in one_forward_one_backward(stage, stages, microbatches):
        if name == "forward":
            y = layers.forward(k, receive(stage - 1) if stage > 0 else layers.input(k))
            if stage < stages - 1:
                send(stage + 1, y)
            else:
                results[k] = y
        else:
            d = receive(stage + 1) if stage < stages - 1 else layers.loss_gradient(k, results.pop(k))
            dx, gradients = layers.backward(k, d)
            if stage > 0:
                send(stage - 1, dx)
            sums = gradients if sums is None else [a + b for a, b in zip(sums, gradients)]
    if stage > 0:
        send(0, sums[0])
    return sums


# %% one_more_ahead: each stage runs one microbatch too many ahead
def one_forward_one_backward(stage, stages, microbatches):
    ahead = min(stages - stage, microbatches)
    steps = [("forward", k) for k in range(ahead)]
    for k in range(microbatches):
        if k + ahead < microbatches:
            steps.append(("forward", k + ahead))
        steps.append(("backward", k))
    return steps


# %% too_few_microbatches: a stage runs ahead more microbatches than there are
def one_forward_one_backward(stage, stages, microbatches):
    ahead = stages - 1 - stage
    steps = [("forward", k) for k in range(ahead)]
    for k in range(microbatches):
        if k + ahead < microbatches:
            steps.append(("forward", k + ahead))
        steps.append(("backward", k))
    return steps
