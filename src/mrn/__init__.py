"""Goal-conditioned reinforcement learning with metric critics.

Critics and algorithms need only torch, NumPy and safetensors. Everything else is imported on first
use and needs the extra `train`.
"""

from typing import TYPE_CHECKING, Any

from mrn import algorithms as algorithms
from mrn import critics as critics
from mrn.critics import make_critic
from mrn.utils.errors import RunError, UserError
from mrn.utils.extras import import_training
from mrn.version import __version__

if TYPE_CHECKING:
    from mrn.agent import Agent
    from mrn.api import load, train
    from mrn.config import Config
    from mrn.training.callbacks import Callback
    from mrn.training.evaluation import Evaluation
    from mrn.training.reach import Reach

__all__ = [
    "Agent",
    "Callback",
    "Config",
    "Evaluation",
    "Reach",
    "RunError",
    "UserError",
    "__version__",
    "load",
    "make_critic",
    "train",
]

_TRAINING = {
    "Agent": "mrn.agent",
    "Callback": "mrn.training.callbacks",
    "Config": "mrn.config",
    "Evaluation": "mrn.training.evaluation",
    "Reach": "mrn.training.reach",
    "load": "mrn.api",
    "train": "mrn.api",
}
"""Modules of the names that need the extra `train`."""


def __getattr__(name: str) -> Any:
    """Import a name of `_TRAINING` on first use (PEP 562)."""
    if name not in _TRAINING:
        raise AttributeError(f"module 'mrn' has no attribute {name!r}")
    value = globals()[name] = getattr(import_training(_TRAINING[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
