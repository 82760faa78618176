"""The device `meta`, which has no values, as a stand-in for a GPU: what fails here would wait."""

from contextlib import contextmanager

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

META = torch.device("meta")

SYNCHRONIZING = {
    "_local_scalar_dense",  # item, bool, int, float
    "_unique2",
    "bincount",
    "equal",
    "masked_select",
    "nonzero",
    "repeat_interleave",  # by a tensor of counts; by a number, it is another operation
    "unique_consecutive",
    "unique_dim",
}
"""Operations for which the host waits, because it needs a value or a size."""
COPIES = {"_to_copy", "copy_"}
UPLOADS = {torch.tensor, torch.as_tensor, torch.from_numpy}
"""Functions that copy from the host, for which it waits. On `meta`, no operation shows them."""


class DeviceError(AssertionError):
    """An operation makes the host wait for the device, or uses another device."""


@contextmanager
def one_device(device: torch.device):
    """Raise if an operation in this block makes the host wait, or uses another device.

    Numbers on the CPU, of shape (), are allowed as operands: GPU kernels take them as arguments.
    Yields an object that counts the operations.
    """
    with _Functions(), _Operations(device) as operations:
        yield operations


class _Functions(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in UPLOADS:
            raise DeviceError(f"{func.__name__} copies from the host, which waits")
        return func(*args, **(kwargs or {}))


class _Operations(TorchDispatchMode):
    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device, self.operations = device, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        inputs = tensors(args, kwargs)
        if name in SYNCHRONIZING:
            raise DeviceError(f"the host waits for the result of {func}")
        is_indexing = name in ("index", "index_put", "index_put_")
        if is_indexing and any(index.dtype is torch.bool for index in tensors(args[1])):
            raise DeviceError(f"the host waits for the number of elements that {func} selects")
        used = [*inputs, *tensors(output := func(*args, **(kwargs or {})))]
        devices = {each.device for each in used if each.ndim or name in COPIES}
        if not devices <= {self.device}:
            raise DeviceError(f"{func} uses {' and '.join(sorted(map(str, devices)))}")
        self.operations += 1
        return output


def tensors(*trees) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(trees) if isinstance(leaf, Tensor)]


class MetaGenerator(torch.Generator):
    """Generator for `meta`, which has none of its own."""

    device = META
