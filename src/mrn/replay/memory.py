"""The settings of the replay buffer and of hindsight."""

from dataclasses import dataclass
from typing import Annotated, Literal

from mrn.checked import Checked, Limits, Share

Relabel = Literal["future", "final", "episode"]


@dataclass(frozen=True)
class Memory(Checked):
    """The replay buffer and hindsight relabelling."""

    capacity: Annotated[int, Limits(least=1, most=10**15)] = 1_000_000
    """Transitions kept, in whole episodes."""
    relabel: Relabel = "future"
    """Which achieved goals of its own episode may replace a transition's goal."""
    relabel_probability: Share = 0.8
    """Share of sampled transitions whose goal is replaced."""
    redraws: Annotated[int, Limits(least=0, most=100)] = 0
    """Times that a sampled transition is drawn again if nothing moved in its episode: if what was
    achieved at its end counts as achieved at its start."""
