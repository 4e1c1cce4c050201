"""train and eval stop at the module itself"""


class Module(Module):
    def train(self):
        self.training = True
        return self

    def eval(self):
        self.training = False
        return self
