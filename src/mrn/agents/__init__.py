"""Who learns: the learners by name."""

from mrn.agents.base import CriticFactory, Learner, LearnerSettings
from mrn.agents.ddpg import DDPG
from mrn.agents.policy import Policy
from mrn.own import find

__all__ = ["AGENTS", "DDPG", "CriticFactory", "Learner", "LearnerSettings", "Policy", "find_agent"]

AGENTS: dict[str, type[Learner]] = {"ddpg": DDPG}


def find_agent(name: str) -> type[Learner]:
    """The learner of that name, or of a user's `package.module:name`.

    Raises:
        UserError: There is none; lists those there are.
    """

    def fits(found: object) -> bool:
        return isinstance(found, type) and issubclass(found, Learner)

    return find("agent", name, AGENTS, fits, "a class derived from mrn.agents.Learner")
