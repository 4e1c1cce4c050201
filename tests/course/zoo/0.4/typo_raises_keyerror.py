"""a name that is not there raises another error"""


class Module(Module):
    def __getattr__(self, name):
        return vars(self)[name]
