"""a number on the left is taken for one on the right"""


class Traced(Traced):
    def __rsub__(self, other):
        return self.record("sub", self, other)

    def __rtruediv__(self, other):
        return self.record("div", self, other)

    def __gt__(self, other):
        return self.record("lt", self, other)
