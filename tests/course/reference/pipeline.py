"""Module 6: a network whose layers are cut into stages, one for each rank, and a batch that is cut into microbatches.

Stage 0 has the first layers. A stage sends the results of its layers to the next stage, and gradients to the one before, by
`send(to, array)`, which does not wait; `receive(source)` waits for the next array from a stage.
"""

from minifuse.course import todo

# Task 6.4


def idle_share(stages, microbatches):
    """Return the share of the time, 0 to 1, in which a stage is idle, if all stages take equally long."""
    # begin 6.4a
    return (stages - 1) / (microbatches + stages - 1)
    # end


def one_forward_one_backward(stage, stages, microbatches):
    """Return what a stage does, in order: a list of ("forward", k) and ("backward", k), with both for each microbatch k.

    At no time has a stage more than `stages - stage` microbatches that went forward and not yet backward. No stage is idle
    for longer than `idle_share` says.
    """
    # begin 6.4b
    ahead = min(stages - 1 - stage, microbatches)
    steps = [("forward", k) for k in range(ahead)]
    for k in range(microbatches):
        if k + ahead < microbatches:
            steps.append(("forward", k + ahead))
        steps.append(("backward", k))
    return steps
    # end


def run_stage(stage, stages, microbatches, layers, send, receive):
    """Run a stage in the order of `one_forward_one_backward`, and return its gradients, summed over all microbatches.

    `layers.forward(k, x)` returns the result of this stage's layers for microbatch k, and `layers.backward(k, d)` returns
    (dx, gradients): the gradient of x, and the list of the gradients of its parameters. On stage 0, x is `layers.input(k)`;
    on the last stage, d is `layers.loss_gradient(k, y)`. Gradients are those of the mean over the whole batch.
    """
    # begin 6.4c
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
    return sums
    # end
