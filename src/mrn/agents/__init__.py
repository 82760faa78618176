"""Who learns: the learners by name."""

from mrn.agents.base import CriticFactory, Learner, LearnerSettings
from mrn.agents.ddpg import DDPG
from mrn.agents.gcsl import GCSL
from mrn.agents.policy import Policy
from mrn.agents.sac import SAC
from mrn.agents.td3 import TD3
from mrn.agents.wgcsl import WGCSL
from mrn.critics import CRITICS
from mrn.errors import UserError
from mrn.naming import NO_CRITIC
from mrn.own import find

__all__ = [
    "AGENTS",
    "DDPG",
    "GCSL",
    "SAC",
    "TD3",
    "WGCSL",
    "CriticFactory",
    "Learner",
    "LearnerSettings",
    "Policy",
    "find_agent",
]

AGENTS: dict[str, type[Learner]] = {
    "ddpg": DDPG,
    "td3": TD3,
    "sac": SAC,
    "gcsl": GCSL,
    "wgcsl": WGCSL,
}

AUTO, USUAL = "auto", "mrn"
"""How a run says that it takes the usual critic, and which that is."""


def find_agent(name: str) -> type[Learner]:
    """The learner of that name, or of a user's `package.module:name`.

    Raises:
        UserError: There is none; lists those there are.
    """

    def fits(found: object) -> bool:
        return isinstance(found, type) and issubclass(found, Learner)

    return find("agent", name, AGENTS, fits, "a class derived from mrn.agents.Learner")


def choose_critic(agent: str, critic: str) -> str:
    """The critic of an agent's run: the one asked for; for `auto` mrn, or none if it has no use.

    Raises:
        UserError: The agent cannot use that critic, or there is no such agent.
    """
    uses_critic = find_agent(agent).uses_critic
    if critic == AUTO:
        return USUAL if uses_critic else NO_CRITIC
    if uses_critic and critic == NO_CRITIC:
        raise UserError(
            f"agent {agent!r} needs a critic: leave {NO_CRITIC!r} out for {USUAL}, or choose one "
            f"of {', '.join(CRITICS)}"
        )
    if critic != NO_CRITIC and not uses_critic:
        raise UserError(
            f"agent {agent!r} learns without a critic: leave {critic!r} out, or choose an agent "
            f"that has one ({', '.join(name for name, each in AGENTS.items() if each.uses_critic)})"
        )
    return critic
