"""Python answers =="""


class Traced(Traced):
    def __eq__(self, other):
        return self is other
