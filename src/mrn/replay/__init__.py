"""Replay buffer, hindsight relabeling and input normalization."""

from mrn.replay.buffer import ReplayBuffer
from mrn.replay.config import ReplayConfig
from mrn.replay.episodes import Episodes
from mrn.replay.hindsight import Hindsight
from mrn.replay.normalizer import Normalizer

__all__ = ["Episodes", "Hindsight", "Normalizer", "ReplayBuffer", "ReplayConfig"]
