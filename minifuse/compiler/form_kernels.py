"""From a graph to few kernels.

Greedy: every value that must lie in memory (an output, an operand of a product, a fold that its user cannot hold)
becomes a kernel that computes all it can on the way: elementwise functions always, folds where the space and the folded
dims are the kernel's own, a matrix product where the kernel's points are its sums. Values over the same space and fold share
one kernel. Elementwise values are computed again in every kernel that needs them, unless they lie in memory anyway.

What a kernel could not hold, and why, is kept in `refusals`; all that was decided on the way, in `record`, if somebody asks.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

from ..backends.base import Backend
from ..core.errors import ShapeError
from ..core.interning import Task, finished, topological
from ..core.layout import Layout, dense_like, row_major
from ..ir.array_functions import Copy, Embed, Fold, Insert, Matmul, Output, View
from ..ir.gather import Put, Take
from ..ir.graph import Node, base, inputs_of
from ..ir.kernel_ir import Dot, Expression, Kernel, Load, Part, ProductKernel
from ..ir.steps import NOWHERE, Launch, Place, Product, Step, Whole
from .fusible_region import Ways
from .fusion_log import AGAIN, JOINED, MADE, REFUSED, TAKEN, Refusal, asked
from .horizontal_fusion import Groups, cut, foresee
from .kernel_builder import ONE, POINTS, Body, Space, as_it_is, copy_of, shifted, without_unused
from .kernel_limits import cuts
from .lower_gather import NOT_IN_PRODUCT, as_fold
from .materialize import kept
from .shared_inputs import bits, connected, in_common
from .slice_updates import APART, inserting, passing

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
        self.roots, self.saved = dict.fromkeys(map(base, roots)), set(map(base, saved))
        order = topological(self.roots, inputs_of)
        self.rank: dict[Node, float] = {node: k for k, node in enumerate(order)}
        self.users: dict[Node, set[Node]] = {}
        self.reads: dict[Node, bool] = {}  # whether a node is computed from any array
        for node in order:
            self.reads[node] = any(self.reads[x] for x in node.inputs) if node.inputs else node in self.place
            for x in node.inputs:
                self.users.setdefault(x, set()).add(node)
        self.kept = kept(order, self.roots)  # what must lie in memory before it is read, and why
        self.ways = Ways(self.place, self.kept)
        self.opened, self.on_the_way, self.space = self.ways.opened, self.ways.on_the_way, self.ways.space

    def allocate(self, node: Node, layout: Layout) -> Place:
        """A new buffer for a node."""
        self.sizes.append(layout.size * node.dtype.itemsize)
        self.place[node] = self.first + len(self.sizes) - 1, layout
        return self.place[node]

    def refuse(self, producer: Node, consumer: Node, reason: str) -> None:
        """Note that a kernel loads what it could have computed."""
        is_input = producer in self.place and self.place[producer][0] < self.first
        if not is_input:
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
        """Steps for several nodes."""
        finished(self.computing(nodes))

    def computing(self, nodes: Iterable[Node]) -> Task[None]:
        """Steps for several nodes: what others need first; those over one space that read a common array share a kernel."""
        groups: Groups = {}
        for node in dict.fromkeys(map(base, nodes)):
            if node in self.place or (yield passing(self, node)):
                continue
            if isinstance(node.function, APART):
                yield self.locating(node)
            else:
                space = self.space(node)
                groups.setdefault((space, self.product_in(node, space)), []).append(node)
        yield foresee(self, groups)
        self.join_points(groups)
        for (space, product), members in sorted(groups.items(), key=lambda item: max(map(self.ranked, item[1]))):
            for related in [members] if product is not None else self.related(space, members):
                yield self.launching(space, related)

    def ranked(self, node: Node) -> float:
        """A number that is higher than those of all that a node is computed from."""
        for x in topological([node], lambda x: () if x in self.rank else x.inputs):
            if x not in self.rank:  # of our own making
                self.rank[x] = max((self.rank[i] for i in x.inputs), default=0) + 0.001
                self.reads[x] = any(self.reads[i] for i in x.inputs)
        return self.rank[node]

    def join_points(self, groups: Groups) -> None:
        """Let kernels that fold rows store points of the same space too; note why others stay apart."""
        keys = list(groups)
        sharing = self.in_common(list(groups.values()))
        for k, key in enumerate(keys):
            space, product = key
            near = [j for j in bits(sharing[k]) if j != k and keys[j] in groups]
            folding = [j for j in near if keys[j][0].shape == space.shape and keys[j][0].dims and keys[j][1] is None]
            if folding and product is None and not space.dims:
                other = groups[keys[folding[0]]]
                if self.record:
                    self.record.note(JOINED, -1, (groups[key][0], other[0]), str(space))
                other.extend(groups.pop(key))
                sharing = [mask | sharing[k] if j == folding[0] else mask for j, mask in enumerate(sharing)]
            elif before := [j for j in near if j < k]:
                reason = f"one kernel runs over {keys[before[0]][0]}, the other over {space}"
                self.refuse(groups[keys[before[0]]][0], groups[key][0], reason)

    def related(self, space: Space, nodes: Sequence[Node]) -> list[list[Node]]:
        """Nodes by what they read: a kernel for values that have no array in common would only be larger."""
        groups = connected(self.in_common([[node] for node in nodes]))
        return [part for members in groups for part in cut(self.ways, space, [nodes[k] for k in members])]

    def in_common(self, groups: Sequence[Sequence[Node]]) -> list[int]:
        """For each group a mask of those that read an array which it reads too."""
        return in_common(groups, self.ranked, lambda node: node in self.place or self.reads[node], self.place)

    def locate(self, node: Node) -> Place:
        """The place of a node, after the steps that put it there."""
        return finished(self.locating(node))

    def locating(self, node: Node) -> Task[Place]:
        """The same, as a task."""
        under = base(node)
        function = under.function
        if node in self.place or under in self.place:
            pass
        elif isinstance(function, Matmul):
            body = self.begin(Space(under.shape, ()), [under])
            yield body.own(under)
            yield self.multiplying(under, body, [], {})
        elif isinstance(function, Embed | Insert):
            yield inserting(self, under)
        elif isinstance(function, Put):
            yield self.putting(under)
        elif isinstance(function, Output):
            yield self.computing_whole(under, function)
        elif not (yield passing(self, under)):
            yield self.launching(self.space(under), [under])
        return self.located(node)

    def located(self, node: Node) -> Place:
        """The place of views of what lies in memory; a copy of it where strides do not allow them."""
        views, x = list[Node](), node
        while x not in self.place:
            views.append(x)
            (x,) = x.inputs
        slot, layout = self.place[x]
        for view in reversed(views):
            try:
                layout = view.function.layout(layout)
            except ShapeError:
                slot, layout = self.copied(view.inputs[0], (slot, layout))
                layout = view.function.layout(layout)
        return slot, layout

    def putting(self, node: Node) -> Task[None]:
        """What adds up by index: as a fold, in a kernel that stores it, since it is all there only at the end."""
        fold = as_fold(node)
        chosen = fold.inputs[0]
        is_here = chosen.inputs[0]
        self.spelt |= {fold: node, chosen: None, is_here: None, **{base(x): None for x in is_here.inputs if x.is_pointwise}}
        yield self.launching(self.space(fold), [fold])
        self.place[node] = self.located(fold.reshape(node.shape))

    def computing_whole(self, node: Node, function: Output) -> Task[None]:
        """All outputs of a function that the backend knows as a whole."""
        defined, inputs = function.of, list[Place]()
        for x in node.inputs:
            inputs.append((yield self.locating(x)))
        inferred = defined.infer(*node.inputs)
        outputs = [Node(Output(defined, k), node.inputs, *kind) for k, kind in enumerate(inferred)]
        for x, like in zip(outputs, defined.lie_like, strict=True):
            if x in self.wanted:
                self.place[x] = self.wanted.pop(x)
            else:
                read = [] if like is None else [inputs[like][1]]
                self.allocate(x, self.layouts.get(x, dense_like(read, x.shape)))
        loads = tuple(Load(k, x.dtype) for k, x in enumerate(node.inputs))
        kernel = Kernel(tuple(Part(repr(x.function), loads, x.dtype) for x in outputs), ())
        step = Whole(defined, kernel, [self.place[x] for x in outputs], inputs)
        self.add(step, node, "which the backend computes as a whole")

    def copied(self, node: Node, source: Place) -> Place:
        """The place of a copy in row-major order."""
        if node not in self.copies:
            self.copies[node] = self.allocate(node, row_major(node.shape))
            self.place[node] = source
            self.add(
                Launch(copy_of(node), node.shape, (), [self.copies[node]], [source]),
                node,
                "a copy in order, as a view of it needs",
            )
        return self.copies[node]

    def launching(self, space: Space, nodes: Iterable[Node]) -> Task[None]:
        """One kernel for those of the nodes that lie nowhere yet."""
        nodes = [node for node in dict.fromkeys(nodes) if node not in self.place]
        if not nodes:
            return
        if len(batches := self.in_order(space, nodes)) > 1:
            for batch in batches:
                yield self.launching(space, batch)
            return
        if space.dims and all(self.space(node) != space for node in nodes):
            yield self.computing(nodes)  # the rows of the space are folded by now: what is left runs over less
            return
        if (yield self.shortening(space, nodes)):
            yield self.launching(space, nodes)
            return
        body, found = self.begin(space, nodes), dict[Node, Expression]()
        with self.ways.inside_kernel_of(nodes):
            for node in nodes:
                found[node] = yield body.expression(node, space.sees(node.shape))
        if body.missing:
            self.note(AGAIN, body, dict.fromkeys(body.missing))
            yield self.computing(body.missing)
            yield self.launching(space, nodes)  # more lies in memory now: look again
        elif body.product is not None and body.takes:
            for node in body.takes:
                self.refuse(node, nodes[0], NOT_IN_PRODUCT)
            self.note(AGAIN, body, body.takes)
            yield self.computing(body.takes)
            yield self.launching(space, nodes)
        elif body.product is not None:
            yield self.multiplying(body.product, body, nodes, found)
        elif needed := [x for x in body.held if self.is_needed_again(x, body, nodes)]:
            self.note(AGAIN, body, needed, "another kernel needs it as well")
            yield self.launching(space, [*nodes, *needed])
        else:
            elements = [node for node in nodes if node.shape == space.shape]
            rows = [node for node in nodes if node.shape != space.shape]
            outputs = [self.stored(node, body) for node in elements + rows]
            kernel = Kernel(tuple(found[node] for node in elements), tuple(found[node] for node in rows))
            numbers = [source for source, _ in body.numbers]
            self.steps.append(Launch(kernel, space.shape, space.dims, outputs, list(body.inputs), numbers, list(body.raws)))
            self.note(MADE, body, elements + rows)

    def in_order(self, space: Space, nodes: list[Node]) -> list[list[Node]]:
        """Split nodes into batches, each a kernel: a node that is kept is stored before others read a view of it."""
        members = self.kept.keys() & nodes
        if len(nodes) == 1 or not members:
            return [nodes]
        inside, levels = self.ways.inside(space), dict[Node, int]()

        def inputs(x: Node) -> Sequence[Node]:
            under = base(x)
            if under in members:
                return self.ways.own(under) if x is under else (under,)
            return inside(x)

        for x in topological(nodes, lambda x: (*inputs(x), *self.ways.picked_from(x, members))):
            levels[x] = max((levels[i] for i in inputs(x)), default=0) + (base(x) in members and x is not base(x))
            levels[x] = max((levels[x], *(levels[i] + 1 for i in self.ways.picked_from(x, members))))
        batches: dict[int, list[Node]] = {}
        for node in nodes:
            batches.setdefault(levels[node], []).append(node)
        return [batches[level] for level in sorted(batches)]

    def is_needed_again(self, fold: Node, body: Body, nodes: Iterable[Node]) -> bool:
        """Whether another kernel would fold the same again, so that its few results should be stored."""
        stored = {*nodes, *body.held}
        return fold not in set(nodes) and self.is_used_outside(fold, body.inside, stored)

    def stored(self, node: Node, body: Body) -> Place:
        """Where a kernel stores a node, as its space sees that place: laid out like what the kernel reads."""
        wanted = self.wanted.pop(node, None)
        if wanted is not None and (seen := body.as_seen(wanted, node.shape)) is not None:
            self.place[node] = wanted
            return seen
        is_plain = node.shape != body.space.shape or isinstance(node.function, Copy | Take)
        is_plain = is_plain or (body.product is not None and node.shape != body.product.shape)
        read = [layout for slot, layout in body.inputs if slot != NOWHERE]
        layout = row_major(node.shape) if is_plain else dense_like(read, node.shape)
        slot, layout = self.allocate(node, self.layouts.get(node, layout))
        return slot, body.space.sees(node.shape)(layout)

    def summed(self, product: Node) -> Place:
        """Where the sums of a product are stored as they are."""
        if product in self.wanted:
            self.place[product] = self.wanted.pop(product)
            return self.place[product]
        return self.allocate(product, row_major(product.shape))

    def shortening(self, space: Space, nodes: Sequence[Node]) -> Task[bool]:
        """Let other kernels compute parts of what would be a very long one; whether there was any."""
        inside, asked = self.ways.inside(space), set(nodes)
        with self.ways.inside_kernel_of(nodes):
            found = cuts([x for x in topological(nodes, inside) if not x.is_number], inside, nodes)
        for stored, reason in found:
            for node in stored:
                if node not in asked:
                    self.refuse(base(node), nodes[0], reason)
            yield self.computing(stored)
        return bool(found)

    # Matrix products.

    def product_in(self, node: Node, space: Space) -> Node | None:
        """The matrix product whose sums the kernel of a node would finish."""
        body = Body(self, space)
        for leaf in [] if self.ways.is_pointwise(node) else topological([node], self.on_the_way):
            under = base(leaf)
            if isinstance(under.function, Matmul) and under not in self.place and not body.refused(leaf, as_it_is):
                return under
        return None

    def multiplying(self, product: Node, body: Body, nodes: list[Node], found: dict[Node, Expression]) -> Task[None]:
        """One matrix product, and what is done to its operands and its sums; less of that where the backend refuses."""
        if product not in set(nodes) and (not nodes or self.is_used_outside(product, body.inside, nodes)):
            nodes, found = [*nodes, product], {**found, product: Dot(product.dtype)}
        is_alone, before = len(nodes) == 1 and nodes[0] is product, len(self.place)
        for is_merged in (True, False):
            operands = list[Operand]()
            for x in product.inputs:
                operands.append((yield self.operand(x, product, body, is_merged)))
            if len(self.place) > before and not is_alone:
                self.note(AGAIN, body, islice(self.place, before, None))
                yield self.launching(body.space, nodes)
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
                yield self.launching(body.space, nodes)
                return
        outputs = [self.summed(x) if x is product else self.stored(x, body) for x in nodes]
        outputs = [(slot, layout.reshape(*product.shape)) for slot, layout in outputs]
        numbers = [source for source, _ in body.numbers]
        self.steps.append(Product(*without_unused(kernel, outputs, inputs, numbers)))
        if merged:
            prologue = dict.fromkeys(base(x) for _, inner in operands for x in inner.seen)
            self.note(TAKEN, body, prologue, "in its prologue")
        self.note(MADE, body, nodes)

    def operand(self, x: Node, product: Node, body: Body, is_merged: bool) -> Task[Operand]:
        """An operand of a product: computed on its way in, where nobody else needs it, or loaded."""
        is_new = base(x) not in self.place and bool(self.on_the_way(x))
        if is_merged and is_new and not self.is_used_outside(base(x), {product}, [product]):
            inner = Body(self, Space(x.shape, ()), body.numbers, holds=False)
            e = yield inner.expression(x, as_it_is, product)
            if inner.missing:
                yield self.computing(inner.missing)
                found: Operand = yield self.operand(x, product, body, is_merged)
                return found
            if inner.inputs:
                return e, inner
        elif is_new and is_merged:
            self.refuse(base(x), product, "others need it too, so it lies in memory")
        elif is_merged and isinstance(base(x).function, Matmul | Fold):
            self.refuse(base(x), product, ONE if isinstance(base(x).function, Matmul) else POINTS)
        inner = Body(self, Space(x.shape, ()))
        yield self.locating(x)
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
        precision = product.function.precision_of(product.dtype, self.backend.has_precisions)
        kernel = ProductKernel(a, b, tuple(shifted(e, len(inputs)) for e in elements), precision)
        try:
            return kernel, inputs + [(slot, layout.reshape(*product.shape)) for slot, layout in body.inputs], ""
        except ShapeError:
            return kernel, inputs, NOT_VIEWED
