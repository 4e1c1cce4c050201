"""Call a module with other parameters than its own."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..nn.module import Module


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
) -> Any:
    """Call a module with parameters and buffers from dicts, by their names, in place of its own.

    Examples
    --------
    >>> import minifuse as mf
    >>> model = mf.nn.Linear(2, 1, bias=False)
    >>> mf.func.functional_call(model, {"weight": mf.ones(1, 2)}, mf.tensor([[3.0, 4.0]]))
    tensor([[7.]])
    """
    dicts = [parameter_and_buffer_dicts] if isinstance(parameter_and_buffer_dicts, Mapping) else parameter_and_buffer_dicts
    owners = []
    try:
        for values in dicts:
            for name, x in values.items():
                *path, attribute = name.split(".")
                owner: Any = module
                for part in path:
                    owner = owner[int(part)] if part.isdigit() and isinstance(owner, list | tuple) else getattr(owner, part)
                owners.append((owner, attribute, vars(owner)[attribute]))
                vars(owner)[attribute] = x
        inputs = args if isinstance(args, tuple) else () if args is None else (args,)
        return module(*inputs, **(kwargs or {}))
    finally:
        for owner, attribute, x in reversed(owners):
            vars(owner)[attribute] = x
