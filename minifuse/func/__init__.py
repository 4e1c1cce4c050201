"""Function transforms with PyTorch's names: `vmap`, `grad`, `vjp`, `jvp`, Jacobians and Hessians, and calls of modules.

    per_sample = mf.func.vmap(mf.func.grad(loss), in_dims=(None, 0, 0))(params, x, y)

They nest in each other and in fused functions. `vmap` and the Jacobians trace the function as one graph, in each call;
inside `@mf.fuse` this happens once.
"""

from .batched import hessian, jacfwd, jacrev, vmap
from .modules import functional_call
from .products import grad, grad_and_value, jvp, vjp

__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp", "vmap"]
