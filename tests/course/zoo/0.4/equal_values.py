"""two parameters of equal value are taken for one"""


class Module(Module):
    def named_parameters(self):
        found, seen = [], set()
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                if parameter.value not in seen:
                    seen.add(parameter.value)
                    found.append((f"{path}.{name}" if path else name, parameter))
        return found
