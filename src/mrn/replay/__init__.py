"""What the agent remembers: episodes, hindsight, and the scale of what it has seen."""

from mrn.replay.buffer import Episodes, ReplayBuffer
from mrn.replay.config import ReplayConfig
from mrn.replay.hindsight import Hindsight
from mrn.replay.normalizer import Normalizer

__all__ = ["Episodes", "Hindsight", "Normalizer", "ReplayBuffer", "ReplayConfig"]
