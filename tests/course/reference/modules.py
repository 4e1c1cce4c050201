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
        # begin 0.4a
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for k, item in enumerate(value):
                    if isinstance(item, kind):
                        found.append((f"{name}.{k}", item))
        return found
        # end

    def named_modules(self):
        """Return (name, module) of this module, named "", and of all below, each once: a child, its children, the next."""
        # begin 0.4b
        found, seen = [], set()

        def visit(name, module):
            if id(module) in seen:
                return
            seen.add(id(module))
            found.append((name, module))
            for child_name, child in module.held(Module):
                visit(f"{name}.{child_name}" if name else child_name, child)

        visit("", self)
        return found
        # end

    def named_parameters(self):
        """Return (name, parameter) of each module, in the order of `named_modules`; a shared one once, by its first name."""
        # begin 0.4c
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found
        # end

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        """Set `training` to True here and in all modules below, and return the module."""
        # begin 0.4d
        for module in self.modules():
            module.training = True
        return self
        # end

    def eval(self):
        """Set `training` to False here and in all modules below, and return the module."""
        # begin 0.4e
        for module in self.modules():
            module.training = False
        return self
        # end
