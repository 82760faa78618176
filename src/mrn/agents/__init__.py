"""Who learns: the agents by name."""

from mrn.agents.ddpg import DDPG

__all__ = ["AGENTS", "DDPG"]

AGENTS = {"ddpg": DDPG}
