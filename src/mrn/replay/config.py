"""Settings of the replay buffer and of hindsight relabeling."""

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from mrn.replay.goal_mix import format_goal_mix, parse_goal_mix
from mrn.utils.errors import UserError
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
    goal_mix: Annotated[str | None, tyro.conf.arg(metavar="NAME=WEIGHT,...")] = None
    """Mixture of strategies, instead of the two settings above: `future=0.4,desired=0.4` relabels
    40% of the transitions with each and keeps the goals of the rest. Strategies: `future`, `final`,
    `episode`, `geometric` (discounted future), `random` and `desired` (achieved and desired goals
    of other episodes), `imagined` (by the model of `mher`)."""
    redraws: Annotated[int, Bounds(ge=0, le=100)] = 0
    """Number of times to redraw a sampled transition if nothing moved in its episode, i.e. if the
    goal achieved at its end counts as achieved at its start."""

    def __post_init__(self) -> None:
        """Validate the settings; accept a mapping as `goal_mix`."""
        if self.goal_mix is not None:
            mix = format_goal_mix(parse_goal_mix(self.goal_mix))
            object.__setattr__(self, "goal_mix", mix)
        super().__post_init__()
        defaults = (ReplayConfig.goal_selection_strategy, ReplayConfig.her_ratio)
        if self.goal_mix and (self.goal_selection_strategy, self.her_ratio) != defaults:
            raise UserError(
                f"goal_mix {self.goal_mix!r} replaces goal_selection_strategy and her_ratio: "
                "change its weights instead, or leave it out"
            )

    @property
    def goal_weights(self) -> dict[str, float]:
        """Probability of each strategy; the other transitions keep their goals."""
        if self.goal_mix is None:
            return {self.goal_selection_strategy: self.her_ratio}
        return parse_goal_mix(self.goal_mix)
