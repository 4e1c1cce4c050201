"""List the documented names of PyTorch, and draw those that are tried: names.txt has all of them, in order.

The list: what has a docstring in torch, torch.Tensor, torch.nn (with nn.init and nn.utils), torch.nn.functional,
torch.optim (with lr_scheduler) and torch.autograd (with autograd.functional), without the names that EXCLUDED matches
and without what these modules merely import.

The draw: TRIED names, each namespace in proportion to its names, by largest remainder; within a namespace
`random.Random(SEED)` samples from the sorted names. It depends on names.txt only.
"""

import importlib
import inspect
import random
import re
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent
NAMES = FOLDER / "names.txt"
SEED = 22
TRIED = 400

NAMESPACES = {
    "torch": ["torch"],
    "torch.Tensor": ["torch.Tensor"],
    "torch.nn": ["torch.nn", "torch.nn.init", "torch.nn.utils"],
    "torch.nn.functional": ["torch.nn.functional"],
    "torch.optim": ["torch.optim", "torch.optim.lr_scheduler"],
    "torch.autograd": ["torch.autograd", "torch.autograd.functional"],
}

EXCLUDED = {
    "sparse tensors": r"sparse|Sparse|coalesce|dense|(col|crow)_indices|^(indices|values)(_copy)?$|hspmm|smm$|sspaddmm",
    "quantized tensors": r"quantize|^q_|qscheme|int_repr",
    "complex numbers": r"complex|conj|^(real|imag|angle|polar|adjoint|H|mH|isreal|cfloat|cdouble|chalf)$|resolve_|"
    r"^is_neg$|view_as_real|stft",
    "devices and their streams": r"cuda|xpu|ipu|mps|mtia|xla|meta$|^get_device|DataParallel|SyncBatchNorm|scaled_|"
    r"grouped_mm|Accelerator|record_stream|default_device|memory_format|flush_denormal",
    "memory of a tensor": r"storage|data_ptr|^set_$|resize|pin_memory|is_pinned|share|mkldnn|as_subclass|dlpack|from_file|"
    r"Uninitialized|module_load|dim_order|empty_(permuted|strided)|(?<!index)_copy$|padded_tensor|is_set_to",
    "compilation and export": r"^parse_|import_ir|_type_(comment|list)|^(fork|wait|while_loop|cond|typename)$|sym_|"
    r"^unsafe_|cxx11|^fuse_|skip_init",
    "settings of the process": r"threads?(_|$)|rng_state|determinis|warn_always|seed$|"
    r"^(get|set)_(default|float32|printoptions)|anomaly|_enabled$|multithreading|is_inference|thread_safe|hash_tensor|kineto|"
    r"enforce_",
    "base classes, helpers and old names": r"^(Optimizer|LRScheduler|RNNBase|RNNCellBase|Container|CrossMapLRN2d|"
    r"NLLLoss2d)$|factory_kwargs|boolean_dispatch|tensor_like|torch_function|Options$|Type$|swap_in_|_backward$|"
    r"_with_indices$|^native_",
}
KEPT = {"manual_seed", "set_grad_enabled", "get_default_dtype", "scaled_dot_product_attention"}


def documented_names() -> list[str]:
    """List the names that the installed PyTorch documents, as `torch.nn.Linear`, sorted within each namespace."""
    return [name for modules in NAMESPACES.values() for name in sorted({n for m in modules for n in names_of(m)})]


def names_of(module: str) -> Iterator[str]:
    """List the names of a module, or of torch.Tensor, that are not excluded."""
    owner = importlib.import_module("torch").Tensor if module == "torch.Tensor" else importlib.import_module(module)
    for name in dir(owner):
        value = getattr(owner, name)
        if name.startswith("_") or not inspect.getdoc(value) or inspect.ismodule(value):
            continue
        if owner.__name__ != "Tensor" and not is_function_of_torch(value, module):
            continue
        if name in KEPT or not any(re.search(pattern, name) for pattern in EXCLUDED.values()):
            yield f"{module}.{name}"


def is_function_of_torch(value: object, module: str) -> bool:
    """Tell a function or class that PyTorch defines from what a module imports. torch itself has no layers."""
    if not callable(value) or (getattr(value, "__module__", None) or "torch").split(".")[0] != "torch":
        return False
    if module == "torch":
        return value.__name__[0].islower() and not value.__name__.endswith("_")
    if module.startswith("torch.autograd"):
        return "profiler" not in value.__module__ and "_C" not in value.__module__ and value.__name__ != "NestedIOFunction"
    # nn.init has deprecated twins without the underscore of functions that write in place.
    return module != "torch.nn.init" or value.__name__.endswith("_") or value.__name__ == "calculate_gain"


def namespace_of(name: str) -> str:
    """Return the namespace that counts a name: the longest one that it starts with."""
    modules = {module: space for space, modules in NAMESPACES.items() for module in modules}
    return modules[name.rpartition(".")[0]]


def read_names() -> list[str]:
    """Read the names of names.txt."""
    return NAMES.read_text().split()


def draw() -> list[str]:
    """Draw TRIED names by SEED, in proportion to the names of each namespace."""
    names = read_names()
    spaces = {space: [name for name in names if namespace_of(name) == space] for space in NAMESPACES}
    shares = {space: TRIED * len(members) / len(names) for space, members in spaces.items()}
    counts = {space: int(share) for space, share in shares.items()}
    by_remainder = sorted(spaces, key=lambda space: counts[space] - shares[space])
    for space in by_remainder[: TRIED - sum(counts.values())]:
        counts[space] += 1
    rng = random.Random(SEED)
    return [name for space, members in spaces.items() for name in sorted(rng.sample(sorted(members), counts[space]))]
