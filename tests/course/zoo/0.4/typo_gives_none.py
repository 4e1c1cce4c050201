"""a name that is not there gives None"""


class Module(Module):
    def __getattr__(self, name):
        return vars(self).get(name)
