"""the names are those of when attributes were set"""


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
