"""names lack the path that leads to them"""


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
