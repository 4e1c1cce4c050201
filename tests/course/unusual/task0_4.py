"""Unusual right solutions of task 0.4. Each is appended to the reference."""


# %% generators: held, named_modules and named_parameters are generators, as they are in PyTorch
class Module:
    training = True

    def __call__(self, *inputs):
        return self.forward(*inputs)

    def held(self, kind):
        for name, value in vars(self).items():
            if isinstance(value, kind):
                yield name, value
            elif isinstance(value, list):
                for i, element in enumerate(value):
                    if isinstance(element, kind):
                        yield f"{name}.{i}", element

    def named_modules(self, seen=None, prefix=""):
        seen = [] if seen is None else seen
        if not any(module is self for module in seen):
            seen.append(self)
            yield prefix, self
            for name, child in self.held(Module):
                yield from child.named_modules(seen, prefix + "." + name if prefix else name)

    def named_parameters(self):
        seen = set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield f"{path}.{name}".lstrip("."), parameter

    def train(self, mode=True):
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)

    def modules(self):
        return [module for _, module in self.named_modules()]

    def parameters(self):
        return [parameter for _, parameter in self.named_parameters()]


# %% a_stack: named_modules has a stack in place of a function that calls itself, and dictionaries keep what was found
class Module:
    training = True

    def __call__(self, *inputs):
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                found += [(f"{name}.{i}", element) for i, element in enumerate(value) if isinstance(element, kind)]
        return found

    def named_modules(self):
        first_name, stack = {}, [("", self)]
        while stack:
            path, module = stack.pop()
            if id(module) in first_name:
                continue
            first_name[id(module)] = (path, module)
            for name, child in reversed(module.held(Module)):
                stack.append((".".join(filter(None, [path, name])), child))
        return list(first_name.values())

    def named_parameters(self):
        found = {}
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                found.setdefault(id(parameter), (path + "." * bool(path) + name, parameter))
        return list(found.values())

    def set_training(self, mode):
        for module in self.modules():
            vars(module)["training"] = mode
        return self

    def train(self):
        return self.set_training(True)

    def eval(self):
        return self.set_training(False)

    def modules(self):
        return [module for _, module in self.named_modules()]

    def parameters(self):
        return [parameter for _, parameter in self.named_parameters()]


# %% a_walk_with_its_own_seen: train and eval walk by themselves and do not ask modules()
class Module:
    training = True

    def __call__(self, *inputs):
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in vars(self).items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                found += [(f"{name}.{i}", element) for i, element in enumerate(value) if isinstance(element, kind)]
        return found

    def named_modules(self):
        found = []

        def visit(module, path):
            if all(known is not module for _, known in found):
                found.append((".".join(path), module))
                for name, child in module.held(Module):
                    visit(child, [*path, name])

        visit(self, [])
        return found

    def named_parameters(self):
        found = []
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if not any(parameter is known for _, known in found):
                    found.append((path and path + "." + name or name, parameter))
        return found

    def train(self):
        self._switch(True, set())
        return self

    def eval(self):
        self._switch(False, set())
        return self

    def _switch(self, mode, seen):
        if id(self) in seen:
            return
        seen.add(id(self))
        self.training = mode
        for _, child in self.held(Module):
            child._switch(mode, seen)

    def modules(self):
        return [module for _, module in self.named_modules()]

    def parameters(self):
        return [parameter for _, parameter in self.named_parameters()]


# %% everything_by_one_walk: held lists all slots first, then picks; named_parameters passes the prefix on
class Module:
    training = True

    def __call__(self, *inputs):
        return self.forward(*inputs)

    def _slots(self):
        slots = {}
        for name in self.__dict__:
            value = getattr(self, name)
            slots[name] = value
            if type(value) is list:
                slots.update((name + "." + str(i), value[i]) for i in range(len(value)))
        return slots

    def held(self, kind):
        return [slot for slot in self._slots().items() if isinstance(slot[1], kind)]

    def named_modules(self):
        return list(self._walk("", {}))

    def _walk(self, prefix, seen):
        if id(self) in seen:
            return []
        seen[id(self)] = self
        found = [(prefix[:-1], self)]
        for name, child in self.held(Module):
            found.extend(child._walk(f"{prefix}{name}.", seen))
        return found

    def named_parameters(self):
        every = [
            (f"{path}.{name}" if path else name, parameter)
            for path, module in self.named_modules()
            for name, parameter in module.held(Parameter)
        ]
        identities = [id(parameter) for _, parameter in every]
        return [pair for i, pair in enumerate(every) if identities[i] not in identities[:i]]

    def train(self):
        [setattr(module, "training", True) for module in self.modules()]
        return self

    def eval(self):
        [setattr(module, "training", False) for module in self.modules()]
        return self

    def modules(self):
        return [module for _, module in self.named_modules()]

    def parameters(self):
        return [parameter for _, parameter in self.named_parameters()]
