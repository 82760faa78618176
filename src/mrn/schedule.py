"""Settings of the training schedule."""

from dataclasses import dataclass
from typing import Annotated

from mrn.utils.validation import Bounds, Validated


@dataclass(frozen=True)
class Schedule(Validated):
    """How rollouts, gradient steps and evaluation alternate."""

    cycles: Annotated[int, Bounds(ge=1, le=10**6)] = 50
    """Cycles per epoch. A cycle is one episode in each environment, then the gradient steps."""
    num_envs: Annotated[int, Bounds(ge=1, le=10**5)] = 20
    """Parallel environments. Each plays one episode per cycle."""
    gradient_steps: Annotated[int, Bounds(ge=0, le=10**6)] = 40
    """Gradient steps per cycle."""
    warmup_episodes: Annotated[int, Bounds(ge=0, le=10**9)] = 0
    """Episodes with uniform random actions at the start of the run, rounded up to whole cycles."""
    eval_episodes: Annotated[int, Bounds(ge=0, le=10**6)] = 100
    """Evaluation episodes after each epoch; 0 turns evaluation off."""
    eval_interval: Annotated[int, Bounds(ge=1, le=10**12)] | None = None
    """Environment steps between evaluations; sets `cycles` and scales the default of `epochs`."""
