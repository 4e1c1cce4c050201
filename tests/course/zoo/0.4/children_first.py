"""children come before the module's own parameters"""


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
