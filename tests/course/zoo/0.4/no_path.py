"""names lack the path that leads to them"""


class Module(Module):
    def named_parameters(self):
        found, seen = [], set()
        for _, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    found.append((name, parameter))
        return found
