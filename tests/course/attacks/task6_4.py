"""Wrong solutions of task 6.4 that were written to get past its checks. Each is appended to the reference."""

# %% shared_globals: results are put into a global variable, and empty messages are sent
# promise: 'A stage computes from its own layers and its messages alone'
HELD = {}
def run_stage(stage, stages, microbatches, layers, send, receive):
    results, sums = {}, None
    for name, k in one_forward_one_backward(stage, stages, microbatches):
        if name == "forward":
            x = layers.input(k) if stage == 0 else (receive(stage - 1), HELD[stage - 1, k])[1]
            y = layers.forward(k, x)
            HELD[stage, k] = y
            if stage < stages - 1:
                send(stage + 1, y * 0)
            else:
                results[k] = y
        else:
            d = receive(stage + 1) if stage < stages - 1 else layers.loss_gradient(k, results.pop(k))
            dx, gradients = layers.backward(k, d)
            if stage > 0:
                send(stage - 1, dx)
            sums = gradients if sums is None else [a + b for a, b in zip(sums, gradients)]
    return sums

# %% gpipe_in_run: the order is right, but run_stage runs another
# promise: 'in the order of one_forward_one_backward'
def run_stage(stage, stages, microbatches, layers, send, receive):
    results, sums = {}, None
    for name, k in [(n, k) for n in ("forward", "backward") for k in range(microbatches)]:
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
    return sums

# %% one_by_one_in_run: run_stage runs one microbatch after the other
# promise: 'in the order of one_forward_one_backward'
def run_stage(stage, stages, microbatches, layers, send, receive):
    results, sums = {}, None
    for name, k in [(n, k) for k in range(microbatches) for n in ("forward", "backward")]:
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
    return sums

# %% one_ahead_less: each stage runs one microbatch less ahead
# promise: 'No stage is idle for longer'
def one_forward_one_backward(stage, stages, microbatches):
    ahead = max(min(stages - 2 - stage, microbatches), 0)
    steps = [("forward", k) for k in range(ahead)]
    for k in range(microbatches):
        if k + ahead < microbatches:
            steps.append(("forward", k + ahead))
        steps.append(("backward", k))
    return steps

# %% half_ahead: half as many microbatches ahead
# promise: 'No stage is idle for longer'
def one_forward_one_backward(stage, stages, microbatches):
    ahead = min((stages - 1 - stage) // 2, microbatches)
    steps = [("forward", k) for k in range(ahead)]
    for k in range(microbatches):
        if k + ahead < microbatches:
            steps.append(("forward", k + ahead))
        steps.append(("backward", k))
    return steps

# %% without_rest: with fewer microbatches than stages the last ones are left out
# promise: 'with both for each microbatch'
def one_forward_one_backward(stage, stages, microbatches):
    ahead = min(stages - 1 - stage, microbatches)
    steps = [("forward", k) for k in range(ahead)]
    for k in range(min(microbatches, 8)):
        if k + ahead < microbatches:
            steps.append(("forward", k + ahead))
        steps.append(("backward", k))
    return steps

# %% gpipe_for_many: from nine stages on it is GPipe
# promise: 'not more than stages - stage microbatches'
def one_forward_one_backward(stage, stages, microbatches):
    if stages > 8:
        return [(name, k) for name in ("forward", "backward") for k in range(microbatches)]
    ahead = min(stages - 1 - stage, microbatches)
    steps = [("forward", k) for k in range(ahead)]
    for k in range(microbatches):
        if k + ahead < microbatches:
            steps.append(("forward", k + ahead))
        steps.append(("backward", k))
    return steps

# %% backward_twice: the last microbatch goes backward twice
# promise: 'with both for each microbatch'
def one_forward_one_backward(stage, stages, microbatches):
    ahead = min(stages - 1 - stage, microbatches)
    steps = [("forward", k) for k in range(ahead)]
    for k in range(microbatches):
        if k + ahead < microbatches:
            steps.append(("forward", k + ahead))
        steps.append(("backward", k))
    return steps + steps[-1:]

# %% tuple_of_steps: the order is a generator
# promise: 'a list'
def one_forward_one_backward(stage, stages, microbatches):
    ahead = min(stages - 1 - stage, microbatches)
    steps = [("forward", k) for k in range(ahead)]
    for k in range(microbatches):
        if k + ahead < microbatches:
            steps.append(("forward", k + ahead))
        steps.append(("backward", k))
    return iter(steps)

# %% mean_of_stages: idle for many stages is rounded
# promise: 'the share of the time'
def idle_share(stages, microbatches):
    return round((stages - 1) / (microbatches + stages - 1), 3)

# %% other_share: the idle share of stages instead of stages - 1
# promise: '(stages - 1)'
def idle_share(stages, microbatches):
    return stages / (microbatches + stages - 1)

# %% sends_to_the_first: activations go through stage 0
# promise: 'to the next stage'
def run_stage(stage, stages, microbatches, layers, send, receive):
    results, sums = {}, None
    for name, k in one_forward_one_backward(stage, stages, microbatches):
        if name == "forward":
            y = layers.forward(k, receive(stage - 1) if stage > 0 else layers.input(k))
            if stage < stages - 1:
                send(stage + 1, y)
                if stage > 1:
                    send(0, y)
            else:
                results[k] = y
        else:
            d = receive(stage + 1) if stage < stages - 1 else layers.loss_gradient(k, results.pop(k))
            dx, gradients = layers.backward(k, d)
            if stage > 0:
                send(stage - 1, dx)
            sums = gradients if sums is None else [a + b for a, b in zip(sums, gradients)]
    return sums

# %% weights_travel: inputs travel beside results
# promise: 'sends the results of its layers'
def run_stage(stage, stages, microbatches, layers, send, receive):
    results, sums = {}, None
    for name, k in one_forward_one_backward(stage, stages, microbatches):
        if name == "forward":
            y = layers.forward(k, (receive(stage - 1), receive(stage - 1))[0] if stage > 0 else layers.input(k))
            if stage < stages - 1:
                send(stage + 1, y)
                send(stage + 1, y)
            else:
                results[k] = y
        else:
            d = receive(stage + 1) if stage < stages - 1 else layers.loss_gradient(k, results.pop(k))
            dx, gradients = layers.backward(k, d)
            if stage > 0:
                send(stage - 1, dx)
            sums = gradients if sums is None else [a + b for a, b in zip(sums, gradients)]
    return sums

# %% forward_twice: each microbatch is computed twice
# promise: 'each microbatch'
def run_stage(stage, stages, microbatches, layers, send, receive):
    results, sums = {}, None
    for name, k in one_forward_one_backward(stage, stages, microbatches):
        if name == "forward":
            x = receive(stage - 1) if stage > 0 else layers.input(k)
            layers.forward(k, x)
            y = layers.forward(k, x)
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
    return sums

# %% float32_results: results travel as float32
# promise: 'the gradients of one device'
def run_stage(stage, stages, microbatches, layers, send, receive):
    results, sums = {}, None
    for name, k in one_forward_one_backward(stage, stages, microbatches):
        if name == "forward":
            y = layers.forward(k, receive(stage - 1) if stage > 0 else layers.input(k))
            if stage < stages - 1:
                send(stage + 1, y.astype("float32"))
            else:
                results[k] = y
        else:
            d = receive(stage + 1) if stage < stages - 1 else layers.loss_gradient(k, results.pop(k))
            dx, gradients = layers.backward(k, d)
            if stage > 0:
                send(stage - 1, dx)
            sums = gradients if sums is None else [a + b for a, b in zip(sums, gradients)]
    return sums

# %% skips_the_first: the first microbatch has no gradient
# promise: 'summed over all microbatches'
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
            sums = [0 * g for g in gradients] if sums is None else [a + b for a, b in zip(sums, gradients)]
    return sums

# %% only_the_last_stage: stage 0 returns zeros
# promise: 'return its gradients'
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
    return sums if stage else [0 * g for g in sums]

# %% no_bias: the gradient of the second parameter is that of the first microbatch
# promise: 'summed over all microbatches'
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
            sums = gradients if sums is None else [sums[0] + gradients[0], sums[1]]
    return sums
