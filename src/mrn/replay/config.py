"""Settings of the replay buffer and of hindsight relabeling."""

from dataclasses import dataclass
from typing import Annotated, Literal

from mrn.utils.validation import Bounds, Fraction, Validated

GoalSelectionStrategy = Literal["future", "final", "episode"]


@dataclass(frozen=True)
class ReplayConfig(Validated):
    """Settings of the replay buffer and of hindsight relabeling."""

    buffer_size: Annotated[int, Bounds(ge=1, le=10**15)] = 1_000_000
    """Capacity of the replay buffer in transitions; it stores whole episodes."""
    goal_selection_strategy: GoalSelectionStrategy = "future"
    """Which achieved goals of the same episode can replace a transition's goal."""
    her_ratio: Fraction = 0.8
    """Fraction of sampled transitions that are relabeled."""
    redraws: Annotated[int, Bounds(ge=0, le=100)] = 0
    """Number of times to redraw a sampled transition if nothing moved in its episode, i.e. if the
    goal achieved at its end counts as achieved at its start."""
