"""From a graph to few kernels.

Greedy: every value that must lie in memory (an output, an operand of a product, a fold that its user cannot hold)
becomes a kernel that computes all it can on the way: elementwise functions always, folds where the space and the folded
dims are the kernel's own, a matrix product where the kernel's points are its sums. Values over the same space and fold share
one kernel. Elementwise values are computed again in every kernel that needs them, unless they lie in memory anyway.

What a kernel could not hold, and why, is kept in `refusals`; all that was decided on the way, in `record`, if somebody asks.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import islice

from .. import kernels
from ..backends.base import Backend
from ..dag import topological
from ..errors import ShapeError
from ..functions import Copy, Embed, Fold, Full, Insert, Matmul, Output, View
from ..kernels import Dot, Expression, Kernel, Load, Part, ProductKernel
from ..layout import Layout, dense_like, row_major
from ..take import Put, Take
from .body import ONE, POINTS, Body, Space, as_it_is, copy_of, opened, points_of, shifted, without_unused
from .decisions import AGAIN, IN_PLACE, JOINED, MADE, REFUSED, TAKEN, Refusal, asked
from .node import Node, base, inputs_of
from .picked import NOT_IN_PRODUCT, as_fold
from .sharing import Groups, foresee, most_arrays, related
from .steps import NOWHERE, Launch, Place, Product, Step, Whole, meet, moved

MOST_PARTS = 1000  # functions in one kernel: beyond that, a compiler takes longer than it gains
NOT_VIEWED = "what its epilogue reads cannot be seen in the shape of the product"

Operand = tuple[Expression, Body]


class Schedule:
    """Steps that compute nodes. `place` says in which slot of the call's memory, and in which layout, a node lies.

    `roots` are all nodes that will be asked for, `saved` those of them that only a backward pass needs.
    """

    def __init__(
        self,
        arguments: Sequence[Node],
        layouts: Sequence[Layout | None],
        backend: Backend,
        roots: Iterable[Node],
        saved: Iterable[Node] = (),
    ) -> None:
        places = enumerate(zip(arguments, layouts, strict=True))
        self.place: dict[Node, Place] = {node: (k, layout) for k, (node, layout) in places if layout is not None}
        self.first, self.backend = len(arguments), backend
        self.copies: dict[Node, Place] = {}  # in row-major order
        self.layouts: dict[Node, Layout] = {}  # how some nodes are to lie
        self.wanted: dict[Node, Place] = {}  # where nodes that are not computed yet are to lie
        self.sizes: list[int] = []  # bytes, of each buffer
        self.steps: list[Step] = []
        self.apart: dict[Node, str] = {}  # products that are kernels of their own, and why
        self.refusals: dict[Refusal, None] = {}  # in order
        self.spelt: dict[Node, Node | None] = {}  # nodes of our own making, and what they are for; None for their parts
        self.record = asked.record
        self.is_looking = False  # whether a kernel is only looked at: what it refuses is not noted
        self.roots, self.saved = set(map(base, roots)), set(map(base, saved))
        self.users: dict[Node, set[Node]] = {}
        for node in topological(self.roots, inputs_of):
            for x in node.inputs:
                self.users.setdefault(x, set()).add(node)

    def allocate(self, node: Node, layout: Layout) -> Place:
        """A new buffer for a node."""
        self.sizes.append(layout.size * node.dtype.itemsize)
        self.place[node] = self.first + len(self.sizes) - 1, layout
        return self.place[node]

    def refuse(self, producer: Node, consumer: Node, reason: str) -> None:
        """Note that a kernel loads what it could have computed."""
        is_input = producer in self.place and self.place[producer][0] < self.first
        if not is_input and not self.is_looking:
            is_saved = producer in self.saved
            why = "it is saved for the backward pass" if is_saved else "it lies in memory: another kernel has computed it"
            refusal = Refusal(producer, consumer, reason or why)
            if self.record and refusal not in self.refusals:
                self.record.note(REFUSED, -1, refusal[:2], refusal.reason)
            self.refusals.setdefault(refusal)

    def begin(self, space: Space, nodes: Iterable[Node]) -> Body:
        """A kernel for some nodes, which holds nothing yet."""
        body = Body(self, space)
        if self.record:
            body.kernel = self.record.begin(self.meant(nodes), f"{'the rows of ' * bool(space.dims)}{space}")
        return body

    def meant(self, nodes: Iterable[Node]) -> list[Node]:
        """Nodes of the graph: what those of our own making are for."""
        found = (self.spelt.get(node, node) for node in nodes)
        return list(dict.fromkeys(node for node in found if node is not None))

    def note(self, kind: str, body: Body, nodes: Iterable[Node], reason: str = "") -> None:
        """Write down what becomes of a kernel, if somebody asks."""
        if self.record and body.kernel is not None and (known := self.meant(nodes)):
            self.record.note(kind, body.kernel, known, reason)

    def add(self, step: Step, node: Node, reason: str) -> None:
        """A step that only puts a node somewhere."""
        self.steps.append(step)
        if self.record:
            self.record.copy(node, reason)

    def is_used_outside(self, node: Node, inside: set[Node], stored: Iterable[Node]) -> bool:
        """Whether anybody needs a node but the kernel that computes the nodes `inside`, of which it stores some."""
        front, done = [node], {*stored} - {node}
        while front:
            x = front.pop()
            if x in done:
                continue
            done.add(x)
            if x in self.roots:
                return True
            for user in self.users.get(x, ()):
                if not isinstance(user.function, View) and user not in inside:
                    return True
                front.append(user)
        return False

    def compute(self, nodes: Iterable[Node]) -> None:
        """Steps for several nodes: what others need first; those over one space that read a common array share a kernel."""
        groups: Groups = {}
        for node in map(base, nodes):
            if node in self.place or isinstance(node.function, Matmul | Output | Embed | Insert | Put):
                self.locate(node)
            else:
                space = self.space(node)
                groups.setdefault((space, self.product_in(node, space)), []).append(node)
        foresee(self, groups)
        self.join_points(groups)
        order = topological([node for members in groups.values() for node in members], inputs_of)
        rank = {node: k for k, node in enumerate(order)}
        for (space, product), members in sorted(groups.items(), key=lambda item: max(rank[node] for node in item[1])):
            for together in [members] if product is not None else related(members, self.arrays, most_arrays(space)):
                self.launch(space, together)

    def join_points(self, groups: Groups) -> None:
        """Let kernels that fold rows store points of the same space too; note why others stay apart."""
        passed = list[tuple[Space, Node | None]]()
        for key in list(groups):
            (space, product), arrays = key, self.arrays(groups[key])
            others = [other for other in groups if other is not key and arrays & self.arrays(groups[other])]
            folding = [other for other in others if other[0].shape == space.shape and other[0].dims and other[1] is None]
            if folding and product is None and not space.dims:
                if self.record:
                    self.record.note(JOINED, -1, (groups[key][0], groups[folding[0]][0]), str(space))
                groups[folding[0]].extend(groups.pop(key))
            elif before := [other for other in others if any(other is x for x in passed)]:
                reason = f"one kernel runs over {before[0][0]}, the other over {space}"
                self.refuse(groups[before[0]][0], groups[key][0], reason)
            passed.append(key)

    def arrays(self, nodes: Iterable[Node]) -> set[Node]:
        """What lies in memory of what some nodes are computed from."""
        return {x for x in topological(nodes, lambda x: () if x in self.place else x.inputs) if x in self.place}

    def locate(self, node: Node) -> Place:
        """The place of a node, after the steps that put it there."""
        function = node.function
        if node in self.place:
            return self.place[node]
        if isinstance(function, View):
            slot, layout = self.locate(*node.inputs)
            try:
                return slot, function.layout(layout)
            except ShapeError:
                slot, layout = self.copied(*node.inputs)
                return slot, function.layout(layout)
        if isinstance(function, Matmul):
            body = self.begin(Space(node.shape, ()), [node])
            body.own(node)
            self.multiply(node, body, [], {})
        elif isinstance(function, Embed | Insert):
            self.insert(node, function)
        elif isinstance(function, Put):
            self.put(node)
        elif isinstance(function, Output):
            self.whole(node, function)
        else:
            self.launch(self.space(node), [node])
        return self.place[node]

    def put(self, node: Node) -> None:
        """What adds up by index: as a fold, in a kernel that stores it, since it is all there only at the end."""
        fold = as_fold(node)
        chosen = fold.inputs[0]
        is_here = chosen.inputs[0]
        self.spelt |= {fold: node, chosen: None, is_here: None, **{base(x): None for x in is_here.inputs if x.is_pointwise}}
        self.launch(self.space(fold), [fold])
        self.place[node] = self.locate(fold.reshape(node.shape))

    def whole(self, node: Node, function: Output) -> None:
        """All outputs of a function that the backend knows as a whole."""
        defined, inputs = function.of, [self.locate(x) for x in node.inputs]
        inferred = defined.infer(*node.inputs)
        outputs = [Node(Output(defined, k), node.inputs, *kind) for k, kind in enumerate(inferred)]
        for x, like in zip(outputs, defined.lie_like, strict=True):
            read = [] if like is None else [inputs[like][1]]
            self.allocate(x, self.layouts.get(x, dense_like(read, x.shape)))
        loads = tuple(Load(k, x.dtype) for k, x in enumerate(node.inputs))
        kernel = Kernel(tuple(Part(repr(x.function), loads, x.dtype) for x in outputs), ())
        step = Whole(defined, kernel, [self.place[x] for x in outputs], inputs)
        self.add(step, node, "which the backend computes as a whole")

    def insert(self, node: Node, function: Embed | Insert) -> None:
        """What lies around a place, zeros or what was there, then what is put in it, which is computed there."""
        *old, new = node.inputs
        read = [self.locate(x) for x in old]
        slot, layout = self.allocate(node, self.layouts.get(node, row_major(node.shape)))
        around = Kernel((Load(0, node.dtype) if old else kernels.constant(0, node.dtype),), ())
        reason = f"{'what was there' if old else 'zeros'}, before its part is put in"
        self.add(Launch(around, node.shape, (), [(slot, layout)], read), node, reason)
        part = slot, function.part(layout)
        if new.is_number:
            new = Full(part[1].shape, node.dtype)(new.to(node.dtype))
        is_apart = base(new) in self.roots or isinstance(new.function, View | Matmul | Output | Embed | Insert | Put)
        if new in self.place or is_apart:
            self.add(Launch(copy_of(node), part[1].shape, (), [part], [self.locate(new)]), new, "put where it belongs")
        else:
            self.wanted[new] = part
            self.launch(self.space(new), [new])

    def copied(self, node: Node) -> Place:
        """The place of a copy in row-major order."""
        if node not in self.copies:
            source = self.locate(node)
            self.copies[node] = self.allocate(node, row_major(node.shape))
            self.place[node] = source
            self.add(
                Launch(copy_of(node), node.shape, (), [self.copies[node]], [source]),
                node,
                "a copy in order, as a view of it needs",
            )
        return self.copies[node]

    def opened(self, node: Node) -> Node:
        """A view of a value that lies nowhere, as that value of views: views end at memory, and become strides."""
        return opened(node, self.place)

    def on_the_way(self, node: Node) -> tuple[Node, ...]:
        """What a kernel computes on the way to a node: the inputs of an elementwise function."""
        opened = self.opened(node)
        return points_of(opened) if opened.is_pointwise and opened not in self.place else ()

    def space(self, node: Node) -> Space:
        """The space of the kernel that computes a node: that of a fold which it can hold, or its own shape."""
        if isinstance(node.function, Fold):
            return Space(node.inputs[0].shape, node.function.dims)
        for leaf in topological([node], self.on_the_way):
            fold = base(leaf)
            if isinstance(fold.function, Fold) and fold not in self.place:
                space = Space(fold.inputs[0].shape, fold.function.dims)
                if space.has(node.shape) and space.folds(leaf, space.sees(node.shape)):
                    return space
        return Space(node.shape, ())

    def launch(self, space: Space, nodes: Iterable[Node]) -> None:
        """One kernel for those of the nodes that lie nowhere yet."""
        nodes = [node for node in dict.fromkeys(nodes) if node not in self.place]
        if not nodes:
            return
        if space.dims and all(self.space(node) != space for node in nodes):
            self.compute(nodes)  # the rows of the space are folded by now: what is left runs over less
            return
        self.shorten(nodes)
        body = self.begin(space, nodes)
        found = {node: body.expression(node, space.sees(node.shape)) for node in nodes}
        if body.missing:
            self.note(AGAIN, body, dict.fromkeys(body.missing))
            self.compute(body.missing)
            self.launch(space, nodes)  # more lies in memory now: look again
        elif body.product is not None and body.takes:
            for node in body.takes:
                self.refuse(node, nodes[0], NOT_IN_PRODUCT)
            self.note(AGAIN, body, body.takes)
            self.compute(body.takes)
            self.launch(space, nodes)
        elif body.product is not None:
            self.multiply(body.product, body, nodes, found)
        elif needed := [x for x in body.held if self.is_needed_again(x, body, nodes)]:
            self.note(AGAIN, body, needed, "another kernel needs it as well")
            self.launch(space, [*nodes, *needed])
        else:
            elements = [node for node in nodes if node.shape == space.shape]
            rows = [node for node in nodes if node.shape != space.shape]
            outputs = [self.stored(node, body) for node in elements + rows]
            kernel = Kernel(tuple(found[node] for node in elements), tuple(found[node] for node in rows))
            numbers = [source for source, _ in body.numbers]
            self.steps.append(Launch(kernel, space.shape, space.dims, outputs, list(body.inputs), numbers, list(body.raws)))
            self.note(MADE, body, elements + rows)

    def is_needed_again(self, fold: Node, body: Body, nodes: Iterable[Node]) -> bool:
        """Whether another kernel would fold the same again, so that its few results should be stored."""
        stored = {*nodes, *body.held}
        return fold not in set(nodes) and self.is_used_outside(fold, body.inside, stored)

    def stored(self, node: Node, body: Body) -> Place:
        """Where a kernel stores a node, as its space sees that place: laid out like what the kernel reads."""
        if node in self.wanted:
            self.place[node] = self.wanted.pop(node)
        else:
            is_plain = node.shape != body.space.shape or isinstance(node.function, Copy | Take)
            is_plain = is_plain or (body.product is not None and node.shape != body.product.shape)
            read = [layout for slot, layout in body.inputs if slot != NOWHERE]
            layout = row_major(node.shape) if is_plain else dense_like(read, node.shape)
            self.allocate(node, self.layouts.get(node, layout))
        slot, layout = self.place[node]
        return slot, body.space.sees(node.shape)(layout)

    def shorten(self, nodes: Sequence[Node]) -> None:
        """Let another kernel compute a part of what would be a very long one."""
        parts, asked = dict[Node, int](), set(nodes)
        for node in topological(nodes, self.on_the_way):
            parts[node] = (not node.is_number) + sum(parts[x] for x in self.on_the_way(node))
            if parts[node] > MOST_PARTS and node not in asked:
                self.refuse(base(node), nodes[0], f"a kernel holds at most {MOST_PARTS} functions")
                self.locate(base(node))
                parts[node] = 1

    # Matrix products.

    def product_in(self, node: Node, space: Space) -> Node | None:
        """The matrix product whose sums the kernel of a node would finish."""
        body = Body(self, space)
        for leaf in topological([node], self.on_the_way):
            under = base(leaf)
            if isinstance(under.function, Matmul) and under not in self.place and not body.refused(leaf, as_it_is):
                return under
        return None

    def multiply(self, product: Node, body: Body, nodes: list[Node], found: dict[Node, Expression]) -> None:
        """One matrix product, and what is done to its operands and its sums; less of that where the backend refuses."""
        if not nodes or self.is_used_outside(product, body.inside, nodes):
            nodes, found = [*nodes, product], {**found, product: Dot(product.dtype)}
        is_alone, before = len(nodes) == 1 and nodes[0] is product, len(self.place)
        for is_merged in (True, False):
            operands = [self.operand(x, product, body, is_merged) for x in product.inputs]
            if len(self.place) > before and not is_alone:
                self.note(AGAIN, body, islice(self.place, before, None))
                self.launch(body.space, nodes)
                return
            kernel, inputs, reason = self.joined(product, body, [found[node] for node in nodes], operands)
            reason = reason or self.backend.refused_product(
                kernel, [row_major(product.shape)] * len(nodes), [layout.from_zero() for _, layout in inputs]
            )
            merged = [base(x) for x, (e, _) in zip(product.inputs, operands, strict=True) if not isinstance(e, Load)]
            if not reason:
                break
            for x in merged:
                self.refuse(x, product, reason)
            if not merged and not is_alone:
                self.apart[product] = reason
                self.note(AGAIN, body, [product], reason)
                self.launch(body.space, nodes)
                return
        outputs = [self.allocate(product, row_major(product.shape)) if x is product else self.stored(x, body) for x in nodes]
        outputs = [(slot, layout.reshape(*product.shape)) for slot, layout in outputs]
        numbers = [source for source, _ in body.numbers]
        self.steps.append(Product(*without_unused(kernel, outputs, inputs, numbers)))
        if merged:
            prologue = dict.fromkeys(base(x) for _, inner in operands for x in inner.sweeps)
            self.note(TAKEN, body, prologue, "in its prologue")
        self.note(MADE, body, nodes)

    def operand(self, x: Node, product: Node, body: Body, is_merged: bool) -> Operand:
        """An operand of a product: computed on its way in, where nobody else needs it, or loaded."""
        is_new = base(x) not in self.place and bool(self.on_the_way(x))
        if is_merged and is_new and not self.is_used_outside(base(x), {product}, [product]):
            inner = Body(self, Space(x.shape, ()), body.numbers, holds=False)
            e = inner.expression(x, as_it_is, product)
            if inner.missing:
                self.compute(inner.missing)
                return self.operand(x, product, body, is_merged)
            if inner.inputs:
                return e, inner
        elif is_new and is_merged:
            self.refuse(base(x), product, "others need it too, so it lies in memory")
        elif is_merged and isinstance(base(x).function, Matmul | Fold):
            self.refuse(base(x), product, ONE if isinstance(base(x).function, Matmul) else POINTS)
        inner = Body(self, Space(x.shape, ()))
        return inner.load(x, as_it_is), inner

    def joined(
        self, product: Node, body: Body, elements: Sequence[Expression], operands: Sequence[Operand]
    ) -> tuple[ProductKernel, list[Place], str]:
        """Operands and epilogue as one kernel with one count of loads, the places of those, and what is against it."""
        inputs: list[Place] = []
        parts = list[Expression]()
        for e, inner in operands:
            parts.append(shifted(e, len(inputs)))
            inputs += inner.inputs
        a, b = parts
        kernel = ProductKernel(a, b, tuple(shifted(e, len(inputs)) for e in elements))
        try:
            return kernel, inputs + [(slot, layout.reshape(*product.shape)) for slot, layout in body.inputs], ""
        except ShapeError:
            return kernel, inputs, NOT_VIEWED

    # Changes in place.

    def store(self, source: Place, target: Place, node: Node, kept: Collection[int]) -> None:
        """Put a node where an argument lies: by the step that computes it, unless what lay there is read after it.

        Buffers that are `kept` are needed for themselves.
        """
        for k in reversed(range(len(self.steps) if source[0] not in kept else 0)):
            step = self.steps[k]
            seen, wanted = step.sees(source), step.sees(target)
            if seen in step.outputs and wanted[1].shape == step.shape:
                reads = [n for n, place in enumerate(step.inputs) if meet(place, target)]
                is_own = all(step.inputs[n] == wanted and step.may_replace(n) for n in reads)
                is_own = is_own and not any(meet(place, target) for place in step.raws)  # read at any time
                if is_own and self.rename(source, target, k):
                    if self.record:
                        argument = next(x for x, place in self.place.items() if place[0] == target[0])
                        self.record.note(IN_PLACE, self.record.made[k], (node, argument))
                    self.steps[k] = step.in_place(step.outputs.index(seen), wanted)
                    return
                break
            if any(meet(place, target) for place in step.places()):
                break
        self.add(Launch(copy_of(node), node.shape, (), [target], [source]), node, "a copy to where an argument lies")

    def rename(self, source: Place, target: Place, first: int) -> bool:
        """Let what was to lie in a buffer lie in a target, from step `first` on, which makes it; False if it cannot."""
        if source[0] < self.first:  # it is what another argument becomes
            return False
        later = [place for step in self.steps[first + 1 :] for place in step.places()]
        known = {place: moved(place, source, target) for place in [*later, *self.place.values()]}
        if None in known.values():
            return False
        self.place = {node: known[place] or place for node, place in self.place.items()}
        for step in self.steps[first + 1 :]:
            step.outputs = [known[place] or place for place in step.outputs]
            step.inputs = [known[place] or place for place in step.inputs]
            step.raws = [known[place] or place for place in step.raws]
        return True
