"""The settings of the replay buffer and of hindsight."""

from dataclasses import dataclass
from typing import Annotated, Literal

from mrn.utils.validation import Bounds, Fraction, Validated

GoalSelectionStrategy = Literal["future", "final", "episode"]


@dataclass(frozen=True)
class ReplayConfig(Validated):
    """The replay buffer and hindsight relabelling."""

    buffer_size: Annotated[int, Bounds(ge=1, le=10**15)] = 1_000_000
    """Transitions kept, in whole episodes."""
    goal_selection_strategy: GoalSelectionStrategy = "future"
    """Which achieved goals of its own episode may replace a transition's goal."""
    her_ratio: Fraction = 0.8
    """Fraction of sampled transitions whose goal is replaced."""
    redraws: Annotated[int, Bounds(ge=0, le=100)] = 0
    """Times that a sampled transition is drawn again if nothing moved in its episode: if what was
    achieved at its end counts as achieved at its start."""
