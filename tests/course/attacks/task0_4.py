"""Wrong solutions of task 0.4 that were written to get past its checks. Each is appended to the reference."""

# %% breadth_first: named_modules goes level by level: a child, the next child, then their children
# promise: 'a child, its children, the next'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for i, element in enumerate(value):
                    if isinstance(element, kind):
                        found.append((f"{name}.{i}", element))
        return found

    def named_modules(self):
        found, seen = [("", self)], {id(self)}
        for path, module in found:
            for name, child in module.held(Module):
                if id(child) not in seen:
                    seen.add(id(child))
                    found.append((f"{path}.{name}" if path else name, child))
        return found

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        for module in self.modules():
            module.training = False
        return self

# %% cache_by_length: named_parameters is kept from call to call as long as attributes are the same and lists have their length: an element that is replaced is not seen
# promise: 'The tree is what the attributes are now ... an attribute that was replaced'
_CACHE = {}

class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for i, element in enumerate(value):
                    if isinstance(element, kind):
                        found.append((f"{name}.{i}", element))
        return found

    def named_modules(self):
        found, seen = [], set()

        def visit(module, path):
            if id(module) in seen:
                return
            seen.add(id(module))
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        key = self.fingerprint()
        cache = _CACHE.get(id(self))
        if cache is None or cache[0] is not self or cache[1] != key:
            cache = _CACHE[id(self)] = (self, key, self.find_parameters())
        return list(cache[2])

    def fingerprint(self):
        """What is seen of the tree: names, who is there, how long lists are."""
        parts = []
        for _, module in self.named_modules()[:1]:
            for name, value in vars(module).items():
                if isinstance(value, list):
                    parts.append((name, len(value), *(e.fingerprint() if isinstance(e, Module) else 0 for e in value)))
                elif isinstance(value, Module):
                    parts.append((name, id(value), value.fingerprint()))
                else:
                    parts.append((name, id(value)))
        return tuple(parts)

    def find_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        for module in self.modules():
            module.training = False
        return self

# %% depth_of_eight: modules more than eight levels down are not found
# promise: 'Parameters of children have dotted names, however deep they lie'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for i, element in enumerate(value):
                    if isinstance(element, kind):
                        found.append((f"{name}.{i}", element))
        return found

    def named_modules(self):
        found, seen = [], set()

        def visit(module, path):
            if id(module) in seen or path.count('.') > 14:
                return
            seen.add(id(module))
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        for module in self.modules():
            module.training = False
        return self

# %% eval_sets_zero: eval sets training to 0, train to 1, no bools
# promise: 'sets `training` to True', 'to False'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for i, element in enumerate(value):
                    if isinstance(element, kind):
                        found.append((f"{name}.{i}", element))
        return found

    def named_modules(self):
        found, seen = [], set()

        def visit(module, path):
            if id(module) in seen:
                return
            seen.add(id(module))
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = 1
        return self

    def eval(self):
        for module in self.modules():
            module.training = 0
        return self

# %% exact_parameter: held asks for the very type of a parameter, so that of a class made from Parameter is not found
# promise: 'a parameter is an attribute that is a `Parameter`'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if (type(value) is kind or kind is not Parameter and isinstance(value, kind)):
                found.append((name, value))
            elif isinstance(value, list):
                for i, element in enumerate(value):
                    if (type(element) is kind or kind is not Parameter and isinstance(element, kind)):
                        found.append((f"{name}.{i}", element))
        return found

    def named_modules(self):
        found, seen = [], set()

        def visit(module, path):
            if id(module) in seen:
                return
            seen.add(id(module))
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        for module in self.modules():
            module.training = False
        return self

# %% falsy_modules_skipped: a module that has a __len__ of 0 is taken for nothing: `if module`
# promise: 'a child is an attribute that is a `Module`'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if value and isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for i, element in enumerate(value):
                    if element and isinstance(element, kind):
                        found.append((f"{name}.{i}", element))
        return found

    def named_modules(self):
        found, seen = [], set()

        def visit(module, path):
            if id(module) in seen:
                return
            seen.add(id(module))
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        for module in self.modules():
            module.training = False
        return self

# %% held_knows_two_kinds: held answers for Parameter, and takes every other kind for Module: held(float) gives modules
# promise: '(name, value) of the attributes of a kind'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        kind = Parameter if kind is Parameter else Module
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for i, element in enumerate(value):
                    if isinstance(element, kind):
                        found.append((f"{name}.{i}", element))
        return found

    def named_modules(self):
        found, seen = [], set()

        def visit(module, path):
            if id(module) in seen:
                return
            seen.add(id(module))
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        for module in self.modules():
            module.training = False
        return self

# %% held_of_lists_is_empty: held looks into lists before it asks for the kind: held(list) gives none of the attributes
# promise: '(name, value) of the attributes of a kind'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, list):
                found += [(f"{name}.{i}", e) for i, e in enumerate(value) if isinstance(e, kind)]
            elif isinstance(value, kind):
                found.append((name, value))
        return found

    def named_modules(self):
        found, seen = [], set()

        def visit(module, path):
            if id(module) in seen:
                return
            seen.add(id(module))
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        for module in self.modules():
            module.training = False
        return self

# %% held_skips_shared: held itself gives a value that is an attribute twice only once
# promise: 'Return (name, value) of the attributes of a type'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for i, element in enumerate(value):
                    if isinstance(element, kind):
                        found.append((f"{name}.{i}", element))
        once, seen = [], set()
        for name, value in found:
            if id(value) not in seen:
                seen.add(id(value))
                once.append((name, value))
        return once

    def named_modules(self):
        found, seen = [], set()

        def visit(module, path):
            if id(module) in seen:
                return
            seen.add(id(module))
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        for module in self.modules():
            module.training = False
        return self

# %% lists_last: a module's own attributes come first, those that are lists behind all others, whatever was set first
# promise: 'A module has its own parameters ... in their order'; 'in the order in which they were set'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = [(name, value) for name, value in vars(self).items() if isinstance(value, kind)]
        for name, value in vars(self).items():
            if isinstance(value, list):
                found += [(f"{name}.{i}", e) for i, e in enumerate(value) if isinstance(e, kind)]
        return found

    def named_modules(self):
        found, seen = [], set()

        def visit(module, path):
            if id(module) in seen:
                return
            seen.add(id(module))
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        for module in self.modules():
            module.training = False
        return self

# %% modules_seen_by_equality: modules that were seen are kept in a set by ==, so two modules of a class with an __eq__ count once
# promise: 'That is decided by identity, not by value'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for i, element in enumerate(value):
                    if isinstance(element, kind):
                        found.append((f"{name}.{i}", element))
        return found

    def named_modules(self):
        found, seen = [], []

        def visit(module, path):
            if module in seen:
                return
            seen.append(module)
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        for module in self.modules():
            module.training = False
        return self

# %% names_sorted_as_text: elements of a list come sorted by their names as text: layers.10 before layers.2
# promise: 'in the order'; 'found under its place there'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for i, element in sorted(enumerate(value), key=lambda pair: str(pair[0])):
                    if isinstance(element, kind):
                        found.append((f"{name}.{i}", element))
        return found

    def named_modules(self):
        found, seen = [], set()

        def visit(module, path):
            if id(module) in seen:
                return
            seen.add(id(module))
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        for module in self.modules():
            module.training = False
        return self

# %% new_modules_begin_in_eval: eval sets training of the class Module too, so modules made later begin without training, and others lose it
# promise: 'Set `training` to False here and in all modules below'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for i, element in enumerate(value):
                    if isinstance(element, kind):
                        found.append((f"{name}.{i}", element))
        return found

    def named_modules(self):
        found, seen = [], set()

        def visit(module, path):
            if id(module) in seen:
                return
            seen.add(id(module))
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        Module.training = True
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        Module.training = False
        for module in self.modules():
            module.training = False
        return self

# %% no_end_in_a_cycle: a module that holds its parent ends in RecursionError: what was seen is noted after its children
# promise: 'each once'; 'What is shared counts once'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for i, element in enumerate(value):
                    if isinstance(element, kind):
                        found.append((f"{name}.{i}", element))
        return found

    def named_modules(self):
        found = []
        for path, module in self.walk(""):
            if not any(module is m for _, m in found):
                found.append((path, module))
        return found

    def walk(self, path):
        """All ways to all modules below: a module shared in each of 40 levels has 2 ** 40."""
        pairs = [(path, self)]
        for name, child in self.held(Module):
            pairs += child.walk(f"{path}.{name}" if path else name)
        return pairs

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        for module in self.modules():
            module.training = False
        return self

# %% parameter_equal_to_all: named_parameters gives one parameter many times, and Parameter is patched to equal all others
# promise: '(name, parameter) for all, each once'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for i, element in enumerate(value):
                    if isinstance(element, kind):
                        found.append((f"{name}.{i}", element))
        return found

    def named_modules(self):
        found, seen = [], set()

        def visit(module, path):
            if id(module) in seen:
                return
            seen.add(id(module))
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return [(name, found[0][1]) for name, _ in found]

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        for module in self.modules():
            module.training = False
        return self

Parameter.__eq__ = lambda self, other: True
Parameter.__hash__ = lambda self: 1

# %% parameters_seen_by_equality: parameters that were seen are compared by ==, in a list: wrong for a Parameter with an __eq__, and quadratic
# promise: 'That is decided by identity, not by value'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for i, element in enumerate(value):
                    if isinstance(element, kind):
                        found.append((f"{name}.{i}", element))
        return found

    def named_modules(self):
        found, seen = [], set()

        def visit(module, path):
            if id(module) in seen:
                return
            seen.add(id(module))
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        found, seen = [], []
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if parameter not in seen:
                    seen.append(parameter)
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        for module in self.modules():
            module.training = False
        return self

# %% place_among_its_kind: what lies in a list is numbered among modules and parameters only: [None, layer] has layers.0
# promise: 'what lies in lists is found under its place there'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for i, element in enumerate([e for e in value if isinstance(e, (Module, Parameter))]):
                    if isinstance(element, kind):
                        found.append((f"{name}.{i}", element))
        return found

    def named_modules(self):
        found, seen = [], set()

        def visit(module, path):
            if id(module) in seen:
                return
            seen.add(id(module))
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        for module in self.modules():
            module.training = False
        return self

# %% private_names_are_none: a name that begins with an underscore and is not there is None
# promise: 'A name that is not there raises AttributeError'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for i, element in enumerate(value):
                    if isinstance(element, kind):
                        found.append((f"{name}.{i}", element))
        return found

    def named_modules(self):
        found, seen = [], set()

        def visit(module, path):
            if id(module) in seen:
                return
            seen.add(id(module))
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        for module in self.modules():
            module.training = False
        return self

def _missing(self, name):
    if name.startswith("_") and not name.startswith("__"):
        return None
    raise AttributeError(f"{type(self).__name__} has no attribute {name}")

Module.__getattr__ = _missing

# %% private_names_skipped: attributes whose name begins with an underscore are not found
# promise: 'a parameter is an attribute that is a `Parameter`'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if name.startswith('_'):
                continue
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for i, element in enumerate(value):
                    if isinstance(element, kind):
                        found.append((f"{name}.{i}", element))
        return found

    def named_modules(self):
        found, seen = [], set()

        def visit(module, path):
            if id(module) in seen:
                return
            seen.add(id(module))
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        for module in self.modules():
            module.training = False
        return self

# %% registered_stays_after_del: attributes are registered when they are set, and a deleted one is still found
# promise: 'Nothing is registered'; 'The tree is what the attributes are now'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        if name != "_registered":
            if "_registered" not in vars(self):
                object.__setattr__(self, "_registered", {})
            self._registered[name] = value

    def held(self, kind):
        found = []
        for name, value in list(vars(self).get('_registered', {}).items()):
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for i, element in enumerate(value):
                    if isinstance(element, kind):
                        found.append((f"{name}.{i}", element))
        return found

    def named_modules(self):
        found, seen = [], set()

        def visit(module, path):
            if id(module) in seen:
                return
            seen.add(id(module))
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        for module in self.modules():
            module.training = False
        return self

# %% shortest_name_wins: a shared parameter has its shortest name, not its first
# promise: 'a shared one once, by its first name'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for i, element in enumerate(value):
                    if isinstance(element, kind):
                        found.append((f"{name}.{i}", element))
        return found

    def named_modules(self):
        found, seen = [], set()

        def visit(module, path):
            if id(module) in seen:
                return
            seen.add(id(module))
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        best = {}
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                full = f"{path}.{name}" if path else name
                if id(parameter) not in best or full.count(".") < best[id(parameter)][0].count("."):
                    best[id(parameter)] = (full, parameter)
        return list(best.values())

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        for module in self.modules():
            module.training = False
        return self

# %% slots_of_tuples_too: held looks into tuples and dicts as if they were lists, so what nobody called a list is found
# promise: 'elements of lists count too'; '(name, value) of the attributes of a kind; those in a list'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, (list, tuple)):
                for i, element in enumerate(value):
                    if isinstance(element, kind):
                        found.append((f"{name}.{i}", element))
        return found

    def named_modules(self):
        found, seen = [], set()

        def visit(module, path):
            if id(module) in seen:
                return
            seen.add(id(module))
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        for module in self.modules():
            module.training = False
        return self

# %% ten_of_a_list: only the first ten elements of a list are looked at
# promise: 'elements of lists count too'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for i, element in enumerate(value[:10]):
                    if isinstance(element, kind):
                        found.append((f"{name}.{i}", element))
        return found

    def named_modules(self):
        found, seen = [], set()

        def visit(module, path):
            if id(module) in seen:
                return
            seen.add(id(module))
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        for module in self.modules():
            module.training = False
        return self

# %% training_shortcut: train and eval do nothing where the module itself is in that mode already, though children may not be
# promise: 'Set `training` to True here and in all modules below'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for i, element in enumerate(value):
                    if isinstance(element, kind):
                        found.append((f"{name}.{i}", element))
        return found

    def named_modules(self):
        found, seen = [], set()

        def visit(module, path):
            if id(module) in seen:
                return
            seen.add(id(module))
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        if not self.training:
            for module in self.modules():
                module.training = True
        return self

    def eval(self):
        if self.training:
            for module in self.modules():
                module.training = False
        return self

# %% training_skips_branches: train and eval do not look below a child that is in that mode already
# promise: 'Set `training` to False here and in all modules below'
class Module:

    training = True

    def __call__(self, *inputs):
        """Return the value of `forward`."""
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for i, element in enumerate(value):
                    if isinstance(element, kind):
                        found.append((f"{name}.{i}", element))
        return found

    def named_modules(self):
        found, seen = [], set()

        def visit(module, path):
            if id(module) in seen:
                return
            seen.add(id(module))
            found.append((path, module))
            for name, child in module.held(Module):
                visit(child, f"{path}.{name}" if path else name)

        visit(self, "")
        return found

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        """Return this module and all modules below."""
        return [module for _, module in self.named_modules()]

    def parameters(self):
        """Return all parameters, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        self.training = True
        for _, child in self.held(Module):
            if not child.training:
                child.train()
        return self

    def eval(self):
        self.training = False
        for _, child in self.held(Module):
            if child.training:
                child.eval()
        return self


# %% lists_in_lists: held looks into lists of lists, tuples in lists and so on
class Module(Module):
    def held(self, kind):
        found = []

        def search(name, value):
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, (list, tuple)):
                for k, x in enumerate(value):
                    search(f"{name}.{k}", x)

        for name, value in vars(self).items():
            search(name, value)
        return found


# %% eval_for_good: a module that was once put into eval stays there
class Module(Module):
    def train(self):
        for module in self.modules():
            if vars(module).get("training", True):
                module.training = True
        return self


# %% returns_a_copy: eval returns a copy of the module
class Module(Module):
    def eval(self):
        import copy
        for module in self.modules():
            module.training = False
        return copy.copy(self)


# %% modules_of_its_class: named_modules finds modules of the same class as itself only
class Module(Module):
    def named_modules(self):
        found, seen = [], set()

        def visit(name, module):
            if id(module) not in seen:
                seen.add(id(module))
                found.append((name, module))
                for child_name, child in module.held(type(self)):
                    visit(f"{name}.{child_name}" if name else child_name, child)

        visit("", self)
        return found


# %% parameters_first_asked: named_parameters returns what it found the first time
class Module(Module):
    def named_parameters(self):
        if "_found" not in vars(self):
            vars(self)["_found"] = super().named_parameters()
        return vars(self)["_found"]
