"""Module 0: a tree of modules that finds all its parameters by name.

Nothing is registered: a parameter is an attribute that is a `Parameter`, a child an attribute that is a `Module`; elements
of lists count too. `vars(module)` has the current attributes in the order in which they were set.
"""

from minifuse.course import Parameter, todo

# Task 0.4


class Module:
    """The base class of layers and networks: it has parameters and other modules, and computes in `forward`."""

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        """Return (name, value) of the attributes of a type, and of those in lists: "left", "layers.0", "layers.1"."""
        todo("0.4a")

    def named_modules(self):
        """Return (name, module) of this module, named "", and of all below, each once: a child, its children, the next."""
        todo("0.4b")

    def named_parameters(self):
        """Return (name, parameter) of each module, in the order of `named_modules`; a shared one once, by its first name."""
        todo("0.4c")

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        """Set `training` to True here and in all modules below, and return the module."""
        todo("0.4d")

    def eval(self):
        """Set `training` to False here and in all modules below, and return the module."""
        todo("0.4e")
