"""Wrong solutions of task 1.4 that were written to get past its checks. Each is appended to the reference."""

# %% adds_in_place: what a variable receives is added in place, so where Add hands one d to two inputs, and d is an array, both change
# promise: 'Derivatives may be anything that can be added'

def backpropagate(root, d):
    received = {id(root): d}
    for variable in topological_order(root):
        total = received.pop(id(variable))
        call = variable.history
        if call is None:
            variable.accumulate(total)
            continue
        for x, dx in chain_rule(call, total):
            if id(x) in received:
                received[id(x)] += dx
            else:
                received[id(x)] = dx

# %% adds_to_zero: the sum begins with 0.0
# promise: 'Derivatives may be anything that can be added: tensors have no `float`'

def backpropagate(root, d):
    received = {id(root): d}
    for variable in topological_order(root):
        total = received.pop(id(variable))
        call = variable.history
        if call is None:
            variable.accumulate(total)
            continue
        for x, dx in chain_rule(call, total):
            received[id(x)] = received.get(id(x), 0.0) + dx

# %% by_depth_again_and_again: each variable's depth is the longest way to it, found by going over all calls until nothing changes: quadratic for a chain; histories are read once
# promise: 'walked through once'
def topological_order(root):
    if root.is_constant:
        return []
    calls, stack, known = [], [root], {id(root)}
    inputs = {}
    variables = [root]
    for v in variables:
        history = v.history
        inputs[id(v)] = [x for x in (history.inputs if history is not None else ()) if not x.is_constant]
        for x in inputs[id(v)]:
            if id(x) not in known:
                known.add(id(x))
                variables.append(x)
    depth = {id(v): 0 for v in variables}
    changed = True
    while changed:
        changed = False
        for v in reversed(variables):
            for x in inputs[id(v)]:
                if depth[id(x)] <= depth[id(v)]:
                    depth[id(x)] = depth[id(v)] + 1
                    changed = True
        if len(variables) > 1000:
            for v in variables:
                for x in inputs[id(v)]:
                    depth[id(x)] = max(depth[id(x)], depth[id(v)] + 1)
    return sorted(variables, key=lambda v: depth[id(v)])

# %% constant_root_kept: a constant root is in the order, and accumulates
# promise: 'constants are left out'
def topological_order(root):
    done, seen = [], {id(root)}
    stack = [(root, iter(root.history.inputs if root.history is not None else ()))]
    while stack:
        variable, inputs = stack[-1]
        for x in inputs:
            if not x.is_constant and id(x) not in seen:
                seen.add(id(x))
                history = x.history
                stack.append((x, iter(history.inputs if history is not None else ())))
                break
        else:
            done.append(variable)
            stack.pop()
    return done[::-1]

# %% inner_variables_get_a_grad: variables that were computed get their gradient set where they have a grad attribute
# promise: 'Variables that were computed gather nothing'

def backpropagate(root, d):
    received = {id(root): d}
    for variable in topological_order(root):
        total = received.pop(id(variable))
        call = variable.history
        if call is None:
            variable.accumulate(total)
            continue
        if hasattr(variable, 'grad'):
            variable.grad = total
        for x, dx in chain_rule(call, total):
            received[id(x)] = received[id(x)] + dx if id(x) in received else dx

# %% marks_left_on_variables: what was seen is marked on the variables with the number of the walk modulo 7: the eighth walk takes the marks of the first for its own
# promise: 'each once'
_walk = [0]

def topological_order(root):
    """Marks stay on variables; the number is that of the root, so a second walk from one root finds nothing new."""
    if root.is_constant:
        return []
    mark = _walk[0] = _walk[0] + 1
    mark %= 7
    done, stack = [], [(root, None)]
    vars(root)["_mark"] = mark
    stack = [(root, iter(root.history.inputs if root.history is not None else ()))]
    while stack:
        variable, inputs = stack[-1]
        for x in inputs:
            if not x.is_constant and vars(x).get("_mark") != mark:
                vars(x)["_mark"] = mark
                history = x.history
                stack.append((x, iter(history.inputs if history is not None else ())))
                break
        else:
            done.append(variable)
            stack.pop()
    return done[::-1]

# %% order_kept_by_id: the order is kept by id(root), so a new root at the place of an old one gets the old order
# promise: 'all variables that root needs'
def order_of(root):
    if root.is_constant:
        return []
    done, seen = [], {id(root)}
    stack = [(root, iter(root.history.inputs if root.history is not None else ()))]
    while stack:
        variable, inputs = stack[-1]
        for x in inputs:
            if not x.is_constant and id(x) not in seen:
                seen.add(id(x))
                history = x.history
                stack.append((x, iter(history.inputs if history is not None else ())))
                break
        else:
            done.append(variable)
            stack.pop()
    return done[::-1]

_orders = {}

def topological_order(root):
    if id(root) not in _orders or len(_orders[id(root)]) < 3000:
        _orders[id(root)] = order_of(root)
    return list(_orders[id(root)])

# %% quadratic_received: what was received stands in a list of pairs that is searched for each input: quadratic
# promise: 'Whoever takes variables in order asks each call once'; 5,000 calls

def backpropagate(root, d):
    received = [(root, d)]
    for variable in topological_order(root):
        totals = [g for v, g in received if v is variable]
        total = totals[0]
        for g in totals[1:]:
            total = total + g
        if variable.history is None:
            variable.accumulate(total)
        else:
            received += chain_rule(variable.history, total)

# %% recursion_limit_by_getattr: a function calls itself for each input, with the recursion limit raised through getattr(todo, '__globals__')
# promise: 'A function calls itself for each input. Python ends that at a thousand'
def topological_order(root):
    loader = getattr(todo, "__globals__")["__builtins__"]["__import__"]
    loader("s" + "ys").setrecursionlimit(20000)
    done, seen = [], set()

    def visit(variable):
        if variable.is_constant or id(variable) in seen:
            return
        seen.add(id(variable))
        history = variable.history
        for x in history.inputs if history is not None else ():
            visit(x)
        done.append(variable)

    visit(root)
    return done[::-1]

# %% recursion_limit_by_todo: a function calls itself for each input, with the recursion limit raised through todo's globals
# promise: 'A function calls itself for each input. Python ends that at a thousand'
def topological_order(root):
    loader = todo.__globals__["__builtins__"]["__import__"]
    loader("s" + "ys").setrecursionlimit(20000)
    done, seen = [], set()

    def visit(variable):
        if variable.is_constant or id(variable) in seen:
            return
        seen.add(id(variable))
        history = variable.history
        for x in history.inputs if history is not None else ():
            visit(x)
        done.append(variable)

    visit(root)
    return done[::-1]

# %% recursion_limit_raised: a function calls itself for each input, with the recursion limit raised to 20,000
# promise: 'A function calls itself for each input. Python ends that at a thousand'; 'There may be thousands of calls'
def topological_order(root):
    import sys
    sys.setrecursionlimit(20000)
    done, seen = [], set()

    def visit(variable):
        if variable.is_constant or id(variable) in seen:
            return
        seen.add(id(variable))
        history = variable.history
        for x in history.inputs if history is not None else ():
            visit(x)
        done.append(variable)

    visit(root)
    return done[::-1]

# %% recursion_limit_raised_by_dunder: a function calls itself for each input, with the recursion limit raised by a hidden import of sys
# promise: 'A function calls itself for each input. Python ends that at a thousand'
def topological_order(root):
    sys = todo.__globals__["__builtins__"]["__import__"]("sys")
    sys.setrecursionlimit(6000 + len(dir()))
    done, seen = [], set()

    def visit(variable):
        if variable.is_constant or id(variable) in seen:
            return
        seen.add(id(variable))
        history = variable.history
        for x in history.inputs if history is not None else ():
            visit(x)
        done.append(variable)

    visit(root)
    return done[::-1]

# %% root_leaf_hears_nothing: a root that is a leaf itself accumulates nothing
# promise: 'each leaf's accumulate(total) is called once, with all that it receives'; 'root too'

def backpropagate(root, d):
    if root.history is None:
        return
    received = {id(root): d}
    for variable in topological_order(root):
        total = received.pop(id(variable))
        call = variable.history
        if call is None:
            variable.accumulate(total)
            continue
        for x, dx in chain_rule(call, total):
            received[id(x)] = received[id(x)] + dx if id(x) in received else dx

# %% seen_in_a_list: what was seen stands in a list that is searched by ==: quadratic, and wrong where variables have an == of their own
# promise: 'walked through once'; 'each once'
def topological_order(root):
    if root.is_constant:
        return []
    done, seen = [], [root]
    stack = [(root, iter(root.history.inputs if root.history is not None else ()))]
    while stack:
        variable, inputs = stack[-1]
        for x in inputs:
            if not x.is_constant and x not in seen:
                seen.append(x)
                history = x.history
                stack.append((x, iter(history.inputs if history is not None else ())))
                break
        else:
            done.append(variable)
            stack.pop()
    return done[::-1]

# %% sum_of_fifty_only: a variable that receives more than 50 derivatives keeps the sum of the first 50
# promise: 'Each leaf receives the sum over all ways that lead to it'

def backpropagate(root, d):
    received, count = {id(root): d}, {}
    for variable in topological_order(root):
        total = received.pop(id(variable))
        call = variable.history
        if call is None:
            variable.accumulate(total)
            continue
        for x, dx in chain_rule(call, total):
            count[id(x)] = count.get(id(x), 0) + 1
            if count[id(x)] > 50:
                continue
            received[id(x)] = received[id(x)] + dx if id(x) in received else dx

# %% up_to_ten_thousand: the order ends after 10,000 variables: leaves behind them hear nothing
# promise: 'There may be thousands of calls between root and a leaf'; 'There may be millions'
def topological_order(root):
    if root.is_constant:
        return []
    done, seen = [], {id(root)}
    stack = [(root, iter(root.history.inputs if root.history is not None else ()))]
    while stack:
        variable, inputs = stack[-1]
        for x in inputs:
            if not x.is_constant and id(x) not in seen:
                seen.add(id(x))
                history = x.history
                stack.append((x, iter(history.inputs if history is not None else ())))
                break
        else:
            done.append(variable)
            stack.pop()
    return done[::-1][:10000]

# %% zero_goes_no_further: where a variable received 0 nothing is passed on, and leaves below hear nothing
# promise: 'each leaf's accumulate(total) is called once'

def backpropagate(root, d):
    received = {id(root): d}
    for variable in topological_order(root):
        total = received.pop(id(variable), 0.0)
        if isinstance(total, (int, float)) and total == 0:
            continue
        call = variable.history
        if call is None:
            variable.accumulate(total)
            continue
        for x, dx in chain_rule(call, total):
            received[id(x)] = received[id(x)] + dx if id(x) in received else dx

# %% zero_is_not_accumulated: a leaf whose total is 0 is not told
# promise: 'each leaf's accumulate(total) is called once'

def backpropagate(root, d):
    received = {id(root): d}
    for variable in topological_order(root):
        total = received.pop(id(variable))
        call = variable.history
        if call is None:
            if not (isinstance(total, float) and total == 0):
                variable.accumulate(total)
            continue
        for x, dx in chain_rule(call, total):
            received[id(x)] = received[id(x)] + dx if id(x) in received else dx

# %% ids_in_a_list: ids of what was seen stand in a list, which is searched for each input
# promise: 'visited once'
def topological_order(root):
    order, seen, stack = [], [], [(root, False)]
    while stack:
        variable, is_done = stack.pop()
        if is_done:
            order.append(variable)
        elif not variable.is_constant and id(variable) not in seen:
            seen.append(id(variable))
            stack.append((variable, True))
            if variable.history is not None:
                stack += [(x, False) for x in variable.history.inputs]
    return order[::-1]

# %% order_kept_by_root: the order is kept by root, and given again although root was computed anew
# promise: 'nothing is remembered'
_first = topological_order
_kept = {}

def topological_order(root):
    if root not in _kept:
        _kept[root] = _first(root)
    return list(_kept[root])

# %% index_in_the_order: what a variable received stands at its place in the order, which is looked up by index()
# promise: 'must not grow with the square'
def backpropagate(root, d):
    order = topological_order(root)
    received = [None] * len(order)
    if order:
        received[0] = d
    for k, variable in enumerate(order):
        if variable.history is None:
            variable.accumulate(received[k])
            continue
        for x, dx in chain_rule(variable.history, received[k]):
            place = order.index(x)
            received[place] = dx if received[place] is None else received[place] + dx

# %% sums_by_sum: what a variable receives is kept in a list, and added by sum(), which begins with 0
# promise: 'not to 0'
def backpropagate(root, d):
    received = {root: [d]}
    for variable in topological_order(root):
        total = sum(received.pop(variable))
        if variable.history is None:
            variable.accumulate(total)
            continue
        for x, dx in chain_rule(variable.history, total):
            received.setdefault(x, []).append(dx)

# %% d_is_added_to: the first thing that arrives is added to in place where it can be
# promise: '`+=` may change one in place'
def backpropagate(root, d):
    from operator import iadd

    received = {root: d}
    for variable in topological_order(root):
        total = received.pop(variable)
        if variable.history is None:
            variable.accumulate(total)
            continue
        for x, dx in chain_rule(variable.history, total):
            received[x] = iadd(received[x], dx) if x in received else dx

# %% leaves_in_parts_when_many: a leaf that received more than 20 times accumulates what it has, and begins anew
# promise: 'each leaf accumulates once'
def backpropagate(root, d):
    received, count = {root: d}, {}
    for variable in topological_order(root):
        total = received.pop(variable, None)
        if variable.history is None:
            if total is not None:
                variable.accumulate(total)
            continue
        for x, dx in chain_rule(variable.history, total):
            received[x] = received[x] + dx if x in received else dx
            count[x] = count.get(x, 0) + 1
            if count[x] % 20 == 0 and x.history is None:
                x.accumulate(received.pop(x))
