"""Wrong solutions of task 0.4, one a cell: `# %% name: the mistake that the check must name`."""


# %% children_first: children come before the module's own parameters
class Module(Module):
    def named_modules(self):
        found, seen = [], set()

        def visit(name, module):
            if id(module) in seen:
                return
            seen.add(id(module))
            for child_name, child in module.held(Module):
                visit(f"{name}.{child_name}" if name else child_name, child)
            found.append((name, module))

        visit("", self)
        return found


# %% breadth_first: all children come first, then all of theirs
class Module(Module):
    def named_modules(self):
        found, seen = [("", self)], {id(self)}
        for name, module in found:
            for child_name, child in module.held(Module):
                if id(child) not in seen:
                    seen.add(id(child))
                    found.append((f"{name}.{child_name}" if name else child_name, child))
        return found


# %% equal_modules: two modules that are equal count as one
class Module(Module):
    def named_modules(self):
        found, seen = [], []

        def visit(name, module):
            if module in seen:
                return
            seen.append(module)
            found.append((name, module))
            for child_name, child in module.held(Module):
                visit(f"{name}.{child_name}" if name else child_name, child)

        visit("", self)
        return found


# %% counted_each_time: what is shared is counted each time
class Module(Module):
    def named_parameters(self):
        found = []
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                found.append((f"{path}.{name}" if path else name, parameter))
        return found


# %% equal_values: two parameters of equal value are taken for one
class Module(Module):
    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if parameter.value not in seen:
                    seen.add(parameter.value)
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found


# %% names_when_set: the names are those of when attributes were set
class Module(Module):
    def __init__(self):
        object.__setattr__(self, "known", {})

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        self.known[name] = list(value) if isinstance(value, list) else value

    def held(self, kind):
        found = []
        for name, value in self.known.items():
            items = [(f"{name}.{k}", x) for k, x in enumerate(value)] if isinstance(value, list) else [(name, value)]
            found += [(path, x) for path, x in items if isinstance(x, kind)]
        return found


# %% no_lists: lists are not looked into
class Module(Module):
    def held(self, kind):
        return [(name, value) for name, value in vars(self).items() if isinstance(value, kind)]


# %% no_path: names lack the path that leads to them
class Module(Module):
    def named_parameters(self):
        found, seen = [], set()
        for _, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((name, parameter))
        return found


# %% nothing_returned: train or eval returns nothing
class Module(Module):
    def eval(self):
        for module in self.modules():
            module.training = False


# %% one_level: only one level of children is looked at
class Module(Module):
    def named_modules(self):
        return [("", self), *self.held(Module)]


# %% only_itself: train and eval stop at the module itself
class Module(Module):
    def train(self):
        self.training = True
        return self

    def eval(self):
        self.training = False
        return self


# %% path_left_to_parameters: names lack the path that leads to them
class Module(Module):
    def named_modules(self):
        found, seen = [], set()

        def visit(name, module):
            if id(module) not in seen:
                seen.add(id(module))
                found.append((name, module))
                for child_name, child in module.held(Module):
                    visit(child_name, child)

        visit("", self)
        return found

    def named_parameters(self):
        found, seen = [], set()

        def visit(path, module):
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((path + name, parameter))
            for name, child in module.held(Module):
                visit(f"{path}{name}.", child)

        visit("", self)
        return found


# %% typo_gives_none: a name that is not there gives None
class Module(Module):
    def __getattr__(self, name):
        return vars(self).get(name)


# %% typo_raises_keyerror: a name that is not there raises another error
class Module(Module):
    def __getattr__(self, name):
        return vars(self)[name]


# %% by_dir: attributes come sorted by name
class Module(Module):
    def held(self, kind):
        found = []
        for name in [name for name in dir(self) if not name.startswith("__")]:
            value = getattr(self, name)
            items = [(f"{name}.{k}", x) for k, x in enumerate(value)] if isinstance(value, list) else [(name, value)]
            found += [(path, x) for path, x in items if isinstance(x, kind)]
        return found


# %% tuples_too: a tuple, a dict, or a list in a list is looked into
class Module(Module):
    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, (tuple, list)):
                found += [(f"{name}.{k}", x) for k, x in enumerate(value) if isinstance(x, kind)]
        return found


# %% dicts_too: a tuple, a dict, or a list in a list is looked into
class Module(Module):
    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, (dict, list)):
                items = value.items() if isinstance(value, dict) else enumerate(value)
                found += [(f"{name}.{k}", x) for k, x in items if isinstance(x, kind)]
        return found


# %% lists_in_lists_too: a tuple, a dict, or a list in a list is looked into
class Module(Module):
    def held(self, kind):
        def below(name, value):
            if isinstance(value, kind):
                yield name, value
            elif isinstance(value, list):
                for k, item in enumerate(value):
                    yield from below(f"{name}.{k}", item)

        return [pair for name, value in vars(self).items() for pair in below(name, value)]
