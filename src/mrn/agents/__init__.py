"""Who learns: the learners by name."""

from mrn.agents.base import CriticFactory, Learner, LearnerSettings
from mrn.agents.ddpg import DDPG
from mrn.agents.policy import Policy
from mrn.errors import look_up

__all__ = ["AGENTS", "DDPG", "CriticFactory", "Learner", "LearnerSettings", "Policy", "find_agent"]

AGENTS: dict[str, type[Learner]] = {"ddpg": DDPG}


def find_agent(name: str) -> type[Learner]:
    """The learner of that name.

    Raises:
        UserError: There is none; lists those there are.
    """
    return look_up("agent", name, AGENTS)
