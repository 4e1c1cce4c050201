"""the names are those of when attributes were set"""


class Module:
    training = True

    def __init__(self):
        object.__setattr__(self, "known", {})

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        self.known[name] = list(value) if isinstance(value, list) else value

    def __call__(self, *inputs):
        return self.forward(*inputs)

    def held(self, kind):
        found = []
        for name, value in self.known.items():
            if isinstance(value, kind):
                found.append((name, value))
            elif isinstance(value, list):
                for k, item in enumerate(value):
                    if isinstance(item, kind):
                        found.append((f"{name}.{k}", item))
        return found

    def named_modules(self):
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

    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found

    def modules(self):
        return [module for _, module in self.named_modules()]

    def parameters(self):
        return [parameter for _, parameter in self.named_parameters()]

    def train(self):
        for module in self.modules():
            module.training = True
        return self

    def eval(self):
        for module in self.modules():
            module.training = False
        return self
