"""Questions on task 0.4: names of parameters, shared modules, and counts."""

from random import Random
from typing import Any, NamedTuple

from .. import oracle
from ..parameter import Parameter
from .question import Question, Wrong

CHILDREN = ("encoder", "decoder", "head", "body")


class Tree(NamedTuple):
    """A drawn model, and its picture."""

    model: Any
    picture: str
    child: str
    layers: int
    is_shared: bool


def tree(rng: Random, is_shared: bool) -> Tree:
    """Draw a model: a parameter, a child with weight and bias, a list of layers, and perhaps a layer that is shared."""
    module = oracle.function("Module")
    model, child, count = module(), rng.choice(CHILDREN), rng.randint(2, 3)
    has_scale, at = rng.random() < 0.5, rng.randrange(count)
    if has_scale:
        model.scale = Parameter(0.0)
    inner = module()
    inner.weight, inner.bias = Parameter(0.0), Parameter(0.0)
    setattr(model, child, inner)
    model.layers = [module() for _ in range(count)]
    for layer in model.layers:
        layer.weight = Parameter(0.0)
    lines = ["model", *["|-- scale"] * has_scale, f"|-- {child}", "|   |-- weight", "|   `-- bias"]
    bar, corner = ("|   ", "|-- ") if is_shared else ("    ", "`-- ")
    lines.append(f"{corner}layers, a list")
    for k in range(count):
        is_last = k == count - 1
        lines += [f"{bar}{'`' if is_last else '|'}-- {k}", f"{bar}{'    ' if is_last else '|   '}`-- weight"]
    if is_shared:
        model.last = model.layers[at]
        lines.append(f"`-- last, the same module as layers[{at}]")
    return Tree(model, "\n".join(lines), child, count, is_shared)


def parameter_names(model: Any) -> list[str]:
    """Return the names of all parameters."""
    return [name for name, _ in model.named_parameters()]


def name(rng: Random) -> Question:
    """Ask for the name of a parameter in a list."""
    drawn = tree(rng, False)
    at = rng.randrange(drawn.layers)
    answer = next(n for n, p in drawn.model.named_parameters() if p is drawn.model.layers[at].weight)
    return Question(
        f"Which name has the weight of the {('first', 'second', 'third')[at]} layer in the list?",
        answer,
        f"A name is the path to the parameter: the attribute layers, the place in the list counted from 0, which is {at}, "
        f"and the attribute weight. So it is {answer}.",
        {
            f"layers.{at + 1}.weight": "places in a list are counted from 0",
            "layers.weight": "without the place, all layers would have one name",
            "weight": "without the path, several parameters would have one name",
            f"layers[{at}].weight": "a name has a dot before the place, too",
        },
        figure=drawn.picture,
        numbers={"at": at},
    )


def count(rng: Random) -> Question:
    """Ask for the number of parameters of a model with a shared layer."""
    drawn = tree(rng, True)
    names = parameter_names(drawn.model)
    return Question(
        "How many names does list(model.named_parameters()) contain?",
        len(names),
        "A shared layer counts once, under its first name. Otherwise an optimizer would change it twice in a step:",
        {
            len(names) + 1: "the shared weight counts once",
            len(names) - drawn.layers: "modules in a list are found, too",
        },
        figure=drawn.picture,
        drawing="\n".join(names),
        numbers={"layers": drawn.layers, "names": names},
    )


def third(rng: Random) -> Question:
    """Ask for the parameter at a place of named_parameters."""
    drawn = tree(rng, rng.random() < 0.5)
    names, at = parameter_names(drawn.model), rng.randint(2, 4)
    at = min(at, len(names) - 1)
    return Question(
        f"named_parameters() goes through the tree in order. Which name is number {at}, counted from 1?",
        names[at - 1],
        "A module's own parameters come first, then those of each child, in the order of the attributes:",
        {names[at]: "the first name is number 1", names[at - 2]: "the first name is number 1, not number 0"},
        figure=drawn.picture,
        drawing="\n".join(f"{k}  {n}" for k, n in enumerate(names, start=1)),
        numbers={"names": names, "at": at},
    )


def modules(rng: Random) -> Question:
    """Ask for the number of modules."""
    drawn = tree(rng, True)
    names = [n or '""' for n, _ in drawn.model.named_modules()]
    return Question(
        "How many modules does list(model.named_modules()) contain?",
        len(names),
        'The module itself comes first, under the name "". A list is no module, and a shared module counts once:',
        {
            len(names) - 1: "the module itself is one of them",
            len(names) + 1: "a list is no module, and a shared module counts once",
            len(names) + 2: "a list is no module, and a shared module counts once",
        },
        figure=drawn.picture,
        drawing="\n".join(names),
        numbers={"layers": drawn.layers},
    )


def elements(rng: Random) -> Question:
    """Ask for the number of elements in the parameters of a linear layer."""
    from ...nn import Linear

    inputs, outputs, bias = rng.randint(2, 9), rng.randint(2, 9), rng.random() < 0.7
    layer = Linear(inputs, outputs, bias=bias)
    sizes = {n: tuple(p.shape) for n, p in layer.named_parameters()}
    answer = sum(p.size for p in layer.parameters())
    wrong: Wrong = {inputs + outputs: "a weight connects each input with each output: a product"}
    if bias:
        wrong[inputs * outputs] = "there is a bias for each output, too"
        wrong[inputs * outputs + inputs] = "biases belong to the outputs"
    else:
        wrong[inputs * outputs + outputs] = "this layer has no bias"
    return Question(
        f"How many numbers does mf.nn.Linear({inputs}, {outputs}, bias={bias}) learn?",
        answer,
        f"weight has shape {sizes['weight']}: {inputs} * {outputs} = {inputs * outputs}"
        + (f", and bias has shape ({outputs},): {outputs} more." if bias else ", and there is no bias."),
        wrong,
        numbers={"inputs": inputs, "outputs": outputs, "bias": bias},
    )


QUESTIONS = (name, count, third, modules, elements)
