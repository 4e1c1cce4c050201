"""what is shared is counted each time"""


class Module(Module):
    def named_parameters(self):
        found = []
        for path, module in self.named_modules():
            for name, parameter in module.held(Parameter):
                found.append((f"{path}.{name}" if path else name, parameter))
        return found
