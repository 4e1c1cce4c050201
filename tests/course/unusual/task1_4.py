"""Right solutions of task 1.4 that are written in unusual ways. Each is appended to the reference."""

# %% kahn: counts the users of each variable, and takes those whose users are done, first come first served
from collections import Counter, deque


def _inputs(variable):
    call = variable.history
    return [] if call is None else [x for x in call.inputs if not x.is_constant]


def topological_order(root):
    if root.is_constant:
        return []
    users, found, waiting = Counter(), {id(root): root}, [root]
    while waiting:
        for x in _inputs(waiting.pop()):
            users[id(x)] += 1
            if id(x) not in found:
                found[id(x)] = x
                waiting.append(x)
    order, ready = [], deque([root])
    while ready:
        variable = ready.popleft()
        order.append(variable)
        for x in _inputs(variable):
            users[id(x)] -= 1
            if users[id(x)] == 0:
                ready.append(x)
    return order


# %% stack_of_iterators: depth first, with an iterator over the inputs of each variable on a stack
def topological_order(root):
    done, stack = {}, [(None, iter([root]))]
    while stack:
        variable, inputs = stack[-1]
        for x in inputs:
            if not x.is_constant and id(x) not in done:
                done[id(x)] = None
                stack.append((x, iter(x.history.inputs if x.history else ())))
                break
        else:
            stack.pop()
            if variable is not None:
                done[id(variable)] = done.pop(id(variable), None) or variable
    return list(done.values())[::-1]


# %% by_height: sorts by the length of the longest path to a leaf; equal heights in the order of the search
def topological_order(root):
    height, inputs_of, stack = {}, {}, [root] * (not root.is_constant)
    while stack:
        x = stack[-1]
        if x not in inputs_of:
            call = x.history
            inputs_of[x] = {i for i in call.inputs if not i.is_constant} if call else set()
            stack += [i for i in inputs_of[x] if i not in height]
        else:
            stack.pop()
            height[x] = 1 + max((height[i] for i in inputs_of[x]), default=0)
    return sorted(height, key=height.get, reverse=True)


# %% lists_of_shares: keeps all shares of a variable, and adds them from the last to the first; leaves at the end
def backpropagate(root, d):
    from collections import defaultdict
    from functools import reduce

    shares, totals = defaultdict(list), []
    shares[root].append(d)
    for x in topological_order(root):
        total = reduce(lambda a, b: b + a, reversed(shares.pop(x)))
        call = x.history
        if call is None:
            totals.insert(0, (x, total))
            continue
        for i, share in chain_rule(call, total):
            shares[i].append(share)
    for leaf, total in totals:
        leaf.accumulate(total)


# %% counted_shares: without an order: a variable has its turn when all shares have come that it waits for
def backpropagate(root, d):
    if root.is_constant:
        return
    waits, calls, stack = {root: 1}, {}, [root]
    while stack:
        x = stack.pop()
        calls[x] = call = x.history
        for i in call.inputs if call is not None else ():
            if not i.is_constant:
                if i not in waits:
                    waits[i] = 0
                    stack.append(i)
                waits[i] += 1
    received, ready = {}, [(root, d)]
    while ready:
        x, share = ready.pop()
        received[x] = received[x] + share if x in received else share
        waits[x] -= 1
        if waits[x] == 0:
            total = received.pop(x)
            if calls[x] is None:
                x.accumulate(total)
            else:
                ready.extend(chain_rule(calls[x], total))


# %% recursive_generators: a generator for each variable, run on a stack of generators
def topological_order(root):
    order, seen = [], set()

    def visit(x):
        if x.is_constant or id(x) in seen:
            return
        seen.add(id(x))
        call = x.history
        if call:
            for i in reversed(call.inputs):
                yield visit(i)
        order.append(x)

    stack = [visit(root)]
    while stack:
        deeper = next(stack[-1], None)
        if deeper is None:
            stack.pop()
        else:
            stack.append(deeper)
    return list(reversed(order))
